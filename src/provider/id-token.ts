// Checks an id_token completely (OpenID Connect Core 3.1.3.7): signature with the published keys, algorithm, issuer, audience,
// authorised party, times, nonce, and the hash of the access token if there is one.

import { hash } from 'node:crypto'
import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose'
import { z } from 'zod'
import type { Rule } from '../config/file.ts'
import { MenshenError, refuseIf } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem, phraseIn, quoted } from '../text/text.ts'
import type { Metadata } from './discovery.ts'
import { readJson } from './fetch.ts'
import type { ProviderKeys } from './jwks.ts'
import type { ProviderPlan } from './plan.ts'

/** Algorithms whose signing key only the provider has: never `none`, and never a secret that we share with it. */
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
export const MAX_TOKEN_LENGTH = 64 * 1024
/** Three parts of base64url with nothing between or after them: jose tolerates white space. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Entra's issuer has this in place of the tenant's id. */
const TENANT_PLACEHOLDER = '{tenantid}'
const TENANT = /^[\w-]+$/

export interface TokenChecks {
  readonly plan: Pick<ProviderPlan, 'clientId' | 'alsoIssuers'>
  readonly keys: ProviderKeys
  readonly now: () => number
}

export interface IdTokenExpectation {
  readonly isNonce: (given: unknown) => boolean
  readonly accessToken: string
  /**
   * The earliest time at which the user may have signed in, in milliseconds; absent where it does not matter (no `max_age`, or a
   * refresh).
   */
  readonly signedInSince?: number | undefined
}

/** The name of a token in messages. */
export type TokenName = keyof typeof TOKEN_NAMES

const TOKEN_NAMES = {
  id_token: quoted('id_token'),
  'logout token': phrase('the_logout_token'),
  'user info': phrase('the_user_info'),
} as const

/** A token of the provider is not valid; `claim` is the part that is wrong. */
export class InvalidToken extends MenshenError {
  readonly claim: string

  constructor(name: TokenName, claim: string, why?: Phrase) {
    const token = TOKEN_NAMES[name]
    const message = why ? phrase('token_invalid_why', { token, claim, why }) : phrase('token_invalid', { token, claim })
    super('provider_answer', phraseIn('en', message), undefined, message)
    this.claim = claim
  }
}

/** Signed by the provider, but too early or too late for our clock, which may be the one that is wrong. */
export class UntimelyToken extends InvalidToken {}

/** Whether the same token may be valid later: when the provider publishes its key, or our clock is right again. */
export function mayBecomeValid(error: InvalidToken): boolean {
  return error.claim === 'key' || error instanceof UntimelyToken
}

/** The claims of a valid id_token; throws `provider_answer` with the reason otherwise. */
export async function checkIdToken(
  { plan, keys, now }: TokenChecks,
  metadata: Metadata,
  token: string,
  expected: IdTokenExpectation,
): Promise<JWTPayload & { sub: string }> {
  const claims = await verifySigned({ plan, keys, now }, metadata, token, ['sub', 'iat', 'exp'])
  const { aud, azp, iat = 0, auth_time, nonce, at_hash } = claims
  // As it was signed: a number is not valid, whether or not it has become text.
  const { sub } = decodeJwt(token)
  if (typeof sub !== 'string' || sub === '' || sub.length > 255) throw wrong('sub')
  const isShared = Array.isArray(aud) && aud.length > 1
  if ((azp !== undefined || isShared) && azp !== plan.clientId) throw wrong('azp')
  if (iat > now() / 1000 + TOLERANCE_SECONDS) throw new UntimelyToken('id_token', 'iat', ahead(iat - now() / 1000))
  if (!isInTime(auth_time, expected.signedInSince, now())) throw wrong('auth_time')
  if (!expected.isNonce(nonce)) throw wrong('nonce')
  if (at_hash !== undefined && at_hash !== accessTokenHash(token, expected.accessToken)) throw wrong('at_hash')
  return { ...claims, sub }
}

/** Verifies the signature, issuer, audience and times of anything that the provider signed for us. */
export async function verifySigned(
  { plan, keys, now }: TokenChecks,
  metadata: Metadata,
  token: string,
  requiredClaims: string[],
  { audience = [plan.clientId], name = 'id_token' }: { audience?: readonly string[]; name?: TokenName } = {},
): Promise<JWTPayload> {
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken(name, 'length')
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

/** If a signature does not match, its key may have been replaced under the same id, so the keys are fetched again, once. */
export async function verifyJwt(
  token: string,
  keys: ProviderKeys,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  const verify = async () => {
    const verified = await jwtVerify(token, keys, options)
    return { ...verified, payload: withExactNumbers(token, verified.payload) }
  }
  try {
    return await verify()
  } catch (error) {
    if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    const isFresh = await keys.refetch().catch(() => false)
    if (!isFresh) throw error
    return verify()
  }
}

const TIMES: ReadonlySet<string> = new Set(['iat', 'nbf', 'exp'])

/** An integer that a number cannot hold becomes text, as in every other answer: jose would give two users the same id. */
function withExactNumbers(token: string, claims: JWTPayload): JWTPayload {
  const [, payload = ''] = token.split('.')
  const exact = Object.entries(Object(readJson(Buffer.from(payload, 'base64url').toString())))
  return { ...claims, ...Object.fromEntries(exact.filter(([name]) => !TIMES.has(name))) }
}

/** The part of a token that is wrong: a claim, `signature`, `key`, `alg` or `form`. */
export function invalidPartOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) return error.claim
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) return 'key'
  return error instanceof errors.JOSEAlgNotAllowed ? 'alg' : 'form'
}

/** If the keys are unavailable, the token may still be valid. */
function invalid(name: TokenName, token: string, error: unknown, now: number): MenshenError {
  if (error instanceof MenshenError) return error
  const Invalid = isUntimely(error) ? UntimelyToken : InvalidToken
  return new Invalid(name, invalidPartOf(error), invalidReason(token, error, now))
}

/** jose compares times after the signature. */
function isUntimely(error: unknown): boolean {
  if (error instanceof errors.JWTExpired) return true
  return (
    error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf' && typeof error.payload.nbf === 'number'
  )
}

function invalidReason(token: string, error: unknown, now: number): Phrase | undefined {
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
  return error instanceof errors.JOSEAlgNotAllowed ? algorithmReason(algorithmIn(token)) : undefined
}

/** For a token from the future. */
function ahead(seconds: number): Phrase {
  return phrase('token_from_future', { seconds: Math.round(seconds) })
}

function algorithmReason(algorithm: string | undefined): Phrase {
  if (algorithm === undefined) return phrase('signed_by_other', { algorithm: phrase('an_unknown_algorithm') })
  if (/^HS\d+$/.test(algorithm)) return phrase('signed_by_secret', { algorithm })
  if (/^none$/i.test(algorithm)) return phrase('not_signed')
  return phrase('signed_by_other', { algorithm })
}

/** The header is untrusted input: only a name of the usual form is shown. */
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
  return new InvalidToken(name, isUnsigned ? 'alg' : 'form', isUnsigned ? algorithmReason('none') : undefined)
}

/** Whether the token is from the issuer of the metadata. A placeholder in it stands for the tenant of the verified token. */
export function isTokenIssuer({ iss, tid }: JWTPayload, { issuer }: Metadata, also: readonly string[]): boolean {
  if (issuer === undefined || typeof iss !== 'string') return false
  if (issuer.includes(TENANT_PLACEHOLDER))
    return typeof tid === 'string' && TENANT.test(tid) && iss === issuer.replace(TENANT_PLACEHOLDER, tid)
  return matchesIssuer(iss, issuer, also)
}

/** Whether `name` is the issuer, or another name of it. A placeholder matches any tenant. */
export function matchesIssuer(name: string, issuer: string, also: readonly string[]): boolean {
  const [before = '', after] = issuer.split(TENANT_PLACEHOLDER)
  if (after === undefined) return name === issuer || also.includes(name)
  return name.startsWith(before) && name.endsWith(after) && TENANT.test(name.slice(before.length, -after.length))
}

/**
 * Whether `name` is one of the issuers that only access tokens have. Their placeholder stands for the tenant of the issuer. If
 * the issuer has a placeholder itself, theirs stands for `tid`, the tenant of the token, or for any tenant without a `tid`.
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
    return issuer.includes(TENANT_PLACEHOLDER) || tenant === own
  })
}

/** The part of a name that is at the placeholder of the template. */
function tenantIn(name: string, template: string): string | undefined {
  const [before = '', after] = template.split(TENANT_PLACEHOLDER)
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

// The provider's session in which a user signed in (`sid`). With it the provider can end the sessions of one device.

/** A `sid` is unique only within its issuer. */
export interface ProviderSession {
  readonly issuer: string
  readonly sid: string
}

const claimsWithSid = z.object({ iss: z.string(), sid: z.string().min(1).max(1000) })

export function providerSessionIn(claims: unknown): ProviderSession | undefined {
  const { success, data } = claimsWithSid.safeParse(claims)
  return success ? { issuer: data.iss, sid: data.sid } : undefined
}

// How and when the user signed in at the provider (OpenID Connect Core 2).

/** `time` is `auth_time` in milliseconds. */
export interface IdTokenAuthentication {
  readonly time?: number
  readonly acr?: string
  readonly amr?: readonly string[]
}

const MAX_REFERENCE_LENGTH = 200
const MAX_REFERENCES = 32

/** The authentication in a checked id_token, or in the claims of an access token. Malformed values are left out. */
export function authenticationIn(claims: Readonly<Record<string, unknown>>, now: number): IdTokenAuthentication {
  const { auth_time, acr, amr } = claims
  // A time in the future, such as one in milliseconds, would be fresh for ever.
  const isTime = typeof auth_time === 'number' && auth_time > 0 && auth_time <= now / 1000 + TOLERANCE_SECONDS
  const means = (Array.isArray(amr) ? amr : [amr]).filter(isReference).slice(0, MAX_REFERENCES)
  return {
    ...(isTime && { time: Math.round(auth_time * 1000) }),
    ...(isReference(acr) && { acr }),
    ...(means.length > 0 && { amr: means }),
  }
}

function isReference(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_REFERENCE_LENGTH
}

/** Refuses rules with `acr` or `amr` if no provider issues an id_token. */
export function assertIdTokens(
  rules: readonly Rule[],
  plans: readonly Pick<ProviderPlan, 'kind' | 'preset'>[],
  rulesPath = 'rules',
): void {
  if (plans.some(({ kind }) => kind === 'oidc')) return
  const presets = plans.map(({ preset }) => preset).join(', ')
  refuseIf(
    rules.flatMap((rule, n) =>
      (['acr', 'amr'] as const)
        .filter(name => rule[name] !== undefined)
        .map(name => {
          const path = `${rulesPath}.${n}.${name}`
          return phrasedProblem({ path }, phrase('config.no_id_token', { path, presets }))
        }),
    ),
  )
}

/** The claims of a token, without checking its signature; `undefined` if it is not a JWT. */
export function unverifiedClaims(token: string): JWTPayload | undefined {
  try {
    return withExactNumbers(token, decodeJwt(token))
  } catch {
    return undefined
  }
}
