// Measures contenders side by side: many short rounds in turn, the order reversed in every other one, so that whatever else
// the machine does at the time slows all of them alike.

import type { Served } from '../servers/processes.ts'
import { cpuTimeOf } from './cpu-time.ts'
import { requestsOf, type Shape } from './requests.ts'
import { type Distribution, distributionOf, median, provesSomething, ratios } from './statistics.ts'
import { type Load, type Measured, measure } from './wrk.ts'

export interface Contender {
  /** The process whose processor time is measured. */
  readonly pid: number
  /** How many requests are answered before the first round counts. */
  readonly warmUpRequests?: number
  /** Sends requests for this long, beginning with request number `first`. */
  measure(seconds: number, first: number): Promise<Measured>
}

export interface Rounds {
  readonly warmUpSeconds: number
  readonly rounds: number
  /** If `rounds` rounds prove nothing, they are doubled, up to this number. */
  readonly mostRounds: number
  readonly roundSeconds: number
}

/** One figure per round. */
export interface Rated {
  /** Requests per second. */
  readonly rates: readonly number[]
  /** Microseconds of processor time per request. */
  readonly cpu: readonly number[]
  /** The share of the round that its processor time takes. */
  readonly busy: readonly number[]
}

export interface Comparison {
  /** Shares of the reference's rate. */
  readonly rate: Distribution
  /** Shares that processor time alone would give. */
  readonly cpu: Distribution
  /** Whether the reference had time to spare, so that the load was the limit and the rates say little. */
  readonly idle: boolean
}

/** A server that is measured has no more time to spare than this. */
const LEAST_BUSY = 0.9

/** Requests of that shape to a server, by the users of the cookies in turn. */
export function contender(
  { url, pid }: Served,
  shapeAt: (base: string) => Shape,
  cookies: readonly string[],
  more: Pick<Load, 'connections'> = {},
): Contender {
  const shape = shapeAt(url)
  const load = { url: shape.url, requests: requestsOf(shape, cookies), ...more }
  return { pid, measure: (seconds, first) => measure(load, seconds, first) }
}

export async function contest(contenders: readonly Contender[], plan: Rounds): Promise<Rated[]> {
  const turns = contenders.map(contender => ({ contender, served: 0, rates: [], cpu: [], busy: [] }) as Turn)
  for (const turn of turns) {
    const { warmUpRequests = 1 } = turn.contender
    while (turn.served < warmUpRequests) await play(turn, plan.warmUpSeconds)
  }
  for (const turn of turns) turn.rates.length = turn.cpu.length = turn.busy.length = 0
  let most = plan.rounds
  for (let round = 0; round < most; round++) {
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await play(turn, plan.roundSeconds)
    if (round + 1 === most && most < plan.mostRounds && !isProven(turns)) most = Math.min(2 * most, plan.mostRounds)
  }
  return turns
}

/** Compares the contenders with the last of them. */
export async function contestAgainstLast(contenders: readonly Contender[], plan: Rounds) {
  const all = await contest(contenders, plan)
  const reference = all.pop()
  if (!reference) throw new Error('nobody was measured')
  return all.map(rated => ({ ours: rated, reference, comparison: compare(rated, reference) }))
}

export function compare(record: Rated, reference: Rated): Comparison {
  return {
    rate: distributionOf(ratios(record.rates, reference.rates)),
    cpu: distributionOf(ratios(reference.cpu, record.cpu)),
    idle: median(reference.busy) < LEAST_BUSY,
  }
}

/** If the reference had time to spare, its rate is not a limit; if other work slowed them, rates say little. */
export function decisive({ rate, cpu, idle }: Comparison): { judged: Distribution; byCpu: boolean } {
  const byCpu = idle || (!provesSomething(rate) && provesSomething(cpu))
  return { judged: byCpu ? cpu : rate, byCpu }
}

/** Whether each of them can be compared with each other. */
function isProven(turns: readonly Rated[]): boolean {
  return turns.every((one, index) =>
    turns.slice(index + 1).every(other => provesSomething(decisive(compare(one, other)).judged)),
  )
}

interface Turn extends Rated {
  readonly contender: Contender
  /** How many requests it has answered: the next round goes on with the next one. */
  served: number
  readonly rates: number[]
  readonly cpu: number[]
  readonly busy: number[]
}

async function play(turn: Turn, seconds: number): Promise<void> {
  const { contender, rates, cpu, busy } = turn
  const before = cpuTimeOf(contender.pid)
  const { requests, rate } = await contender.measure(seconds, turn.served)
  const spent = cpuTimeOf(contender.pid) - before
  turn.served += requests
  rates.push(rate)
  cpu.push(spent / requests)
  busy.push((spent * rate) / requests / 1e6)
}
