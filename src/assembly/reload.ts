// Reload: another configuration is built and checked first, and then put in use with one assignment. Requests in flight
// finish with the configuration that they began with.

import { fingerprintOf } from '../config/fingerprint.ts'
import { MenshenError } from '../errors.ts'
import { type DerivedKeys, deriveKeys, sameSecrets, withFormer } from '../session/derived-keys.ts'
import { type AccessPolicy, type Configuration, createAccessPolicy } from './configuration.ts'
import { buildConfigured, type ConfiguredParts } from './configured.ts'
import { type ProcessParts, useSecrets } from './process-parts.ts'

/** Parts that have not changed stay the same objects. Throws if the configuration cannot be used. */
export function prepareReload(parts: ProcessParts, now: ConfiguredParts, next: Configuration): ConfiguredParts {
  assertCompleteProviders(now.configuration, next)
  const directory = directoryFor(parts, now, next)
  return buildConfigured(parts, next, directory, keysFor(now, next))
}

/** Without complete providers nobody could sign in any more. At a start the login page says so; a reload is refused. */
function assertCompleteProviders(now: Configuration, next: Configuration): void {
  const missingIn = ({ plans }: Configuration) => plans.flatMap(({ missing }) => missing)
  const missing = missingIn(next)
  if (missing.length === 0 || missingIn(now).length > 0) return
  throw new MenshenError(
    'bad_settings',
    `${missing.join(', ')}: missing, so that nobody could sign in any more; expected what was there before.`,
  )
}

/** Providers that have not changed keep their metadata and keys. */
function directoryFor(parts: ProcessParts, now: ConfiguredParts, next: Configuration): AccessPolicy {
  const before = now.configuration
  const isSame = (part: (configuration: Configuration) => unknown) =>
    fingerprintOf(part(before)) === fingerprintOf(part(next))
  const sameProviders = isSame(({ plans, config }) => [plans, Object.keys(config.providers ?? {})])
  if (sameProviders && isSame(({ config }) => [config.roles, config.rules, config.hosts])) return now.directory
  const providers = sameProviders ? now.directory.providers : undefined
  return createAccessPolicy(next, { ...parts.basics, settings: next.settings }, providers)
}

function keysFor({ configuration, keys: before }: ConfiguredParts, { settings, plans }: Configuration): DerivedKeys {
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
  if (sameSecrets(before, keys)) return before
  const isDerived = configuration.settings.SECRET === undefined && settings.SECRET === undefined
  // A browser that is at the provider now comes back with a return path that the previous client secret has signed.
  return isDerived ? { ...keys, returnPath: [...keys.returnPath, before.returnPath[0]] } : keys
}

/** Seals again what is sealed under the former secrets; after that they do not count any more. */
export async function changeSecrets(parts: ProcessParts, before: DerivedKeys, next: DerivedKeys): Promise<void> {
  if (before === next) return
  const { keyring, signingKeys } = parts
  const both = withFormer(next, before)
  keyring.use(both)
  signingKeys.use(both.signing)
  if (!(await useSecrets(keyring, signingKeys))) return
  keyring.use(next)
  signingKeys.use(next.signing)
}
