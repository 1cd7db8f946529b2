// A configuration that was checked as a whole, as far as possible without a store. For start and reload.

import { DEFAULT_ROLES, rolesFor } from '../access/roles.ts'
import { createRules, type Rules } from '../access/rules.ts'
import { createScopedName, type ScopedName } from '../access/scoped-name.ts'
import {
  refuseBaseUrlAsUpstream,
  refuseForwardedToken,
  refuseTakenHeaders,
  refuseTakenPaths,
} from '../config/conflicts.ts'
import { type Config, type RoleConfig, upstreamsOfHost } from '../config/file.ts'
import { refuseHosts } from '../config/host-names.ts'
import type { Settings } from '../config/settings.ts'
import { assertUpstreamFiles } from '../config/upstream-files.ts'
import { MenshenError } from '../errors.ts'
import { type Branding, createBranding } from '../pages/branding.ts'
import { createLanguages, type Languages } from '../pages/words.ts'
import { assertVerifiable } from '../provider/bearer.ts'
import { assertIdTokens } from '../provider/id-token.ts'
import type { ProviderOptions } from '../provider/provider.ts'
import { createProviders, type Providers, planProviders } from '../provider/providers.ts'
import { secretProblem } from '../session/derived-keys.ts'

export interface Configuration {
  readonly settings: Settings
  readonly config: Config
  readonly plans: ReturnType<typeof planProviders>
  readonly languages: Languages
  readonly branding: Branding
}

/** Settings and configuration file must have been checked separately before. */
export function checkConfiguration(settings: Settings, config: Config): Configuration {
  refuseBaseUrlAsUpstream(settings, config)
  // For the command, these checks already ran when its file was loaded.
  refuseTakenPaths(settings, config, 'createMenshen')
  refuseHosts(settings, config, 'createMenshen')
  refuseTakenHeaders(settings, config, 'createMenshen')
  refuseForwardedToken(settings, config)
  assertUpstreamFiles(config, 'createMenshen')
  const branding = createBranding(settings, config)
  const languages = createLanguages(settings, config, branding)
  const plans = planProviders(config, settings)
  assertVerifiable(config.rules ?? [], plans)
  assertIdTokens(config.rules ?? [], plans)
  for (const [name, { rules = [] }] of Object.entries(config.hosts ?? {})) {
    assertVerifiable(rules, plans, `hosts.${name}.rules`)
    assertIdTokens(rules, plans, `hosts.${name}.rules`)
  }
  const problem = secretProblem(settings, plans[0])
  if (problem) throw new MenshenError('bad_settings', [{ setting: 'SECRET', message: problem }])
  return { settings, config, plans, languages, branding }
}

/** Treats its providers as incomplete, because incomplete ones are never called. */
export function withoutProviderCalls(configuration: Configuration): Configuration {
  const [main, ...more] = configuration.plans
  const offline = (plan: typeof main) => ({ ...plan, missing: [...plan.missing, 'a provider'] })
  return { ...configuration, plans: [offline(main), ...more.map(offline)] }
}

// Providers, roles and rules: who can sign in, and what each user can access.

export interface AccessPolicy {
  readonly providers: Providers
  readonly roles: readonly RoleConfig[]
  readonly scopedName: ScopedName
  /** The rules of BASE_URL. */
  readonly rules: Rules
  /** The rules of each host of `hosts`, keyed by its name. */
  readonly hostRules: ReadonlyMap<string, Rules>
}

/** With the given providers, or new ones. */
export function createAccessPolicy(
  { config, plans }: Configuration,
  options: ProviderOptions,
  providers: Providers = createProviders(plans, options),
): AccessPolicy {
  const ids = Object.keys(config.providers ?? {})
  return {
    providers,
    roles: rolesFor(config.roles ?? DEFAULT_ROLES, ids),
    scopedName: createScopedName(ids),
    rules: createRules(config.rules ?? [], Object.keys(config.upstreams ?? {})),
    hostRules: new Map(
      Object.entries(config.hosts ?? {}).map(([name, host]) => [
        name,
        createRules(host.rules ?? [], Object.keys(upstreamsOfHost(host))),
      ]),
    ),
  }
}
