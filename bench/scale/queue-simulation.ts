// Simulates how long requests take: one process and its Redis, each doing one thing at a time, with requests that arrive at random.
// The other processes exist only as the load that they put on that Redis.

import { quantile } from '../measure/statistics.ts'
import type { Random } from './random.ts'

interface QueueLoad {
  /** Requests per second to this process. */
  readonly requests: number
  /** The share of them that has to ask Redis. */
  readonly misses: number
  /** Seconds of the process, for a request that does not ask Redis and for one that does. */
  readonly hitSeconds: number
  readonly missSeconds: number
  /** Seconds of Redis for one query, and the share of its time that others take. */
  readonly redisSeconds: number
  readonly redisBusy: number
  /** Seconds from the process to Redis and back. */
  readonly wayAndBack: number
  /** The share of the process's time that sign-ins and refreshes take. */
  readonly otherwiseBusy: number
}

interface Answered {
  /** Seconds. */
  readonly p50: number
  readonly p99: number
}

const REQUESTS = 60_000

export function answerTimes(load: QueueLoad, random: Random): Answered {
  const redis = createServer()
  const process = createServer()
  const others = load.redisBusy / load.redisSeconds
  // The other work of the process slows all of its requests alike.
  const slower = 1 / (1 - load.otherwiseBusy)
  const times: number[] = []
  /** Requests that come back from Redis, the earliest first. */
  const returning = createTimeline<number>()
  let now = 0
  let nextOfOthers = random.wait(others)
  for (let n = 0; n < REQUESTS; n++) {
    now += random.wait(load.requests)
    for (let back = returning.takeUntil(now); back; back = returning.takeUntil(now)) {
      times.push(process.work(back.at, (load.missSeconds / 2) * slower) - back.value)
    }
    if (random.next() >= load.misses) {
      times.push(process.work(now, load.hitSeconds * slower) - now)
      continue
    }
    const asked = process.work(now, (load.missSeconds / 2) * slower) + load.wayAndBack / 2
    for (; nextOfOthers < asked; nextOfOthers += random.wait(others)) redis.work(nextOfOthers, load.redisSeconds)
    returning.add(redis.work(asked, load.redisSeconds) + load.wayAndBack / 2, now)
  }
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
}

/** Does one thing at a time, in the order of arrival. */
function createServer() {
  let freeAt = 0
  return {
    /** Returns the moment at which it is done. */
    work(from: number, seconds: number): number {
      freeAt = Math.max(freeAt, from) + seconds
      return freeAt
    },
  }
}

/** A sorted list, because few are in flight at a time. */
function createTimeline<Value>() {
  const entries: { at: number; value: Value }[] = []
  return {
    add(at: number, value: Value): void {
      let place = entries.length
      while (place > 0 && (entries[place - 1]?.at ?? 0) > at) place--
      entries.splice(place, 0, { at, value })
    },
    takeUntil(moment: number): { at: number; value: Value } | undefined {
      return (entries[0]?.at ?? Number.POSITIVE_INFINITY) <= moment ? entries.shift() : undefined
    },
  }
}
