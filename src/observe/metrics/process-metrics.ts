// What the process says about itself: memory, processor, event loop, garbage collection. There is one process, whatever
// number of gateways it has, and so there is one of these, from the first time that somebody asks: prom-client brings along all of
// OpenTelemetry's interface, which a start would wait for.
import type { Registry } from 'prom-client'
import { processMetrics, type Reading } from './reading.ts'

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

export async function readProcess(): Promise<Reading['process']> {
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
