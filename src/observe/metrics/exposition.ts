// What one or several processes have measured, as the text that Prometheus reads. Ours is written here: to sum up and write
// a thousand numbers takes prom-client long enough to hold up requests.
import { AggregatorRegistry, Registry } from 'prom-client'
import { METRICS, type MetricRow } from './metric-rows.ts'
import { processMetrics, type Reading } from './reading.ts'
import { seriesOf } from './series.ts'

export const CONTENT_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE

const ROWS: readonly [name: string, row: MetricRow][] = Object.entries(METRICS)

/** `all` are of processes that have answered; `former` is what counts on from others. */
export async function writeMetrics(all: readonly Reading[], former: readonly Reading[] = []): Promise<string> {
  const everybody = [...all, ...former]
  const families = ROWS.map(([name, row]) => {
    const values = row.type === 'gauge' ? gaugeOf(name, row, all) : sumOfCounts(name, everybody)
    const series = seriesOf(name, row)
    const lines = values.map((value, n) => `${series[n]} ${value}\n`)
    return `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${lines.join('')}`
  })
  const process = AggregatorRegistry.aggregate(everybody.map(({ process }) => process))
  return `${families.join('\n')}\n${await process.metrics()}`
}

/** None if nobody knows it. */
function gaugeOf(name: string, { aggregator }: MetricRow, all: readonly Reading[]): number[] {
  if (name === 'menshen_workers') return [all.length]
  const values = all.flatMap(({ gauges }) => gauges[name] ?? [])
  if (values.length === 0) return []
  return [aggregator === 'max' ? Math.max(...values) : values.reduce((sum, value) => sum + value)]
}

/** Only what never goes down: the queue of a process that has ended is empty. */
export function countersOf({ counts, process }: Reading): Reading {
  return { counts, gauges: {}, process: process.filter(({ type }) => type === 'counter' || type === 'histogram') }
}

/** Of what never goes down. */
export function sumOf(all: readonly Reading[]): Reading {
  const names = new Set(all.flatMap(({ counts }) => Object.keys(counts)))
  const process = AggregatorRegistry.aggregate(all.map(({ process }) => process))
  return {
    counts: Object.fromEntries([...names].map(name => [name, sumOfCounts(name, all)])),
    gauges: {},
    process: processMetrics.parse(process.getMetricsAsArray()),
  }
}

function sumOfCounts(name: string, all: readonly Reading[]): number[] {
  return all
    .flatMap(({ counts }) => (counts[name] ? [counts[name]] : []))
    .reduce<number[]>((sums, counts) => counts.map((count, n) => count + (sums[n] ?? 0)), [])
}
