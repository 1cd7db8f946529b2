// How the memory of SESSION_CACHE_MB is divided: between opened sessions and, with Redis, the records that prove them.
import type { Settings } from './settings.ts'

export interface CacheShares {
  readonly sessionBytes: number
  readonly recordBytes: number
}

const MEGABYTE = 1024 * 1024
/** A record takes about two thirds of the memory of its opened session, so both caches fill up at the same number of users. */
const RECORDS_SHARE = 0.4

export function cacheShares({
  SESSION_CACHE_MB,
  STORE = '',
}: Pick<Settings, 'SESSION_CACHE_MB'> & Partial<Pick<Settings, 'STORE'>>): CacheShares {
  const bytes = SESSION_CACHE_MB * MEGABYTE
  // With a cluster no records are cached.
  const recordBytes = /^rediss?(\+sentinel)?:/.test(STORE) ? bytes * RECORDS_SHARE : 0
  return { sessionBytes: bytes - recordBytes, recordBytes }
}
