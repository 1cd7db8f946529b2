// What one or several processes have measured, as the text that Prometheus reads. Ours is written here: to sum up and write
// a thousand numbers takes prom-client long enough to hold up requests.
import { METRICS, type MetricRow } from './metric-rows.ts'
import { processMetrics, type Reading } from './reading.ts'
import { seriesOf } from './series.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export interface Exposition {
  /** `all` are of processes that have answered; `former` is what counts on from others. */
  writeMetrics(all: readonly Reading[], former?: readonly Reading[]): Promise<string>
  /** Of what never goes down. */
  sumOf(all: readonly Reading[]): Reading
}

const ROWS: readonly [name: string, row: MetricRow][] = Object.entries(METRICS)

/** Loaded when somebody asks for metrics: see process-metrics.ts. */
export async function loadExposition(): Promise<Exposition> {
  const { AggregatorRegistry } = await import('prom-client')
  const processOf = (all: readonly Reading[]) => AggregatorRegistry.aggregate(all.map(({ process }) => process))
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

function writeOwn(all: readonly Reading[], everybody: readonly Reading[]): string {
  const families = ROWS.map(([name, row]) => {
    const values = row.type === 'gauge' ? gaugeOf(name, row, all) : sumOfCounts(name, everybody)
    const series = seriesOf(name, row)
    const lines = values.map((value, n) => `${series[n]} ${value}\n`)
    return `# HELP ${name} ${row.help}\n# TYPE ${name} ${row.type}\n${lines.join('')}`
  })
  return families.join('\n')
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

function sumOfCounts(name: string, all: readonly Reading[]): number[] {
  return all
    .flatMap(({ counts }) => (counts[name] ? [counts[name]] : []))
    .reduce<number[]>((sums, counts) => counts.map((count, n) => count + (sums[n] ?? 0)), [])
}
