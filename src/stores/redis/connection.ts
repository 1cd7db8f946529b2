// One connection to Redis, from its first answer to its first failure. It never reconnects: reconnecting-client.ts replaces it.

import { setTimeout as pause } from 'node:timers/promises'
import { inTime } from '../deadline.ts'
import { DEADLINE_MS } from './client-options.ts'
import type { Commands } from './commands.ts'
import { createReadCache, type ReadCacheLimits } from './read-cache.ts'
import { decodeReply, type Indexed, recordName } from './redis-record.ts'

export interface Connection {
  readonly commands: Commands
  /** A record that is known to be the latest without asking. */
  known(key: string): Indexed | undefined
  /** Asks for a record, and knows it from then on. */
  load(key: string): Promise<Indexed | undefined>
  /** Asks for a record. */
  fetch(key: string): Promise<Indexed | undefined>
  /** Drops what is known of a record, and lets nothing be known by reads that are underway. */
  forget(key: string): void
  forgetAll(): void
  lose(reason: unknown): void
  /** Resolves with the reason when the connection is of no use any more. */
  readonly lost: Promise<unknown>
  close(): Promise<void>
}

export type Connect = () => Promise<Connection>

/** What node-redis calls a client or a cluster. */
interface SupervisedClient {
  close(): Promise<unknown>
  destroy(): void
}

const HEARTBEAT_MS = 500
const SILENCE_MS = 1000
/** What was read counts as long as the server has answered something that it was asked within this time. */
const TRUST_MS = 2000

/** Without `limits` nothing is cached: the server does not say what changes, or there is no room. */
export function superviseConnection(
  client: SupervisedClient,
  commands: Commands,
  limits: ReadCacheLimits | undefined,
): Connection {
  const fetch = async (key: string) => decodeReply(key, await commands.get(recordName(key)))
  const cache = limits && limits.size > 0 && limits.bytes >= 1 ? createReadCache(limits, fetch) : undefined
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  let isLost = false
  // By the clock of the process and not by that of the store: this is about the wire.
  let provenAt = performance.now()

  function lose(reason: unknown): void {
    if (isLost) return
    isLost = true
    cache?.forgetAll()
    client.destroy()
    resolve(reason)
  }

  async function listen(): Promise<void> {
    while (!isLost) {
      const askedAt = performance.now()
      await inTime(commands.ping(), SILENCE_MS)
      provenAt = askedAt
      await pause(HEARTBEAT_MS, undefined, { ref: false })
    }
  }
  listen().catch(lose)

  return {
    commands,
    fetch,
    lose,
    lost,

    known(key) {
      const isTrusted = !isLost && performance.now() - provenAt < TRUST_MS
      return isTrusted ? cache?.get(key) : undefined
    },

    load: key => cache?.load(key) ?? fetch(key),

    forget: key => cache?.forget(key),
    forgetAll: () => cache?.forgetAll(),

    async close() {
      await inTime(client.close(), DEADLINE_MS).catch(() => {})
      lose(new Error('The store is closed.'))
    },
  }
}
