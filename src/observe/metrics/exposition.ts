// Readings of one or several processes, as the text that Prometheus reads.
import { AggregatorRegistry, Registry } from 'prom-client'
import { METRICS } from './metric-rows.ts'
import { type Readings, readingOf, readingsOf } from './reading.ts'

export const CONTENT_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE

/** `all` are of processes that have answered; `former` is what counts on from others. */
export function writeMetrics(all: readonly Readings[], former: readonly Readings[] = []): Promise<string> {
  const workers = readingOf('menshen_workers', METRICS.menshen_workers, [{ labels: {}, value: all.length }])
  return AggregatorRegistry.aggregate([...all, ...former, [workers]]).metrics()
}

/** Only what never goes down: the queue of a process that has ended is empty. */
export function countersOf(readings: Readings): Readings {
  return readings.filter(({ type }) => type === 'counter' || type === 'histogram')
}

export function sumOf(all: readonly Readings[]): Readings {
  return readingsOf.parse(AggregatorRegistry.aggregate([...all]).getMetricsAsArray())
}
