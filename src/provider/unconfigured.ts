// Stands where a provider would be while its settings are missing: the login page says so, and nothing can be called.

import { MenshenError } from '../errors.ts'
import { OWN_PATHS } from '../own-paths.ts'
import type { Provider } from './provider.ts'

export function unconfiguredProvider(): Provider {
  const refuse = async (): Promise<never> => {
    throw new MenshenError('bad_settings', 'the settings of the provider are missing')
  }
  return {
    authorizationUrl: () => '',
    withSlot: signIn => signIn(),
    redeem: refuse,
    userInfo: refuse,
    refresh: refuse,
    signOut: refuse,
    signOutUrl: () => OWN_PATHS.login,
    canVerify: false,
    verify: refuse,
    close: async () => {},
  }
}
