// The metrics of one or several processes as the text that Prometheus reads. Our own metrics are written here: prom-client needs
// 40 ms to sum and write them, which blocks requests.

import { createCachedValue } from '../util/cached-value.ts'
import { withDeadline } from '../util/deadline.ts'
import { METRICS, type MetricRow, type Metrics, type MetricsSnapshot, processMetrics, seriesOf } from './metrics.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export interface Exposition {
  /** `all` are the snapshots of processes that have answered; `former` are the last counters of others. */
  writeMetrics(all: readonly MetricsSnapshot[], former?: readonly MetricsSnapshot[]): Promise<string>
  /** The sum of counters. */
  sumOf(all: readonly MetricsSnapshot[]): MetricsSnapshot
}

const ROWS: readonly [name: string, row: MetricRow][] = Object.entries(METRICS)

/** Loads prom-client at the first request for metrics. */
export async function loadExposition(): Promise<Exposition> {
  const { AggregatorRegistry } = await import('prom-client')
  const processOf = (all: readonly MetricsSnapshot[]) => AggregatorRegistry.aggregate(all.map(({ process }) => process))
  return {
    async writeMetrics(all, former = []) {
      const everybody = [...all, ...former]
      return `${writeOwn(all, everybody)}\n${await processOf(everybody).metrics()}`
    },
    sumOf(all) {
      const names = new Set(all.flatMap(({ counts }) => Object.keys(counts)))
      return {
        counts: Object.fromEntries([...names].map(name => [name, sumOfCounts(name, all)])),
        gauges: {},
        process: processMetrics.parse(processOf(all).getMetricsAsArray()),
      }
    },
  }
}

function writeOwn(all: readonly MetricsSnapshot[], everybody: readonly MetricsSnapshot[]): string {
  const families = ROWS.map(([name, row]) => {
    const values = row.type === 'gauge' ? gaugeOf(name, row, all) : sumOfCounts(name, everybody)
    const series = seriesOf(name, row)
    const lines = values.map((value, n) => `${series[n]} ${value}\n`)
    return `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${lines.join('')}`
  })
  return families.join('\n')
}

/** Empty if no process knows the value. */
function gaugeOf(name: string, { aggregator }: MetricRow, all: readonly MetricsSnapshot[]): number[] {
  if (name === 'menshen_workers') return [all.length]
  const values = all.flatMap(({ gauges }) => gauges[name] ?? [])
  if (values.length === 0) return []
  if (aggregator) return [Math[aggregator](...values)]
  return [values.reduce((sum, value) => sum + value)]
}

/** Counters only: gauges of a process that has ended do not count. */
export function countersOf({ counts, process }: MetricsSnapshot): MetricsSnapshot {
  return { counts, gauges: {}, process: process.filter(({ type }) => type === 'counter' || type === 'histogram') }
}

function sumOfCounts(name: string, all: readonly MetricsSnapshot[]): number[] {
  return all
    .flatMap(({ counts }) => (counts[name] ? [counts[name]] : []))
    .reduce<number[]>((sums, counts) => counts.map((count, n) => count + (sums[n] ?? 0)), [])
}

// The metrics of this process, or of all workers.

/** Takes a function that reads the metrics of this process, and returns one that writes those of all. */
export type Gathering = (read: () => Promise<MetricsSnapshot>) => () => Promise<string>

export const gatherAlone: Gathering = read => async () => {
  const { writeMetrics } = await loadExposition()
  return writeMetrics([await read()])
}

interface Sources {
  readonly metrics: Metrics
  readonly upstreams: { readonly waiting: number; readonly streams: number }
  /** How many sessions the store holds. */
  readonly countSessions: () => Promise<number>
  /** When the certificate in use expires, in milliseconds since the epoch. */
  readonly certificateExpiry?: () => number | undefined
}

const COUNT_AGE_MS = 2000
/** A store that is away must not delay the other metrics. */
const COUNT_DEADLINE_MS = 500

export function createMetricsReader(sources: Sources): () => Promise<MetricsSnapshot> {
  const { metrics, upstreams, countSessions, certificateExpiry } = sources
  const sessions = createCachedValue({
    load: () => withDeadline(countSessions(), COUNT_DEADLINE_MS, () => undefined).catch(() => undefined),
    freshMs: COUNT_AGE_MS,
    now: () => performance.now(),
  })
  return async () => {
    const menshen_sessions = await sessions.get()
    const expiry = certificateExpiry?.()
    return metrics.read({
      menshen_upstream_queue: upstreams.waiting,
      menshen_open_streams: upstreams.streams,
      ...(menshen_sessions !== undefined && { menshen_sessions }),
      ...(expiry !== undefined && { menshen_certificate_expiry_timestamp_seconds: expiry / 1000 }),
    })
  }
}
