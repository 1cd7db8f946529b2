// Measures contenders side by side: short rounds in turn, the order reversed in every other one, so that whatever else
// the machine does at the time slows all of them alike.

import type { Plan } from './plan.ts'
import { type Load, measure } from './wrk.ts'

/** Each contender's requests per second, round by round. */
export async function contest(contenders: readonly Load[], plan: Plan): Promise<number[][]> {
  const { warmUpSeconds, rounds, roundSeconds } = plan
  if (warmUpSeconds > 0) for (const load of contenders) await measure(load, warmUpSeconds)
  const rates: number[][] = contenders.map(() => [])
  const forwards = [...contenders.entries()]
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? forwards : forwards.toReversed()
    for (const [index, load] of order) rates[index]?.push(await measure(load, roundSeconds))
  }
  return rates
}

/** The median of the ratios of each round. */
export function ratio(rates: readonly number[] = [], reference: readonly number[] = []): number {
  return median(ratios(rates, reference))
}

/** Round by round. */
export function ratios(rates: readonly number[] = [], reference: readonly number[] = []): number[] {
  return rates.map((rate, round) => rate / (reference[round] ?? 0))
}

/** Half of the values lie between them. */
export function quartiles(values: readonly number[]): [low: number, high: number] {
  const sorted = values.toSorted((one, other) => one - other)
  const at = (share: number) => sorted[Math.round((sorted.length - 1) * share)] ?? 0
  return [at(0.25), at(0.75)]
}

export function median(values: readonly number[] = []): number {
  const sorted = values.toSorted((one, other) => one - other)
  return ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
}
