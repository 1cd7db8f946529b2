// The simulation of larger installations, with round costs.

import assert from 'node:assert/strict'
import test from 'node:test'
import { hitShare } from '../../bench/scale/cache-simulation.ts'
import { readCosts } from '../../bench/scale/costs.ts'
import { ASSUMED, plan, size } from '../../bench/scale/installation.ts'
import { answerTimes } from '../../bench/scale/queue-simulation.ts'
import { createRandom } from '../../bench/scale/random.ts'

const COSTS = {
  check: { menshen: 60e-6 },
  cold: { menshen: 200e-6, redis: 10e-6, commands: 1, bytes: 1000 },
  signIn: { menshen: 1e-3, redis: 100e-6, commands: 25, bytes: 4000 },
  refresh: { menshen: 1e-3, redis: 100e-6, commands: 30, bytes: 5000 },
  invalidation: { redis: 2e-6, bytes: 100 },
  sessionInRedis: 4000,
  sessionInCache: 2000,
  memoryAtStart: 100e6,
}
const QUEUE = {
  requests: 1000,
  misses: 0,
  hitSeconds: 100e-6,
  missSeconds: 200e-6,
  redisSeconds: 10e-6,
  redisBusy: 0.1,
  wayAndBack: 400e-6,
  otherwiseBusy: 0,
}
const near = (value: number, expected: number, share: number) =>
  assert.ok(Math.abs(value - expected) <= expected * share, `${value} is not near ${expected}`)

test('a cache with room for a tenth of the users has a hit rate of a tenth', () => {
  const load = { users: 1000, visitsOfOne: 1, changesOfOne: 1e-9, capacity: 100 }
  near(hitShare(load, createRandom(1)), 0.1, 0.1)
})

test('sessions that change as often as they are visited have a cache hit rate of one half', () => {
  const load = { users: 1000, visitsOfOne: 0.01, changesOfOne: 0.01, capacity: 1e9 }
  near(hitShare(load, createRandom(1)), 0.5, 0.05)
})

test('requests to a process that is busy half of the time wait as queueing theory predicts', () => {
  const { p50, p99 } = answerTimes({ ...QUEUE, requests: 5000 }, createRandom(1))
  // With equal work and random arrivals one waits for half of the work on average, and many not at all.
  assert.ok(p50 >= QUEUE.hitSeconds && p50 < 2 * QUEUE.hitSeconds, String(p50))
  assert.ok(p99 > 3 * QUEUE.hitSeconds && p99 < 6 * QUEUE.hitSeconds, String(p99))
})

test('a request that misses the cache waits for the round trip to Redis', () => {
  const { p50 } = answerTimes({ ...QUEUE, requests: 200, misses: 1 }, createRandom(1))
  near(p50, QUEUE.missSeconds + QUEUE.wayAndBack + QUEUE.redisSeconds, 0.1)
})

test('the same seed gives the same installation', () => {
  const demand = { sessions: 1e6, requests: 10_000 }
  assert.deepEqual(plan(demand, 'any process, one Redis', COSTS), plan(demand, 'any process, one Redis', COSTS))
})

test('the plan keeps every process within the load limit, with no more processes than needed', () => {
  const { processes, processBusy } = size({ sessions: 1e6, requests: 50_000 }, 'the same process, one Redis', COSTS)
  assert.ok(processBusy <= ASSUMED.mostBusy)
  assert.ok((processBusy * processes) / (processes - 1) > ASSUMED.mostBusy * 0.95, `${processes} at ${processBusy}`)
})

test('routing a user to the same process reduces the load on Redis, and with Redis Cluster no request hits the cache', () => {
  const demand = { sessions: 1e7, requests: 100_000 }
  const any = size(demand, 'any process, one Redis', COSTS)
  const same = size(demand, 'the same process, one Redis', COSTS)
  const cluster = size(demand, 'any process, Redis Cluster', COSTS)
  assert.ok(same.redisBusy < any.redisBusy)
  assert.ok(same.invalidations < any.invalidations)
  assert.equal(cluster.hits, 0)
  assert.ok(cluster.redisBusy <= ASSUMED.mostBusy)
})

test('costs that were not measured are reported as an error', () => {
  assert.throws(() => readCosts({}), /has not been measured/)
})
