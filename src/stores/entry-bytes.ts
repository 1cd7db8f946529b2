// An entry as one run of bytes: the expiry first, where it is found without unpacking the rest.
//
//   8 bytes  expiresAt, as a double
//   4 bytes  length of the labels
//   …        labels, as JSON: a list; with `since` an object of both
//   …        value

import type { Entry } from './store.ts'

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

/** `undefined` if it is damaged. The value is a view of `record`, which has to stay as it is from then on. */
export function unpackEntry(record: Buffer): Entry | undefined {
  const value = valueIn(record)
  const names = value && readNames(record.toString('utf8', HEADER, record.length - value.length))
  return names && { value, expiresAt: expiryOf(record), ...names }
}

/** The value alone, whatever the labels are. */
export function valueIn(record: Buffer): Uint8Array | undefined {
  const valueAt = record.length < HEADER ? Number.POSITIVE_INFINITY : HEADER + record.readUInt32LE(8)
  if (valueAt > record.length) return undefined
  return new Uint8Array(record.buffer, record.byteOffset + valueAt, record.byteLength - valueAt)
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

/** Of a damaged one a time that has passed. */
export function expiryOf(record: Uint8Array): number {
  if (record.length < HEADER) return 0
  return new DataView(record.buffer, record.byteOffset).getFloat64(0, true)
}
