// Plain numbers, counted where requests pass: prom-client's own would take about a microsecond each.
import { BUCKETS, type LabelValues, type MetricRow } from './metric-rows.ts'

export interface Series {
  /** In the order of `seriesOf`. */
  read(): number[]
}

export interface Counter extends Series {
  /** The values of its labels, in their order. */
  add(first?: string, second?: string): void
}

export interface Histogram extends Series {
  observe(seconds: number, first?: string, second?: string): void
}

/** How Prometheus writes each number of it. */
export function seriesOf(name: string, { type, labels = {} }: MetricRow): string[] {
  return combinationsOf(labels).flatMap(values => {
    const given = Object.keys(labels).map((label, n) => `${label}="${values[n]}"`)
    const written = (suffix: string, ...more: string[]) => {
      const all = [...given, ...more].join()
      return `${name}${suffix}${all && `{${all}}`}`
    }
    if (type !== 'histogram') return written('')
    return [...[...BUCKETS, '+Inf'].map(le => written('_bucket', `le="${le}"`)), written('_sum'), written('_count')]
  })
}

export function createCounter({ labels }: MetricRow): Counter {
  const children = createChildren(labels, () => ({ value: 0 }))
  return {
    add(first, second) {
      children.at(first, second).value++
    },
    read: () => children.all.map(({ value }) => value),
  }
}

export function createHistogram({ labels }: MetricRow): Histogram {
  // How many fell into each bucket and not into a smaller one; the last is for those above all.
  const children = createChildren(labels, () => ({ counts: Array<number>(BUCKETS.length + 1).fill(0), sum: 0 }))
  return {
    observe(seconds, first, second) {
      const child = children.at(first, second)
      const bucket = bucketOf(seconds)
      child.counts[bucket] = (child.counts[bucket] ?? 0) + 1
      child.sum += seconds
    },
    read: () =>
      children.all.flatMap(({ counts, sum }) => {
        let count = 0
        const upTo = counts.map(own => {
          count += own
          return count
        })
        return [...upTo, sum, count]
      }),
  }
}

function bucketOf(seconds: number): number {
  let bucket = 0
  for (const bound of BUCKETS) {
    if (seconds <= bound) return bucket
    bucket++
  }
  return bucket
}

interface Children<Child> {
  readonly all: readonly Child[]
  at(first?: string, second?: string): Child
}

/** One for each combination of values, made at the start: nothing that comes from outside can add to them. */
function createChildren<Child>(labels: LabelValues = {}, make: () => Child): Children<Child> {
  const keyOf = (first = '', second?: string) => (second === undefined ? first : `${first} ${second}`)
  const byValues = new Map(combinationsOf(labels).map(values => [keyOf(...values), make()]))
  const known = Object.values(labels)

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

function combinationsOf(labels: LabelValues): string[][] {
  return Object.values(labels).reduce<string[][]>(
    (made, values) => made.flatMap(before => values.map(value => [...before, value])),
    [[]],
  )
}
