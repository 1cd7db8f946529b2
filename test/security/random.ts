// What chance looks like: a small generator with a seed, and simple looks at bits and bytes.

export type Random = ReturnType<typeof createRandom>

/** The same seed gives the same numbers (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    /** From 0 to 1. */
    next,
    below,
    chance: (probability: number) => next() < probability,
    pick<T>(list: readonly T[]): T {
      const picked = list[below(list.length)]
      if (picked === undefined) throw new Error('nothing to pick from')
      return picked
    },
  }
}

/** The share of ones, as a distance from a half in standard deviations. */
export function bitBias(values: readonly Buffer[]): number {
  const bits = values.reduce((sum, value) => sum + value.length * 8, 0)
  let ones = 0
  for (const value of values) for (const byte of value) ones += countOnes(byte)
  return Math.abs(ones - bits / 2) / (Math.sqrt(bits) / 2)
}

/** Chi-squared of the byte frequencies, as a distance from its mean (255) in standard deviations. */
export function byteBias(values: readonly Buffer[]): number {
  const counts = new Array<number>(256).fill(0)
  for (const value of values) for (const byte of value) counts[byte] = (counts[byte] ?? 0) + 1
  const expected = counts.reduce((sum, count) => sum + count, 0) / 256
  const chi = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  return Math.abs(chi - 255) / Math.sqrt(2 * 255)
}

function countOnes(byte: number): number {
  let ones = 0
  for (let rest = byte; rest > 0; rest >>= 1) ones += rest & 1
  return ones
}
