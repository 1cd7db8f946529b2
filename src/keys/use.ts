// The audit trail has one `key_used` per key and day (UTC), however many requests and processes use the key.
//
//   key in the store   key-used:<day>:<SHA-256 of the key>
//
// The process that creates this entry reports the event. A process asks the store once per key and day, and no request waits for it.

import { LRUCache } from 'lru-cache'
import type { Report } from '../events.ts'
import { userFields } from '../session/fields.ts'
import type { Store } from '../stores/store.ts'
import { atMost } from '../util/recent.ts'
import type { KeyCaller } from './callers.ts'

export interface KeyUse {
  /** `fields` are those of the request. */
  note(sha256: string, caller: KeyCaller, fields: object): void
  settle(): Promise<void>
}

interface KeyUseOptions {
  readonly store: Pick<Store, 'create'>
  readonly now: () => number
  readonly report: Report
}

const DAY_MS = 24 * 3_600_000
const HOUR_MS = 3_600_000
/** A store that cannot be written is not retried at every request. */
const RETRY_MS = 10_000
const MAX_NOTED_KEYS = 10_000

export function createKeyUse({ store, now, report }: KeyUseOptions): KeyUse {
  /** Until when nothing needs to be done for a key. */
  const noted = new LRUCache<string, number>(atMost(MAX_NOTED_KEYS))
  const pending = new Set<Promise<void>>()

  async function save(sha256: string, caller: KeyCaller, fields: object): Promise<void> {
    const at = now()
    const day = Math.floor(at / DAY_MS)
    const ends = (day + 1) * DAY_MS
    noted.set(sha256, ends)
    // Clocks of other processes may be behind.
    const entry = { value: new Uint8Array(1), expiresAt: ends + HOUR_MS, labels: [] }
    const version = await store.create(`key-used:${day}:${sha256}`, entry).catch(() => {
      noted.set(sha256, at + RETRY_MS)
    })
    if (version === undefined) return
    const { user, who, keyName } = caller
    const name = keyName === undefined ? {} : { name: keyName }
    report('key_used', { ...fields, ...userFields(user), key: who.keyKind, ...name })
  }

  return {
    note(sha256, caller, fields) {
      if ((noted.get(sha256) ?? 0) > now()) return
      const saving = save(sha256, caller, fields).finally(() => pending.delete(saving))
      pending.add(saving)
    },
    async settle() {
      await Promise.all(pending)
    },
  }
}
