// Random numbers that are the same in every run.
import { createRandom as createGenerator } from '../../test/security/random.ts'

export interface Random {
  /** From 0 to 1. */
  next(): number
  /** The time until the next event, at `rate` events per second. */
  wait(rate: number): number
}

export function createRandom(seed: number): Random {
  const { next } = createGenerator(seed)
  return { next, wait: rate => -Math.log(1 - next()) / rate }
}
