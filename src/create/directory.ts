// Who can sign in, and who they are then: the providers, the roles, and how names of several providers are told apart.
import { rolesFor, USUAL_ROLES } from '../access/roles.ts'
import { createScopedName } from '../access/scoped-name.ts'
import type { ProviderOptions } from '../provider/provider.ts'
import { createProviders } from '../provider/providers.ts'
import type { Configuration } from './configuration.ts'

export type Directory = ReturnType<typeof createDirectory>

export function createDirectory({ config, plans }: Configuration, options: ProviderOptions) {
  const ids = Object.keys(config.providers ?? {})
  return {
    providers: createProviders(plans, options),
    roles: rolesFor(config.roles ?? USUAL_ROLES, ids),
    scopedName: createScopedName(ids),
  }
}
