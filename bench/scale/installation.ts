// How many processes and which Redis a number of sessions and requests needs, from the costs that were measured.

import { hitShare } from './cache-simulation.ts'
import type { Costs } from './costs.ts'
import { answerTimes } from './queue-simulation.ts'
import { createRandom } from './random.ts'

export interface Demand {
  readonly sessions: number
  /** Per second. */
  readonly requests: number
}

/** Which process a request comes to, and what the store is. */
export type Layout = 'any process, one Redis' | 'the same process, one Redis' | 'any process, Redis Cluster'

export interface Installation {
  readonly demand: Demand
  readonly layout: Layout
  readonly processes: number
  /** Shares of a core. */
  readonly processBusy: number
  readonly redisNodes: number
  readonly redisBusy: number
  readonly hits: number
  /** Per second. */
  readonly signIns: number
  readonly refreshes: number
  readonly redisCommands: number
  readonly redisBytes: number
  readonly invalidations: number
  readonly redisMemory: number
  readonly processMemory: number
  /** Seconds. */
  readonly p50: number
  readonly p99: number
}

type Sized = Omit<Installation, 'p50' | 'p99'>

/** What cannot be measured here: change it to what is true for you. */
export const ASSUMED = {
  /** The share of the sessions that is in use at a time. */
  activeShare: 0.1,
  /** How long people stay signed in, in seconds. */
  sessionSeconds: 8 * 3600,
  /** A token of two hours is refreshed five minutes before its end. */
  refreshEverySeconds: 6900,
  /** How often the time at which a session was last seen is written. */
  lastSeenEverySeconds: 300,
  /** From a machine to Redis and back. */
  wayAndBackSeconds: 0.0004,
  /** How busy a core may be planned to be. */
  mostBusy: 0.6,
  coresOfMachine: 8,
  /** Sessions that a process keeps. */
  cacheSize: 100_000,
} as const

const SEED = 20_261_116

/** The fewest processes that are not too busy, and how fast they answer. */
export function plan(demand: Demand, layout: Layout, costs: Costs): Installation {
  return withAnswerTimes(size(demand, layout, costs), costs)
}

/** Like `plan`, without the response times, which take longest to compute. */
export function size(demand: Demand, layout: Layout, costs: Costs): Sized {
  const isEnough = ({ processBusy }: Sized) => processBusy <= ASSUMED.mostBusy
  let [tooFew, enough] = [0, 1]
  let found = estimate(demand, layout, costs, enough)
  while (!isEnough(found)) {
    ;[tooFew, enough] = [enough, enough * 2]
    found = estimate(demand, layout, costs, enough)
  }
  while (enough - tooFew > 1) {
    const middle = Math.floor((tooFew + enough) / 2)
    const tried = estimate(demand, layout, costs, middle)
    if (isEnough(tried)) [enough, found] = [middle, tried]
    else tooFew = middle
  }
  return found
}

function estimate(demand: Demand, layout: Layout, costs: Costs, processes: number): Sized {
  const { sessions, requests } = demand
  const active = sessions * ASSUMED.activeShare
  const isSticky = layout === 'the same process, one Redis'
  const isCluster = layout === 'any process, Redis Cluster'
  const signIns = sessions / ASSUMED.sessionSeconds
  const refreshes = active / ASSUMED.refreshEverySeconds
  // The cost of writing when a session was last seen was not measured separately; a refresh writes more.
  const changes = refreshes + active / ASSUMED.lastSeenEverySeconds
  const users = isSticky ? active / processes : active
  const visitsOfOne = requests / processes / users
  const changesOfOne = changes / active
  const capacity = ASSUMED.cacheSize
  const load = { users, visitsOfOne, changesOfOne, capacity }
  const hits = isCluster ? 0 : hitShare(load, createRandom(SEED))
  const misses = requests * (1 - hits)
  // Every process that has it in the cache is notified.
  const invalidations = isCluster ? 0 : changes * (isSticky ? hits : hits * processes)
  const { check, cold, signIn, refresh, invalidation } = costs

  const processSeconds =
    requests * hits * check.menshen + misses * cold.menshen + signIns * signIn.menshen + changes * refresh.menshen
  const redisSeconds =
    misses * cold.redis + signIns * signIn.redis + changes * refresh.redis + invalidations * invalidation.redis
  const redisNodes = isCluster ? Math.max(3, Math.ceil(redisSeconds / ASSUMED.mostBusy)) : 1
  return {
    demand,
    layout,
    processes,
    processBusy: processSeconds / processes,
    redisNodes,
    redisBusy: redisSeconds / redisNodes,
    hits,
    signIns,
    refreshes,
    redisCommands: misses * cold.commands + signIns * signIn.commands + changes * refresh.commands,
    redisBytes:
      misses * cold.bytes + signIns * signIn.bytes + changes * refresh.bytes + invalidations * invalidation.bytes,
    invalidations,
    redisMemory: sessions * costs.sessionInRedis,
    processMemory: costs.memoryAtStart + Math.min(users, capacity) * costs.sessionInCache,
  }
}

function withAnswerTimes(installation: Sized, { check, cold }: Costs): Installation {
  const { demand, processes, processBusy, redisBusy, hits } = installation
  // Above that the queue grows without end.
  if (redisBusy >= 1) return { ...installation, p50: Number.POSITIVE_INFINITY, p99: Number.POSITIVE_INFINITY }
  const requests = demand.requests / processes
  const byRequests = requests * (hits * check.menshen + (1 - hits) * cold.menshen)
  const load = {
    requests,
    misses: 1 - hits,
    hitSeconds: check.menshen,
    missSeconds: cold.menshen,
    redisSeconds: cold.redis,
    redisBusy,
    wayAndBack: ASSUMED.wayAndBackSeconds,
    otherwiseBusy: Math.max(0, processBusy - byRequests),
  }
  return { ...installation, ...answerTimes(load, createRandom(SEED)) }
}
