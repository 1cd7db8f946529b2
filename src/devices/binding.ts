// The device of a session (DEVICE_BOUND_SESSIONS): the public key of its browser, the second cookie and the challenges.
//
// A session is opened with a challenge that only the browser of that sign-in gets. The first key that signs it is bound to the
// session, once. From then on, a proof by that key earns a new cookie and a new challenge. The previous ones stay valid for one
// more use, because requests and proofs in flight still carry them.

import { randomBytes } from 'node:crypto'
import {
  type BoundCookie,
  type BoundDevice,
  type DeviceBinding,
  isBound,
  type OfferedDevice,
} from '../session/record.ts'

export { type BoundDevice, type DeviceBinding, isBound, type OfferedDevice }

/** How long the second cookie lives, and how long after the sign-in the ticket is valid without it. */
export const BOUND_SECONDS = 600
const BOUND_MS = BOUND_SECONDS * 1000
/** A browser measures the cookie's age from when it received it. */
const TRANSIT_MARGIN_MS = 5000

/** 32 bytes in base64url. */
const CHALLENGE_LENGTH = 43

export function offerDevice(): OfferedDevice {
  return { challenge: randomText(32) }
}

// The first challenge includes the ticket. The provider has sent the browser here, so the browser treats its registration as
// a cross-site request, and leaves out cookies that are SameSite=Lax.

export function registrationChallenge({ challenge }: OfferedDevice, ticket: string): string {
  return challenge + ticket
}

export function readRegistrationChallenge(signed: string): { readonly challenge: string; readonly ticket: string } {
  return { challenge: signed.slice(0, CHALLENGE_LENGTH), ticket: signed.slice(CHALLENGE_LENGTH) }
}

export interface PublicPoint {
  readonly x: string
  readonly y: string
}

/** `undefined` if the session was not offered to be bound, is bound already, or another challenge was signed. */
export function bindDevice(
  device: DeviceBinding | undefined,
  { x, y }: PublicPoint,
  challenge: string,
  now: number,
): BoundDevice | undefined {
  if (!device || isBound(device) || !isEqual(challenge, device.challenge)) return undefined
  return { id: randomText(16), x, y, challenge: randomText(32), cookie: newCookie(now), isSeen: false }
}

/** A proof with a valid signature. */
export interface DeviceProof {
  readonly challenge: string
  readonly nonce: string
}

/** `undefined` if the challenge is not valid, or the proof is a copy of the last one. */
export function renewDevice(
  device: BoundDevice,
  { challenge, nonce }: DeviceProof,
  now: number,
): BoundDevice | undefined {
  const { previousChallenge, ...rest } = device
  if (nonce === device.lastNonce) return undefined
  if (isEqual(challenge, device.challenge)) {
    const renewed = { ...rest, challenge: randomText(32), lastNonce: nonce, isSeen: true }
    return { ...renewed, previousChallenge: device.challenge, cookie: newCookie(now), previousCookie: device.cookie }
  }
  // A proof that was sent in parallel with the last one gets the same cookie.
  if (previousChallenge !== undefined && isEqual(challenge, previousChallenge)) return { ...rest, lastNonce: nonce }
  return undefined
}

export function seenDevice(device: BoundDevice): BoundDevice {
  return { ...device, isSeen: true }
}

/** Whether the browser sent a valid cookie. It is compared in constant time. */
export function showsCookie({ cookie, previousCookie }: BoundDevice, shown: string, now: number): boolean {
  if (now <= cookie.until && isEqual(shown, cookie.value)) return true
  return previousCookie !== undefined && now <= previousCookie.until && isEqual(shown, previousCookie.value)
}

/** Whether the ticket is valid without the cookie: a browser that has just signed in does not have it yet. */
export function mayWait(signedInAt: number, now: number): boolean {
  return now <= signedInAt + BOUND_MS
}

function newCookie(now: number): BoundCookie {
  return { value: randomText(24), until: now + BOUND_MS + TRANSIT_MARGIN_MS }
}

function randomText(bytes: number): string {
  return randomBytes(bytes).toString('base64url')
}

/**
 * Takes a time that depends only on the lengths. The two buffers that `timingSafeEqual` needs would cost 1.5 µs of the 21 µs that
 * a check takes.
 */
function isEqual(one: string, other: string): boolean {
  if (one.length !== other.length) return false
  let difference = 0
  for (let n = 0; n < one.length; n++) difference |= one.charCodeAt(n) ^ other.charCodeAt(n)
  return difference === 0
}
