// Seals bytes with AES-256-GCM. Whoever lacks the key learns nothing, and can neither change sealed bytes nor move them
// to another place: `place` has to be the same at both ends.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

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
