// Opens the store that the setting STORE names.
import { openLmdbStore } from './lmdb.ts'
import { createMemoryStore } from './memory.ts'
import type { Store } from './store.ts'

export async function openStore(address: string, now: () => number): Promise<Store> {
  if (address === 'memory:') return createMemoryStore({ now })
  return openLmdbStore({ directory: address.slice('lmdb:'.length), now })
}
