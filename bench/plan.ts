// How much is measured: the whole run, and a quick one that only shows that everything works.

import type { Rounds } from './measure/contest.ts'

export interface Plan extends Rounds {
  /** Sessions whose tokens are due. */
  readonly dueSessions: number
  /** From the smallest, with which the others are compared. */
  readonly storeSizes: readonly number[]
  /** How many users take turns where there are few, and where there are many. */
  readonly visitors: number
  readonly activeUsers: number
  /** Sessions that are swept, at once and beside others. */
  readonly expiredSessions: number
  readonly expiringSessions: number
  readonly rules: readonly number[]
  readonly upstreams: number
  readonly providers: readonly number[]
  readonly streams: readonly number[]
  readonly redisUsers: number
  readonly memorySeconds: number
  /** How long a process is under load, and then quiet, before its age is measured. */
  readonly lifeSeconds: number
  readonly quietSeconds: number
  /** How long the young processes are under the same load. */
  readonly youngSeconds: number
  readonly starts: number
}

export const WHOLE: Plan = {
  warmUpSeconds: 2,
  rounds: 24,
  mostRounds: 48,
  roundSeconds: 0.5,
  dueSessions: 10_000,
  storeSizes: [1000, 100_000, 1_000_000],
  visitors: 1000,
  activeUsers: 100_000,
  expiredSessions: 100_000,
  expiringSessions: 5000,
  rules: [0, 12, 1000],
  upstreams: 200,
  providers: [1, 20],
  streams: [0, 1000, 10_000],
  redisUsers: 2000,
  memorySeconds: 5,
  lifeSeconds: 90,
  // V8 waits for half a minute before it gives memory back.
  quietSeconds: 60,
  youngSeconds: 10,
  starts: 9,
}

export const QUICK: Plan = {
  warmUpSeconds: 0.2,
  rounds: 2,
  mostRounds: 2,
  roundSeconds: 0.3,
  dueSessions: 300,
  storeSizes: [100, 1000],
  visitors: 100,
  activeUsers: 2000,
  expiredSessions: 1000,
  expiringSessions: 200,
  rules: [0, 12, 100],
  upstreams: 20,
  providers: [1, 3],
  streams: [0, 50],
  redisUsers: 200,
  memorySeconds: 0.5,
  lifeSeconds: 0.5,
  quietSeconds: 0,
  youngSeconds: 0.5,
  starts: 2,
}
