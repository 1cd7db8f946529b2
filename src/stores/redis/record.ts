// An entry as one string of Redis. The script PUT in commands.ts reads the version and the expiry.
//
//   8 bytes  version, as a double
//   8 bytes  generation
//   …        the entry, its expiry first

import { packEntry, unpackEntry } from '../entry-bytes.ts'
import type { Entry, StoredEntry } from '../store.ts'

/** An entry as it is in Redis. Its members in the indexes have the same `generation`: see indexes.ts. */
export interface RedisEntry extends StoredEntry {
  readonly generation: string
}

export const GENERATION_LENGTH = 8
const ENTRY_AT = 8 + GENERATION_LENGTH
/** Redis keeps records longer than they live, so that our clock decides, and not that of Redis. */
const EXTRA_TTL_MS = 60_000
/** The longest time that Redis accepts here. */
const MAX_TTL_MS = 2 ** 50

export function recordName(key: string): string {
  return `menshen:record:${key}`
}

/** The key of a record from its name in Redis, which begins with the prefix of the address. */
export function keyOf(name: string, prefix: string): string {
  return name.slice(`${prefix}:record:`.length)
}

export function encodeVersion(version: number): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleLE(version)
  return bytes
}

export function encodeRecord({ version, generation, ...entry }: RedisEntry): Buffer {
  return Buffer.concat([encodeVersion(version), Buffer.from(generation, 'latin1'), packEntry(entry)])
}

/** A damaged record is treated as absent. */
export function decodeReply(key: string, reply: Buffer | null): RedisEntry | undefined {
  if (!reply || reply.length < ENTRY_AT) return undefined
  // A reply is a view of a larger buffer of the socket and would keep all of it in memory. So would a slice of Node's pool.
  const record = Buffer.allocUnsafeSlow(reply.length)
  reply.copy(record)
  const entry = unpackEntry(record.subarray(ENTRY_AT))
  return entry && { ...entry, key, version: record.readDoubleLE(0), generation: record.toString('latin1', 8, ENTRY_AT) }
}

export function ttlMs({ expiresAt }: Entry, now: number): number {
  return Math.min(Math.max(Math.ceil(expiresAt - now), 0) + EXTRA_TTL_MS, MAX_TTL_MS)
}
