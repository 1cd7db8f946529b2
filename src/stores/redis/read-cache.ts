// The records that one connection has read, as long as the server promises to say when they change. The promise ends
// with the connection, and so does its cache.

import { LRUCache } from 'lru-cache'
import type { Indexed } from './redis-record.ts'

interface ReadCache {
  get(key: string): Indexed | undefined
  /** Reads a record and keeps it, unless it is forgotten before the answer is here. */
  load(key: string): Promise<Indexed | undefined>
  forget(key: string): void
  forgetAll(): void
}

export interface ReadCacheLimits {
  /** How many records at most. */
  readonly size: number
  /** How much memory they may take together. */
  readonly bytes: number
}

/** Beside the bytes that came from the server: the objects around them and their places in the cache, as measured. */
const OVERHEAD_BYTES = 900

export function createReadCache(
  { size, bytes }: ReadCacheLimits,
  fetch: (key: string) => Promise<Indexed | undefined>,
): ReadCache {
  // Not by `max`: lru-cache makes room for that many ahead, which takes 100 ms for 100,000. A record that takes at least its
  // share of all bytes keeps both limits.
  const least = Math.ceil(bytes / size)
  const records = new LRUCache<string, Indexed>({
    maxSize: Math.floor(bytes),
    sizeCalculation: ({ value }) => Math.max(least, OVERHEAD_BYTES + value.buffer.byteLength),
  })
  const underway = new Map<string, Promise<Indexed | undefined>>()

  async function start(key: string): Promise<Indexed | undefined> {
    const reading = fetch(key)
    underway.set(key, reading)
    try {
      const record = await reading
      if (record && underway.get(key) === reading) records.set(key, record)
      return record
    } finally {
      if (underway.get(key) === reading) underway.delete(key)
    }
  }

  return {
    get: key => records.get(key),

    load: key => underway.get(key) ?? start(key),

    forget(key) {
      records.delete(key)
      underway.delete(key)
    },

    forgetAll() {
      records.clear()
      underway.clear()
    },
  }
}
