// The assertion: who the caller is, signed for one application, valid for a few minutes.

import { createPublicKey, sign } from 'node:crypto'
import { exportJWK } from 'jose'
import type { Caller } from '../http/caller.ts'
import type { Identity } from '../session/fields.ts'
import type { SigningKey, SigningKeys } from '../session/signing-keys.ts'
import { createCachedValue } from '../util/cached-value.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'

interface Assertions {
  sign(caller: Caller, audience: string): MaybePromise<SignedAssertion>
}

export interface SignedAssertion {
  readonly token: string
  /** Claims that were too long; some of the groups may be included. */
  readonly omitted: readonly string[]
}

const LIFETIME_SECONDS = 300
/**
 * As JSON. All claims together then fit into one header. A claim is left out rather than cut, because half a name would be wrong.
 */
const MAX_CLAIM_BYTES = 512
const MAX_GROUPS_BYTES = 1024

export function createAssertions(issuer: string, keys: SigningKeys, now: () => number): Assertions {
  return {
    sign({ user: { userInfo }, who }, audience) {
      const { role, username, sub, provider } = who
      const groups = groupsThatFit(who)
      const all = Object.entries({ ...userInfo, username, sub, role, ...(provider && { provider }) })
      const tooLong = all.filter(([, value]) => isTooLong(value)).map(([name]) => name)
      const fitting = tooLong.length === 0 ? all : all.filter(([name]) => !tooLong.includes(name))
      const omitted = groups.length < who.groups.length ? [...tooLong, 'groups'] : tooLong
      const iat = Math.floor(now() / 1000)
      const claims = {
        ...Object.fromEntries(fitting),
        groups,
        iss: issuer,
        aud: audience,
        iat,
        exp: iat + LIFETIME_SECONDS,
      }
      return andThen(keys.latest() ?? keys.current(), key => ({ token: compactJws(claims, key), omitted }))
    },
  }
}

/**
 * RFC 7515, written by hand because jose signs with WebCrypto: that takes more than twice the time (170 µs against 75, of which
 * the signature takes 60), and a promise. Applications verify it with jose.
 */
function compactJws(claims: object, { id, key }: SigningKey): string {
  const signed = `${base64urlJson({ alg: 'ES256', kid: id })}.${base64urlJson(claims)}`
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

function base64urlJson(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Whole names, in their order. */
function groupsThatFit({ groups }: Identity): string[] {
  let bytes = 0
  const end = groups.findIndex(group => {
    bytes += jsonBytes(group) + 1
    return bytes > MAX_GROUPS_BYTES
  })
  return groups.slice(0, end < 0 ? undefined : end)
}

/** No character takes more than six bytes, so most values need not be measured. */
function isTooLong(value: string): boolean {
  return value.length * 6 + 2 > MAX_CLAIM_BYTES && jsonBytes(value) > MAX_CLAIM_BYTES
}

function jsonBytes(value: string): number {
  return Buffer.byteLength(JSON.stringify(value))
}

// The public keys that applications verify our assertions with, as a JSON Web Key Set.

export interface PublishedKeySet {
  readonly keys: readonly object[]
}

/** The next key is published a month before it signs, so a set from a minute ago contains the key that signs now. */
const KEY_SET_TTL_MS = 60_000

/** Any client may request the set at any rate, so the store is read at most once a minute. */
export function createPublishedKeys(keys: SigningKeys, now: () => number): () => Promise<PublishedKeySet> {
  async function load(): Promise<PublishedKeySet> {
    const jwks = (await keys.all()).map(async ({ id, key }) => ({
      ...(await exportJWK(createPublicKey(key))),
      kid: id,
      alg: 'ES256',
      use: 'sig',
    }))
    return { keys: await Promise.all(jwks) }
  }

  return createCachedValue({ load, freshMs: KEY_SET_TTL_MS, now }).get
}
