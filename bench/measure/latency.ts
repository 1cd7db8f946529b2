// How long requests take that are sent at a steady rate, whether or not earlier ones were answered.

import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { ask } from './answer.ts'
import { quantile } from './statistics.ts'

export interface Latency {
  readonly p50: number
  readonly p99: number
  readonly requests: number
}

const TICK_MS = 10
const A_TICK = 5

/** In milliseconds, each counted from the moment at which the request was due, until `isOver`. */
export async function steadyLatency(url: string, cookies: readonly string[], isOver: () => boolean): Promise<Latency> {
  const times: number[] = []
  const asked: Promise<void>[] = []
  const startedAt = performance.now()
  for (let tick = 0; !isOver(); tick++) {
    const due = startedAt + tick * TICK_MS
    if (due > performance.now()) await pause(due - performance.now())
    for (let n = 0; n < A_TICK; n++) asked.push(visit(url, cookies[asked.length % cookies.length], due))
  }
  await Promise.all(asked)
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), requests: times.length }

  async function visit(address: string, cookie: string | undefined, due: number): Promise<void> {
    const { status } = await ask(address, cookie)
    if (status !== 200) throw new Error(`${address} answered ${status}`)
    times.push(performance.now() - due)
  }
}
