// What every part of the benchmarks is given.

import type { Cores } from './cores.ts'
import type { Plan } from './plan.ts'
import type { Findings } from './report.ts'

export interface Bench {
  readonly plan: Plan
  readonly cores: Cores
  /** Tells how far it is. */
  say(line: string): void
}

export type Part = (bench: Bench) => Promise<Findings>
