// The indexes of the embedded store: which keys a label has, which keys expire when, and which are the newest. They change
// together with the record, in one transaction.

import { hash } from 'node:crypto'
import { z } from 'zod'
import type { SinceKey } from '../newest.ts'
import type { Entry } from '../store.ts'
import type { LmdbFiles } from './lmdb-files.ts'

type Indexes = Pick<LmdbFiles, 'byLabel' | 'byExpiry' | 'bySince'>
export type ExpiryKey = [expiresAt: number, key: string]

const NOTHING = Buffer.alloc(0)
/** Longer than any key: lmdb-js fails at texts that do not fit in a page. */
const LONGEST_KEY = 500

/** Only what differs: most changes leave a session listed and expiring as it was. */
export function updateIndexes({ byLabel, byExpiry, bySince }: Indexes, key: string, old?: Entry, next?: Entry): void {
  if (old?.expiresAt !== next?.expiresAt) {
    if (old) byExpiry.remove([old.expiresAt, key])
    if (next) byExpiry.put([next.expiresAt, key], NOTHING)
  }
  if (old?.since !== next?.since) {
    if (old?.since !== undefined) bySince.remove([old.since, key])
    if (next?.since !== undefined) bySince.put([next.since, key], NOTHING)
  }
  const [before, after] = [new Set(old?.labels), new Set(next?.labels)]
  for (const label of before.difference(after)) byLabel.remove(underLabel(label) + key)
  for (const label of after.difference(before)) byLabel.put(underLabel(label) + key, NOTHING)
}

/** In their order, those behind `after`. */
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

/** Without looking at them. */
export function countNewest({ bySince }: Indexes): number {
  return z.object({ entryCount: z.number() }).parse(bySince.getStats()).entryCount
}

/** The first of those that have expired. */
export function expiredKeys({ byExpiry }: Indexes, now: number, limit: number): ExpiryKey[] {
  return [...byExpiry.getKeys({ end: [now], limit })]
}

/** Labels of any length and content, in keys of a fixed one. */
function underLabel(label: string): string {
  return hash('sha256', label, 'base64url')
}
