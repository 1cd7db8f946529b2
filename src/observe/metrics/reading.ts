// A metric as it was read at one moment, in the form that prom-client reads, sums and writes.
import { z } from 'zod'
import type { MetricRow } from './metric-rows.ts'

const sample = z.object({
  value: z.number(),
  labels: z.record(z.string(), z.union([z.string(), z.number()])),
  /** Of a histogram's parts. */
  metricName: z.string().optional(),
})

export const readingsOf = z.array(
  z.object({
    name: z.string(),
    help: z.string(),
    type: z.enum(['counter', 'gauge', 'histogram', 'summary']),
    aggregator: z.enum(['sum', 'first', 'min', 'max', 'average', 'omit']),
    values: z.array(sample),
  }),
)

export type Readings = z.infer<typeof readingsOf>
export type Sample = z.infer<typeof sample>

export function readingOf(name: string, row: MetricRow, values: Sample[]): Readings[number] {
  const { help, type, aggregator = 'sum' } = row
  return { name, help, type, aggregator, values }
}
