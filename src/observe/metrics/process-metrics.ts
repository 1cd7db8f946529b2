// What the process says about itself: memory, processor, event loop, garbage collection. There is one process, whatever
// number of gateways it has, and so there is one of these.
import { collectDefaultMetrics, Registry } from 'prom-client'
import { processMetrics, type Reading } from './reading.ts'

/** Numbers that go up and down under a name that promises the opposite: promtool refuses them. */
const REFUSED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

let registry: Registry | undefined

/** From now on. */
export function watchProcess(): void {
  if (registry) return
  registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of REFUSED) registry.removeSingleMetric(name)
}

export async function readProcess(): Promise<Reading['process']> {
  const read: { name: string; values: { value: number }[] }[] = (await registry?.getMetricsAsJSON()) ?? []
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
