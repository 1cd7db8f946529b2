// An entry as one string of Redis. The script PUT in commands.ts reads the version and the expiry.
//
//   8 bytes  version, as a double
//   8 bytes  mark
//   …        the entry, its expiry first

import { packEntry, unpackEntry } from '../record.ts'
import type { Entry, Stored } from '../store.ts'

/** An entry as it lies in Redis, `mark` being what its members in the indexes have in common: see label-index.ts. */
export interface Filed extends Stored {
  readonly mark: string
}

export const MARK_LENGTH = 8
const ENTRY_AT = 8 + MARK_LENGTH
/** Longer than anything lives, and still a time to Redis. */
const LONGEST_MS = 2 ** 50

export function recordName(key: string): string {
  return `menshen:record:${key}`
}

/** The key of a record, or undefined if `name` is none of ours. */
export function keyOf(name: string): string | undefined {
  const prefix = recordName('')
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined
}

export function packVersion(version: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleLE(version)
  return bytes
}

export function packRecord({ version, mark, ...entry }: Filed): Buffer {
  return Buffer.concat([packVersion(version), Buffer.from(mark, 'latin1'), packEntry(entry)])
}

export function unpackRecord(key: string, reply: Buffer | null): Filed | undefined {
  if (!reply) return undefined
  // Replies are views of whatever came through the socket, and would keep all of it in memory.
  const record = Buffer.from(reply)
  return {
    ...unpackEntry(record.subarray(ENTRY_AT)),
    key,
    version: record.readDoubleLE(0),
    mark: record.toString('latin1', 8, ENTRY_AT),
  }
}

/** How long Redis keeps it. Not a moment but a time from now, so that it need not have our clock. */
export function lifetimeMs({ expiresAt }: Entry, now: number): number {
  return Math.min(Math.max(Math.ceil(expiresAt - now), 1), LONGEST_MS)
}
