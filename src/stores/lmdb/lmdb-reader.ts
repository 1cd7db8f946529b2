// Reads the records of the embedded store.

import { getLastVersion } from 'lmdb'
import { expiryOf, unpackEntry, valueIn } from '../entry-bytes.ts'
import { type Entry, firstVersion, newProof, type Proof, type Stored, type StoredValue } from '../store.ts'
import { type LmdbFiles, unavailable } from './lmdb-files.ts'

export interface LmdbReader extends Pick<Proofs, 'beginTurn' | 'holds' | 'lookAgain'> {
  /** The result of `look`, which sees all writes of all processes up to now. */
  latest<Result>(look: () => Result): Result
  /** Within a `look`: the record, expired or not. */
  find(key: string): Stored | undefined
  /** Within a `look`: the record, if it has not expired. */
  findLiving(key: string): Stored | undefined
  isLiving(entry: Entry): boolean
  /** The latest version of the record, if it has not expired. */
  living(key: string): Stored | undefined
  /** The same without labels, as of the last look of this event turn. */
  livingValue(key: string): StoredValue | undefined
}

interface ReaderOptions {
  readonly files: LmdbFiles
  readonly now: () => number
  /** Once it is aborted, nothing is read any more. */
  readonly closing: AbortSignal
}

/** Counts as expired, so that it can be replaced and is swept. */
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

  function holds(key: string, version: number, proof?: Proof): boolean {
    try {
      return proofs.holds(key, version, proof)
    } catch (cause) {
      throw unreadable(cause)
    }
  }

  function livingValue(key: string): StoredValue | undefined {
    return reading(() => {
      proofs.look()
      // A view of the buffer of lmdb-js: a copy would take as long as the read itself.
      const record = records.getBinaryFast(key)
      const value = record && valueIn(record)
      const expiresAt = value ? expiryOf(record) : 0
      if (!value || expiresAt <= now()) return undefined
      return { key, version: getLastVersion(), value, expiresAt, proof: proofs.proofUntil(expiresAt) }
    })
  }

  function latest<Result>(look: () => Result): Result {
    return reading(() => {
      // Otherwise the reads of one event turn share a snapshot, and miss later writes of other processes.
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

// Proofs that a record is unchanged. Every write begins a new generation of the files. While the generation is the same, a record
// that was looked up is unchanged, and one look at the generation serves all requests of an event turn.
//
// The requests of one turn arrived before it, so that none of them can depend on a later write of another process. The requests
// after a timer may have arrived after it. So a look serves the callback that makes it, and if that is a request's, all others of
// the same turn.

export interface Proofs {
  /** A request has just been received. */
  beginTurn(): void
  /** Makes reads see all writes up to now, or up to an earlier look of this turn. */
  look(): void
  /** Whether the record has this version. It is looked up only if something has changed. */
  holds(key: string, version: number, proof?: Proof): boolean
  /** For what was read after `look`. */
  proofUntil(expiresAt: number): Proof
  /** Something may have changed during the turn. */
  lookAgain(): void
}

interface Found {
  readonly version: number
  readonly expiresAt: number
}

interface ProofsOptions {
  /** Makes reads see all writes up to now, and returns the generation. */
  readGeneration(): number
  lookUp(key: string): Found | undefined
  now(): number
}

export function createProofs({ readGeneration, lookUp, now }: ProofsOptions): Proofs {
  let generation: number | undefined
  /** How many generations were seen: no proof is of 0. Unlike a generation, a small number that V8 keeps without an object. */
  let seen = 0
  let isTurnOfRequests = false
  let hasLooked = false

  function beginTurn(): void {
    if (isTurnOfRequests) return
    isTurnOfRequests = true
    hasLooked = false
    setImmediate(() => {
      isTurnOfRequests = false
      hasLooked = false
    })
  }

  function lookAgain(): void {
    hasLooked = false
  }

  function look(): void {
    if (hasLooked) return
    const latest = readGeneration()
    if (latest !== generation) seen++
    generation = latest
    // Not before: after a failed look nothing is proven.
    hasLooked = true
    if (!isTurnOfRequests) process.nextTick(lookAgain)
  }

  return {
    beginTurn,
    look,
    lookAgain,
    proofUntil: expiresAt => ({ provenIn: seen, provenUntil: expiresAt }),
    holds(key, version, proof = newProof()) {
      look()
      if (proof.provenIn !== seen) {
        const found = lookUp(key)
        if (found?.version !== version) return false
        proof.provenIn = seen
        proof.provenUntil = found.expiresAt
      }
      return proof.provenUntil > now()
    },
  }
}

// The generation of the files: a number that every write changes.

type Generations = Pick<LmdbFiles, 'generations'>

/** A record whose version is the generation. In bytes, as it is asked about in every turn. */
const GENERATION = Buffer.from('generation')
const NOTHING = Buffer.alloc(0)

export function readGeneration({ generations }: Generations): number {
  return generations.getBinaryFast(GENERATION) === undefined ? 0 : getLastVersion()
}

export function beginGeneration({ generations }: Generations): void {
  generations.put(GENERATION, NOTHING, firstVersion())
}
