// Opens the store that the setting STORE names.
import type { Report } from '../events.ts'
import type { OnBroken } from './lmdb/lmdb-files.ts'
import { openLmdbStore } from './lmdb/lmdb-store.ts'
import { createMemoryStore } from './memory-store.ts'
import type { LimitClient, ReadCacheLimits } from './redis/redis-connection.ts'
import type { Store } from './store.ts'

export async function openStore(
  address: string,
  now: () => number,
  report: Report,
  cache?: ReadCacheLimits,
  onBroken?: OnBroken,
): Promise<Store> {
  if (address === 'memory:') return createMemoryStore({ now })
  if (address.startsWith('lmdb:')) return openLmdbStore({ directory: address.slice('lmdb:'.length), now, onBroken })
  // Loaded only where it is used: the client is slow to load.
  const { openRedisStore } = await import('./redis/redis-store.ts')
  return openRedisStore({ address, now, report, ...(cache && { cache }) })
}

/** The connection over which all instances count rate limits together; `undefined` if each process counts alone. */
export async function openLimits(address: string): Promise<LimitClient | undefined> {
  if (!address.startsWith('redis')) return undefined
  const { openLimitClient } = await import('./redis/redis-connection.ts')
  return openLimitClient(address)
}
