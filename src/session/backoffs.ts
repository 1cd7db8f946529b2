// Pauses after failures, by key: 1 s after the first, then 2 s, 4 s and so on up to the longest, until a success ends them.

import { LRUCache } from 'lru-cache'
import { atMost } from '../util/recent.ts'

export interface Backoffs {
  isOn(key: string): boolean
  /** After another failure: twice as long as the last time. */
  lengthen(key: string): void
  /** After a success. */
  reset(key: string): void
}

const INITIAL_BACKOFF_MS = 1000
const MAX_BACKOFF_MS = 30_000
const MAX_KEYS = 10_000

export function createBackoffs(now: () => number, maxMs: number = MAX_BACKOFF_MS): Backoffs {
  const backoffs = new LRUCache<string, { until: number; wait: number }>(atMost(MAX_KEYS))
  return {
    isOn(key) {
      const { until = 0, wait = 0 } = backoffs.get(key) ?? {}
      const left = until - now()
      // A pause that is longer than it was began before the clock was set back.
      return left > 0 && left <= wait
    },
    lengthen(key) {
      const wait = Math.min((backoffs.get(key)?.wait ?? INITIAL_BACKOFF_MS / 2) * 2, maxMs)
      backoffs.set(key, { until: now() + wait, wait })
    },
    reset: key => void backoffs.delete(key),
  }
}
