// Whether tokens that machines bring can be judged at all: by keys that a provider publishes, or by asking the main one.
import { MenshenError } from '../../errors.ts'
import type { Rule } from '../../settings/config/config-file.ts'
import type { ProviderPlan } from '../plan.ts'

/** Whether it publishes keys by which its signatures can be verified. */
export function canVerify({ kind, endpoints, issuer }: ProviderPlan): boolean {
  return kind === 'oidc' || (endpoints.jwks !== undefined && issuer !== undefined)
}

/** Otherwise a rule with `bearer` would refuse every token, and nobody would know why. */
export function demandVerifiable(rules: readonly Rule[], plans: readonly [ProviderPlan, ...ProviderPlan[]]): void {
  const first = rules.findIndex(({ bearer }) => bearer)
  if (first < 0 || plans.some(canVerify) || plans[0].endpoints.introspection) return
  throw new MenshenError(
    'bad_settings',
    `rules.${first} says bearer, but tokens of the provider ${plans[0].preset} cannot be judged; expected issuer and jwksUrl, or introspectionUrl.`,
  )
}
