// What is said ten times a minute, and then only counted: one line at the end of the minute says how often.
import { LRUCache } from 'lru-cache'

export interface Repeats<Subject> {
  /** Whether it is to be said; otherwise it is counted. `key` is what makes it a repeat. */
  isNew(key: string, subject: Subject): boolean
  /** Tells of the counts that are still owed. */
  close(): void
}

interface Repeated<Subject> {
  readonly subject: Subject
  readonly since: number
  said: number
  leftOut: number
}

const SAID_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** Somebody who comes from ever new addresses must not fill our memory. */
const MOST_KEYS = 10_000

/** `settle` is told how many were left out of a minute, if any were. */
export function createRepeats<Subject>(
  now: () => number,
  settle: (subject: Subject, count: number) => void,
): Repeats<Subject> {
  const repeats = new LRUCache<string, Repeated<Subject>>({
    max: MOST_KEYS,
    dispose: ({ subject, leftOut }) => {
      if (leftOut > 0) settle(subject, leftOut)
    },
  })
  const timer = setInterval(settleOld, MINUTE_MS).unref()

  /** A clock may be set back: what is from the future must not hide repeats for all the time until then. */
  function isOfThisMinute({ since }: Repeated<Subject>): boolean {
    return Math.abs(now() - since) < MINUTE_MS
  }

  function settleOld(): void {
    for (const [key, known] of repeats.entries()) if (!isOfThisMinute(known)) repeats.delete(key)
  }

  function repeatedOf(key: string, subject: Subject): Repeated<Subject> {
    const known = repeats.get(key)
    if (known && isOfThisMinute(known)) return known
    const fresh = { subject, since: now(), said: 0, leftOut: 0 }
    repeats.set(key, fresh)
    return fresh
  }

  return {
    isNew(key, subject) {
      const repeated = repeatedOf(key, subject)
      const isNew = repeated.said < SAID_PER_MINUTE
      if (isNew) repeated.said++
      else repeated.leftOut++
      return isNew
    },
    close() {
      clearInterval(timer)
      repeats.clear()
    },
  }
}
