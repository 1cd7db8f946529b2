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

/** The value is a view of `record`, which has to stay as it is from then on. */
export function unpackEntry(record: Buffer): Entry {
  const valueAt = HEADER + record.readUInt32LE(8)
  return {
    value: new Uint8Array(record.buffer, record.byteOffset + valueAt, record.byteLength - valueAt),
    expiresAt: expiryOf(record),
    labels: JSON.parse(record.toString('utf8', HEADER, valueAt)),
  }
}

export function expiryOf(record: Uint8Array): number {
  return new DataView(record.buffer, record.byteOffset).getFloat64(0, true)
}
