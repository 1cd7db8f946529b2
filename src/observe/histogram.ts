// Durations counted in buckets: the histogram of both the metrics and the console's history.

/** Upper bounds of the buckets in seconds, from a session in the cache to a provider at its deadline. */
export const BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const

/** The last bucket has no upper bound. */
export const BUCKET_COUNT = BOUNDS.length + 1

/** For each bucket, how many durations it holds. */
export function emptyBuckets(bounds: readonly number[] = BOUNDS): number[] {
  return Array<number>(bounds.length + 1).fill(0)
}

/** Runs for every request. The loop over the bounds usually ends after a few. */
export function addDuration(buckets: number[], seconds: number, bounds: readonly number[] = BOUNDS): void {
  let bucket = 0
  for (const bound of bounds) {
    if (seconds <= bound) break
    bucket++
  }
  buckets[bucket] = (buckets[bucket] ?? 0) + 1
}

/** The seconds that this share of the durations did not exceed, interpolated within a bucket; `undefined` if there are none. */
export function quantileOf(buckets: readonly number[], share: number): number | undefined {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let below = 0
  for (const [n, count] of buckets.entries()) {
    const wanted = total * share - below
    const lower = BOUNDS[n - 1] ?? 0
    const upper = BOUNDS[n] ?? lower
    if (wanted <= count) return lower + (upper - lower) * (wanted / count)
    below += count
  }
  return BOUNDS.at(-1)
}
