// Limits repeats: each is reported ten times a minute, the rest is counted and reported once at the end of the minute.
import { LRUCache } from 'lru-cache'
import { atMost } from './recent.ts'

export interface Repeats<Subject> {
  /** Whether to report it; otherwise it is counted. Repeats have the same `key`. */
  isNew(key: string, subject: Subject): boolean
  /** Reports the remaining counts. */
  close(): void
}

interface RepeatCount<Subject> {
  readonly subject: Subject
  readonly since: number
  reported: number
  suppressed: number
}

const MAX_REPORTS_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** A client that keeps changing its address must not fill the memory. */
const MAX_KEYS = 10_000

/** `settle` gets the number of repeats that were left out within a minute, if any. */
export function createRepeats<Subject>(
  now: () => number,
  settle: (subject: Subject, count: number) => void,
): Repeats<Subject> {
  const repeats = new LRUCache<string, RepeatCount<Subject>>({
    ...atMost(MAX_KEYS),
    dispose: ({ subject, suppressed }) => {
      if (suppressed > 0) settle(subject, suppressed)
    },
  })
  const timer = setInterval(flushExpired, MINUTE_MS).unref()

  /** Also if the clock was set back: a minute in the future must not hide repeats until then. */
  function isCurrent({ since }: RepeatCount<Subject>): boolean {
    return Math.abs(now() - since) < MINUTE_MS
  }

  function flushExpired(): void {
    for (const [key, known] of repeats.entries()) if (!isCurrent(known)) repeats.delete(key)
  }

  function countOf(key: string, subject: Subject): RepeatCount<Subject> {
    const known = repeats.get(key)
    if (known && isCurrent(known)) return known
    const fresh = { subject, since: now(), reported: 0, suppressed: 0 }
    repeats.set(key, fresh)
    return fresh
  }

  return {
    isNew(key, subject) {
      const repeated = countOf(key, subject)
      const isNew = repeated.reported < MAX_REPORTS_PER_MINUTE
      if (isNew) repeated.reported++
      else repeated.suppressed++
      return isNew
    },
    close() {
      clearInterval(timer)
      repeats.clear()
    },
  }
}
