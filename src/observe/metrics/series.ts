// Plain numbers, counted where requests pass. prom-client's own take about a microsecond each, and are for what reads them.
import { BUCKETS, type LabelValues, type MetricRow } from './metric-rows.ts'
import { type Readings, readingOf, type Sample } from './reading.ts'

type Labels = Readonly<Record<string, string>>

export interface Counter {
  /** The values of its labels, in their order. */
  add(first?: string, second?: string): void
  read(): Readings[number]
}

export interface Histogram {
  observe(seconds: number, first?: string, second?: string): void
  read(): Readings[number]
}

export function createCounter(name: string, row: MetricRow): Counter {
  const children = createChildren(row.labels, () => ({ value: 0 }))
  return {
    add(first, second) {
      children.at(first, second).value++
    },
    read: () =>
      readingOf(
        name,
        row,
        children.all.map(({ labels, child }) => ({ labels, value: child.value })),
      ),
  }
}

interface Distribution {
  /** How many fell into each bucket and not into a smaller one; the last is for those above all. */
  readonly counts: number[]
  sum: number
}

export function createHistogram(name: string, row: MetricRow): Histogram {
  const children = createChildren<Distribution>(row.labels, () => ({
    counts: Array<number>(BUCKETS.length + 1).fill(0),
    sum: 0,
  }))
  return {
    observe(seconds, first, second) {
      const child = children.at(first, second)
      const bucket = bucketOf(seconds)
      child.counts[bucket] = (child.counts[bucket] ?? 0) + 1
      child.sum += seconds
    },
    read: () =>
      readingOf(
        name,
        row,
        children.all.flatMap(({ labels, child }) => samplesOf(name, labels, child)),
      ),
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

function samplesOf(name: string, labels: Labels, { counts, sum }: Distribution): Sample[] {
  let count = 0
  const buckets = counts.map((own, bucket): Sample => {
    count += own
    return { metricName: `${name}_bucket`, labels: { le: BUCKETS[bucket] ?? '+Inf', ...labels }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

interface Children<Child> {
  readonly all: readonly { readonly labels: Labels; readonly child: Child }[]
  at(first?: string, second?: string): Child
}

/** One for each combination of values, made at the start: nothing that comes from outside can add to them. */
function createChildren<Child>(labels: LabelValues = {}, make: () => Child): Children<Child> {
  const all = combinationsOf(labels).map(labels => ({ labels, child: make() }))
  const byValues = new Map(all.map(({ labels, child }) => [Object.values(labels).join(' '), child]))
  const [firstValues = [], secondValues = []] = Object.values(labels)
  const keyOf = (first = '', second?: string) => (second === undefined ? first : `${first} ${second}`)

  function otherwise(first?: string, second?: string): Child {
    const known = (values: readonly string[], value?: string) =>
      value === undefined || values.includes(value) ? value : values.at(-1)
    const child = byValues.get(keyOf(known(firstValues, first), known(secondValues, second)))
    if (!child) throw new Error('a metric was counted with other labels than it has')
    return child
  }

  return { all, at: (first, second) => byValues.get(keyOf(first, second)) ?? otherwise(first, second) }
}

function combinationsOf(labels: LabelValues): Labels[] {
  return Object.entries(labels).reduce<Labels[]>(
    (made, [name, values]) => made.flatMap(labels => values.map(value => ({ ...labels, [name]: value }))),
    [{}],
  )
}
