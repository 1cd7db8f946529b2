// One metric: its row, the names of its series, its counters, and the form in which its values go to other processes.

import { z } from 'zod'
import { addDuration, BOUNDS, emptyBuckets } from './histogram.ts'

/** Keyed by label, in output order. The last value covers all others. */
export type LabelValues = Readonly<Record<string, readonly string[]>>

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** Every combination of values exists from the start, so that the first event appears as an increase. */
  readonly labels?: LabelValues
  /** The combinations of values that exist, if not all do. */
  readonly combinations?: readonly (readonly string[])[]
  /** What docs show instead of the values. */
  readonly shownLabels?: string
  /** Upper bounds of a histogram's buckets in seconds; default `BOUNDS`. */
  readonly bounds?: readonly number[]
  /** How the values of several processes become one; default their sum. */
  readonly merge?: 'max' | 'min' | 'average'
}

/**
 * The values of one process by the name of their metric, in the order of `seriesOf`; absent or empty if unknown:
 *
 *     { menshen_workers: [1], menshen_session_cache_total: [900, 12], menshen_sessions: [] }
 */
export const metricsSnapshotSchema = z.record(z.string(), z.array(z.number()).readonly())

export type MetricsSnapshot = z.infer<typeof metricsSnapshotSchema>

/** The names of all series of a metric, as Prometheus writes them. */
export function seriesOf(name: string, row: MetricRow): string[] {
  const { type, labels = {}, bounds = BOUNDS } = row
  return combinationsOf(row).flatMap(values => {
    const given = Object.keys(labels).map((label, n) => `${label}="${values[n]}"`)
    const written = (suffix: string, ...more: string[]) => {
      const all = [...given, ...more].join()
      return `${name}${suffix}${all && `{${all}}`}`
    }
    if (type !== 'histogram') return written('')
    return [...[...bounds, '+Inf'].map(le => written('_bucket', `le="${le}"`)), written('_sum'), written('_count')]
  })
}

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

export function createCounter(row: MetricRow): Counter {
  const children = createChildren(row, () => ({ value: 0 }))
  return {
    add(first, second) {
      children.at(first, second).value++
    },
    read: () => children.all.map(({ value }) => value),
  }
}

export function createHistogram(row: MetricRow): Histogram {
  const { bounds = BOUNDS } = row
  const children = createChildren(row, () => ({ buckets: emptyBuckets(bounds), sum: 0 }))
  return {
    observe(seconds, first, second) {
      const child = children.at(first, second)
      addDuration(child.buckets, seconds, bounds)
      child.sum += seconds
    },
    read: () =>
      children.all.flatMap(({ buckets, sum }) => {
        let count = 0
        const upTo = buckets.map(own => {
          count += own
          return count
        })
        return [...upTo, sum, count]
      }),
  }
}

interface Children<Child> {
  readonly all: readonly Child[]
  at(first?: string, second?: string): Child
}

/** One per combination of values, created at the start: input from outside cannot add series. */
function createChildren<Child>(row: MetricRow, make: () => Child): Children<Child> {
  const keyOf = (first = '', second?: string) => (second === undefined ? first : `${first} ${second}`)
  const byValues = new Map(combinationsOf(row).map(values => [keyOf(...values), make()]))
  const known = Object.values(row.labels ?? {})

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

function combinationsOf({ labels = {}, combinations }: MetricRow): readonly (readonly string[])[] {
  if (combinations) return combinations
  return Object.values(labels).reduce<string[][]>(
    (made, values) => made.flatMap(before => values.map(value => [...before, value])),
    [[]],
  )
}
