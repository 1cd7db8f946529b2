// Reads the records of the embedded store.

import { getLastVersion } from 'lmdb'
import { expiryOf, unpackEntry, valueIn } from '../entry-bytes.ts'
import type { Entry, Stored, StoredValue } from '../store.ts'
import { unavailable } from './lmdb-failures.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import { readGeneration } from './lmdb-generation.ts'
import { createProofs, type Proofs } from './lmdb-proofs.ts'

export interface LmdbReader extends Pick<Proofs, 'beginTurn' | 'holds' | 'lookAgain'> {
  /** What `look` finds, seeing what all processes have done up to now. */
  latest<Result>(look: () => Result): Result
  /** For a `look`: the record, expired or not. */
  find(key: string): Stored | undefined
  /** For a `look`: the record, if it has not expired. */
  findLiving(key: string): Stored | undefined
  isLiving(entry: Entry): boolean
  /** The latest of it, if it has not expired. */
  living(key: string): Stored | undefined
  /** The same without labels, as of the look that still serves. */
  livingValue(key: string): StoredValue | undefined
}

interface ReaderOptions {
  readonly files: LmdbFiles
  readonly now: () => number
  /** Once it is aborted, nothing is read any more. */
  readonly closing: AbortSignal
}

/** Counts as expired, so that it can be written over and is swept away. */
const DAMAGED: Entry = { value: Buffer.alloc(0), expiresAt: 0, labels: [] }

export function createLmdbReader({ files, now, closing }: ReaderOptions): LmdbReader {
  const { records } = files
  const proofs = createProofs({
    now,
    readGeneration() {
      closing.throwIfAborted()
      records.resetReadTxn()
      return readGeneration(files)
    },
    lookUp(key) {
      closing.throwIfAborted()
      const record = records.getBinaryFast(key)
      return record && { version: getLastVersion(), expiresAt: expiryOf(record) }
    },
  })

  const unreadable = (cause: unknown) => unavailable(files.directory, 'could not be read', cause)

  function reading<Result>(look: () => Result): Result {
    try {
      closing.throwIfAborted()
      return look()
    } catch (cause) {
      throw unreadable(cause)
    }
  }

  function holds(key: string, version: number): boolean {
    try {
      return proofs.holds(key, version)
    } catch (cause) {
      throw unreadable(cause)
    }
  }

  function livingValue(key: string): StoredValue | undefined {
    return reading(() => {
      proofs.look()
      const found = records.getEntry(key)
      const value = found && valueIn(found.value)
      const expiresAt = value ? expiryOf(found.value) : 0
      return value && expiresAt > now() ? { key, version: found.version ?? 0, value, expiresAt } : undefined
    })
  }

  function latest<Result>(look: () => Result): Result {
    return reading(() => {
      // Otherwise the reads of one event turn share a snapshot, and miss what other processes did since.
      records.resetReadTxn()
      return look()
    })
  }

  function find(key: string): Stored | undefined {
    const found = records.getEntry(key)
    return found && { ...(unpackEntry(found.value) ?? DAMAGED), key, version: found.version ?? 0 }
  }

  function isLiving({ expiresAt }: Entry): boolean {
    return expiresAt > now()
  }

  function findLiving(key: string): Stored | undefined {
    const stored = find(key)
    return stored && isLiving(stored) ? stored : undefined
  }

  return {
    latest,
    find,
    findLiving,
    isLiving,
    living: key => latest(() => findLiving(key)),
    livingValue,
    holds,
    beginTurn: proofs.beginTurn,
    lookAgain: proofs.lookAgain,
  }
}
