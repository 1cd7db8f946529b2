// Removes expired records from the embedded store, in small steps with pauses, so that requests hardly wait for it.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Stored } from '../store.ts'
import type { LmdbFiles } from './lmdb-files.ts'
import type { LmdbReader } from './lmdb-reader.ts'
import { type ExpiryKey, expiredKeys, type LmdbWriter } from './lmdb-writer.ts'

interface Sweeper {
  /** Resolves when the current step is done. */
  stop(): Promise<void>
}

interface SweeperOptions {
  readonly files: LmdbFiles
  readonly reader: LmdbReader
  readonly writer: LmdbWriter
  readonly now: () => number
}

// A step is flushed as one write. It is prepared a few records at a time, a millisecond each, so that requests run in between. A
// writer waits for one step at most, and has the disk alone in the pauses.
const SWEEP_STEP = 30
const SWEEP_TURN = 10
const SWEEP_PAUSE_MS = 5

export function startSweeper(options: SweeperOptions, everyMs: number): Sweeper {
  let stopped = false
  let underway: Promise<void> | undefined
  let timer = setTimeout(run, everyMs).unref()

  function run(): void {
    underway = sweepStep(options)
      .catch(() => false) // the next one tries again
      .then(more => {
        if (!stopped) timer = setTimeout(run, more ? SWEEP_PAUSE_MS : everyMs).unref()
      })
  }

  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await underway
    },
  }
}

/** True if there may be more. */
async function sweepStep(options: SweeperOptions): Promise<boolean> {
  const { files, reader, now } = options
  const expired = reader.latest(() => expiredKeys(files, now(), SWEEP_STEP))
  const turns: Promise<boolean>[] = []
  for (let from = 0; from < expired.length; from += SWEEP_TURN) {
    if (from > 0) await nextTurn()
    turns.push(sweepTurn(options, expired.slice(from, from + SWEEP_TURN)))
  }
  const done = await Promise.all(turns)
  return expired.length === SWEEP_STEP && done.every(Boolean)
}

/** False if the disk failed. It does not reject: nothing handles a rejection while the next turns begin, and it would end the process. */
async function sweepTurn(options: SweeperOptions, expired: readonly ExpiryKey[]): Promise<boolean> {
  const { reader } = options
  try {
    const found = reader.latest(() => expired.map(indexed => ({ indexed, stored: reader.find(indexed[1]) })))
    await Promise.all(found.map(({ indexed, stored }) => sweepOne(options, indexed, stored)))
    return true
  } catch {
    return false
  }
}

async function sweepOne(
  { files, reader, writer }: SweeperOptions,
  [expiresAt, key]: ExpiryKey,
  stored: Stored | undefined,
): Promise<void> {
  // A wrong row of the index must not block the others.
  if (stored?.expiresAt !== expiresAt) await files.write(() => files.byExpiry.remove([expiresAt, key]))
  if (stored && !reader.isLiving(stored)) await writer.sweep(stored)
}
