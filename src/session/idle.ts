// SESSION_IDLE_MINUTES: a session without activity ends. The record has the time of the last activity, accurate to a quarter of the
// setting (activity-writer.ts). With a setting of 20 minutes:
//
//   0:00   the last activity that was written; the user may have been active until just before 0:05
//   0:25   20 minutes plus a quarter later, and never early, the session ends: at a request that finds it idle, or by the watch,
//          which checks every second the sessions that were active in this process
//
// Only this process knows of an activity that is not written yet.

import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { type ActiveSession, type Activity, createActivityWriter } from './activity-writer.ts'
import type { LoadedSession } from './cache.ts'
import type { EndReasons } from './end-reasons.ts'
import { sessionFields } from './fields.ts'
import { decodeJson, encodeJson, sealValue, unpackRecord, unsealValue } from './sealing.ts'
import type { StoredSessionsOptions } from './stored-sessions.ts'

export interface IdleSessions {
  isOn(): boolean
  /** Whether the session has ended by now. */
  isIdle(seen: SeenSession): boolean
  /** When it ends without further activity; `undefined` if it does not. */
  endsAt(seen: SeenSession): number | undefined
  /** Notes that there was activity just now. */
  note(loaded: LoadedSession): void
  /** Watches a session that was opened: its end is noticed without a further request. */
  watch(loaded: LoadedSession): void
  /** Ends the session, unless there was activity elsewhere; true if it is gone. */
  end(seen: SeenSession, fields: object): Promise<boolean>
  /** Applies the setting after a start. */
  begin(minutes: number): Promise<void>
  /** Applies the setting after a reload. */
  use(minutes: number): void
  /** Writes the activity that is not written yet, and stops. */
  close(): Promise<void>
}

export type SeenSession = Pick<LoadedSession, 'key' | 'seenAt'>

interface IdleOptions extends Pick<StoredSessionsOptions, 'store' | 'keyring' | 'now' | 'report'> {
  readonly reasons: EndReasons
}

const MINUTE_MS = 60_000

/** When a session ends without activity after this; `undefined` if it does not. */
export function idleEndAfter(seenAt: number, minutes: number): number | undefined {
  return minutes > 0 ? seenAt + minutes * MINUTE_MS * 1.25 : undefined
}

const CHECK_INTERVAL_MS = 1000
/** Sessions per check. */
const MAX_PER_CHECK = 100
/** Per process: about 30 MB. The end of further sessions is noticed at their next request, or they expire. */
const MAX_WATCHED = 100_000

export function createIdleSessions({ store, keyring, now, report, reasons }: IdleOptions): IdleSessions {
  let minutes = 0
  /** How long a session lives after its last written activity. */
  let maxIdleMs = Number.POSITIVE_INFINITY
  /** Times before this were not written for this setting: they may be older than the last activity. */
  let exactSince = 0
  const writer = createActivityWriter({ store, keyring, now, report })
  /** The last activity of each session, the oldest first. */
  const watched = new Map<string, Activity>()
  let timer: NodeJS.Timeout | undefined
  let isChecking = false

  function set(next: number): void {
    minutes = next
    const idleMs = minutes > 0 ? minutes * MINUTE_MS : Number.POSITIVE_INFINITY
    maxIdleMs = idleMs * 1.25
    writer.use(idleMs / 4)
    clearInterval(timer)
    timer = minutes > 0 ? setInterval(() => void checkOldest(), CHECK_INTERVAL_MS).unref() : undefined
    if (minutes === 0) watched.clear()
  }

  function endsAt({ key, seenAt }: SeenSession): number {
    return Math.max(seenAt, writer.unwrittenAt(key) ?? 0, countsSince()) + maxIdleMs
  }

  /** A time from before the clock was set back is ignored. */
  function countsSince(): number {
    return exactSince <= now() ? exactSince : 0
  }

  /** Nearly every request needs only the first comparison. */
  function isIdle(seen: SeenSession): boolean {
    const at = now()
    return at >= seen.seenAt + maxIdleMs && at >= endsAt(seen)
  }

  function watch(activity: Activity): void {
    const { key } = activity.loaded
    watched.delete(key)
    watched.set(key, activity)
    const [oldest] = watched.size > MAX_WATCHED ? watched.keys() : []
    if (oldest !== undefined) watched.delete(oldest)
  }

  async function end({ key }: Pick<SeenSession, 'key'>, fields: object): Promise<boolean> {
    const stored = await store.read(key)
    const seenAt = stored && unpackRecord(stored.value)?.seenAt
    if (!stored || seenAt === undefined) return true
    if (!isIdle({ key, seenAt })) return false
    // If it has changed since it was read, it is checked again.
    if (!(await reasons.endUnchanged(stored, 'idle'))) return end({ key }, fields)
    watched.delete(key)
    report('session_ended', { ...fields, reason: 'idle', ended: 1 })
    return true
  }

  /** Ends sessions without further requests. If another process knows of later activity, the store does too. */
  async function checkOldest(): Promise<void> {
    if (isChecking) return
    isChecking = true
    try {
      const due: Activity[] = []
      for (const activity of watched.values()) {
        if (due.length === MAX_PER_CHECK || now() < Math.max(activity.at, countsSince()) + maxIdleMs) break
        due.push(activity)
      }
      await Promise.all(due.map(checkWatched))
    } catch {
      // The store failed. The sessions are checked again.
    }
    isChecking = false
  }

  async function checkWatched({ loaded }: Activity): Promise<void> {
    const { key } = loaded
    if (await end({ key }, sessionFields(loaded))) {
      watched.delete(key)
      return
    }
    const stored = await store.read(key)
    watch({ loaded, at: (stored && unpackRecord(stored.value)?.seenAt) ?? now() })
  }

  return {
    isOn: () => minutes > 0,
    isIdle,
    endsAt: seen => (minutes > 0 ? endsAt(seen) : undefined),
    end,
    watch(loaded) {
      if (minutes > 0) watch({ loaded: withoutTokens(loaded), at: loaded.seenAt })
    },

    note(loaded) {
      const at = now()
      if (!writer.isDue(loaded.seenAt, at, at)) return
      const activity = { loaded: withoutTokens(loaded), at }
      if (writer.write(activity)) watch(activity)
    },

    async begin(next) {
      set(next)
      exactSince = now()
      exactSince = await readExactSince({ store, keyring }, next, now())
    },

    use(next) {
      if (next === minutes) return
      set(next)
      exactSince = now()
      readExactSince({ store, keyring }, next, exactSince).catch(() => {})
    },

    async close() {
      clearInterval(timer)
      await writer.close()
    },
  }
}

function withoutTokens({ key, signedInAt, session }: LoadedSession): ActiveSession {
  const { userInfo, userRole, provider } = session
  return { key, signedInAt, session: { userInfo, userRole, ...(provider === undefined ? {} : { provider }) } }
}

// The time since which the store has times for this setting. The idle time of an older session starts then, because a longer setting,
// or none, was less accurate.

const KEY = 'idle'
const exactSchema = z.object({ minutes: z.number(), since: z.number() })
const RECORD_TTL_MS = 10 * 365 * 24 * 3_600_000

/** From now on if the store does not answer. */
async function readExactSince(
  { store, keyring }: Pick<IdleOptions, 'store' | 'keyring'>,
  minutes: number,
  now: number,
): Promise<number> {
  try {
    const { publicPart } = await keyring.current()
    const stored = await store.read(KEY)
    const known = stored && decodeJson(exactSchema, unsealValue(publicPart, stored.value, KEY))
    if (known?.minutes === minutes) return Math.min(known.since, now)
    if (minutes === 0) {
      if (stored) await store.remove(KEY)
      return 0
    }
    const entry = {
      value: sealValue(publicPart, encodeJson({ minutes, since: now }), KEY),
      expiresAt: now + RECORD_TTL_MS,
      labels: [],
    }
    if (stored) await store.replace(KEY, entry, stored.version)
    else await store.create(KEY, entry)
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
  }
  return now
}
