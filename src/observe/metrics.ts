// Counts what it observes, and tells it when asked. It is on the path of every request: an array's place, no more.

import type { Registry } from 'prom-client'
import { z } from 'zod'
import { ERRORS, type ErrorCode, LOGIN_ERRORS } from '../errors.ts'
import type { EventCode, Work } from '../events.ts'
import type { Observer, Outcome } from './observed-request.ts'

/** What is asked for when it is read; absent if it is not known then. */
export interface Gauges {
  readonly menshen_upstream_queue: number
  readonly menshen_open_streams: number
  readonly menshen_sessions?: number
}

export interface Metrics {
  readonly observer: Observer
  read(gauges: Gauges): Promise<MetricsSnapshot>
}

export function createMetrics(): Metrics {
  const all = new Map<MetricName, Counters>()
  const counter = (name: MetricName) => kept(all, name, createCounter(METRICS[name]))
  const histogram = (name: MetricName) => kept(all, name, createHistogram(METRICS[name]))
  const requests = counter('menshen_requests_total')
  const requestSeconds = histogram('menshen_request_seconds')
  const cache = counter('menshen_session_cache_total')
  const upstreamSeconds = histogram('menshen_upstream_seconds')
  const storeSeconds = histogram('menshen_store_seconds')
  const providerSeconds = histogram('menshen_provider_seconds')
  const signIns = counter('menshen_sign_ins_total')
  const signOuts = counter('menshen_sign_outs_total')
  const refreshes = counter('menshen_refreshes_total')
  const rateLimited = counter('menshen_rate_limited_total')

  const byEvent: Partial<Record<EventCode, (facts: Readonly<Record<string, unknown>>) => void>> = {
    sign_in: () => signIns.add('ok'),
    sign_in_failed: ({ reason }) => signIns.add(String(reason)),
    sign_out: () => signOuts.add('user'),
    // Somebody may have asked for the end of sessions that there were not.
    session_ended: ({ by, ended }) => ended !== 0 && signOuts.add(String(by)),
    session_refreshed: () => refreshes.add('ok'),
    session_refresh_failed: ({ reason }) => refreshes.add(String(reason)),
    rate_limited: () => rateLimited.add(),
  }

  return {
    observer: {
      onEvent: (code, facts) => byEvent[code]?.(facts),

      onWork<Kind extends keyof Work>(kind: Kind, what: Work[Kind], result: string, seconds: number) {
        if (kind === 'store') storeSeconds.observe(seconds, what, result)
        else if (kind === 'provider') providerSeconds.observe(seconds, what, result)
        // What became of any other was an event.
        else if (kind === 'refresh' && result !== 'ok') refreshes.add(result)
      },

      onAnswer({ askedAt }, status) {
        if (askedAt === undefined) return
        upstreamSeconds.observe((performance.now() - askedAt) / 1000, statusClass(status))
      },

      onRequest({ outcome, isStream, cacheHit }, _status, ms) {
        requests.add(outcome)
        if (!isStream) requestSeconds.observe(ms / 1000)
        if (cacheHit !== undefined) cache.add(cacheHit ? 'hit' : 'miss')
      },
    },

    async read(gauges) {
      const counts = [...all].map(([name, series]) => [name, series.read()])
      return { counts: Object.fromEntries(counts), gauges: { ...gauges }, process: await readProcess() }
    },
  }
}

function kept<Kind extends Counters>(all: Map<MetricName, Counters>, name: MetricName, series: Kind): Kind {
  all.set(name, series)
  return series
}

const CLASSES = ['error', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** An application may answer with any number. */
function statusClass(status: number): string {
  return CLASSES[Math.floor(status / 100)] ?? 'error'
}

// Every metric of ours: one row each with its type, its sentence, and all values that its labels can have.
// docs/monitoring.md is made from these rows.

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

// Plain numbers, counted where requests pass: prom-client's own would take about a microsecond each.

export interface Counters {
  /** In the order of `seriesOf`. */
  read(): number[]
}

export interface Counter extends Counters {
  /** The values of its labels, in their order. */
  add(first?: string, second?: string): void
}

export interface Histogram extends Counters {
  observe(seconds: number, first?: string, second?: string): void
}

/** How Prometheus writes each number of it. */
export function seriesOf(name: string, { type, labels = {} }: MetricRow): string[] {
  return combinationsOf(labels).flatMap(values => {
    const given = Object.keys(labels).map((label, n) => `${label}="${values[n]}"`)
    const written = (suffix: string, ...more: string[]) => {
      const all = [...given, ...more].join()
      return `${name}${suffix}${all && `{${all}}`}`
    }
    if (type !== 'histogram') return written('')
    return [...[...BUCKETS, '+Inf'].map(le => written('_bucket', `le="${le}"`)), written('_sum'), written('_count')]
  })
}

export function createCounter({ labels }: MetricRow): Counter {
  const children = createChildren(labels, () => ({ value: 0 }))
  return {
    add(first, second) {
      children.at(first, second).value++
    },
    read: () => children.all.map(({ value }) => value),
  }
}

export function createHistogram({ labels }: MetricRow): Histogram {
  // How many fell into each bucket and not into a smaller one; the last is for those above all.
  const children = createChildren(labels, () => ({ counts: Array<number>(BUCKETS.length + 1).fill(0), sum: 0 }))
  return {
    observe(seconds, first, second) {
      const child = children.at(first, second)
      const bucket = bucketOf(seconds)
      child.counts[bucket] = (child.counts[bucket] ?? 0) + 1
      child.sum += seconds
    },
    read: () =>
      children.all.flatMap(({ counts, sum }) => {
        let count = 0
        const upTo = counts.map(own => {
          count += own
          return count
        })
        return [...upTo, sum, count]
      }),
  }
}

function bucketOf(seconds: number): number {
  let bucket = 0
  for (const bound of BUCKETS) {
    if (seconds <= bound) return bucket
    bucket++
  }
  return bucket
}

interface Children<Child> {
  readonly all: readonly Child[]
  at(first?: string, second?: string): Child
}

/** One for each combination of values, made at the start: nothing that comes from outside can add to them. */
function createChildren<Child>(labels: LabelValues = {}, make: () => Child): Children<Child> {
  const keyOf = (first = '', second?: string) => (second === undefined ? first : `${first} ${second}`)
  const byValues = new Map(combinationsOf(labels).map(values => [keyOf(...values), make()]))
  const known = Object.values(labels)

  function otherwise(...given: (string | undefined)[]): Child {
    const values = known.map((values, n) => (values.includes(given[n] ?? '') ? given[n] : values.at(-1)))
    const child = byValues.get(keyOf(...values))
    if (!child) throw new Error('a metric has at most two labels')
    return child
  }

  return {
    all: [...byValues.values()],
    at: (first, second) => byValues.get(keyOf(first, second)) ?? otherwise(first, second),
  }
}

function combinationsOf(labels: LabelValues): string[][] {
  return Object.values(labels).reduce<string[][]>(
    (made, values) => made.flatMap(before => values.map(value => [...before, value])),
    [[]],
  )
}

// What one process has measured, as it is told to another.

/** A metric of the process's own, in the form that prom-client reads, sums and writes. */
const processMetric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(['counter', 'gauge', 'histogram', 'summary']),
  aggregator: z.enum(['sum', 'first', 'min', 'max', 'average', 'omit']),
  values: z.array(
    z.object({
      value: z.number(),
      labels: z.record(z.string(), z.union([z.string(), z.number()])),
      metricName: z.string().optional(),
    }),
  ),
})

export const processMetrics = z.array(processMetric)

export const reading = z.object({
  /** Our counters and histograms by name, each with its numbers in the order of `seriesOf`. */
  counts: z.record(z.string(), z.array(z.number())),
  /** One that is not known now is absent. */
  gauges: z.record(z.string(), z.number()),
  process: processMetrics,
})

export type MetricsSnapshot = z.infer<typeof reading>

// What the process says about itself: memory, processor, event loop, garbage collection. There is one process, whatever
// number of gateways it has, and so there is one of these, from the first time that somebody asks: prom-client brings along all of
// OpenTelemetry's interface, which a start would wait for.

/** Numbers that go up and down under a name that promises the opposite: promtool refuses them. */
const REFUSED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

let watched: Promise<Registry> | undefined

async function watchProcess(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of REFUSED) registry.removeSingleMetric(name)
  return registry
}

export async function readProcess(): Promise<MetricsSnapshot['process']> {
  watched ??= watchProcess()
  const registry = await watched
  const read: { name: string; values: { value: number }[] }[] = await registry.getMetricsAsJSON()
  return processMetrics.parse(
    read.map(metric => ({
      ...metric,
      // Of several processes the first one's.
      ...(metric.name === 'process_start_time_seconds' && { aggregator: 'min' }),
      // What has not happened yet has no mean, and nothing that is no number reaches another process.
      values: metric.values.filter(({ value }) => Number.isFinite(value)),
    })),
  )
}
