// Checks an id_token whole (OpenID Connect Core 3.1.3.7): signature by the published keys, algorithm, issuer, audience,
// authorised party, times, nonce, and the hash of the access token where there is one.
import { hash } from 'node:crypto'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { MenshenError } from '../../errors.ts'
import type { ProviderPlan } from '../plan.ts'
import type { KeySet } from './key-set.ts'
import type { Metadata } from './metadata.ts'

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
export const TOLERANCE_SECONDS = 30
export const LONGEST_TOKEN = 64 * 1024
/** Three parts of base64url and nothing between or behind them: jose forgives white space. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Entra writes this where the id of each tenant belongs. */
const HOLE = '{tenantid}'
const TENANT = /^[\w-]+$/

export interface TokenChecks {
  readonly plan: Pick<ProviderPlan, 'clientId' | 'alsoIssuers'>
  readonly keys: KeySet
  readonly now: () => number
}

export interface Expected {
  readonly isNonce: (given: unknown) => boolean
  readonly accessToken: string
  /** Not signed in before this, in milliseconds; absent where it does not matter (no `max_age`, or a refresh). */
  readonly signedInSince?: number | undefined
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
  if (iat > now() / 1000 + TOLERANCE_SECONDS) throw wrong('iat')
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
  audience: string | readonly string[] = plan.clientId,
): Promise<JWTPayload> {
  if (token.length > LONGEST_TOKEN) throw wrong('length')
  if (!COMPACT.test(token)) throw wrong('form')
  const promised = metadata.signingAlgorithms ?? ALGORITHMS
  const algorithms = ALGORITHMS.filter(name => promised.includes(name))
  try {
    const { payload } = await jwtVerify(token, keys, {
      algorithms,
      audience: [audience].flat(),
      requiredClaims,
      currentDate: new Date(now()),
      clockTolerance: TOLERANCE_SECONDS,
    })
    if (!isIssuer(payload, metadata, plan.alsoIssuers)) throw wrong('iss')
    return payload
  } catch (error) {
    if (error instanceof MenshenError) throw error
    if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) throw wrong(error.claim)
    throw wrong(error instanceof errors.JOSEError ? error.code : 'form')
  }
}

/** Exactly the one that the metadata names. Where that has a hole, the tenant of the verified token fills it. */
export function isIssuer({ iss, tid }: JWTPayload, { issuer }: Metadata, also: readonly string[]): boolean {
  if (issuer === undefined || typeof iss !== 'string') return false
  if (issuer.includes(HOLE)) return typeof tid === 'string' && TENANT.test(tid) && iss === issuer.replace(HOLE, tid)
  return isNamed(iss, issuer, also)
}

/** Whether this is the issuer's name, or one of its others. A hole may be filled by any tenant. */
export function isNamed(name: string, issuer: string, also: readonly string[]): boolean {
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

function wrong(what: string): MenshenError {
  return new MenshenError('provider_answer', `the id_token is not valid: ${what}`)
}
