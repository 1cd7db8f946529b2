// How long not to bother the provider again about a session whose refresh has just failed.

export interface Backoffs {
  isOn(key: string): boolean
  /** Another failure: twice as long as the last time. */
  lengthen(key: string): void
  forget(key: string): void
}

const FIRST_MS = 1000
const LONGEST_MS = 30_000
const MOST = 10_000

export function createBackoffs(now: () => number): Backoffs {
  const backoffs = new Map<string, { until: number; wait: number }>()
  return {
    isOn: key => now() < (backoffs.get(key)?.until ?? 0),
    lengthen(key) {
      const wait = Math.min((backoffs.get(key)?.wait ?? FIRST_MS / 2) * 2, LONGEST_MS)
      // The latest at the end: those whose session is gone fall out at the beginning.
      backoffs.delete(key)
      backoffs.set(key, { until: now() + wait, wait })
      if (backoffs.size > MOST) backoffs.delete(backoffs.keys().next().value as string)
    },
    forget: key => void backoffs.delete(key),
  }
}
