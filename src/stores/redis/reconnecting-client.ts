// Keeps one connection to Redis: makes a new one whenever it is lost, and never gives up.

import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from '../../events.ts'
import type { Connect, Connection } from './connection.ts'

export interface ReconnectingClient {
  /** Absent while Redis cannot be reached. */
  readonly connection: Connection | undefined
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000

/** Resolves when the first attempt to connect has ended, well or not. */
export async function openReconnectingClient(
  connect: Connect,
  store: string,
  report: Report,
): Promise<ReconnectingClient> {
  const closing = new AbortController()
  const tried = Promise.withResolvers<void>()
  let connection: Connection | undefined
  let told: string | undefined

  function tell(error: unknown): void {
    const reason = reasonOf(error)
    if (reason !== told) report('store_unreachable', { store, reason })
    told = reason
  }

  async function serve(): Promise<void> {
    const opened = await connect()
    if (closing.signal.aborted) return opened.close()
    if (told !== undefined) report('store_reachable', { store })
    told = undefined
    connection = opened
    tried.resolve()
    const reason = await opened.lost
    connection = undefined
    if (!closing.signal.aborted) tell(reason)
  }

  async function keep(): Promise<void> {
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      await serve().then(() => {
        attempt = 0
      }, tell)
      tried.resolve()
      await pause(backoffMs(attempt), undefined, { signal: closing.signal }).catch(() => {})
    }
  }
  keep()
  await tried.promise

  return {
    get connection() {
      return connection
    },
    async close() {
      closing.abort()
      await connection?.close()
    },
  }
}

function backoffMs(attempt: number): number {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS)
  return longest * (0.5 + Math.random() / 2)
}

/** Errors of several attempts at once (two addresses of one name, several sentinels) have no words of their own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}
