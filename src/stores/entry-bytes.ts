// Entries and audit events as bytes, for all stores that write bytes.

import type { Entry } from './store.ts'
import type { TrailEvent } from './trail.ts'

const HEADER = 12

export function packEntry({ value, expiresAt, labels, since }: Entry): Buffer {
  const names = Buffer.from(JSON.stringify(since === undefined ? labels : { labels, since }))
  const record = Buffer.allocUnsafe(HEADER + names.length + value.length)
  record.writeDoubleLE(expiresAt, 0)
  record.writeUInt32LE(names.length, 8)
  record.set(names, HEADER)
  record.set(value, HEADER + names.length)
  return record
}

/** `undefined` if it is damaged. The value is a view of `record`, which must not change afterwards. */
export function unpackEntry(record: Buffer): Entry | undefined {
  const value = valueIn(record)
  const names = value && readNames(record.toString('utf8', HEADER, record.length - value.length))
  return names && { value, expiresAt: expiryOf(record), ...names }
}

/** The value without the labels. */
function valueIn(record: Buffer): Uint8Array | undefined {
  const valueAt = record.length < HEADER ? Number.POSITIVE_INFINITY : HEADER + record.readUInt32LE(8)
  if (valueAt > record.length) return undefined
  return new Uint8Array(record.buffer, record.byteOffset + valueAt, record.length - valueAt)
}

function readNames(json: string): Pick<Entry, 'labels' | 'since'> | undefined {
  try {
    const names: unknown = JSON.parse(json)
    if (isLabels(names)) return { labels: names }
    const { labels, since } = Object(names)
    return isLabels(labels) && typeof since === 'number' ? { labels, since } : undefined
  } catch {
    return undefined
  }
}

function isLabels(labels: unknown): labels is string[] {
  return Array.isArray(labels) && labels.every(label => typeof label === 'string')
}

/** A damaged record is treated as expired. */
function expiryOf(record: Uint8Array): number {
  if (record.length < HEADER) return 0
  return new DataView(record.buffer, record.byteOffset).getFloat64(0, true)
}

// An event of a trail is written like an entry whose labels are its tags.

const NEVER = Number.POSITIVE_INFINITY

export function packEvent({ value, tags }: TrailEvent): Buffer {
  return packEntry({ value, labels: tags, expiresAt: NEVER })
}

/**
 * Reads events that may have the tag, or all without a tag. `undefined` for the others and for damaged ones. The result is a copy
 * that does not depend on `record`.
 */
export function createEventReader(tag: string | undefined): (record: Buffer) => TrailEvent | undefined {
  const quoted = tag === undefined ? undefined : Buffer.from(JSON.stringify(tag))
  return record => {
    if (quoted && !record.includes(quoted)) return undefined
    const entry = unpackEntry(Buffer.from(record))
    return entry && { value: entry.value, tags: entry.labels }
  }
}
