// Reports a start: in the log, and in a few lines for people.

import { existsSync } from 'node:fs'
import { adviceFor } from '../config/advice.ts'
import { isProduction } from '../config/deployment.ts'
import { type Config, countRules, upstreamsOfHost } from '../config/file.ts'
import { CONFIG_FILE, EXTENSIONS } from '../config/load.ts'
import { expiredMachines } from '../config/machines.ts'
import { CONSOLE_ROLE } from '../config/role-names.ts'
import { hidePassword } from '../config/secret.ts'
import type { Settings } from '../config/settings.ts'
import type { MisspeltName } from '../config/suggestions.ts'
import type { Report } from '../events.ts'
import { developmentPhrase } from '../options.ts'
import { OWN_PATHS } from '../paths.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import { planProviders } from '../provider/providers.ts'
import { type OperatorLanguage, type Phrase, phrase, phraseIn, quoted } from '../text/text.ts'
import type { InheritedSocket } from './inherited-socket.ts'
import { terminalLines } from './terminal.ts'

interface Announcement {
  readonly settings: Settings
  readonly inherited: InheritedSocket | undefined
  readonly configFile: string | undefined
  readonly config: Config
  readonly misspelt: readonly MisspeltName[]
  /** The users of the development provider, if it is in use. */
  readonly users: readonly string[] | undefined
  /** A person reads it at a terminal. A pipe or JSON gets only the log. */
  readonly isWelcomed: boolean
  /** The language of that person. */
  readonly language: OperatorLanguage
  readonly now: () => number
}

export function announce(report: Report, announcement: Announcement): void {
  const { settings, config, misspelt, users, isWelcomed } = announcement
  const fields = startFields(announcement)
  // The lines for people below contain the rest.
  report('started', isWelcomed ? { address: fields.address } : { ...fields, ...(users && { users }) })
  for (const { name, likely, page = 'docs/settings.md' } of misspelt)
    report('misspelt_setting', { setting: name, remedy: likely ? `did you mean ${likely}?` : `see ${page}` })
  const missing = planProviders(config, settings).flatMap(plan => plan.missing)
  if (missing.length > 0) report('settings_missing', { missing, remedy: remedyForMissing(missing, settings) })
  const expired = expiredMachines(config.machines, announcement.now())
  for (const { code, remedy } of adviceFor(settings, planProviders(config, settings), config.roles, expired, config))
    report(code, { remedy: phraseIn('en', remedy) })
  if (isWelcomed) process.stdout.write(welcome(announcement))
}

export function startFields(announcement: Omit<Announcement, 'misspelt' | 'isWelcomed' | 'language' | 'now'>) {
  const { settings, inherited, configFile, config, users } = announcement
  const { BASE_URL, HOST, PORT, AUTH_URL, WORKERS } = settings
  return {
    address: BASE_URL,
    listening: inherited ? `descriptor ${inherited.fd}, inherited` : `${HOST}:${PORT}`,
    ...(users ? {} : { preset: phraseIn('en', presetsIn(config, settings)) }),
    provider: phraseIn('en', users ? developmentPhrase(AUTH_URL) : providersIn(config, settings)),
    store: hidePassword(settings.STORE),
    workers: WORKERS,
    config: phraseIn('en', configPhrase(configFile)),
    rules: countRules(config),
    upstreams: upstreamsIn(config, settings),
  }
}

/** Names that users of other products try. Such a file may be something else, for example a Kubernetes manifest. */
const UNSUPPORTED_NAMES = ['menshen.yaml', 'menshen.yml', 'menshen.json']

function configPhrase(file: string | undefined): Phrase {
  if (file !== undefined) return quoted(file)
  const none = { file: `${CONFIG_FILE}.{${EXTENSIONS.join(',')}}`, folder: process.cwd() }
  const other = UNSUPPORTED_NAMES.find(name => existsSync(name))
  return other === undefined ? phrase('cli.no_config', none) : phrase('cli.no_config_but', { ...none, other })
}

function upstreamsIn(config: Config, { UPSTREAM }: Settings): Record<string, string> {
  return { ...(UPSTREAM && { '/': UPSTREAM }), ...addressesIn(config) }
}

/** Each provider with its preset and, if known, its address. */
function providersIn(config: Config, settings: Settings): Phrase {
  const where = ({ issuer, endpoints }: ProviderPlan) => issuer ?? endpoints.authorization
  const plans = planProviders(config, settings)
  if (plans.length === 1 && plans[0].preset === 'idaas')
    return settings.AUTH_URL === undefined ? phrase('cli.no_provider') : quoted(settings.AUTH_URL)
  return quoted(plans.map(plan => `${plan.preset} ${where(plan) ?? ''}`.trim()).join(', '))
}

/** Each preset with the provider's name for users. */
function presetsIn(config: Config, settings: Settings): Phrase {
  const plans = planProviders(config, settings)
  if (isProviderUnset(config, settings)) return phrase('cli.preset_unset', { preset: plans[0].preset })
  const listed = (lang: OperatorLanguage) =>
    plans.map(({ preset, label }) => (label ? `${preset} (${phraseIn(lang, label)})` : preset)).join(', ')
  return quoted(listed('en'), listed('zh-CN'))
}

function isProviderUnset({ provider, providers }: Config, { PROVIDER }: Settings): boolean {
  const preset = typeof provider === 'string' ? provider : provider?.preset
  return PROVIDER === undefined && preset === undefined && providers === undefined
}

/** Upstreams of `hosts` have their host before the path. */
function addressesIn({ upstreams = {}, hosts = {} }: Config): Record<string, string> {
  const address = (upstream: string | { url: string }) => (typeof upstream === 'string' ? upstream : upstream.url)
  const ofHosts = Object.entries(hosts).flatMap(([name, host]) =>
    Object.entries(upstreamsOfHost(host)).map(([path, upstream]) => [name + path, upstream] as const),
  )
  return Object.fromEntries([...Object.entries(upstreams), ...ofHosts].map(([path, to]) => [path, address(to)]))
}

/** The missing variable of a preset, if PROVIDER_VARS can set it. */
export function variableOf(missing: string): string | undefined {
  return /^provider\.vars\.(\w+)$/.exec(missing)?.[1]
}

function remedyForMissing(missing: readonly string[], settings: Settings): string {
  const variables = missing.flatMap(name => variableOf(name) ?? [])
  const pairs = variables.length > 0 ? ` (PROVIDER_VARS=${variables.map(name => `${name}=…`).join(',')})` : ''
  const remedy = `set them in the environment or in .env${pairs}`
  if (isProduction(settings)) return remedy
  return `${remedy}; to use the development provider instead, remove all of them and set BASE_URL to an address of this machine, for example http://localhost:3000`
}

function welcome(announcement: Announcement): string {
  const { settings, users, language } = announcement
  const { BASE_URL, AUTH_URL } = settings
  const lines = [phrase('cli.welcome', { url: BASE_URL }), ...announcementLines(announcement)]
  lines.push(phrase('cli.line_console', { url: BASE_URL + OWN_PATHS.console, role: CONSOLE_ROLE }))
  if (users) {
    lines.push(phrase('cli.line_users', { users }))
    lines.push(phrase('cli.line_control', { url: AUTH_URL ?? '' }))
  }
  return `\n${terminalLines(lines.map(line => `  ${phraseIn(language, line)}`).join('\n'))}\n`
}

/** For people, one line per item. */
export function announcementLines(
  announcement: Pick<Announcement, 'settings' | 'config' | 'configFile' | 'users'>,
): Phrase[] {
  const { settings, config, configFile, users } = announcement
  const upstreams = Object.entries(upstreamsIn(config, settings)).map(([path, upstream]) => `${path} → ${upstream}`)
  return [
    ...(users ? [] : [phrase('cli.line_preset', { value: presetsIn(config, settings) })]),
    phrase('cli.line_provider', {
      value: users ? developmentPhrase(settings.AUTH_URL) : providersIn(config, settings),
    }),
    phrase('cli.line_store', { value: hidePassword(settings.STORE) }),
    phrase('cli.line_config', { value: configPhrase(configFile), count: countRules(config) }),
    phrase('cli.line_upstream', {
      value: upstreams.length > 0 ? quoted(upstreams.join(', ')) : phrase('cli.no_upstream'),
    }),
  ]
}
