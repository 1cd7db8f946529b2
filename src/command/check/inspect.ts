// Looks at the settings, the configuration and the files that they name as a start would, and collects everything that is
// wrong. Nothing is opened, connected to or written.
import { checkWhole } from '../../create/configuration.ts'
import { MenshenError } from '../../errors.ts'
import { EVENTS } from '../../events.ts'
import { certificateProbes } from '../../observe/doctor/certificate-probe.ts'
import { createLanguages } from '../../pages/words/languages.ts'
import { planNamedProvider } from '../../provider/make-plan.ts'
import { adviceFor } from '../../settings/advice.ts'
import { findConfigFile, loadConfigFile } from '../../settings/config/load-config.ts'
import { withEnvFile } from '../../settings/env-file.ts'
import { printable } from '../../settings/json-place.ts'
import { findMisspelt, type Misspelt } from '../../settings/misspelt.ts'
import { type Environment, readSettings } from '../../settings/read.ts'
import { factsOfStart } from '../announce.ts'
import { settingsInUse } from '../settings-in-use.ts'
import { demandAuthority, demandCertificate, demandStoreAddress } from './named-files.ts'

export interface Inspection {
  /** One sentence each. */
  readonly problems: readonly string[]
  readonly misspelt: readonly string[]
  /** What is risky, though it can be used. */
  readonly warnings: readonly string[]
  /** What a start would say of itself, if nothing is wrong. */
  readonly facts: ReturnType<typeof factsOfStart> | undefined
}

/** `given` is the environment without the file .env, which may be what is wrong. */
export async function inspect(given: Environment, now: () => number): Promise<Inspection> {
  // A thing that stands in the way of two looks is one thing.
  const problems = new Set<string>()
  const warnings: string[] = []

  async function attempt<T>(look: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof MenshenError)) throw error
      for (const sentence of error.message.split('\n')) problems.add(sentence)
      return undefined
    }
  }

  const withFile = await attempt(() => withEnvFile(given, '.env'))
  const environment = withFile ?? given
  const read = await attempt(() => readSettings(environment))
  const loaded = await attempt(() => load(environment))
  const isWhole = withFile !== undefined && read !== undefined && loaded !== undefined
  // Where one of them cannot be used, the other is still looked at, beside what counts when nothing is set.
  const config = loaded?.config ?? {}
  const settings = read ?? readSettings({})
  for (const [id, provider] of Object.entries(config.providers ?? {}))
    await attempt(() => planNamedProvider(id, provider))
  const inUse = await attempt(() => settingsInUse(read ? environment : {}, { settings, config }))
  await attempt(() => createLanguages(settings, config))
  await attempt(() => demandStoreAddress(settings))
  await attempt(() => demandAuthority(settings))
  if (await attempt(() => demandCertificate(settings) ?? true)) await lookAtCertificate()
  if (isWhole && inUse) {
    await attempt(() => demandComplete(inUse))
    await attempt(() => checkWhole(inUse.settings, config))
  }

  async function lookAtCertificate(): Promise<void> {
    for (const probe of certificateProbes({ settings, now }))
      for (const { level, seen, remedy } of await probe.run()) {
        if (level === 'failure') problems.add(`TLS_CERT_FILE: ${seen}. ${remedy}`)
        if (level === 'warning') warnings.push(`TLS_CERT_FILE: ${seen}. ${remedy}`)
      }
  }

  if (inUse)
    for (const { code, remedy } of adviceFor(inUse.settings, inUse.plans, config.roles))
      warnings.push(`${EVENTS[code].sentence} → ${remedy}`)
  const users = inUse?.isDevelopment ? [] : undefined
  return {
    problems: [...problems],
    misspelt: findMisspelt(environment).map(misspeltSentence),
    warnings,
    facts:
      inUse &&
      factsOfStart({ settings: inUse.settings, inherited: undefined, config, configFile: loaded?.file, users }),
  }
}

async function load({ CONFIG }: Environment) {
  const file = findConfigFile(process.cwd(), CONFIG || undefined)
  return { file, config: await loadConfigFile(file) }
}

function demandComplete({ plans }: ReturnType<typeof settingsInUse>): void {
  const missing = plans.flatMap(plan => plan.missing)
  const problems = missing.map(name => `${name} is missing: nobody can sign in without it.`)
  if (problems.length > 0) throw new MenshenError('bad_settings', problems.join('\n'))
}

function misspeltSentence({ name, likely }: Misspelt): string {
  const remedy = likely ? `did you mean ${likely}?` : 'docs/settings.md has all names.'
  return `${printable(name, 100)} is no setting of ours and has no effect; ${remedy}`
}
