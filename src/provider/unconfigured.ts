// Stands where a provider would be while its settings are missing: the login page says so, and nothing can be called.
import { MenshenError } from '../errors.ts'
import type { ProviderPlan } from './plan.ts'
import type { Provider } from './provider.ts'

export function unconfiguredProvider(plan: ProviderPlan): Provider {
  const refuse = async (): Promise<never> => {
    throw new MenshenError('bad_settings', `settings of the provider are missing: ${plan.missing.join(', ')}`)
  }
  const calls = { redeem: refuse, said: refuse, userFacts: refuse }
  return {
    ...calls,
    plan,
    authorizationUrl: async () => '',
    isIssuer: async () => true,
    isNamed: async () => false,
    explain: async () => undefined,
    withSlot: signIn => signIn(calls),
    refresh: refuse,
    signOut: refuse,
    signOutUrl: async () => undefined,
    canVerify: false,
    verify: refuse,
    introspect: refuse,
    bearerFacts: refuse,
    close: async () => {},
  }
}
