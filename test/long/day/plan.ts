// When what happens in a day: it warms up, is quiet for a while, has one fault after the other, and is quiet again.

import type { Random } from '../../security/random.ts'
import { FAULTS, type Fault, type Where } from './faults.ts'

export interface DayOptions {
  readonly minutes: number
  readonly seed: number
  /** Whether the plot goes into the docs. */
  readonly keeps: boolean
}

/** A fault, and the site that has it. */
export interface Occurrence {
  readonly fault: Fault
  readonly where: Where
}

export interface Plan {
  /** In seconds since the beginning, as all times here. */
  readonly warmedUp: number
  readonly firstFault: number
  /** From here on no process is ended, so that what a process loses or hoards has time to show. */
  readonly noon: number
  readonly lastFault: number
  readonly end: number
  /** One, or two at the same time. The same order for the same seed. */
  nextFaults(isAfternoon: boolean): Occurrence[]
  /** Between two faults. */
  pauseSeconds(): number
  /** Of a fault that lasts. */
  faultSeconds(): number
}

/** How often a fault does not come alone. */
const TWO_AT_ONCE = 0.3

/** As test/run.ts passes them on. */
export function readOptions(env: NodeJS.ProcessEnv): DayOptions {
  const { LONG_MINUTES: minutes = '30', LONG_SEED: seed = '1', LONG_KEEP: keep } = env
  if (!(Number(minutes) >= 2)) throw new Error(`--minutes takes a number from 2 on, e.g. 30, and not ${minutes}.`)
  if (!/^\d{1,9}$/.test(seed)) throw new Error(`--seed takes a number, e.g. 7, and not ${seed}.`)
  return { minutes: Number(minutes), seed: Number(seed), keeps: keep !== undefined }
}

export function planDay({ minutes }: DayOptions, random: Random): Plan {
  const end = minutes * 60
  let bag: Fault[] = []

  /** Each comes once before any comes again. */
  function next(isAfternoon: boolean): Occurrence {
    for (;;) {
      if (bag.length === 0) bag = shuffle(FAULTS, random)
      const fault = bag.pop() as Fault
      if (!isAfternoon || !fault.endsProcesses) return { fault, where: random.pick(fault.at) }
    }
  }

  return {
    warmedUp: end * 0.06,
    firstFault: end * 0.18,
    noon: end * 0.5,
    lastFault: end * 0.88,
    end,
    nextFaults(isAfternoon) {
      const first = next(isAfternoon)
      if (!random.chance(TWO_AT_ONCE)) return [first]
      const second = next(isAfternoon)
      if (first.where !== second.where) return [first, second]
      // Each would change what the other expects: the second comes first the next time.
      bag.push(second.fault)
      return [first]
    },
    pauseSeconds: () => 4 + random.next() * 8,
    faultSeconds: () => 3 + random.next() * 7,
  }
}

function shuffle<Item>(items: readonly Item[], random: Random): Item[] {
  return items
    .map(item => ({ item, rank: random.next() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item)
}
