// Who can sign in, who they are then, and what they may see: providers, roles, rules.
import { rolesFor, USUAL_ROLES } from '../access/roles.ts'
import { createRules } from '../access/rules.ts'
import { createScopedName } from '../access/scoped-name.ts'
import type { ProviderOptions } from '../provider/provider.ts'
import { createProviders, type Providers } from '../provider/providers.ts'
import type { Configuration } from './configuration.ts'

export type Directory = ReturnType<typeof createDirectory>

/** With `providers` that are there already, or with new ones. */
export function createDirectory(
  { config, plans }: Configuration,
  options: ProviderOptions,
  providers: Providers = createProviders(plans, options),
) {
  const ids = Object.keys(config.providers ?? {})
  return {
    providers,
    roles: rolesFor(config.roles ?? USUAL_ROLES, ids),
    scopedName: createScopedName(ids),
    rules: createRules(config.rules ?? []),
  }
}
