// What this process measured, together with what others did, if there are others.
import { loadExposition } from './exposition.ts'
import type { Metrics } from './metrics.ts'
import type { Reading } from './reading.ts'

/** Gets the means to read what this process measured, and gives back what asks for the text of all. */
export type Gathering = (read: () => Promise<Reading>) => () => Promise<string>

export const gatherAlone: Gathering = read => async () => {
  const { writeMetrics } = await loadExposition()
  return writeMetrics([await read()])
}

interface Sources {
  readonly metrics: Metrics
  readonly upstreams: { readonly waiting: number; readonly streams: number }
  /** How many sessions the store holds. */
  readonly countSessions: () => Promise<number>
}

const COUNT_AGE_MS = 2000
/** A store that is away must not make the rest unknown too. */
const COUNT_DEADLINE_MS = 500

export function createReader({ metrics, upstreams, countSessions }: Sources): () => Promise<Reading> {
  const sessions = createRecent(countSessions)
  return async () => {
    const menshen_sessions = await sessions()
    return metrics.read({
      menshen_upstream_queue: upstreams.waiting,
      menshen_open_streams: upstreams.streams,
      ...(menshen_sessions !== undefined && { menshen_sessions }),
    })
  }
}

/** Asked once for all who ask within a moment; `undefined` if it fails or takes too long. */
function createRecent(ask: () => Promise<number>): () => Promise<number | undefined> {
  let latest: { at: number; value: Promise<number | undefined> } | undefined
  return () => {
    const at = performance.now()
    if (!latest || at - latest.at > COUNT_AGE_MS) latest = { at, value: inTime(ask) }
    return latest.value
  }
}

async function inTime(ask: () => Promise<number>): Promise<number | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const deadline = setTimeout(resolve, COUNT_DEADLINE_MS, undefined)
  try {
    return await Promise.race([ask(), late])
  } catch {
    return undefined
  } finally {
    clearTimeout(deadline)
  }
}
