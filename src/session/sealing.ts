// Seals bytes with AES-256-GCM. Whoever lacks the key learns nothing, and can neither change sealed bytes nor move them
// to another place: `place` has to be the same at both ends.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { z } from 'zod'

const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = 'aes-256-gcm'
const OPTIONS = { authTagLength: TAG_BYTES }

export function seal(key: Uint8Array, plain: Uint8Array, place: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(Buffer.from(place))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** `undefined` if they were sealed with another key, for another place, or were changed. */
export function unseal(key: Uint8Array, sealed: Uint8Array, place: string): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), OPTIONS)
  decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
    // In this mode nothing is left to come; it throws unless the tag is right.
    decipher.final()
    return plain
  } catch {
    return undefined
  }
}

// What is kept in the store says which format it has, in its first byte, and is read strictly.
//
//   a session        1 byte format, 8 bytes when it was last seen, 4 bytes length of the public part, the public part,
//                    4 bytes length of the claims, the sealed claims, the sealed part
//   … formerly (2)   without the claims and their length; so is one without claims
//   … formerly (1)   without the time, which was in the public part alone
//   everything else  1 byte format, what was sealed
//
// At first there was no such byte. A session then began with its length, whose first byte was always 0; whether anything
// else has the byte, its seal tells.

/** Of everything but sessions. */
const FORMAT = 1
const SESSION_FORMAT = 3
const WITHOUT_CLAIMS = 2
const JSON_FORMAT = 1
const FIRST_FORMAT = 0
const TIME_BYTES = 8
const LENGTH_BYTES = 4

/** `seenAt` stands beside the public part, so that nobody has to open that for it; formerly it did not. */
export interface RecordParts {
  readonly seenAt?: number
  readonly publicPart: Uint8Array
  /** What the provider said of the user; see session-claims.ts. */
  readonly claimsPart?: Uint8Array
  readonly sealedPart: Uint8Array
}

export function isNewerFormat(value: Uint8Array): boolean {
  return (value[0] ?? 0) > FORMAT
}

export function isNewerSession(value: Uint8Array): boolean {
  return (value[0] ?? 0) > SESSION_FORMAT
}

/** Without `seenAt` in the format that the sealed part was written for. */
export function packRecord({ seenAt, publicPart, claimsPart, sealedPart }: RecordParts): Buffer {
  if (seenAt === undefined) return Buffer.concat([Buffer.of(JSON_FORMAT), ...withLength(publicPart), sealedPart])
  const head = Buffer.allocUnsafe(1 + TIME_BYTES)
  head[0] = claimsPart ? SESSION_FORMAT : WITHOUT_CLAIMS
  head.writeDoubleBE(seenAt, 1)
  const claims = claimsPart ? withLength(claimsPart) : []
  return Buffer.concat([head, ...withLength(publicPart), ...claims, sealedPart])
}

function withLength(part: Uint8Array): [length: Buffer, part: Uint8Array] {
  const length = Buffer.allocUnsafe(LENGTH_BYTES)
  length.writeUInt32BE(part.length)
  return [length, part]
}

/** `undefined` if the format is none that we know. */
export function unpackRecord(value: Uint8Array): RecordParts | undefined {
  const format = value[0]
  if (format === SESSION_FORMAT) return unpackFrom(value, 1 + TIME_BYTES, true)
  if (format === WITHOUT_CLAIMS) return unpackFrom(value, 1 + TIME_BYTES)
  if (format === JSON_FORMAT) return unpackFrom(value, 1)
  return format === FIRST_FORMAT ? unpackFrom(value, 0) : undefined
}

function unpackFrom(value: Uint8Array, lengthAt: number, hasClaims = false): RecordParts | undefined {
  const start = lengthAt + LENGTH_BYTES
  if (value.length < start) return undefined
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length)
  const end = start + bytes.readUInt32BE(lengthAt)
  const publicPart = bytes.subarray(start, end)
  if (lengthAt <= 1) return { publicPart, sealedPart: bytes.subarray(end) }
  const seenAt = bytes.readDoubleBE(1)
  if (!hasClaims) return { seenAt, publicPart, sealedPart: bytes.subarray(end) }
  const claimsStart = end + LENGTH_BYTES
  if (value.length < claimsStart) return undefined
  const claimsEnd = claimsStart + bytes.readUInt32BE(end)
  const claimsPart = bytes.subarray(claimsStart, claimsEnd)
  return { seenAt, publicPart, claimsPart, sealedPart: bytes.subarray(claimsEnd) }
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
