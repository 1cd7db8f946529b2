// An event of a trail as one run of bytes: those of an entry whose labels are its tags.

import { packEntry, unpackEntry } from './entry-bytes.ts'
import type { TrailEvent } from './trail.ts'

const NEVER = Number.POSITIVE_INFINITY

export function packEvent({ value, tags }: TrailEvent): Buffer {
  return packEntry({ value, labels: tags, expiresAt: NEVER })
}

/**
 * Opens those that can have the tag; any event if there is none. `undefined` for the others, and if it is damaged. What it
 * gives is its own, whatever becomes of `record`.
 */
export function createEventReader(tag: string | undefined): (record: Buffer) => TrailEvent | undefined {
  const quoted = tag === undefined ? undefined : Buffer.from(JSON.stringify(tag))
  return record => {
    if (quoted && !record.includes(quoted)) return undefined
    const entry = unpackEntry(Buffer.from(record))
    return entry && { value: entry.value, tags: entry.labels }
  }
}
