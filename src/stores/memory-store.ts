// A store in the memory of one process: for development, for tests, and for a single process whose sessions may end
// with it.

import { firstVersion } from './first-version.ts'
import type { Entry, Page, Store, Stored } from './store.ts'

/** Each write looks at this many entries for expired ones: more than it can add, so that they cannot pile up. */
const SWEPT_PER_WRITE = 3

export function createMemoryStore({ now }: { now: () => number }): Store {
  const entries = new Map<string, Stored>()
  const keysByLabel = new Map<string, Set<string>>()
  let sweeping = entries.values()

  function living(key: string): Stored | undefined {
    const stored = entries.get(key)
    return stored && stored.expiresAt > now() ? stored : undefined
  }

  function put(key: string, { value, expiresAt, labels }: Entry, version: number): void {
    drop(entries.get(key))
    entries.set(key, { key, value: copy(value), expiresAt, labels: [...labels], version })
    for (const label of labels) {
      const keys = keysByLabel.get(label)
      if (keys) keys.add(key)
      else keysByLabel.set(label, new Set([key]))
    }
    sweep()
  }

  function drop(stored: Stored | undefined): void {
    if (!stored) return
    entries.delete(stored.key)
    for (const label of stored.labels) {
      const keys = keysByLabel.get(label)
      keys?.delete(stored.key)
      if (keys?.size === 0) keysByLabel.delete(label)
    }
  }

  function sweep(): void {
    for (let looked = 0; looked < SWEPT_PER_WRITE; looked++) {
      const { value: stored, done } = sweeping.next()
      if (done) {
        sweeping = entries.values()
        return
      }
      if (stored.expiresAt <= now()) drop(stored)
    }
  }

  return {
    async create(key, entry) {
      if (living(key)) return false
      put(key, entry, (entries.get(key)?.version ?? firstVersion()) + 1)
      return true
    },

    async read(key) {
      const stored = living(key)
      return stored && handOut(stored)
    },

    holds(key, version) {
      return living(key)?.version === version
    },

    async replace(key, entry, version) {
      if (living(key)?.version !== version) return false
      put(key, entry, version + 1)
      return true
    },

    async remove(key) {
      const stored = living(key)
      drop(stored)
      return stored !== undefined
    },

    async take(key) {
      const stored = living(key)
      drop(stored)
      return stored
    },

    async list({ label, after = '', limit }): Promise<Page> {
      const rest = [...(keysByLabel.get(label) ?? [])].filter(key => key > after).flatMap(key => living(key) ?? [])
      rest.sort((a, b) => (a.key < b.key ? -1 : 1))
      const page = rest.slice(0, limit).map(handOut)
      const next = page.at(-1)?.key
      return next !== undefined && rest.length > limit ? { entries: page, next } : { entries: page }
    },

    async ready() {},

    async close() {
      entries.clear()
      keysByLabel.clear()
    },
  }
}

function handOut(stored: Stored): Stored {
  return { ...stored, value: copy(stored.value) }
}

/** Neither side sees what the other does to its bytes. */
function copy(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}
