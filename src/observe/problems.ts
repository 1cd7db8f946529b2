// Current problems, derived from the events of the last hour, the worst first.
import type { ErrorCode } from '../errors.ts'
import { ONLY_PROVIDER } from '../provider/plan.ts'
import type { AuditEvent } from './audit-event.ts'
import { COUNT_NAMES } from './history.ts'
import type { Slot } from './history-slots.ts'

export type CurrentProblem =
  | {
      readonly kind: 'provider'
      readonly provider: string
      /** The first failure after the last success. */
      readonly since: number
      readonly failures: number
      /** How many users were affected; where they are not known, how many addresses. */
      readonly people: number
      /** The most frequent of its events. */
      readonly event: string
    }
  | {
      readonly kind: 'recovered'
      readonly provider: string
      readonly since: number
      readonly failures: number
      readonly people: number
      readonly event: string
      readonly until: number
    }
  | {
      readonly kind: 'event'
      readonly code: AlarmEvent
      readonly times: number
      /** The minutes of the first and the last one. */
      readonly since: number
      readonly last: number
      /** It has not happened for a while. */
      readonly isOver: boolean
    }

/** A problem that has not been seen for this long is over. */
const OVER_AFTER_MS = 10 * 60_000

/** Events whose number is enough to show a problem. */
export const ALARM_EVENTS = [
  'request_failed',
  'upstream_failed',
  'upstream_head_too_large',
  'upstream_busy',
  'store_unreachable',
  'store_not_writable',
  'tokens_not_saved',
  'record_unreadable',
  'data_keys_closed',
  'cookie_lost',
  'rate_limited',
] as const
export type AlarmEvent = (typeof ALARM_EVENTS)[number]

/** Failures that the gateway saw at the provider. A healthy provider refuses a made-up code, so that is not one of them. */
const PROVIDER_FAILURES = new Set<unknown>([
  'provider_unreachable',
  'provider_answer',
  'provider_busy',
] satisfies ErrorCode[])

/** Events and slots of the last hour; events in any order. */
export function currentProblems(events: readonly AuditEvent[], slots: readonly Slot[]): CurrentProblem[] {
  const byProvider = Map.groupBy(events, ({ fields }) => String(fields.provider ?? ONLY_PROVIDER))
  const providers = [...byProvider].flatMap(([provider, seen]) => providerProblem(provider, seen) ?? [])
  return [
    ...providers.filter(({ kind }) => kind === 'provider'),
    ...ALARM_EVENTS.flatMap(code => eventProblem(code, slots)),
    ...providers.filter(({ kind }) => kind === 'recovered'),
  ]
}

function providerProblem(provider: string, events: readonly AuditEvent[]): CurrentProblem | undefined {
  const failed = events.filter(isProviderFailure)
  const lastGood = Math.max(0, ...events.filter(({ event }) => event === 'sign_in').map(({ time }) => time))
  const ongoing = failed.filter(({ time }) => time > lastGood)
  if (ongoing.length > 0) return { kind: 'provider', provider, ...extentOf(ongoing) }
  return failed.length > 0 ? { kind: 'recovered', provider, ...extentOf(failed), until: lastGood } : undefined
}

/** `failed` has at least one event. */
function extentOf(failed: readonly AuditEvent[]) {
  const people = new Set(failed.map(({ fields }) => fields.user ?? fields.address))
  const [[event] = ['']] = [...Map.groupBy(failed, ({ event }) => event)].sort(
    ([, one], [, other]) => other.length - one.length,
  )
  return { since: Math.min(...failed.map(({ time }) => time)), failures: failed.length, people: people.size, event }
}

function eventProblem(code: AlarmEvent, slots: readonly Slot[]): CurrentProblem[] {
  const name = COUNT_NAMES.event(code)
  const seen = slots.filter(({ counts }) => (counts[name] ?? 0) > 0)
  const [first, last, latest] = [seen[0], seen.at(-1), slots.at(-1)]
  if (!first || !last || !latest) return []
  const times = seen.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0)
  return [{ kind: 'event', code, times, since: first.at, last: last.at, isOver: latest.at - last.at >= OVER_AFTER_MS }]
}

/** Any client can send any error to the callback: those have the reason `unknown_error`. */
function isProviderFailure({ event, fields }: AuditEvent): boolean {
  const isFailure = event === 'sign_in_failed' || event === 'session_refresh_failed'
  return isFailure && fields.reason !== 'unknown_error' && PROVIDER_FAILURES.has(fields.error)
}
