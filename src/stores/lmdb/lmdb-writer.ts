// Writes records of the embedded store, together with their indexes.
//
// A change is written on the condition that the record still has the version that was read. Versions never repeat, so the
// condition holds across processes, and the loser reads again.

import { hash } from 'node:crypto'
import { z } from 'zod'
import { packEntry } from '../entry-bytes.ts'
import { newestPage, readSinceText, type SinceKey } from '../ordering.ts'
import type { Entry, ListQuery, NewestQuery, Page, Stored } from '../store.ts'
import { type LmdbFiles, unavailable } from './lmdb-files.ts'
import { beginGeneration, type LmdbReader } from './lmdb-reader.ts'

/** With the version that it will have. */
type NextEntry = Entry & Pick<Stored, 'version'>

export interface LmdbWriter {
  /**
   * Replaces `old` by `next`, or removes `old` without `next`. False, and nothing changes, if `old` is gone. Resolves when the
   * change is on the disk.
   */
  change(key: string, old: Stored | undefined, next?: NextEntry): Promise<boolean>
  /** Removes an expired record. That begins no new generation: proofs of other records stay valid. */
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
      return await files.write(written)
    } catch (cause) {
      throw unavailable(directory, 'could not be written', cause)
    } finally {
      reader.lookAgain()
    }
  }

  return {
    change: (key, old, next) => done(() => write(key, old, next)),
    sweep: old => done(() => write(old.key, old, undefined, true)),
  }
}

// The indexes of the embedded store: keys by label, by expiry and by time. They change with the record in one transaction.

type Indexes = Pick<LmdbFiles, 'byLabel' | 'byExpiry' | 'bySince'>
export type ExpiryKey = [expiresAt: number, key: string]

const NOTHING = Buffer.alloc(0)
/** Longer than any key: lmdb-js fails at texts that do not fit in a page. */
const LONGEST_KEY = 500

/** Writes only differences: most changes of a session leave its labels and times as they were. */
export function updateIndexes({ byLabel, byExpiry, bySince }: Indexes, key: string, old?: Entry, next?: Entry): void {
  if (old?.expiresAt !== next?.expiresAt) {
    if (old) byExpiry.remove([old.expiresAt, key])
    if (next) byExpiry.put([next.expiresAt, key], NOTHING)
  }
  if (old?.since !== next?.since) {
    if (old?.since !== undefined) bySince.remove([old.since, key])
    if (next?.since !== undefined) bySince.put([next.since, key], NOTHING)
  }
  const before = old?.labels ?? []
  const after = next?.labels ?? []
  for (const label of before) if (!after.includes(label)) byLabel.remove(underLabel(label) + key)
  for (const label of after) if (!before.includes(label)) byLabel.put(underLabel(label) + key, NOTHING)
}

/** The keys after `after`, in order. */
export function* keysWithLabel({ byLabel }: Indexes, label: string, after: string): Generator<string> {
  const prefix = underLabel(label)
  const start = prefix + after.slice(0, LONGEST_KEY)
  for (const name of byLabel.getKeys({ start, exclusiveStart: true, end: `${prefix}\uffff` }))
    yield name.slice(prefix.length)
}

export function* newestFirst({ bySince }: Indexes, before: SinceKey | undefined): Generator<SinceKey> {
  const range = before ? { start: [before.since, before.key], exclusiveStart: true } : {}
  for (const [since, key] of bySince.getKeys({ ...range, reverse: true })) yield { since, key }
}

/** Without reading the records. */
export function countNewest({ bySince }: Indexes): number {
  return z.object({ entryCount: z.number() }).parse(bySince.getStats()).entryCount
}

/** The first expired keys. */
export function expiredKeys({ byExpiry }: Indexes, now: number, limit: number): ExpiryKey[] {
  return [...byExpiry.getKeys({ end: [now], limit })]
}

/** Labels have any length and content; keys have a fixed length. */
function underLabel(label: string): string {
  return hash('sha256', label, 'base64url')
}

// Lists records by label or the newest ones, page by page.

/** Expired records that are skipped for one page. Then the page is short instead of late. */
const MOST_SKIPPED = 1000

export function listLiving(files: LmdbFiles, reader: LmdbReader, { label, after = '', limit }: ListQuery): Page {
  return reader.latest(() => {
    const entries: Stored[] = []
    let skipped = 0
    for (const key of keysWithLabel(files, label, after)) {
      const stored = reader.findLiving(key)
      if (!stored) {
        if (++skipped === MOST_SKIPPED) return { entries, next: key }
        continue
      }
      if (entries.length === limit) return { entries, next: entries.at(-1)?.key ?? after }
      entries.push(stored)
    }
    return { entries }
  })
}

export function listNewest(files: LmdbFiles, reader: LmdbReader, { before, limit }: NewestQuery): Page {
  return reader.latest(() => newestPage(newestFirst(files, readSinceText(before)), reader.findLiving, limit))
}
