// Writes events to the log, one line each. A repeat (same event, address and user) is written ten times a minute; the
// rest of that minute becomes one line with their count. Where no user is known, the `sub` or the session takes its place.
import { EVENTS, type EventCode, type Report } from './events.ts'
import { createRepeats } from './util/repeats.ts'

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

interface Repeated {
  readonly code: EventCode
  readonly who: Who
}

export function createEventLog(log: Log, now: () => number): EventLog {
  const repeats = createRepeats<Repeated>(now, ({ code, who }, count) => write(code, { ...who, count }))

  function write(code: EventCode, facts: object = {}): void {
    const { level, sentence } = EVENTS[code]
    log[level]({ event: code, ...facts }, sentence)
  }

  return {
    write,
    report(code, facts = {}) {
      const who = whoOf(facts)
      if (repeats.isNew(JSON.stringify([code, who]), { code, who })) write(code, facts)
    },
    close: () => repeats.close(),
  }
}

function whoOf({ address, user, sub, session }: Who): Who {
  const where = address === undefined ? {} : { address }
  if (user !== undefined) return { ...where, user }
  if (sub !== undefined) return { ...where, sub }
  return session === undefined ? where : { ...where, session }
}
