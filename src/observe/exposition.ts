// The metrics of one or several processes as the text that Prometheus reads.

import { createCachedValue } from '../util/cached-value.ts'
import { withDeadline } from '../util/deadline.ts'
import { METRICS, type Metrics } from './metrics.ts'
import { type MetricRow, type MetricsSnapshot, seriesOf } from './series.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const ROWS: readonly [name: string, row: MetricRow][] = Object.entries(METRICS)

export function writeMetrics(snapshot: MetricsSnapshot): string {
  const families = ROWS.map(([name, row]) => {
    const series = seriesOf(name, row)
    const lines = (snapshot[name] ?? []).map((value, n) => `${series[n]} ${value}\n`)
    return `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${lines.join('')}`
  })
  return families.join('\n')
}

/** The metrics of several processes as those of one. */
export function mergeSnapshots(all: readonly MetricsSnapshot[]): MetricsSnapshot {
  return Object.fromEntries(
    ROWS.map(([name, row]) => {
      const known = all.flatMap(snapshot => (snapshot[name]?.length ? [snapshot[name]] : []))
      const columns = known[0]?.map((_, n) => known.map(values => values[n] ?? 0)) ?? []
      return [name, columns.map(column => mergeValues(row, column))]
    }),
  )
}

function mergeValues({ merge }: MetricRow, values: readonly number[]): number {
  if (merge === 'max' || merge === 'min') return Math[merge](...values)
  const sum = values.reduce((sum, value) => sum + value)
  return merge === 'average' ? sum / values.length : sum
}

/** The snapshot without gauges: those of a process that has ended, or does not answer, are not part of a sum. */
export function countersOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return Object.fromEntries(ROWS.map(([name, { type }]) => [name, type === 'gauge' ? [] : (snapshot[name] ?? [])]))
}

// The metrics of this process, or of all workers.

/** Takes a function that reads the metrics of this process, and returns one that writes those of all. */
export type GatherMetrics = (read: () => Promise<MetricsSnapshot>) => () => Promise<string>

export const gatherAlone: GatherMetrics = read => async () => writeMetrics(await read())

interface Sources {
  readonly metrics: Metrics
  readonly upstreams: { readonly waiting: number; readonly streams: number }
  /** How many sessions the store holds. */
  readonly countSessions: () => Promise<number>
  /** When the certificate in use expires, in milliseconds since the epoch. */
  readonly certificateExpiry?: () => number | undefined
}

const COUNT_AGE_MS = 2000
/** An unavailable store must not delay the other metrics. */
const COUNT_DEADLINE_MS = 500

export function createMetricsReader(sources: Sources): () => Promise<MetricsSnapshot> {
  const { metrics, upstreams, countSessions, certificateExpiry } = sources
  const sessions = createCachedValue({
    load: () => withDeadline(countSessions(), COUNT_DEADLINE_MS, () => undefined).catch(() => undefined),
    freshMs: COUNT_AGE_MS,
    now: () => performance.now(),
  })
  return async () => {
    const expiry = certificateExpiry?.()
    return metrics.read({
      menshen_upstream_queue: upstreams.waiting,
      menshen_open_streams: upstreams.streams,
      menshen_sessions: await sessions.get(),
      menshen_certificate_expiry_timestamp_seconds: expiry === undefined ? undefined : expiry / 1000,
    })
  }
}
