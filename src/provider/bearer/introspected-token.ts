// Reads what the provider says of a token that only it can open (RFC 7662).
import { z } from 'zod'
import { MenshenError } from '../../errors.ts'
import { isNamed } from '../oidc/id-token.ts'
import type { Metadata } from '../oidc/metadata.ts'
import type { ProviderPlan } from '../plan.ts'
import { type DemandedAudience, isFor, refused, saysAccess } from './access-token.ts'

const introspection = z.looseObject({
  active: z.boolean(),
  exp: z.number().optional(),
  nbf: z.number().optional(),
  iss: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
})

export type Introspection = z.infer<typeof introspection>

/** Throws `provider_refused` if the token is not good for us. What it does not say, the provider has judged itself. */
export function readIntrospection(
  body: unknown,
  { alsoIssuers }: Pick<ProviderPlan, 'alsoIssuers'>,
  { issuer }: Metadata,
  demanded: readonly DemandedAudience[],
  now: number,
): Introspection {
  const { success, data } = introspection.safeParse(body)
  if (!success) throw new MenshenError('provider_answer', 'unusable in the answer of the introspection')
  const { active, exp, nbf, iss, aud } = data
  if (!active) throw refused('inactive')
  if ((exp !== undefined && exp * 1000 <= now) || (nbf !== undefined && nbf * 1000 > now)) throw refused('exp')
  if (iss !== undefined && issuer !== undefined && !isNamed(iss, issuer, alsoIssuers)) throw refused('iss')
  // An answer may leave it out (RFC 7662, 2.2). Where an audience is configured, that is no proof that the token is for it.
  const isDemanded = aud !== undefined || demanded.some(({ isConfigured }) => isConfigured)
  if (isDemanded && !isFor(aud, demanded)) throw refused('aud')
  // A refresh token is active too.
  if (!saysAccess(data)) throw refused('typ')
  if (data.cnf !== undefined) throw refused('cnf')
  return data
}
