// Another configuration in a process that runs: made and checked first, and then in use with one assignment. Requests in
// flight finish with what they began with.
import { MenshenError } from '../errors.ts'
import { type DerivedKeys, deriveKeys, sameSecrets, withFormer } from '../session/keys/derived-keys.ts'
import { fingerprintOf } from '../settings/reload/fingerprint.ts'
import type { Configuration } from './configuration.ts'
import { type ConfiguredParts, configure } from './configured-parts.ts'
import { createDirectory, type Directory } from './directory.ts'
import { type LastingParts, useSecrets } from './lasting-parts.ts'

/** What follows from the configuration, where nothing has changed the very same. Throws if it cannot be used. */
export function prepareReload(lasting: LastingParts, now: ConfiguredParts, next: Configuration): ConfiguredParts {
  demandCompleteProviders(now.configuration, next)
  const directory = directoryFor(lasting, now, next)
  return configure(lasting, next, directory, keysFor(now, next))
}

/** Nobody could sign in any more. Who starts like that is told by the login page; who runs already goes on. */
function demandCompleteProviders(now: Configuration, next: Configuration): void {
  const missingIn = ({ plans }: Configuration) => plans.flatMap(({ missing }) => missing)
  const missing = missingIn(next)
  if (missing.length === 0 || missingIn(now).length > 0) return
  throw new MenshenError(
    'bad_settings',
    `${missing.join(', ')}: missing, so that nobody could sign in any more; expected what was there before.`,
  )
}

/** Providers that are as they were keep what they have learnt: metadata, keys. */
function directoryFor(lasting: LastingParts, now: ConfiguredParts, next: Configuration): Directory {
  const before = now.configuration
  const isSame = (part: (configuration: Configuration) => unknown) =>
    fingerprintOf(part(before)) === fingerprintOf(part(next))
  const sameProviders = isSame(({ plans, config }) => [plans, Object.keys(config.providers ?? {})])
  if (sameProviders && isSame(({ config }) => [config.roles, config.rules])) return now.directory
  const providers = sameProviders ? now.directory.providers : undefined
  return createDirectory(next, { ...lasting, settings: next.settings }, providers)
}

function keysFor({ configuration, keys: before }: ConfiguredParts, { settings, plans }: Configuration): DerivedKeys {
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
  if (sameSecrets(before, keys)) return before
  const isDerived = configuration.settings.SECRET === undefined && settings.SECRET === undefined
  // Whoever is on the way to the provider comes back with a return path that the client secret of before has signed.
  return isDerived ? { ...keys, returnPath: [...keys.returnPath, before.returnPath[0]] } : keys
}

/** What is sealed under the former secrets is sealed anew, and then they count no more. */
export async function changeSecrets(lasting: LastingParts, before: DerivedKeys, next: DerivedKeys): Promise<void> {
  if (before === next) return
  const { keyring, signingKeys } = lasting
  const both = withFormer(next, before)
  keyring.use(both)
  signingKeys.use(both.signing)
  if (!(await useSecrets(keyring, signingKeys))) return
  keyring.use(next)
  signingKeys.use(next.signing)
}
