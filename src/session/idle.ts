// SESSION_IDLE_MINUTES: a session without activity ends.
//
// The record has the time of the last activity, exact to a quarter of the setting: activity is written when a quarter has passed
// since the last one that was. A session therefore ends one quarter after the setting, and never early: activity that is not
// written yet, or that cannot be written, counts in this process, and is tried again until it is written.

import { z } from 'zod'
import { errorFields, MenshenError } from '../errors.ts'
import type { EndReasons } from './end-reasons.ts'
import { seenEntry } from './last-seen.ts'
import { decodeJson, encodeJson, sealValue, unpackRecord, unsealValue } from './sealing.ts'
import type { LoadedSession } from './session-cache.ts'
import { sessionFields } from './session-fields.ts'
import type { PublicUser } from './session-record.ts'
import type { StoredSessionsOptions } from './stored-sessions.ts'

export interface IdleSessions {
  isOn(): boolean
  /** Whether the session has ended by now. */
  isIdle(seen: SeenSession): boolean
  /** When it ends without further activity; `undefined` if it does not. */
  endsAt(seen: SeenSession): number | undefined
  /** There was activity just now. */
  note(loaded: LoadedSession): void
  /** A session was opened: its end is noticed even if nobody asks for it. */
  watch(loaded: LoadedSession): void
  /** Ends the session, unless there was activity elsewhere; true if it is gone. */
  end(seen: SeenSession, fields: object): Promise<boolean>
  /** The setting after a start. */
  begin(minutes: number): Promise<void>
  /** The setting after a reload. */
  use(minutes: number): void
  /** Writes what is not written yet, and stops. */
  close(): Promise<void>
}

export type SeenSession = Pick<LoadedSession, 'key' | 'seenAt'>

interface IdleOptions extends Pick<StoredSessionsOptions, 'store' | 'keyring' | 'now' | 'report'> {
  readonly reasons: EndReasons
}

/** No token stays in memory for it. */
type ActiveSession = Pick<LoadedSession, 'key' | 'signedInAt'> & { readonly session: PublicUser }

interface Activity {
  readonly loaded: ActiveSession
  readonly at: number
}

const MINUTE_MS = 60_000

/** When a session ends without activity after this; `undefined` if it does not. */
export function idleEndAfter(seenAt: number, minutes: number): number | undefined {
  return minutes > 0 ? seenAt + minutes * MINUTE_MS * 1.25 : undefined
}

/** Clocks of instances differ by this much at most. It is a tenth of a quarter for short settings. */
const CLOCK_SKEW_MS = 5000
const TICK_MS = 100
/** Writes per tick at least: enough for 100,000 users and 20 minutes. With more to write, half a quarter is enough time for all. */
const LEAST_PER_TICK = 35
const RETRY_MS = 1000
const LOOK_EVERY_MS = 1000
/** Ends per look. */
const MOST_PER_LOOK = 100
/** Per process: about 30 MB. Sessions beyond are noticed by their next request, or expire. */
const MOST_WATCHED = 100_000
const MOST_UNWRITTEN = 200_000

export function createIdleSessions({ store, keyring, now, report, reasons }: IdleOptions): IdleSessions {
  let minutes = 0
  /** After the last activity that was written. */
  let longestMs = Number.POSITIVE_INFINITY
  let stepMs = Number.POSITIVE_INFINITY
  /** Before this, times were not written for this setting: they may be older than the last activity. */
  let exactSince = 0
  const unwritten = new Map<string, Activity>()
  /** The last activity of each, the oldest first. */
  const watched = new Map<string, Activity>()
  let writing: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined
  let isLooking = false
  let isFailing = false
  let isClosed = false

  function set(next: number): void {
    minutes = next
    const idleMs = minutes * MINUTE_MS
    const quarterMs = idleMs / 4
    longestMs = minutes > 0 ? idleMs + quarterMs : Number.POSITIVE_INFINITY
    stepMs = minutes > 0 ? quarterMs - Math.min(CLOCK_SKEW_MS, quarterMs / 10) : Number.POSITIVE_INFINITY
    clearInterval(looking)
    looking = minutes > 0 ? setInterval(() => void look(), LOOK_EVERY_MS).unref() : undefined
    if (minutes === 0) watched.clear()
  }

  function endsAt({ key, seenAt }: SeenSession): number {
    return Math.max(seenAt, unwritten.get(key)?.at ?? 0, countsSince()) + longestMs
  }

  /** A time of before the clock was set back says nothing. */
  function countsSince(): number {
    return exactSince <= now() ? exactSince : 0
  }

  /** Nearly every request ends with the first comparison. */
  function isIdle(seen: SeenSession): boolean {
    const at = now()
    return at >= seen.seenAt + longestMs && at >= endsAt(seen)
  }

  function watch(loaded: ActiveSession, at: number): void {
    watched.delete(loaded.key)
    watched.set(loaded.key, { loaded, at })
    const [oldest] = watched.size > MOST_WATCHED ? watched.keys() : []
    if (oldest !== undefined) watched.delete(oldest)
  }

  // Writing.

  function wait(ms: number): void {
    if (isClosed) return
    writing ??= setTimeout(() => {
      writing = undefined
      void writeSome()
    }, ms).unref()
  }

  async function writeSome(): Promise<void> {
    const share = (2 * TICK_MS) / ((minutes * MINUTE_MS) / 4 || Number.POSITIVE_INFINITY)
    const count = Math.max(LEAST_PER_TICK, Math.ceil(unwritten.size * share))
    const results = await Promise.all([...unwritten.values()].slice(0, count).map(tryToWrite))
    if (unwritten.size > 0) wait(results.includes(false) ? RETRY_MS : TICK_MS)
  }

  async function tryToWrite(activity: Activity): Promise<boolean> {
    const { key } = activity.loaded
    try {
      await write(activity)
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
  async function write({ loaded, at }: Activity): Promise<void> {
    for (;;) {
      const stored = await store.read(loaded.key)
      const seenAt = stored && unpackRecord(stored.value)?.seenAt
      if (!stored || seenAt === undefined || !isWorthWriting(seenAt, at, now())) return
      const entry = seenEntry(stored, loaded, at, await keyring.current())
      if (!entry || (await store.replace(loaded.key, entry, stored.version)) !== undefined) return
    }
  }

  /** Also if the clock was set back since: otherwise the session would live on for that long. */
  function isWorthWriting(seenAt: number, at: number, clock: number): boolean {
    return at - seenAt >= stepMs || seenAt - clock >= stepMs
  }

  // Ending.

  async function end({ key }: Pick<SeenSession, 'key'>, fields: object): Promise<boolean> {
    const stored = await store.read(key)
    const seenAt = stored && unpackRecord(stored.value)?.seenAt
    if (!stored || seenAt === undefined) return true
    if (!isIdle({ key, seenAt })) return false
    // If it has changed since it was read, it is looked at again.
    if (!(await reasons.endUnchanged(stored, 'idle'))) return end({ key }, fields)
    watched.delete(key)
    report('session_ended', { ...fields, reason: 'idle', ended: 1 })
    return true
  }

  /** Sessions that nobody asks for. If another process knows of later activity, the store does too. */
  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    try {
      const due: Activity[] = []
      for (const activity of watched.values()) {
        if (due.length === MOST_PER_LOOK || now() < Math.max(activity.at, countsSince()) + longestMs) break
        due.push(activity)
      }
      await Promise.all(due.map(lookAt))
    } catch {
      // The store fails. They are looked at again.
    }
    isLooking = false
  }

  async function lookAt({ loaded }: Activity): Promise<void> {
    const { key } = loaded
    if (await end({ key }, sessionFields(loaded))) {
      watched.delete(key)
      return
    }
    const stored = await store.read(key)
    watch(loaded, (stored && unpackRecord(stored.value)?.seenAt) ?? now())
  }

  return {
    isOn: () => minutes > 0,
    isIdle,
    endsAt: seen => (minutes > 0 ? endsAt(seen) : undefined),
    end,
    watch(loaded) {
      if (minutes > 0) watch(withoutTokens(loaded), loaded.seenAt)
    },

    note(loaded) {
      const at = now()
      if (!isWorthWriting(loaded.seenAt, at, at)) return
      if (unwritten.size >= MOST_UNWRITTEN && !unwritten.has(loaded.key)) return
      const active = withoutTokens(loaded)
      unwritten.set(loaded.key, { loaded: active, at })
      watch(active, at)
      wait(0)
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
      isClosed = true
      clearInterval(looking)
      clearTimeout(writing)
      await Promise.all([...unwritten.values()].map(tryToWrite))
    },
  }
}

function withoutTokens({ key, signedInAt, session }: LoadedSession): ActiveSession {
  const { userInfo, userRole, provider } = session
  return { key, signedInAt, session: { userInfo, userRole, ...(provider === undefined ? {} : { provider }) } }
}

// Since when the store has times for this setting. A session that is older counts from then on: a longer setting, or none, was
// less exact.

const KEY = 'idle'
const exactSchema = z.object({ minutes: z.number(), since: z.number() })
const KEPT_MS = 10 * 365 * 24 * 3_600_000

/** Without an answer of the store, from now on. */
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
      expiresAt: now + KEPT_MS,
      labels: [],
    }
    if (stored) await store.replace(KEY, entry, stored.version)
    else await store.create(KEY, entry)
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
  }
  return now
}
