// Chance that is the same in every run.

export interface Random {
  /** From 0 to 1. */
  next(): number
  /** The time until something happens that happens `rate` times a second. */
  wait(rate: number): number
}

/** Mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { next, wait: rate => -Math.log(1 - next()) / rate }
}
