// What the account page needs besides the gateway.

import type { Rules } from '../access/rules.ts'
import type { GatewayContext } from '../gateway/context.ts'
import type { PersonalKeys } from '../keys/personal.ts'
import type { SignInAuth } from '../sign-in/context.ts'

export interface AccountContext extends GatewayContext {
  readonly auth: SignInAuth & { readonly personalKeys: PersonalKeys }
  /** The rules of `hosts`, by their names. */
  readonly hostRules: ReadonlyMap<string, Rules>
  /** The applications of the portal. */
  readonly applications: readonly object[]
}
