// How much is measured: the whole run, and a quick one that only shows that everything works.

import type { Rounds } from './measure/contest.ts'

export interface Plan extends Rounds {
  readonly stormSessions: number
  /** From the smallest, with which the others are compared. */
  readonly storeSizes: readonly number[]
  /** How many users take turns where there are many. */
  readonly activeUsers: number
}

export const WHOLE: Plan = {
  warmUpSeconds: 2,
  rounds: 40,
  roundSeconds: 0.5,
  stormSessions: 10_000,
  storeSizes: [1000, 100_000, 1_000_000],
  activeUsers: 100_000,
}

export const QUICK: Plan = {
  warmUpSeconds: 0.2,
  rounds: 2,
  roundSeconds: 0.3,
  stormSessions: 300,
  storeSizes: [100, 1000, 3000],
  activeUsers: 2000,
}
