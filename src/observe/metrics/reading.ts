// What one process has measured, as it is told to another.
import { z } from 'zod'

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

export type Reading = z.infer<typeof reading>
