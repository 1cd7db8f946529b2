// How long not to bother the provider again about a session whose refresh has just failed.
import { LRUCache } from 'lru-cache'

export interface Backoffs {
  isOn(key: string): boolean
  /** Another failure: twice as long as the last time. */
  lengthen(key: string): void
  forget(key: string): void
}

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** Those whose session is gone fall out. */
const MOST = 10_000

export function createBackoffs(now: () => number): Backoffs {
  const backoffs = new LRUCache<string, { until: number; wait: number }>({ max: MOST })
  return {
    isOn: key => now() < (backoffs.get(key)?.until ?? 0),
    lengthen(key) {
      const wait = Math.min((backoffs.get(key)?.wait ?? FIRST_MS / 2) * 2, LONGEST_MS)
      backoffs.set(key, { until: now() + wait, wait })
    },
    forget: key => void backoffs.delete(key),
  }
}
