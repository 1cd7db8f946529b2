// Writes events to the log, one line each. A repeat (same event, address and user) is written ten times a minute; the
// rest of that minute becomes one line with their count. Where no user is known, the `sub` or the session takes its place.
import { LRUCache } from 'lru-cache'
import { EVENTS, type EventCode, type Report } from './events.ts'

/** What a log has to be able to do; pino's loggers are such logs. */
export interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
  error(facts: object, message: string): void
}

export interface EventLog {
  readonly report: Report
  /** Writes it in any case, however often it was written. */
  readonly write: Report
  /** Writes the counts that are still owed. */
  close(): void
}

/** Whose repeats they are: the address, and one of the others. */
interface Who {
  readonly address?: unknown
  readonly user?: unknown
  readonly sub?: unknown
  readonly session?: unknown
}

interface Repeats {
  readonly code: EventCode
  readonly who: Who
  readonly since: number
  written: number
  leftOut: number
}

const WRITTEN_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** Somebody who comes from ever new addresses must not fill our memory. */
const MOST_KINDS = 10_000

export function createEventLog(log: Log, now: () => number): EventLog {
  const repeats = new LRUCache<string, Repeats>({ max: MOST_KINDS, dispose: settle })
  const timer = setInterval(settleOld, MINUTE_MS).unref()

  function write(code: EventCode, facts: object = {}): void {
    const { level, sentence } = EVENTS[code]
    log[level]({ event: code, ...facts }, sentence)
  }

  function settle({ code, who, leftOut }: Repeats): void {
    if (leftOut > 0) write(code, { ...who, count: leftOut })
  }

  /** A clock may be set back: what is from the future must not hide repeats for all the time until then. */
  function isOfThisMinute({ since }: Repeats): boolean {
    return Math.abs(now() - since) < MINUTE_MS
  }

  function settleOld(): void {
    for (const [key, known] of repeats.entries()) if (!isOfThisMinute(known)) repeats.delete(key)
  }

  function repeatsOf(code: EventCode, facts: Who): Repeats {
    const who = whoOf(facts)
    const key = JSON.stringify([code, who])
    const known = repeats.get(key)
    if (known && isOfThisMinute(known)) return known
    const fresh = { code, who, since: now(), written: 0, leftOut: 0 }
    repeats.set(key, fresh)
    return fresh
  }

  return {
    write,
    report(code, facts = {}) {
      const repeated = repeatsOf(code, facts)
      if (repeated.written === WRITTEN_PER_MINUTE) repeated.leftOut++
      else {
        repeated.written++
        write(code, facts)
      }
    },
    close() {
      clearInterval(timer)
      repeats.clear()
    },
  }
}

function whoOf({ address, user, sub, session }: Who): Who {
  const where = address === undefined ? {} : { address }
  if (user !== undefined) return { ...where, user }
  if (sub !== undefined) return { ...where, sub }
  return session === undefined ? where : { ...where, session }
}
