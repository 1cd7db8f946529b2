// Writes records of the embedded store, together with their indexes.
//
// A change is decided on what was read and written on the condition that the record still has the version that was
// read. Versions never repeat, so the condition holds across processes, and whoever loses reads again.

import { packEntry } from '../entry-bytes.ts'
import type { Entry, Stored } from '../store.ts'
import { onDisk, unavailable } from './lmdb-failures.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import { beginGeneration } from './lmdb-generation.ts'
import { updateIndexes } from './lmdb-indexes.ts'
import type { LmdbReader } from './lmdb-reader.ts'

/** With the version that it will have. */
type NextEntry = Entry & Pick<Stored, 'version'>

export interface LmdbWriter {
  /**
   * Puts `next` in the place of `old`; without `next` it removes `old`. False, and nothing changes, if `old` is no longer
   * there. Resolves when it is on the disk.
   */
  change(key: string, old: Stored | undefined, next?: NextEntry): Promise<boolean>
  /** Removes what has expired. Nobody counts on it any more, so what was proven of others stays proven. */
  sweep(old: Stored): Promise<boolean>
}

export function createLmdbWriter(files: LmdbFiles, reader: LmdbReader): LmdbWriter {
  const { records, directory } = files

  function write(key: string, old: Stored | undefined, next?: NextEntry, isSwept = false): Promise<boolean> {
    const record = next && packEntry(next)
    const writeAll = () => {
      if (record) records.put(key, record, next.version)
      else records.remove(key)
      updateIndexes(files, key, old, next)
      if (!isSwept) beginGeneration(files)
    }
    return old ? records.ifVersion(key, old.version, writeAll) : records.ifNoExists(key, writeAll)
  }

  async function done(written: () => Promise<boolean>): Promise<boolean> {
    try {
      return await onDisk(written())
    } catch (cause) {
      throw unavailable(directory, 'could not be written', cause)
    }
  }

  return {
    change: (key, old, next) => done(() => write(key, old, next)).finally(reader.lookAgain),
    sweep: old => done(() => write(old.key, old, undefined, true)),
  }
}
