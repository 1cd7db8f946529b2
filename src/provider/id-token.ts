// Checks an id_token whole (OpenID Connect Core 3.1.3.7): signature by the published keys, algorithm, issuer, audience,
// authorised party, times, nonce, and the hash of the access token where there is one.

import { hash } from 'node:crypto'
import {
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose'
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { type Phrase, phrase, phraseIn, quoted } from '../phrases.ts'
import type { Metadata } from './discovery.ts'
import type { ProviderKeys } from './jwks.ts'
import type { ProviderPlan } from './plan.ts'

/** Signed with a key that only the provider has: never `none`, never a secret that we share with it. */
export const ALGORITHMS = [
  'RS256',
  'PS256',
  'ES256',
  'EdDSA',
  'Ed25519',
  'RS384',
  'RS512',
  'PS384',
  'PS512',
  'ES384',
  'ES512',
]
/** Clocks differ. */
export const TOLERANCE_SECONDS = 60
export const LONGEST_TOKEN = 64 * 1024
/** Three parts of base64url and nothing between or behind them: jose forgives white space. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Entra writes this where the id of each tenant belongs. */
const HOLE = '{tenantid}'
const TENANT = /^[\w-]+$/

export interface TokenChecks {
  readonly plan: Pick<ProviderPlan, 'clientId' | 'alsoIssuers'>
  readonly keys: ProviderKeys
  readonly now: () => number
}

export interface Expected {
  readonly isNonce: (given: unknown) => boolean
  readonly accessToken: string
  /** Not signed in before this, in milliseconds; absent where it does not matter (no `max_age`, or a refresh). */
  readonly signedInSince?: number | undefined
}

/** What a sentence calls it. */
export type TokenName = keyof typeof TOKEN_NAMES

const TOKEN_NAMES = {
  id_token: quoted('id_token'),
  'logout token': phrase('the_logout_token'),
  'user info': phrase('the_user_info'),
} as const

/** Something that the provider signed is not valid: `claim` says what of it is wrong. */
export class InvalidToken extends MenshenError {
  readonly claim: string

  constructor(name: TokenName, claim: string, why?: Phrase) {
    const token = TOKEN_NAMES[name]
    const sentence = why
      ? phrase('token_invalid_why', { token, claim, why })
      : phrase('token_invalid', { token, claim })
    super('provider_answer', phraseIn('en', sentence), undefined, sentence)
    this.claim = claim
  }
}

/** Its claims; throws `provider_answer` with the reason if anything is wrong with it. */
export async function checkIdToken(
  { plan, keys, now }: TokenChecks,
  metadata: Metadata,
  token: string,
  expected: Expected,
): Promise<JWTPayload & { sub: string }> {
  const claims = await verifySigned({ plan, keys, now }, metadata, token, ['sub', 'iat', 'exp'])
  const { sub, aud, azp, iat = 0, auth_time, nonce, at_hash } = claims
  if (typeof sub !== 'string' || sub === '' || sub.length > 255) throw wrong('sub')
  const isShared = Array.isArray(aud) && aud.length > 1
  if ((azp !== undefined || isShared) && azp !== plan.clientId) throw wrong('azp')
  if (iat > now() / 1000 + TOLERANCE_SECONDS) throw new InvalidToken('id_token', 'iat', ahead(iat - now() / 1000))
  if (!isInTime(auth_time, expected.signedInSince, now())) throw wrong('auth_time')
  if (!expected.isNonce(nonce)) throw wrong('nonce')
  if (at_hash !== undefined && at_hash !== accessTokenHash(token, expected.accessToken)) throw wrong('at_hash')
  return { ...claims, sub }
}

/** Anything that the provider signed for us: its signature, issuer, audience and times are right. */
export async function verifySigned(
  { plan, keys, now }: TokenChecks,
  metadata: Metadata,
  token: string,
  requiredClaims: string[],
  { audience = [plan.clientId], name = 'id_token' }: { audience?: readonly string[]; name?: TokenName } = {},
): Promise<JWTPayload> {
  if (token.length > LONGEST_TOKEN) throw new InvalidToken(name, 'length')
  if (!COMPACT.test(token)) throw notCompact(name, token)
  const promised = metadata.signingAlgorithms ?? ALGORITHMS
  const algorithms = ALGORITHMS.filter(algorithm => promised.includes(algorithm))
  const refuse = (error: unknown) => invalid(name, token, error, now())
  const options = { algorithms, audience: [...audience], requiredClaims, ...times(now()) }
  const { payload } = await verifyJwt(token, keys, options).catch(error => Promise.reject(refuse(error)))
  if (!isTokenIssuer(payload, metadata, plan.alsoIssuers)) throw new InvalidToken(name, 'iss')
  return payload
}

export function times(now: number): Pick<JWTVerifyOptions, 'currentDate' | 'clockTolerance'> {
  return { currentDate: new Date(now), clockTolerance: TOLERANCE_SECONDS }
}

/** A signature that does not fit may be by a key that was replaced under its old name: the keys are fetched again, once. */
export async function verifyJwt(
  token: string,
  keys: ProviderKeys,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options)
  } catch (error) {
    if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    const isFresh = await keys.lookAgain().catch(() => false)
    if (!isFresh) throw error
    return jwtVerify(token, keys, options)
  }
}

/** What of a token is wrong, in one word: a claim, `signature`, `key`, `alg` or `form`. */
export function faultOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) return error.claim
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) return 'key'
  return error instanceof errors.JOSEAlgNotAllowed ? 'alg' : 'form'
}

/** Keys that cannot be had are no verdict on the token. */
function invalid(name: TokenName, token: string, error: unknown, now: number): MenshenError {
  return error instanceof MenshenError ? error : new InvalidToken(name, faultOf(error), whyInvalid(token, error, now))
}

function whyInvalid(token: string, error: unknown, now: number): Phrase | undefined {
  if (error instanceof errors.JWTExpired) {
    const { exp = 0 } = error.payload
    return phrase('token_expired', { seconds: Math.round(now / 1000 - exp) })
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    const given = error.payload[error.claim]
    if (given === undefined) return phrase('claim_missing')
    return error.claim === 'nbf' && typeof given === 'number' ? ahead(given - now / 1000) : undefined
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return phrase('signature_does_not_fit')
  if (error instanceof errors.JWKSNoMatchingKey) return phrase('key_not_published')
  if (error instanceof errors.JWKSMultipleMatchingKeys) return phrase('several_keys_fit')
  return error instanceof errors.JOSEAlgNotAllowed ? whyAlgorithm(algorithmIn(token)) : undefined
}

/** A token from the future: that many seconds. */
function ahead(seconds: number): Phrase {
  return phrase('token_from_future', { seconds: Math.round(seconds) })
}

function whyAlgorithm(algorithm: string | undefined): Phrase {
  if (algorithm === undefined) return phrase('signed_by_other', { algorithm: phrase('an_unknown_algorithm') })
  if (/^HS\d+$/.test(algorithm)) return phrase('signed_by_secret', { algorithm })
  if (/^none$/i.test(algorithm)) return phrase('not_signed')
  return phrase('signed_by_other', { algorithm })
}

/** The header comes from outside: only a name of the usual form is repeated. */
function algorithmIn(token: string): string | undefined {
  try {
    const { alg } = decodeProtectedHeader(token)
    return typeof alg === 'string' && /^[\w-]{1,20}$/.test(alg) ? alg : undefined
  } catch {
    return undefined
  }
}

/** JWE in its compact form has five parts. */
const ENCRYPTED = /^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/

function notCompact(name: TokenName, token: string): InvalidToken {
  if (ENCRYPTED.test(token)) return new InvalidToken(name, 'form', phrase('token_encrypted'))
  const isUnsigned = /^[\w-]+\.[\w-]+\.$/.test(token)
  return new InvalidToken(name, isUnsigned ? 'alg' : 'form', isUnsigned ? whyAlgorithm('none') : undefined)
}

/** Exactly the one that the metadata names. Where that has a hole, the tenant of the verified token fills it. */
export function isTokenIssuer({ iss, tid }: JWTPayload, { issuer }: Metadata, also: readonly string[]): boolean {
  if (issuer === undefined || typeof iss !== 'string') return false
  if (issuer.includes(HOLE)) return typeof tid === 'string' && TENANT.test(tid) && iss === issuer.replace(HOLE, tid)
  return matchesIssuer(iss, issuer, also)
}

/** Whether this is the issuer's name, or one of its others. A hole may be filled by any tenant. */
export function matchesIssuer(name: string, issuer: string, also: readonly string[]): boolean {
  const [before = '', after] = issuer.split(HOLE)
  if (after === undefined) return name === issuer || also.includes(name)
  return name.startsWith(before) && name.endsWith(after) && TENANT.test(name.slice(before.length, -after.length))
}

/**
 * Whether it is one of the names that stand in access tokens alone. Their hole is the tenant of the issuer itself; where the issuer
 * is one for several, that of the token, or without a token any.
 */
export function isAccessTokenIssuer(
  name: unknown,
  { issuer = '' }: Pick<Metadata, 'issuer'>,
  { alsoIssuers, accessTokenIssuers }: Pick<ProviderPlan, 'alsoIssuers' | 'accessTokenIssuers'>,
  tid?: unknown,
): boolean {
  if (typeof name !== 'string') return false
  const own = alsoIssuers.map(template => tenantIn(issuer, template)).find(tenant => tenant !== undefined)
  return accessTokenIssuers.some(template => {
    const tenant = tenantIn(name, template)
    if (tenant === undefined || (tid !== undefined && tid !== tenant)) return false
    return issuer.includes(HOLE) || tenant === own
  })
}

/** What stands in a name where the template has its hole. */
function tenantIn(name: string, template: string): string | undefined {
  const [before = '', after] = template.split(HOLE)
  if (after === undefined || !name.startsWith(before) || !name.endsWith(after)) return undefined
  const tenant = name.slice(before.length, name.length - after.length)
  return TENANT.test(tenant) ? tenant : undefined
}

function isInTime(authTime: unknown, since: number | undefined, now: number): boolean {
  if (since === undefined) return true
  const [earliest, latest] = [since / 1000 - TOLERANCE_SECONDS, now / 1000 + TOLERANCE_SECONDS]
  return typeof authTime === 'number' && authTime >= earliest && authTime <= latest
}

/** OpenID Connect Core 3.1.3.6: the left half of the hash that the signature's algorithm uses. */
function accessTokenHash(idToken: string, accessToken: string): string | undefined {
  const { alg = '' } = decodeProtectedHeader(idToken)
  const bits = /(256|384|512)$/.exec(alg)?.[1] ?? '512'
  const digest = hash(`sha${bits}`, accessToken, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

function wrong(claim: string): InvalidToken {
  return new InvalidToken('id_token', claim)
}

// The provider's own session at which a user signed in, as its id_token names it: by that the provider can end one device.

/** Its id means something together with the issuer only. */
export interface ProviderSession {
  readonly issuer: string
  readonly sid: string
}

const claimsWithSid = z.object({ iss: z.string(), sid: z.string().min(1).max(1000) })

export function providerSessionIn(claims: unknown): ProviderSession | undefined {
  const { success, data } = claimsWithSid.safeParse(claims)
  return success ? { issuer: data.iss, sid: data.sid } : undefined
}
