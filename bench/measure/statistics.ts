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

/** Between two neighbours it is in proportion to both. NaN if there are no values. */
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

/** Each goes first as often as second in so many rounds, which are too short to be compared one by one. */
const ROUNDS_COMPARED = 4

/** A few neighbouring rounds at a time, so that what slowed them down slowed both. */
export function ratios(values: readonly number[], reference: readonly number[]): number[] {
  const others = averages(reference)
  return averages(values).map((value, index) => value / (others[index] ?? Number.NaN))
}

function averages(values: readonly number[]): number[] {
  const groups = Array.from({ length: Math.ceil(values.length / ROUNDS_COMPARED) }, (_, index) =>
    values.slice(index * ROUNDS_COMPARED, (index + 1) * ROUNDS_COMPARED),
  )
  return groups.map(group => group.reduce((sum, value) => sum + value, 0) / group.length)
}
