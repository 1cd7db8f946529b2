// Every metric of ours: one row each with its type, its sentence, and all values that its labels can have.
// docs/monitoring.md is made from these rows.
import { ERRORS, type ErrorCode, LOGIN_ERRORS } from '../../errors.ts'
import type { Work } from '../../events.ts'
import type { Outcome } from '../observed-request.ts'

/** By name, in the order in which they are written. Of the values the last one stands for every other. */
export type LabelValues = Readonly<Record<string, readonly string[]>>

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Every combination of their values is there from the start, so that the first event is seen as an increase. */
  readonly labels?: LabelValues
  /** How the numbers of several workers become one, if not by their sum. */
  readonly aggregator?: 'max'
}

/** An error of somebody else, or a code that we do not know: never its text. */
const UNKNOWN = 'unknown_error'

const OUTCOMES: readonly Outcome[] = ['admitted', 'visitor', 'refused', 'own', 'error']
const PROVIDER_CALLS: readonly Work['provider'][] = [
  'token',
  'refresh',
  'user_info',
  'sign_out',
  'introspection',
  'metadata',
  'keys',
]
const STORE_VERBS: readonly Work['store'][] = [
  'create',
  'read',
  'replace',
  'remove',
  'take',
  'list',
  'newest',
  'count',
  'trail_append',
  'trail_read',
  'ready',
]
const PROVIDER_ERRORS = (Object.keys(ERRORS) as ErrorCode[]).filter(code => code.startsWith('provider_'))

export const METRICS = {
  menshen_requests_total: {
    type: 'counter',
    help: 'Requests, each counted once when it has ended; our own 502 is an error, a 500 of the application is not',
    labels: { outcome: OUTCOMES },
  },
  menshen_request_seconds: {
    type: 'histogram',
    help: 'How long requests took from their head to the end of their answer; streams and sockets are left out',
  },
  menshen_sign_ins_total: {
    type: 'counter',
    help: 'Sign-ins that came back from the provider, by ok or the code that the login page shows',
    labels: { result: ['ok', ...LOGIN_ERRORS, UNKNOWN] },
  },
  menshen_sign_outs_total: {
    type: 'counter',
    help: 'Acts that ended sessions, by who did it; one act may end several',
    labels: { by: ['user', 'developer', 'provider', 'configuration', 'other'] },
  },
  menshen_refreshes_total: {
    type: 'counter',
    help: 'Refreshes of tokens, each counted by the one process that did it',
    labels: { result: ['ok', ...PROVIDER_ERRORS, 'store_unavailable', UNKNOWN] },
  },
  menshen_provider_seconds: {
    type: 'histogram',
    help: 'How long calls to the provider took, with their retries',
    labels: { call: PROVIDER_CALLS, result: ['ok', ...PROVIDER_ERRORS, UNKNOWN] },
  },
  menshen_store_seconds: {
    type: 'histogram',
    help: 'How long the store took to answer; sessions at hand do not ask it',
    labels: { verb: STORE_VERBS, result: ['ok', 'store_unavailable', UNKNOWN] },
  },
  menshen_upstream_seconds: {
    type: 'histogram',
    help: 'How long applications took until the head of their answer, by the class of its status; error if none came',
    labels: { status: ['1xx', '2xx', '3xx', '4xx', '5xx', 'error'] },
  },
  menshen_upstream_queue: {
    type: 'gauge',
    help: 'Requests that wait for a connection to an application',
  },
  menshen_open_streams: {
    type: 'gauge',
    help: 'WebSockets and event streams that are open',
  },
  menshen_sessions: {
    type: 'gauge',
    help: 'Sessions that are alive in the store, at most five seconds old; absent while the store is away',
    // All workers see the same store.
    aggregator: 'max',
  },
  menshen_session_cache_total: {
    type: 'counter',
    help: 'Requests with a ticket: whether its session was at hand or had to be looked for',
    labels: { result: ['hit', 'miss'] },
  },
  menshen_rate_limited_total: {
    type: 'counter',
    help: 'Requests that were more than RATE_LIMIT_PER_MINUTE allows',
  },
  menshen_workers: {
    type: 'gauge',
    help: 'Processes whose numbers are in this answer',
  },
} as const satisfies Record<string, MetricRow>

export type MetricName = keyof typeof METRICS

/** In seconds, from a session that is at hand to a provider at its deadline. */
export const BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const
