// The thread that writes to a database file. It receives batches of changes, makes each batch one transaction, and answers when the
// transaction is on the disk. It opens the file when it is needed, and again after a fault.

import { type Stats, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { type Change, type ChangeApplier, type ChangeResult, createChangeApplier } from './changes.ts'
import { type FaultKind, faultOf, isBusy, isRefused } from './faults.ts'
import { openForWriting, readPragma } from './file.ts'
import { type BatchReply, type ChangeBatch, type ChangeOutcome, CLOSE_MESSAGE, monotonicMs } from './messages.ts'

interface OpenFile {
  readonly database: DatabaseSync
  readonly changes: ChangeApplier
  readonly identity: string
}

const { file }: { file: string } = workerData
let open: OpenFile | undefined
let opened = 0
let changesSinceCheckpoint = 0

function openFile(until: number): OpenFile {
  if (open && identityOf(statSync(file, { throwIfNoEntry: false })) !== open.identity) closeFile()
  if (open) return open
  const database = openForWriting(file, Math.max(0, until - monotonicMs()))
  opened++
  open = { database, changes: createChangeApplier(database), identity: identityOf(statSync(file)) }
  return open
}

/** A deleted or replaced file has a different identity. Changes to it would be lost. */
function identityOf(stats: Stats | undefined): string {
  return stats ? `${stats.dev} ${stats.ino}` : 'missing'
}

function closeFile(): void {
  const { database } = open ?? {}
  open = undefined
  database?.close()
}

/** `until` is when to give up on the lock of another process. */
function run(changes: readonly Change[], until: number): ChangeOutcome[] {
  try {
    return runBatch(changes, until).map(result => ({ result }))
  } catch (error) {
    // One change that cannot be stored does not fail the others.
    if (isRefused(error) && changes.length > 1) return changes.flatMap(change => run([change], until))
    const fault = faultOf(error)
    return changes.map(() => ({ fault }))
  }
}

function runBatch(batch: readonly Change[], until: number): ChangeResult[] {
  const { database, changes } = openFile(until)
  try {
    begin(database, until)
    const results = batch.map(changes.apply)
    changes.finish()
    database.exec('COMMIT')
    changesSinceCheckpoint += batch.length
    return results
  } catch (error) {
    changes.reset()
    rollBack(database, error)
    throw error
  }
}

/** Faults after which the connection can still be used. */
const TRANSIENT_FAULTS: readonly FaultKind[] = ['locked', 'full']

function rollBack(database: DatabaseSync, error: unknown): void {
  try {
    if (database.isTransaction) database.exec('ROLLBACK')
    if (TRANSIENT_FAULTS.includes(faultOf(error).kind) || isRefused(error)) return
  } catch {
    // The connection cannot be used any more.
  }
  closeFile()
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** SQLite waits longer and longer between its attempts, so that a late process seldom gets its turn. */
const LOCK_PAUSE_MS = 1

function begin(database: DatabaseSync, until: number): void {
  for (;;) {
    try {
      database.exec('BEGIN IMMEDIATE')
      return
    } catch (error) {
      if (!isBusy(error) || monotonicMs() >= until) throw error
      Atomics.wait(sleeper, 0, 0, LOCK_PAUSE_MS)
    }
  }
}

// Maintenance, between batches.

/** One change, or one step of sweeping, writes about ten pages to the WAL. */
const CHECKPOINT_AFTER_CHANGES = 100
/** Pages of a WAL that readers and other writers have kept from restarting. */
const MAX_WAL_PAGES = 4000
/** Free pages that the file keeps for new records. */
const MAX_FREE_PAGES = 2500
const MAX_FREE_SHARE = 1 / 4
const VACUUM_STEP = 100

function maintain(): void {
  if (!open || changesSinceCheckpoint < CHECKPOINT_AFTER_CHANGES) return
  changesSinceCheckpoint = 0
  const { database } = open
  try {
    const free = Number(readPragma(database, 'freelist_count'))
    if (free > MAX_FREE_PAGES && free > Number(readPragma(database, 'page_count')) * MAX_FREE_SHARE)
      database.exec(`PRAGMA incremental_vacuum(${VACUUM_STEP})`)
    if (checkpoint(database, 'PASSIVE') > MAX_WAL_PAGES) checkpoint(database, 'RESTART')
  } catch {
    // Another process does it, or the next change finds the fault.
  }
}

/** Returns how many pages the WAL has. */
function checkpoint(database: DatabaseSync, mode: 'PASSIVE' | 'RESTART'): number {
  return Number(Object(database.prepare(`PRAGMA wal_checkpoint(${mode})`).get()).log)
}

parentPort?.on('message', (message: ChangeBatch | typeof CLOSE_MESSAGE) => {
  if (message === CLOSE_MESSAGE) {
    parentPort?.close()
    closeFile()
    return
  }
  const outcomes = run(message.changes, message.lockUntil)
  parentPort?.postMessage({ outcomes, opened } satisfies BatchReply)
  maintain()
})
