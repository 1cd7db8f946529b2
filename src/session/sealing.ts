// Seals bytes with AES-256-GCM. Without the key they can be neither read nor changed, nor moved to another record: `aad` (the
// additional authenticated data) has to be the same when they are opened.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { z } from 'zod'

const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = 'aes-256-gcm'
const OPTIONS = { authTagLength: TAG_BYTES }

export function seal(key: Uint8Array, plain: Uint8Array, aad: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(Buffer.from(aad))
  const sealed = cipher.update(plain)
  // Returns no bytes in this mode.
  cipher.final()
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()])
}

/** `undefined` if the bytes were changed, or sealed with another key or other `aad`. */
export function unseal(key: Uint8Array, sealed: Uint8Array, aad: string): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), OPTIONS)
  decipher.setAAD(Buffer.from(aad)).setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    const plain = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES))
    // Returns no bytes in this mode, and throws unless the tag is right.
    decipher.final()
    return plain
  } catch {
    return undefined
  }
}

// The first byte of every value in the store is its format. A value in an unknown format is treated as absent.
//
//   a session        1 byte format, 8 bytes when it was last seen, 4 bytes length of the summary, the summary,
//                    4 bytes length of the claims, the sealed claims, the sealed part
//   everything else  1 byte format, the sealed bytes

const VALUE_FORMAT = 1
const SESSION_FORMAT = 1
const TIME_BYTES = 8
const LENGTH_BYTES = 4

export interface RecordParts {
  /** Outside the summary, so that a request does not have to open it. */
  readonly seenAt: number
  readonly summaryPart: Uint8Array
  /** The provider's claims of the user, see claims.ts. Empty if none are stored. */
  readonly claimsPart: Uint8Array
  readonly sealedPart: Uint8Array
}

/** Whether a later version of Menshen wrote this value. */
export function isNewerFormat(value: Uint8Array): boolean {
  return (value[0] ?? 0) > VALUE_FORMAT
}

/** Whether a later version of Menshen wrote this session. */
export function isNewerSession(value: Uint8Array): boolean {
  return (value[0] ?? 0) > SESSION_FORMAT
}

export function packRecord({ seenAt, summaryPart, claimsPart, sealedPart }: RecordParts): Buffer {
  const head = Buffer.allocUnsafe(1 + TIME_BYTES)
  head[0] = SESSION_FORMAT
  head.writeDoubleBE(seenAt, 1)
  return Buffer.concat([head, ...withLength(summaryPart), ...withLength(claimsPart), sealedPart])
}

function withLength(part: Uint8Array): [length: Buffer, part: Uint8Array] {
  const length = Buffer.allocUnsafe(LENGTH_BYTES)
  length.writeUInt32BE(part.length)
  return [length, part]
}

/** `undefined` if the format is unknown. */
export function unpackRecord(value: Uint8Array): RecordParts | undefined {
  if (value[0] !== SESSION_FORMAT) return undefined
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length)
  const summaryPart = partAt(bytes, 1 + TIME_BYTES)
  const claims = summaryPart && partAt(bytes, summaryPart.end)
  if (!claims) return undefined
  return {
    seenAt: bytes.readDoubleBE(1),
    summaryPart: summaryPart.bytes,
    claimsPart: claims.bytes,
    sealedPart: bytes.subarray(claims.end),
  }
}

/** The part that follows its length. */
function partAt(bytes: Buffer, lengthAt: number): { readonly bytes: Buffer; readonly end: number } | undefined {
  const start = lengthAt + LENGTH_BYTES
  if (bytes.length < start) return undefined
  const end = start + bytes.readUInt32BE(lengthAt)
  return { bytes: bytes.subarray(start, end), end }
}

export function sealValue(key: Uint8Array, plain: Uint8Array, aad: string): Buffer {
  return Buffer.concat([Buffer.of(VALUE_FORMAT), seal(key, plain, aad)])
}

/** `undefined` if it is in another format, was changed, or was sealed with another key or other `aad`. */
export function unsealValue(key: Uint8Array, value: Uint8Array, aad: string): Buffer | undefined {
  return value[0] === VALUE_FORMAT ? unseal(key, value.subarray(1), aad) : undefined
}

export function encodeJson(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** `undefined` if it does not match the schema. */
export function decodeJson<T>(schema: z.ZodType<T>, plain: Buffer | undefined): T | undefined {
  if (!plain) return undefined
  try {
    return schema.safeParse(JSON.parse(plain.toString())).data
  } catch {
    return undefined
  }
}
