// Writes events to the log, one line each. A repeat (same event, network and user) is written ten times a minute; the
// rest of that minute becomes one line with their count. Without a known user, the `sub` or the session identifies a repeat.
import { network } from './config/networks.ts'
import { EVENTS, type EventCode, type Report } from './events.ts'
import { createRepeats } from './util/repeats.ts'

/** The interface of a logger; a pino logger has it. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface EventLog {
  readonly report: Report
  /** Writes every event, also repeats. */
  readonly write: Report
  /** Writes the remaining counts. */
  close(): void
}

/** What identifies a repeat: the address, and one of the others. */
interface Origin {
  readonly address?: unknown
  readonly user?: unknown
  readonly sub?: unknown
  readonly session?: unknown
}

interface RepeatedEvent {
  readonly code: EventCode
  readonly origin: Origin
}

export function createEventLog(log: Log, now: () => number): EventLog {
  const repeats = createRepeats<RepeatedEvent>(now, ({ code, origin }, count) => write(code, { ...origin, count }))

  function write(code: EventCode, fields: object = {}): void {
    const { level, message } = EVENTS[code]
    log[level]({ event: code, ...fields }, message)
  }

  return {
    write,
    report(code, fields = {}) {
      const origin = pickOrigin(fields)
      if (repeats.isNew(repeatKey(code, origin), { code, origin })) write(code, fields)
    },
    close: () => repeats.close(),
  }
}

/** One client of IPv6 has 2^64 addresses, and could fill the log from each of them. */
function repeatKey(code: EventCode, { address, ...who }: Origin): string {
  return JSON.stringify([code, address === undefined ? null : network(String(address)), who])
}

function pickOrigin({ address, user, sub, session }: Origin): Origin {
  const where = address === undefined ? {} : { address }
  if (user !== undefined) return { ...where, user }
  if (sub !== undefined) return { ...where, sub }
  return session === undefined ? where : { ...where, session }
}
