// What a part of the benchmarks is, and what it is given.

import type { Plan } from './plan.ts'
import type { Findings } from './report/findings.ts'
import type { Cores } from './servers/cores.ts'

export interface Bench {
  readonly plan: Plan
  readonly cores: Cores
  /** Whether this case of the part is to be measured. */
  wants(name: string): boolean
  /** The costs that were measured so far, for the simulation. */
  costs(): Readonly<Record<string, number>>
  /** Reports progress. */
  say(line: string): void
}

export interface Part {
  /** What can be run separately, as `part:case`. */
  readonly cases?: readonly string[]
  run(bench: Bench): Promise<Findings>
}
