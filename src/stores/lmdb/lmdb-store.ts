// The embedded store: files in one folder, shared by the processes of one machine, consistent after any crash.

import { type Entry, nextVersion, type Store } from '../store.ts'

import { type OnBroken, openFiles, unavailable } from './lmdb-files.ts'
import { createLmdbReader } from './lmdb-reader.ts'
import { startSweeper } from './lmdb-sweeper.ts'
import { createLmdbTrail } from './lmdb-trail.ts'
import { countNewest, createLmdbWriter, listLiving, listNewest } from './lmdb-writer.ts'

interface LmdbStoreOptions {
  readonly directory: string
  readonly now: () => number
  readonly sweepEveryMs?: number
  readonly onBroken?: OnBroken | undefined
}

export async function openLmdbStore(options: LmdbStoreOptions): Promise<Store> {
  const { directory, now, sweepEveryMs = 1000, onBroken } = options
  const files = await openFiles(directory, onBroken)
  const closing = new AbortController()
  const reader = createLmdbReader({ files, now, closing: closing.signal })
  const writer = createLmdbWriter(files, reader)
  const sweeper = startSweeper({ files, reader, writer, now }, sweepEveryMs)

  async function take(key: string): Promise<Entry | undefined> {
    while (true) {
      const old = reader.living(key)
      if (!old || (await writer.change(key, old))) return old
    }
  }

  return {
    trail: createLmdbTrail({ files, reader, closing: closing.signal }),

    async create(key, entry) {
      while (true) {
        const old = reader.latest(() => reader.find(key))
        if (old && reader.isLiving(old)) return undefined
        const version = nextVersion(old)
        if (await writer.change(key, old, { ...entry, version })) return version
      }
    },

    async read(key) {
      return reader.living(key)
    },

    readSync: reader.livingValue,

    beginTurn: reader.beginTurn,
    holds: reader.holds,

    async replace(key, entry, version) {
      const old = reader.living(key)
      if (old?.version !== version) return undefined
      const next = { ...entry, version: nextVersion(old) }
      return (await writer.change(key, old, next)) ? next.version : undefined
    },

    async remove(key) {
      return (await take(key)) !== undefined
    },

    take,

    async list(query) {
      return listLiving(files, reader, query)
    },

    async newest(query) {
      return listNewest(files, reader, query)
    },

    async count() {
      return reader.latest(() => countNewest(files))
    },

    async ready() {
      reader.latest(() => files.records.doesExist('ready'))
    },

    async close() {
      if (closing.signal.aborted) return
      closing.abort(new Error('The store is closed.'))
      try {
        await sweeper.stop()
        await files.close()
      } catch (cause) {
        throw unavailable(directory, 'could not be closed', cause)
      }
    },
  }
}
