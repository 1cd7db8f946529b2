// What a part of the benchmarks is, and what it is given.

import type { Plan } from './plan.ts'
import type { Findings } from './report/findings.ts'
import type { Cores } from './servers/cores.ts'

export interface Bench {
  readonly plan: Plan
  readonly cores: Cores
  /** Whether this case of the part is to be measured. */
  wants(name: string): boolean
  /** What was measured so far that the simulation counts with. */
  costs(): Readonly<Record<string, number>>
  /** Tells how far it is. */
  say(line: string): void
}

export interface Part {
  /** What can be asked for alone, as `part:case`. */
  readonly cases?: readonly string[]
  run(bench: Bench): Promise<Findings>
}
