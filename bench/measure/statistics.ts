// The arithmetic of the benchmarks: a median, and how far from it the rounds lie.

export interface Distribution {
  readonly median: number
  /** Half of the values lie between these two. */
  readonly low: number
  readonly high: number
  readonly count: number
}

export function distributionOf(values: readonly number[]): Distribution {
  const at = (share: number) => quantile(values, share)
  return { median: at(0.5), low: at(0.25), high: at(0.75), count: values.length }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Interpolates between two neighbours. NaN if there are no values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  const place = (sorted.length - 1) * share
  const [below = Number.NaN, above = below] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
  return below + (above - below) * (place - Math.floor(place))
}

/** The distance of the quartiles, as a share of the median. */
export function spreadOf({ median, low, high }: Distribution): number {
  return (high - low) / median
}

/** A run whose quartiles are further apart than this share of its median proves nothing. */
const WIDEST_SPREAD = 0.1
/** Neither does a run with fewer comparisons. */
const FEWEST_COMPARISONS = 4

export function provesSomething(distribution: Distribution): boolean {
  return distribution.count >= FEWEST_COMPARISONS && spreadOf(distribution) <= WIDEST_SPREAD
}

/** Rounds are too short to be compared one by one. An even number: each goes first as often as second. */
const FEWEST_ROUNDS_COMPARED = 4
const MAX_COMPARISONS = 8

/** Compares several neighbouring rounds at a time, so that what slowed them down slowed both; more at a time where there are many. */
export function ratios(values: readonly number[], reference: readonly number[]): number[] {
  const size = Math.max(FEWEST_ROUNDS_COMPARED, 2 * Math.ceil(values.length / MAX_COMPARISONS / 2))
  const others = averages(reference, size)
  return averages(values, size).map((value, index) => value / (others[index] ?? Number.NaN))
}

function averages(values: readonly number[], size: number): number[] {
  const groups = Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  )
  return groups.map(group => group.reduce((sum, value) => sum + value, 0) / group.length)
}
