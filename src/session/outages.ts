// Outages of a provider: for a moment after a call has failed, others do not try one after the other. A call without an answer, or
// with one that the provider is overloaded, may concern only its user: the provider limits each user's calls, or has trouble with
// that account. So it is an outage for this user at first, and for all users once the call of another has failed:
//
//   0.0 s  a call of A fails           A is paused, B is not
//   0.3 s  a call of B succeeds        there is no outage
//          or a call of B fails too    all are paused

import { LRUCache } from 'lru-cache'
import { atMost } from '../util/recent.ts'
import { createBackoffs } from './backoffs.ts'

/** `name` is what may have an outage. */
export interface Outages {
  isOn(name: string, user: string): boolean
  /** A call of this user has failed; without a user, a call that fails for all users. */
  note(name: string, user?: string): void
  /** After a success. */
  reset(name: string): void
}

const MAX_NAMES = 10_000
const ALL_USERS = Symbol('all users')

export function createOutages(now: () => number, maxMs: number): Outages {
  const pauses = createBackoffs(now, maxMs)
  /** For whom calls have failed since the last success. */
  const concerned = new LRUCache<string, string | typeof ALL_USERS>(atMost(MAX_NAMES))

  return {
    isOn(name, user) {
      const who = concerned.get(name)
      return (who === user || who === ALL_USERS) && pauses.isOn(name)
    },
    note(name, user) {
      const isOnlyUser = user !== undefined && (concerned.get(name) ?? user) === user
      concerned.set(name, isOnlyUser ? user : ALL_USERS)
      // Calls that fail at the same moment are one outage.
      if (!pauses.isOn(name)) pauses.lengthen(name)
    },
    reset(name) {
      concerned.delete(name)
      pauses.reset(name)
    },
  }
}
