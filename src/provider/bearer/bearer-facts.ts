// Whose access token it is that somebody brought: a JWT is verified by the provider's keys, any other token is shown to
// the provider.
import { decodeJwt } from 'jose'
import { MenshenError } from '../../errors.ts'
import type { Measure } from '../../events.ts'
import type { ProviderConnection } from '../calls/provider-connection.ts'
import { introspectToken } from '../calls/token-grants.ts'
import type { ProviderPlan } from '../plan.ts'
import type { Provider } from '../provider.ts'
import type { Providers } from '../providers.ts'
import { type UserFacts, userFacts } from '../user-facts.ts'
import { checkAccessToken, type DemandedAudience, refused } from './access-token.ts'
import { type Introspection, readIntrospection } from './introspected-token.ts'
import { canVerify } from './verifiable.ts'

export interface BearerFacts extends UserFacts {
  /** Absent where the provider does not say. */
  readonly expiresAt?: number
  /** What the token is good for. */
  readonly scopes: readonly string[]
}

/** Throws `provider_refused` if the token is not valid; any other error means that this cannot be told now. */
export async function bearerFacts(
  connection: ProviderConnection,
  token: string,
  demanded: readonly DemandedAudience[],
  measure: Measure,
): Promise<BearerFacts> {
  const { plan, now } = connection
  const known = await connection.metadata.get()
  if (canVerify(plan) && issuerIn(token) !== undefined)
    return factsIn(await checkAccessToken(connection, known, token, demanded), plan, ['sub'])
  if (!known.endpoints.introspection) throw refused('opaque')
  const body = await measure('provider', 'introspection', () => introspectToken(connection, token))
  return factsIn(readIntrospection(body, plan, known, demanded, now()), plan, ['username', 'sub'])
}

/** A token stands for all that the provider would say. `names` are where RFC 7662 and RFC 9068 have the user's name. */
function factsIn(claims: Introspection | object, plan: ProviderPlan, names: readonly string[]): BearerFacts {
  const { username, sub } = plan.fields
  const named = username.filter(place => place !== 'sub')
  const fields = { ...plan.fields, username: [...named, ...names], sub: [...sub, 'sub'] }
  const { exp } = claims as { exp?: number }
  try {
    const facts = userFacts({ userinfo: claims }, { ...plan, fields, userInfoFrom: ['userinfo'] })
    return { ...facts, scopes: scopesIn(claims), ...(exp === undefined ? {} : { expiresAt: exp * 1000 }) }
  } catch (error) {
    // Which claim is missing, and which there are: the token of a client alone often names nobody.
    throw error instanceof MenshenError ? refused('claims', error.message) : error
  }
}

/** RFC 9068 has them in one text; Entra calls it `scp`, Okta has a list. */
function scopesIn(claims: object): string[] {
  const { scope, scp } = claims as Record<string, unknown>
  return [scope, scp]
    .flat()
    .filter(part => typeof part === 'string')
    .flatMap(part => part.split(' '))
    .filter(Boolean)
}

/** Whose token it is, by the issuer that it names. Any other is shown to the main provider alone: it is nobody else's. */
export async function providerOfToken({ all, main }: Providers, token: string): Promise<Provider> {
  const issuer = issuerIn(token)
  let trouble: unknown
  for (const provider of issuer === undefined ? [] : all) {
    try {
      if (provider.canVerify && (await provider.isNamed(issuer ?? ''))) return provider
    } catch (error) {
      trouble = error
    }
  }
  if (trouble) throw trouble
  if (issuer !== undefined && main.canVerify) throw refused('iss')
  return main
}

/** Whether the provider may have to be asked about it; any other is verified by keys that are here. */
export function mayBeShown({ all }: Providers, token: string): boolean {
  return issuerIn(token) === undefined || !all.every(provider => provider.canVerify)
}

/** `undefined` if it is not a JWT. */
function issuerIn(token: string): string | undefined {
  try {
    return decodeJwt(token).iss ?? ''
  } catch {
    return undefined
  }
}
