// Reload: a new configuration is built and checked first, and then put in use with one assignment. Requests in flight finish with
// the configuration with which they began.

import { fingerprintOf } from '../config/fingerprint.ts'
import { MenshenError } from '../errors.ts'
import { type DerivedKeys, deriveKeys, sameSecrets, withFormer } from '../session/derived-keys.ts'
import { type AccessPolicy, type Configuration, createAccessPolicy } from './configuration.ts'
import { buildConfigured, type ConfiguredParts } from './configured.ts'
import { type ProcessParts, useSecrets } from './process-parts.ts'

/** Parts that have not changed stay the same objects. Throws if the configuration cannot be used. */
export function prepareReload(parts: ProcessParts, current: ConfiguredParts, next: Configuration): ConfiguredParts {
  assertCompleteProviders(current.configuration, next)
  const accessPolicy = accessPolicyFor(parts, current, next)
  return buildConfigured(parts, next, accessPolicy, keysFor(current, next))
}

/** Without complete providers no user could sign in. At a start the login page reports this; a reload is refused. */
function assertCompleteProviders(current: Configuration, next: Configuration): void {
  const missingIn = ({ plans }: Configuration) => plans.flatMap(({ missing }) => missing)
  const missing = missingIn(next)
  if (missing.length === 0 || missingIn(current).length > 0) return
  throw new MenshenError(
    'bad_settings',
    `${missing.join(', ')}: missing, so users could not sign in; expected the previous value.`,
  )
}

/** Providers that have not changed keep their metadata and keys. */
function accessPolicyFor(parts: ProcessParts, current: ConfiguredParts, next: Configuration): AccessPolicy {
  const before = current.configuration
  const isSame = (part: (configuration: Configuration) => unknown) =>
    fingerprintOf(part(before)) === fingerprintOf(part(next))
  const sameProviders = isSame(({ plans, config }) => [plans, Object.keys(config.providers ?? {})])
  // Rules depend on the prefixes: a path that two applications could claim is for no one.
  const policyOf = ({ config: { roles, rules, hosts, upstreams = {} } }: Configuration) => [
    roles,
    rules,
    hosts,
    Object.keys(upstreams),
  ]
  if (sameProviders && isSame(policyOf)) return current.accessPolicy
  const providers = sameProviders ? current.accessPolicy.providers : undefined
  return createAccessPolicy(next, { ...parts.basics, settings: next.settings }, providers)
}

function keysFor({ configuration, keys: before }: ConfiguredParts, { settings, plans }: Configuration): DerivedKeys {
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
  if (sameSecrets(before, keys)) return before
  const isDerived = configuration.settings.SECRET === undefined && settings.SECRET === undefined
  // A browser that is at the provider now returns with a return path that was signed with the previous client secret.
  return isDerived ? { ...keys, returnPath: [...keys.returnPath, before.returnPath[0]] } : keys
}

/** Reseals what is sealed with the previous secrets; afterwards those are no longer accepted. */
export async function changeSecrets(parts: ProcessParts, before: DerivedKeys, next: DerivedKeys): Promise<void> {
  if (before === next) return
  const { keyring } = parts
  keyring.use(withFormer(next, before))
  if (!(await useSecrets(keyring))) return
  keyring.use(next)
}
