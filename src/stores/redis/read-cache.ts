// The records that one connection has read, as long as the server promises to say when they change. The promise ends
// with the connection, and so does its cache.

import type { Filed } from './record.ts'

export interface ReadCache {
  get(key: string): Filed | undefined
  /** Reads a record and keeps it, unless it is forgotten before the answer is here. */
  load(key: string): Promise<Filed | undefined>
  forget(key: string): void
  forgetAll(): void
}

export function createReadCache(size: number, fetch: (key: string) => Promise<Filed | undefined>): ReadCache {
  const records = new Map<string, Filed>()
  const underway = new Map<string, Promise<Filed | undefined>>()

  function keep(key: string, record: Filed): void {
    records.set(key, record)
    const [oldest] = records.keys()
    if (records.size > size && oldest !== undefined) records.delete(oldest)
  }

  async function start(key: string): Promise<Filed | undefined> {
    const reading = fetch(key)
    underway.set(key, reading)
    try {
      const record = await reading
      if (record && underway.get(key) === reading) keep(key, record)
      return record
    } finally {
      if (underway.get(key) === reading) underway.delete(key)
    }
  }

  return {
    get(key) {
      const record = records.get(key)
      if (!record) return undefined
      // To the end of the line: the first to go is the one that was not used for the longest time.
      records.delete(key)
      records.set(key, record)
      return record
    },

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
