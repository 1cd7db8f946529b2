// How much is measured: the whole run, and a quick one that only shows that everything works.

export interface Plan {
  /** Before the first round counts. */
  readonly warmUpSeconds: number
  /** Each contender runs once a round. */
  readonly rounds: number
  readonly roundSeconds: number
  readonly stormSessions: number
  /** From the smallest, with which the others are compared. */
  readonly storeSizes: readonly number[]
  /** How many users take turns where there are many. */
  readonly activeUsers: number
}

export const WHOLE: Plan = {
  warmUpSeconds: 3,
  rounds: 9,
  roundSeconds: 2,
  stormSessions: 10_000,
  storeSizes: [1000, 100_000, 1_000_000],
  activeUsers: 100_000,
}

export const QUICK: Plan = {
  warmUpSeconds: 0,
  rounds: 1,
  roundSeconds: 1,
  stormSessions: 300,
  storeSizes: [100, 1000, 3000],
  activeUsers: 2000,
}
