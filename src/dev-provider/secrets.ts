// Making and comparing secrets. A comparison takes the same time wherever the two differ.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export function newSecret(): string {
  return randomBytes(24).toString('base64url')
}

export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(sha256(given), sha256(expected))
}

/** Whether the PKCE verifier is the one that the S256 challenge was made from. */
export function provesChallenge(verifier: string, challenge: string): boolean {
  return isSameSecret(sha256(verifier).toString('base64url'), challenge)
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
