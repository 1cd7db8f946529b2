// Access tokens of machines, verified with the provider's keys or by introspection.

import type { JWTPayload, JWTVerifyResult } from 'jose'
import { z } from 'zod'
import type { Rule } from '../config/file.ts'
import { MenshenError } from '../errors.ts'
import type { Measure } from '../measure.ts'
import { phrase, phrasedError, quoted } from '../text/text.ts'
import { requestAsClient } from './client-auth.ts'
import type { ProviderConnection } from './connection.ts'
import type { Metadata } from './discovery.ts'
import { readAnswer } from './fetch.ts'
import {
  ALGORITHMS,
  invalidPartOf,
  isAccessTokenIssuer,
  isTokenIssuer,
  MAX_TOKEN_LENGTH,
  matchesIssuer,
  times,
  unverifiedClaims,
  verifyJwt,
} from './id-token.ts'
import type { ProviderKeys } from './jwks.ts'
import type { ProviderPlan } from './plan.ts'
import { errorCodeIn, RefusalError } from './refusal.ts'
import { type MappedUser, mapUser } from './user.ts'

export interface AccessTokenChecks {
  readonly plan: Pick<ProviderPlan, 'alsoIssuers' | 'accessTokenIssuers' | 'accessTokenTypes'>
  readonly keys: ProviderKeys
  readonly now: () => number
}

const ACCESS_TOKEN = 'at+jwt'
/** ID tokens and logout tokens have these claims; access tokens never do. */
const NON_ACCESS_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events']
/**
 * Access tokens have one of these claims; ID tokens never do. A token whose header does not have the type `at+jwt` must have one,
 * because nothing else distinguishes it from an ID token, which is signed with the same keys for the same client.
 */
const ACCESS_TOKEN_CLAIMS = ['scope', 'scp', 'client_id', 'cid']

/** The audience of a token must be one of these names. */
export interface DemandedAudience {
  readonly names: readonly string[]
  /** Configured by a rule or a setting, not only our own name. */
  readonly isConfigured: boolean
  /** The rule accepts tokens of every client; applies only to introspected tokens. */
  readonly isAny?: boolean
}

/** Whether the audience of a token satisfies every interpretation of the path. */
export function isFor(aud: unknown, demanded: readonly DemandedAudience[]): boolean {
  const given = [aud].flat()
  return demanded.every(({ names }) => names.some(name => given.includes(name)))
}

/** The claims of a valid token; throws `provider_refused` with the reason otherwise. */
export async function checkAccessToken(
  { plan, keys, now }: AccessTokenChecks,
  metadata: Metadata,
  token: string,
  demanded: readonly DemandedAudience[],
): Promise<JWTPayload> {
  if (token.length > MAX_TOKEN_LENGTH) throw refused('length')
  const { payload, protectedHeader } = await verify(token, keys, now())
  if (!isFor(payload.aud, demanded)) throw refused('aud')
  if (!isTokenIssuer(payload, metadata, plan.alsoIssuers) && !isOfTenant(payload, metadata, plan)) throw refused('iss')
  if (!isAccessToken(payload, protectedHeader.typ, plan.accessTokenTypes)) throw refused('typ')
  // Bound to a key of its owner. Without a proof of that key, the token may be stolen.
  if (payload.cnf !== undefined) throw refused('cnf')
  return payload
}

/** Whether its issuer is one that only access tokens have, with the tenant that the token names. */
function isOfTenant({ iss, tid }: JWTPayload, metadata: Metadata, plan: AccessTokenChecks['plan']): boolean {
  return tid !== undefined && isAccessTokenIssuer(iss, metadata, plan, tid)
}

async function verify(token: string, keys: ProviderKeys, now: number): Promise<JWTVerifyResult<JWTPayload>> {
  try {
    return await verifyJwt(token, keys, {
      algorithms: ALGORITHMS,
      requiredClaims: ['exp', 'aud'],
      ...times(now),
    })
  } catch (error) {
    // If the keys are unavailable, the token may still be valid.
    throw error instanceof MenshenError ? error : refused(invalidPartOf(error))
  }
}

/**
 * RFC 9068, 4. Some providers send the type `JWT`, others none: then the claims must show that it is an access token (RFC 8725,
 * 3.12).
 */
function isAccessToken(claims: JWTPayload, typ: string | undefined, alsoTypes: readonly string[]): boolean {
  if (NON_ACCESS_TOKEN_CLAIMS.some(name => claims[name] !== undefined) || !hasAccessType(claims)) return false
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === ACCESS_TOKEN) return true
  if (type !== undefined && !alsoTypes.includes(type)) return false
  return ACCESS_TOKEN_CLAIMS.some(name => claims[name] !== undefined)
}

/** Keycloak and others have a claim with the purpose of a token: `Bearer`, `ID`, `Refresh`, `Logout`. */
export function hasAccessType({ typ, token_use, token_type }: Readonly<Record<string, unknown>>): boolean {
  return [typ, token_use, token_type].every(
    type => type === undefined || /^(bearer|at\+jwt|access|access_token)$/i.test(String(type)),
  )
}

/** Why a token is not valid: a code, and a sentence where the code is not enough. */
export class TokenRejection extends MenshenError {
  readonly detail: string | undefined

  constructor(reason: string, detail?: string) {
    super('provider_refused', reason)
    this.detail = detail
  }
}

export function refused(reason: string, detail?: string): TokenRejection {
  return new TokenRejection(reason, detail)
}

// The user of an access token: a JWT is verified with the provider's keys, any other token is sent to the provider's
// introspection endpoint.

export interface BearerUser extends MappedUser {
  /** Absent where the provider does not say. */
  readonly expiresAt?: number
  /** The scopes of the token. */
  readonly scopes: readonly string[]
}

/** Throws `provider_refused` if the token is not valid. After any other error its validity is unknown. */
export async function verifyBearer(
  connection: ProviderConnection,
  token: string,
  demanded: readonly DemandedAudience[],
  measure: Measure,
): Promise<BearerUser> {
  const { plan, now } = connection
  const known = await connection.metadata.get()
  if (canVerify(plan) && issuerIn(token) !== undefined)
    return toBearerUser(await checkAccessToken(connection, known, token, demanded), plan, ['sub'])
  if (!known.endpoints.introspection) throw refused('opaque')
  const body = await measure('provider', 'introspection', () => introspectToken(connection, token))
  return toBearerUser(readIntrospection(body, plan, known, demanded, now()), plan, ['username', 'sub'])
}

/** The introspection response for a token (RFC 7662); `undefined` if the provider has no such endpoint. */
export async function introspectToken(connection: ProviderConnection, token: string): Promise<unknown> {
  const known = await connection.metadata.get()
  if (!known.endpoints.introspection) return undefined
  const response = await requestAsClient(connection, known, known.endpoints.introspection, { token })
  const { status, body } = await readAnswer(response)
  if (status !== 200)
    throw new RefusalError('provider_answer', quoted(`introspection answered ${status}`), status, errorCodeIn(body))
  return body
}

/** Maps the claims of a token like a user info answer. `names` are the claims of RFC 7662 and RFC 9068 with the user's name. */
function toBearerUser(claims: Introspection | object, plan: ProviderPlan, names: readonly string[]): BearerUser {
  const { username, sub } = plan.fields
  const named = username.filter(path => path !== 'sub')
  const fields = { ...plan.fields, username: [...named, ...names], sub: [...sub, 'sub'] }
  const { exp } = claims as { exp?: number }
  try {
    const user = mapUser({ userinfo: claims }, { ...plan, fields, userInfoFrom: ['userinfo'] })
    return { ...user, scopes: scopesIn(claims), ...(exp === undefined ? {} : { expiresAt: exp * 1000 }) }
  } catch (error) {
    // The message names the missing claim and those that are present: tokens of clients often name no user.
    throw error instanceof MenshenError ? refused('claims', error.message) : error
  }
}

/** RFC 9068 has one text; Entra calls it `scp`, and Okta sends a list. */
function scopesIn(claims: object): string[] {
  const { scope, scp } = claims as Record<string, unknown>
  return [scope, scp]
    .flat()
    .filter(part => typeof part === 'string')
    .flatMap(part => part.split(' '))
    .filter(Boolean)
}

// Reads an introspection response (RFC 7662).

const introspection = z.looseObject({
  active: z.boolean(),
  exp: z.number().optional(),
  nbf: z.number().optional(),
  iss: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
})

export type Introspection = z.infer<typeof introspection>

/** Throws `provider_refused` if the token is not valid for us. The provider has checked whatever the response leaves out. */
export function readIntrospection(
  body: unknown,
  { alsoIssuers, clientId }: Pick<ProviderPlan, 'alsoIssuers' | 'clientId'>,
  { issuer }: Metadata,
  demanded: readonly DemandedAudience[],
  now: number,
): Introspection {
  const { success, data } = introspection.safeParse(body)
  if (!success) throw new MenshenError('provider_answer', 'unusable in the introspection response')
  const { active, exp, nbf, iss, aud, client_id } = data
  if (!active) throw refused('inactive')
  if ((exp !== undefined && exp * 1000 <= now) || (nbf !== undefined && nbf * 1000 > now)) throw refused('exp')
  if (iss !== undefined && issuer !== undefined && !matchesIssuer(iss, issuer, alsoIssuers)) throw refused('iss')
  const judged = demanded.filter(({ isAny }) => !isAny)
  // A response may leave `aud` out (RFC 7662, 2.2). With a configured audience it must be present; otherwise the token must be
  // our own, because any client of the provider could send us the tokens of its users (RFC 9700, 4.10).
  const isDemanded = aud !== undefined || judged.some(({ isConfigured }) => isConfigured)
  if (isDemanded && !isFor(aud, judged)) throw refused('aud')
  if (!isDemanded && judged.length > 0 && client_id !== clientId) throw refused('client_id')
  // A refresh token is active too.
  if (!hasAccessType(data)) throw refused('typ')
  if (data.cnf !== undefined) throw refused('cnf')
  return data
}

// Whether tokens of machines can be verified: with published keys, or by introspection at the main provider.

/** Whether the provider publishes keys that verify its signatures. */
export function canVerify({ kind, endpoints, issuer }: ProviderPlan): boolean {
  return kind === 'oidc' || (endpoints.jwks !== undefined && issuer !== undefined)
}

/**
 * Refuses `bearer` rules that would reject every token without a visible reason. `path` is where the rules are in the
 * configuration.
 */
export function assertVerifiable(
  rules: readonly Rule[],
  plans: readonly [ProviderPlan, ...ProviderPlan[]],
  path = 'rules',
): void {
  const first = rules.findIndex(({ bearer }) => bearer)
  if (first < 0 || plans.some(canVerify) || plans[0].endpoints.introspection) return
  throw phrasedError(
    'bad_settings',
    phrase('config.bearer_not_verifiable', { path: `${path}.${first}`, preset: plans[0].preset }),
  )
}

/** The issuer in a token, empty if it names none; `undefined` if it is not a JWT. */
export function issuerIn(token: string): string | undefined {
  const claims = unverifiedClaims(token)
  return claims && (claims.iss ?? '')
}
