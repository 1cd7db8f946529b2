// What is kept in the store says which format it has, in its first byte, and is read by a schema.
//
//   a session        1 byte format, 4 bytes length of the public part, the public part, the sealed part
//   everything else  1 byte format, what was sealed
//
// Formerly there was no such byte. A session then began with its length, whose first byte was always 0; whether anything
// else has the byte, its seal tells.
import type { z } from 'zod'
import { seal, unseal } from './sealing.ts'

const FORMAT = 1
const FORMER_FORMAT = 0
const LENGTH_BYTES = 4

interface RecordParts {
  readonly publicPart: Uint8Array
  readonly sealedPart: Uint8Array
}

export function isNewerFormat(value: Uint8Array): boolean {
  return (value[0] ?? 0) > FORMAT
}

export function packRecord({ publicPart, sealedPart }: RecordParts): Buffer {
  const head = Buffer.alloc(1 + LENGTH_BYTES)
  head.writeUInt8(FORMAT)
  head.writeUInt32BE(publicPart.length, 1)
  return Buffer.concat([head, publicPart, sealedPart])
}

/** `undefined` if the format is none that we know. */
export function unpackRecord(value: Uint8Array): RecordParts | undefined {
  const format = value[0]
  if (format !== FORMAT && format !== FORMER_FORMAT) return undefined
  const lengthAt = format === FORMAT ? 1 : 0
  const start = lengthAt + LENGTH_BYTES
  if (value.length < start) return undefined
  const end = start + Buffer.from(value.buffer, value.byteOffset + lengthAt, LENGTH_BYTES).readUInt32BE()
  return { publicPart: value.subarray(start, end), sealedPart: value.subarray(end) }
}

export function sealValue(key: Uint8Array, plain: Uint8Array, place: string): Buffer {
  return Buffer.concat([Buffer.of(FORMAT), seal(key, plain, place)])
}

/** `undefined` if it was sealed with another key, for another place, in another format, or was changed. */
export function unsealValue(key: Uint8Array, value: Uint8Array, place: string): Buffer | undefined {
  const present = value[0] === FORMAT ? unseal(key, value.subarray(1), place) : undefined
  return present ?? unseal(key, value, place)
}

export function encodeJson(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** `undefined` if it is not what the schema says. */
export function decodeJson<T>(schema: z.ZodType<T>, plain: Buffer | undefined): T | undefined {
  if (!plain) return undefined
  try {
    return schema.safeParse(JSON.parse(plain.toString())).data
  } catch {
    return undefined
  }
}
