// Checks an access token that is a JWT (RFC 9068): signed by the provider, meant for us, in time, and no other kind of
// token that the provider signs with the same keys.
import { errors, type JWTPayload, type JWTVerifyResult, jwtVerify } from 'jose'
import { MenshenError } from '../../errors.ts'
import { ALGORITHMS, isAccessTokenIssuer, isIssuer, LONGEST_TOKEN, TOLERANCE_SECONDS } from '../oidc/id-token.ts'
import type { KeySet } from '../oidc/key-set.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan } from '../plan.ts'

export interface AccessTokenChecks {
  readonly plan: Pick<ProviderPlan, 'alsoIssuers' | 'accessTokenIssuers' | 'accessTokenTypes'>
  readonly keys: KeySet
  readonly now: () => number
}

const ACCESS_TOKEN = 'at+jwt'
/** ID tokens and logout tokens have these, access tokens never. */
const OF_OTHER_TOKENS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events']
/** Access tokens have one of these, ID tokens never. */
const OF_ACCESS_TOKENS = ['scope', 'scp', 'client_id', 'cid']

/** Its claims; throws `provider_refused` with the reason if anything is wrong with it. */
export async function checkAccessToken(
  { plan, keys, now }: AccessTokenChecks,
  metadata: Metadata,
  token: string,
  audience: readonly string[],
): Promise<JWTPayload> {
  if (token.length > LONGEST_TOKEN) throw refused('length')
  const { payload, protectedHeader } = await verify(token, keys, audience, now())
  if (!isIssuer(payload, metadata, plan.alsoIssuers) && !isOfTenant(payload, metadata, plan)) throw refused('iss')
  if (!isAccessToken(payload, protectedHeader.typ, plan.accessTokenTypes)) throw refused('typ')
  // Bound to a key that only its owner has: whoever brings it like this may have found it.
  if (payload.cnf !== undefined) throw refused('cnf')
  return payload
}

/** Whose token it is by a name for access tokens alone; the tenant has to be the one that the token names, too. */
function isOfTenant({ iss, tid }: JWTPayload, metadata: Metadata, plan: AccessTokenChecks['plan']): boolean {
  return tid !== undefined && isAccessTokenIssuer(iss, metadata, plan, tid)
}

async function verify(
  token: string,
  keys: KeySet,
  audience: readonly string[],
  now: number,
): Promise<JWTVerifyResult<JWTPayload>> {
  try {
    return await jwtVerify(token, keys, {
      algorithms: ALGORITHMS,
      audience: [...audience],
      requiredClaims: ['exp'],
      currentDate: new Date(now),
      clockTolerance: TOLERANCE_SECONDS,
    })
  } catch (error) {
    if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
      throw refused(error.claim)
    // Keys that cannot be had are no verdict on the token.
    throw error instanceof MenshenError ? error : refused(error instanceof errors.JOSEError ? error.code : 'form')
  }
}

/** Some call it `JWT`: then it has to say otherwise that it is one. */
function isAccessToken(claims: JWTPayload, typ: string | undefined, alsoTypes: readonly string[]): boolean {
  if (OF_OTHER_TOKENS.some(name => claims[name] !== undefined) || !saysAccess(claims)) return false
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === undefined || type === ACCESS_TOKEN) return true
  return alsoTypes.includes(type) && OF_ACCESS_TOKENS.some(name => claims[name] !== undefined)
}

/** Keycloak and others say inside what a token is for: `Bearer`, `ID`, `Refresh`, `Logout`. */
export function saysAccess({ typ, token_use, token_type }: Readonly<Record<string, unknown>>): boolean {
  return [typ, token_use, token_type].every(
    said => said === undefined || /^(bearer|at\+jwt|access|access_token)$/i.test(String(said)),
  )
}

export function refused(reason: string): MenshenError {
  return new MenshenError('provider_refused', reason)
}
