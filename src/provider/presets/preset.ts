// What a preset is: a provider's configuration as data, and what it leaves to the operator.
import type { ProviderConfig } from '../../settings/config/provider-config.ts'

/** `company_token`: the code is spent at user info, with a token of the company that is kept for a while (WeCom). */
export type ProviderKind = 'oauth2' | 'oidc' | 'company_token'

export interface Preset extends ProviderConfig {
  readonly kind: ProviderKind
  /** Values of `{tenant}` by which anybody's directory counts: nobody is known to have verified what stands in it. */
  readonly openTenants?: readonly string[]
  /** The holes in its addresses, such as `{realm}`; `{auth_url}` is AUTH_URL. */
  readonly variables?: Readonly<Record<string, Variable>>
}

export interface Variable {
  readonly sentence: string
  readonly default?: string
  /**
   * In place of a default that is a whole address, where `auth_url` is not the preset's: tokens of an installation of one's own
   * never go to the public service. Without it, the variable has to be said then.
   */
  readonly elsewhere?: string
}
