// An entry as one run of bytes: the expiry first, where it is found without unpacking the rest.
//
//   8 bytes  expiresAt, as a double
//   4 bytes  length of the labels
//   …        labels, as JSON
//   …        value

import type { Entry } from './store.ts'

const HEADER = 12

export function packEntry({ value, expiresAt, labels }: Entry): Buffer {
  const names = Buffer.from(JSON.stringify(labels))
  const record = Buffer.allocUnsafe(HEADER + names.length + value.length)
  record.writeDoubleLE(expiresAt, 0)
  record.writeUInt32LE(names.length, 8)
  record.set(names, HEADER)
  record.set(value, HEADER + names.length)
  return record
}

/** `undefined` if it is damaged. The value is a view of `record`, which has to stay as it is from then on. */
export function unpackEntry(record: Buffer): Entry | undefined {
  const valueAt = record.length < HEADER ? Number.POSITIVE_INFINITY : HEADER + record.readUInt32LE(8)
  if (valueAt > record.length) return undefined
  const labels = readLabels(record.toString('utf8', HEADER, valueAt))
  if (!labels) return undefined
  const value = new Uint8Array(record.buffer, record.byteOffset + valueAt, record.byteLength - valueAt)
  return { value, expiresAt: expiryOf(record), labels }
}

function readLabels(json: string): string[] | undefined {
  try {
    const labels: unknown = JSON.parse(json)
    return Array.isArray(labels) && labels.every(label => typeof label === 'string') ? labels : undefined
  } catch {
    return undefined
  }
}

/** Of a damaged one a time that has passed. */
export function expiryOf(record: Uint8Array): number {
  if (record.length < HEADER) return 0
  return new DataView(record.buffer, record.byteOffset).getFloat64(0, true)
}
