// Current problems by the events of the last hour, the worst first.
import type { ErrorCode } from '../errors.ts'
import { ONLY_PROVIDER } from '../provider/plan.ts'
import type { AuditEvent } from './audit-event.ts'
import { COUNTED } from './history.ts'
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
    }
  | { readonly kind: 'recovered'; readonly provider: string; readonly failures: number; readonly until: number }
  | { readonly kind: 'event'; readonly code: AlarmingEvent; readonly times: number }

/** Events that are a problem by their number alone. */
export const ALARMING = [
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
export type AlarmingEvent = (typeof ALARMING)[number]

/** Failures that the gateway saw at the provider. A made-up code is refused by a healthy provider, and is not one of them. */
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
    ...ALARMING.flatMap(code => {
      const times = timesOf(slots, COUNTED.event(code))
      return times === 0 ? [] : [{ kind: 'event' as const, code, times }]
    }),
    ...providers.filter(({ kind }) => kind === 'recovered'),
  ]
}

function providerProblem(provider: string, events: readonly AuditEvent[]): CurrentProblem | undefined {
  const failed = events.filter(isProviderFailure)
  const lastGood = Math.max(0, ...events.filter(({ event }) => event === 'sign_in').map(({ time }) => time))
  const ongoing = failed.filter(({ time }) => time > lastGood)
  if (ongoing.length > 0) {
    const people = new Set(ongoing.map(({ fields }) => fields.user ?? fields.address))
    const since = Math.min(...ongoing.map(({ time }) => time))
    return { kind: 'provider', provider, since, failures: ongoing.length, people: people.size }
  }
  return failed.length > 0 ? { kind: 'recovered', provider, failures: failed.length, until: lastGood } : undefined
}

/** Any client can send any error to the callback: those have the reason `unknown_error`. */
function isProviderFailure({ event, fields }: AuditEvent): boolean {
  const isFailure = event === 'sign_in_failed' || event === 'session_refresh_failed'
  return isFailure && fields.reason !== 'unknown_error' && PROVIDER_FAILURES.has(fields.error)
}

function timesOf(slots: readonly Slot[], name: string): number {
  return slots.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0)
}
