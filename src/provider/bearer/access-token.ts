// Checks an access token that is a JWT (RFC 9068): signed by the provider, meant for us, in time, and no other kind of
// token that the provider signs with the same keys.
import type { JWTPayload, JWTVerifyResult } from 'jose'
import { MenshenError } from '../../errors.ts'
import {
  ALGORITHMS,
  faultOf,
  isAccessTokenIssuer,
  isIssuer,
  LONGEST_TOKEN,
  times,
  verifyJwt,
} from '../oidc/id-token.ts'
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
/**
 * Access tokens have one of these, ID tokens never. A token whose header does not say `at+jwt` has to have one: nothing else
 * tells it from an ID token, which is signed with the same keys for the same client.
 */
const OF_ACCESS_TOKENS = ['scope', 'scp', 'client_id', 'cid']

/** Whom a token has to be for: one of these names. */
export interface DemandedAudience {
  readonly names: readonly string[]
  /** Named by a rule or a setting, not only our own name. */
  readonly isConfigured: boolean
}

/** Whether what a token says of its audience is enough for every interpretation of the path. */
export function isFor(aud: unknown, demanded: readonly DemandedAudience[]): boolean {
  const given = [aud].flat()
  return demanded.every(({ names }) => names.some(name => given.includes(name)))
}

/** Its claims; throws `provider_refused` with the reason if anything is wrong with it. */
export async function checkAccessToken(
  { plan, keys, now }: AccessTokenChecks,
  metadata: Metadata,
  token: string,
  demanded: readonly DemandedAudience[],
): Promise<JWTPayload> {
  if (token.length > LONGEST_TOKEN) throw refused('length')
  const { payload, protectedHeader } = await verify(token, keys, now())
  if (!isFor(payload.aud, demanded)) throw refused('aud')
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

async function verify(token: string, keys: KeySet, now: number): Promise<JWTVerifyResult<JWTPayload>> {
  try {
    return await verifyJwt(token, keys, {
      algorithms: ALGORITHMS,
      requiredClaims: ['exp', 'aud'],
      ...times(now),
    })
  } catch (error) {
    // Keys that cannot be had are no verdict on the token.
    throw error instanceof MenshenError ? error : refused(faultOf(error))
  }
}

/** RFC 9068, 4. Some call it `JWT`, some do not say: then its claims have to tell that it is one (RFC 8725, 3.12). */
function isAccessToken(claims: JWTPayload, typ: string | undefined, alsoTypes: readonly string[]): boolean {
  if (OF_OTHER_TOKENS.some(name => claims[name] !== undefined) || !saysAccess(claims)) return false
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type === ACCESS_TOKEN) return true
  if (type !== undefined && !alsoTypes.includes(type)) return false
  return OF_ACCESS_TOKENS.some(name => claims[name] !== undefined)
}

/** Keycloak and others say inside what a token is for: `Bearer`, `ID`, `Refresh`, `Logout`. */
export function saysAccess({ typ, token_use, token_type }: Readonly<Record<string, unknown>>): boolean {
  return [typ, token_use, token_type].every(
    said => said === undefined || /^(bearer|at\+jwt|access|access_token)$/i.test(String(said)),
  )
}

/** Why a token is not valid: a code, and a sentence where the code is not enough. */
export class TokenRefused extends MenshenError {
  readonly detail: string | undefined

  constructor(reason: string, detail?: string) {
    super('provider_refused', reason)
    this.detail = detail
  }
}

export function refused(reason: string, detail?: string): TokenRefused {
  return new TokenRefused(reason, detail)
}
