// Pauses after failures, by key: 1 s after the first, then 2 s, 4 s and so on up to the longest, until a success ends them.

import { LRUCache } from 'lru-cache'
import { atMost } from '../util/recent.ts'

export interface Backoffs {
  isOn(key: string): boolean
  /** After another failure: twice as long as the last time. */
  lengthen(key: string): void
  /** After a success. */
  forget(key: string): void
}

const FIRST_MS = 1000
const LONGEST_MS = 30_000
const MOST = 10_000

export function createBackoffs(now: () => number, longestMs: number = LONGEST_MS): Backoffs {
  const backoffs = new LRUCache<string, { until: number; wait: number }>(atMost(MOST))
  return {
    isOn: key => now() < (backoffs.get(key)?.until ?? 0),
    lengthen(key) {
      const wait = Math.min((backoffs.get(key)?.wait ?? FIRST_MS / 2) * 2, longestMs)
      backoffs.set(key, { until: now() + wait, wait })
    },
    forget: key => void backoffs.delete(key),
  }
}
