// Which sessions this process has ended recently. While the store is unavailable, a recently confirmed session is still in the
// cache, and only this table shows that it has ended.

import { LRUCache } from 'lru-cache'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import type { Store } from '../stores/store.ts'
import { atMost } from '../util/recent.ts'
import { shortKey } from './fields.ts'
import { isRecordKey } from './ticket.ts'

export interface SessionEnds {
  /** The given store, wrapped to note removals. */
  readonly store: Store
  /** Whether this process has ended, or tried to end, the session of this key since that time. */
  hasEndedSince(key: string, time: number): boolean
}

const MAX_ENTRIES = 20_000

export function watchEnds(
  store: Store,
  { now, report }: { readonly now: () => number; readonly report: Report },
): SessionEnds {
  const endedAt = new LRUCache<string, number>(atMost(MAX_ENTRIES))

  /** Called before the store is asked: a removal whose answer is lost may have happened. */
  function note(key: string): void {
    endedAt.set(key, now())
  }

  /** A store that hangs may execute the call after we have given up, and then no other event tells that the session has ended. */
  function reportUnconfirmed(key: string, error: unknown): never {
    if (isRecordKey(key)) report('session_end_unconfirmed', { session: shortKey(key), ...errorFields(error) })
    throw error
  }

  return {
    store: {
      ...store,
      replace(key, entry, version) {
        // An empty record means that the session has ended, see end-reasons.ts.
        if (entry.value.length === 0) note(key)
        return store.replace(key, entry, version)
      },
      remove(key) {
        note(key)
        return store.remove(key)
      },
      take(key) {
        note(key)
        return store.take(key).catch(error => reportUnconfirmed(key, error))
      },
    },
    hasEndedSince: (key, time) => (endedAt.get(key) ?? Number.NEGATIVE_INFINITY) >= time,
  }
}
