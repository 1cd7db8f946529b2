// Writes the last activity of sessions into their records, for SESSION_IDLE_MINUTES. With a setting of 20 minutes:
//
//   0:00   sign-in: the record has 0:00
//   0:03   a request: less than a quarter of the setting (5 minutes) has passed, and nothing is written
//   0:07   a request: the activity waits here and is written within a tenth of a second; the record has 0:07
//   0:13   a request while the store is unavailable: the activity waits here, and the write is retried until it succeeds
//
// Until it is written, only this process knows of an activity (`unwrittenAt`).

import { errorFields } from '../errors.ts'
import type { LoadedSession } from './cache.ts'
import { sessionFields } from './fields.ts'
import { seenEntry } from './last-seen.ts'
import type { SummarizedSession } from './record.ts'
import { unpackRecord } from './sealing.ts'
import type { StoredSessionsOptions } from './stored-sessions.ts'

export interface ActivityWriter {
  /** The time of the last activity that is not written yet. */
  unwrittenAt(key: string): number | undefined
  /** Whether activity at `at` is worth a write to a record that has `seenAt`. `clock` is the current time. */
  isDue(seenAt: number, at: number, clock: number): boolean
  /** Writes the activity soon. False if too many others are waiting; a later activity of the session is written instead. */
  write(activity: Activity): boolean
  /** Activity is written when this time has passed since the last one. `Infinity` turns it off. */
  use(quarterMs: number): void
  /** Writes what is not written yet, and stops. */
  close(): Promise<void>
}

export interface Activity {
  readonly loaded: ActiveSession
  readonly at: number
}

/** A session without its tokens, so that they do not stay in memory. */
export type ActiveSession = Pick<LoadedSession, 'key' | 'signedInAt'> & { readonly session: SummarizedSession }

/** The largest difference expected between the clocks of two instances. For short settings, a tenth of a quarter applies. */
const CLOCK_SKEW_MS = 5000
const TICK_MS = 100
/** The minimum number of writes per tick: enough for 100,000 users and 20 minutes. With more to write, all are written within half a quarter. */
const MIN_WRITES_PER_TICK = 35
const RETRY_MS = 1000
const MAX_UNWRITTEN = 200_000

export function createActivityWriter({
  store,
  keyring,
  now,
  report,
}: Pick<StoredSessionsOptions, 'store' | 'keyring' | 'now' | 'report'>): ActivityWriter {
  const unwritten = new Map<string, Activity>()
  let quarterMs = Number.POSITIVE_INFINITY
  let stepMs = Number.POSITIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isFailing = false
  let isClosed = false

  function schedule(ms: number): void {
    if (isClosed) return
    timer ??= setTimeout(() => {
      timer = undefined
      void writeSome()
    }, ms).unref()
  }

  async function writeSome(): Promise<void> {
    const share = (2 * TICK_MS) / quarterMs
    const count = Math.max(MIN_WRITES_PER_TICK, Math.ceil(unwritten.size * share))
    const results = await Promise.all([...unwritten.values()].slice(0, count).map(tryToWrite))
    if (unwritten.size > 0) schedule(results.includes(false) ? RETRY_MS : TICK_MS)
  }

  async function tryToWrite(activity: Activity): Promise<boolean> {
    const { key } = activity.loaded
    try {
      await writeNow(activity)
      if (unwritten.get(key) === activity) unwritten.delete(key)
      isFailing = false
      return true
    } catch (error) {
      // Once per outage, not per session.
      if (!isFailing) report('last_seen_not_saved', { ...errorFields(error), ...sessionFields(activity.loaded) })
      isFailing = true
      return false
    }
  }

  /** Another process may have written a later time, or a refresh may change the record at the same moment. */
  async function writeNow({ loaded, at }: Activity): Promise<void> {
    for (;;) {
      const stored = await store.read(loaded.key)
      const seenAt = stored && unpackRecord(stored.value)?.seenAt
      if (!stored || seenAt === undefined || !isDue(seenAt, at, now())) return
      const entry = seenEntry(stored, loaded, at, await keyring.current())
      if (!entry || (await store.replace(loaded.key, entry, stored.version)) !== undefined) return
    }
  }

  /** Also if the clock was set back since then; otherwise the session would live on for that long. */
  function isDue(seenAt: number, at: number, clock: number): boolean {
    return at - seenAt >= stepMs || seenAt - clock >= stepMs
  }

  return {
    unwrittenAt: key => unwritten.get(key)?.at,
    isDue,

    write(activity) {
      const { key } = activity.loaded
      if (unwritten.size >= MAX_UNWRITTEN && !unwritten.has(key)) return false
      unwritten.set(key, activity)
      schedule(0)
      return true
    },

    use(next) {
      quarterMs = next
      stepMs = quarterMs - Math.min(CLOCK_SKEW_MS, quarterMs / 10)
    },

    async close() {
      isClosed = true
      clearTimeout(timer)
      await Promise.all([...unwritten.values()].map(tryToWrite))
    },
  }
}
