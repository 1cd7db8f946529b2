// Opens the store that the setting STORE names.
import type { Report } from '../events.ts'
import { createMemoryStore } from './memory.ts'
import type { LimitClient, ReadCacheLimits } from './redis/connection.ts'
import { openSqliteStore } from './sqlite/store.ts'
import type { Store } from './store.ts'

export async function openStore(
  address: string,
  now: () => number,
  report: Report,
  cache?: ReadCacheLimits,
): Promise<Store> {
  if (address === 'memory:') return createMemoryStore({ now })
  const file = storeFile(address)
  if (file !== undefined) return openSqliteStore({ file, now })
  // Loaded only if it is used: the client is slow to load.
  const { openRedisStore } = await import('./redis/store.ts')
  return openRedisStore({ address, now, report, ...(cache && { cache }) })
}

const EMBEDDED = 'sqlite:'

/** The database file of an embedded store; `undefined` for other stores. */
export function storeFile(address: string): string | undefined {
  return address.startsWith(EMBEDDED) ? address.slice(EMBEDDED.length) : undefined
}

/** The connection over which all instances count rate limits together; `undefined` if each process counts alone. */
export async function openLimits(address: string): Promise<LimitClient | undefined> {
  if (!address.startsWith('redis')) return undefined
  const { openLimitClient } = await import('./redis/connection.ts')
  return openLimitClient(address)
}
