// `menshen check`: reports whether the settings and the configuration can be used, for CI and before a restart.

import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { checkConfiguration } from '../../assembly/configuration.ts'
import { adviceFor } from '../../config/advice.ts'
import { refuseListenerAsUpstream, refuseSharedPort } from '../../config/conflicts.ts'
import { ENV_FILE, misspeltSettings, settingsInUse, tryConfiguration } from '../../config/load.ts'
import { expiredMachines } from '../../config/machines.ts'
import { readSettings } from '../../config/read.ts'
import type { Environment, Settings } from '../../config/settings.ts'
import type { MisspeltName } from '../../config/suggestions.ts'
import { assertCertificate, assertUpstreamAuthority } from '../../config/tls-files.ts'
import { settingsPage } from '../../doctor/settings-probes.ts'
import { certificateProbes } from '../../doctor/upstream-probes.ts'
import { MenshenError } from '../../errors.ts'
import { createLanguages } from '../../pages/words.ts'
import { discoveryUrlOf, needsDiscovery } from '../../provider/discovery.ts'
import { type ProviderPlan, planNamedProvider, receivingAddresses } from '../../provider/plan.ts'
import { planProviders } from '../../provider/providers.ts'
import { storeFile } from '../../stores/open.ts'
import { type Phrase, phrase, phrasedProblem, phraseIn, phrasesOf, quoted } from '../../text/text.ts'
import { sanitize } from '../../util/safe-text.ts'
import { announcementLines, variableOf } from '../announce.ts'
import { type Paint, terminalLines } from '../terminal.ts'
import { operatorLanguage, readCommandArguments, refuseArgument } from '../usage.ts'
import { COMMANDS } from './table.ts'

export interface CheckRun {
  /** Without the .env file, which is checked too. */
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

interface CheckOutcome {
  /** For stdout. */
  readonly text: string
  /** For stderr: one line per problem, and nothing else. */
  readonly problems: string
}

export async function runCheckCommand(args: readonly string[], run: CheckRun): Promise<CheckOutcome> {
  const { values, positionals } = readCommandArguments(args, COMMANDS.check)
  if (positionals[0] !== undefined) throw refuseArgument(positionals[0], COMMANDS.check)
  const language = operatorLanguage(values.language, run.environment, COMMANDS.check)
  const { problems, misspelt, warnings, announcement, tokens } = await inspect(run.environment, run.now)
  const said = (given: Phrase) => phraseIn(language, given)
  const marked = (given: readonly Phrase[]) => given.map(one => `${run.paint('yellow', '!')} ${safe(said(one))}\n`)
  // A misspelt name may be the reason why something is missing; risks can wait.
  if (problems.length > 0)
    return { text: marked(misspelt).join(''), problems: terminalLines(problems.map(said).join('\n')) }
  const lines = [
    `${run.paint('green', '✔')} ${said(phrase('everything_usable'))}\n`,
    ...(announcement ? announcementLines(announcement).map(line => `  ${safe(said(line))}\n`) : []),
    ...(tokens ? [`  ${safe(said(phrase('cli.line_tokens', { value: tokens })))}\n`] : []),
    ...marked([...misspelt, ...warnings]),
  ]
  return { text: lines.join(''), problems: '' }
}

function safe(line: string): string {
  return terminalLines(line.replace(/[\r\n]+/g, ' ')).trimEnd()
}

// Checks the settings, the configuration and the files that they name as a start would, and collects all problems. Nothing is
// opened, connected to or written.

export interface Inspection {
  /** One sentence per problem. */
  readonly problems: readonly Phrase[]
  readonly misspelt: readonly Phrase[]
  /** Risks that do not prevent a start. */
  readonly warnings: readonly Phrase[]
  /** What a start would announce if nothing is wrong. */
  readonly announcement: Parameters<typeof announcementLines>[0] | undefined
  /** The hosts that get tokens or the client secret. */
  readonly tokens: Phrase | undefined
}

/** `given` is the environment without .env, because .env itself may be wrong. */
export async function inspect(given: Environment, now: () => number): Promise<Inspection> {
  // A problem that two checks find is listed only once.
  const problems = new Map<string, Phrase>()
  const warnings: Phrase[] = []
  const add = (problem: Phrase) => void problems.set(phraseIn('en', problem), problem)

  const addAll = (error: MenshenError) => {
    for (const problem of phrasesOf(error)) add(problem)
  }

  async function attempt<T>(work: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof MenshenError)) throw error
      addAll(loaded.locate(error))
      return undefined
    }
  }

  const loaded = await tryConfiguration({ environment: given, envFile: ENV_FILE, folder: process.cwd() })
  const { environment, configFile, errors } = loaded
  const partErrors = [errors.envFile, errors.settings, errors.config].filter(error => error !== undefined)
  for (const error of partErrors) addAll(error)
  // If one of them cannot be used, the other is still checked, together with the defaults.
  const config = loaded.config ?? {}
  const settings = loaded.settings ?? readSettings({})
  for (const [id, provider] of Object.entries(config.providers ?? {}))
    await attempt(() => planNamedProvider(id, provider))
  const inUse = await attempt(() => {
    const used = settingsInUse(loaded.settings ? environment : {}, settings, config)
    return { ...used, plans: planProviders(config, used.settings) }
  })
  await attempt(() => createLanguages(settings, config))
  await attempt(() => assertStoreAddress(settings))
  await attempt(() => assertUpstreamAuthority(settings))
  if (await attempt(() => assertCertificate(settings) ?? true)) await checkCertificate()
  if (partErrors.length === 0 && inUse) {
    await attempt(() => refuseListenerAsUpstream(settings, config))
    if (inUse.isDevelopment) await attempt(() => refuseSharedPort(settings))
    for (const missing of missingIn(inUse.plans)) add(missing)
    await attempt(() => checkConfiguration(inUse.settings, config))
  }

  async function checkCertificate(): Promise<void> {
    for (const probe of certificateProbes({ settings, now }))
      for (const { level, seen, remedy } of await probe.run()) {
        if (level === 'good' || !remedy) continue
        const message = phrase('finding_sentence', { name: 'TLS_CERT_FILE', seen, remedy })
        if (level === 'failure') add(message)
        else warnings.push(message)
      }
  }

  if (inUse)
    for (const { code, remedy } of adviceFor(
      inUse.settings,
      inUse.plans,
      config.roles,
      expiredMachines(config.machines, now()),
      config,
    ))
      warnings.push(phrase('with_remedy', { seen: phrase(`advice.${code}`), remedy }))
  const users = inUse?.isDevelopment ? [] : undefined
  return {
    problems: [...problems.values()],
    misspelt: misspeltSettings(environment, loaded.variables).map(misspeltPhrase),
    warnings,
    announcement: inUse && { settings: inUse.settings, config, configFile, users },
    tokens: inUse && !inUse.isDevelopment ? tokenHosts(inUse.plans) : undefined,
  }
}

/** Metadata is not fetched here; it can name further hosts. */
function tokenHosts(plans: readonly ProviderPlan[]): Phrase | undefined {
  const addresses = plans.flatMap(receivingAddresses).filter(address => URL.canParse(address))
  const hosts = [...new Set(addresses.map(address => new URL(address).host))].join(', ')
  const documents = plans.filter(needsDiscovery).map(plan => phrase('hosts_in_metadata', { url: discoveryUrlOf(plan) }))
  const all = [...(hosts ? [quoted(hosts)] : []), ...documents]
  return all.length > 0 ? all.reduce((one, other) => phrase('one_and_other', { one, other })) : undefined
}

/** Checks whether STORE can be used, without opening anything. */
async function assertStoreAddress({ STORE }: Settings): Promise<void> {
  const file = storeFile(STORE)
  if (file !== undefined) return assertFile(file)
  if (!STORE.startsWith('redis')) return
  const [{ parseRedisAddress }, { tlsOptionsOf }] = await Promise.all([
    import('../../stores/redis/address.ts'),
    import('../../stores/redis/connection.ts'),
  ])
  tlsOptionsOf(parseRedisAddress(STORE))
}

function assertFile(file: string): void {
  const found = nearestExisting(resolve(file))
  const status = statSync(found, { throwIfNoEntry: false })
  if (found === resolve(file) ? status?.isFile() === false : status?.isDirectory() === false)
    throw new MenshenError('bad_settings', [
      phrasedProblem({ setting: 'STORE' }, phrase('cli.store_not_a_file', { file })),
    ])
}

/** The path itself, or its nearest ancestor that exists. */
function nearestExisting(path: string): string {
  return existsSync(path) || path === dirname(path) ? path : nearestExisting(dirname(path))
}

function missingIn(plans: readonly ProviderPlan[]): Phrase[] {
  const missing = plans.flatMap(plan => plan.missing)
  return missing.map(name => {
    const other = otherWay(name)
    return phrase('setting_missing', { name: other ? phrase('one_or_other', { one: name, other }) : name })
  })
}

/** Another setting for the same value. */
function otherWay(name: string): string | undefined {
  if (name === 'CLIENT_SECRET') return 'CLIENT_SECRET_FILE'
  const variable = variableOf(name)
  return variable && `PROVIDER_VARS=${variable}=…`
}

function misspeltPhrase({ name, likely, page }: MisspeltName): Phrase {
  const one = phrase('no_such_setting', { name: sanitize(name, 100) })
  const other = likely ? phrase('did_you_mean_inside', { name: likely }) : settingsPage(page)
  return phrase('two', { one, other })
}
