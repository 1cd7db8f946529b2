// What a start reports: to the log, and as a few lines for people.

import { adviceFor } from '../config/advice.ts'
import { isProduction } from '../config/deployment.ts'
import { CONSOLE_ROLE, type Config, countRules, upstreamsOfHost } from '../config/file.ts'
import { CONFIG_FILE, ENDINGS } from '../config/load.ts'
import { hasExpiredMachine } from '../config/machines.ts'
import { hidePassword } from '../config/secret.ts'
import type { Settings } from '../config/settings.ts'
import type { MisspeltName } from '../config/suggestions.ts'
import type { Report } from '../events.ts'
import { developmentNote } from '../options.ts'
import { OWN_PATHS } from '../paths.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import { planProviders } from '../provider/providers.ts'
import { phraseIn } from '../text/text.ts'
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
  /** A person reads it at a terminal; a pipe or JSON gets the log alone. */
  readonly isWelcomed: boolean
  readonly now: () => number
}

export function announce(report: Report, announcement: Announcement): void {
  const { settings, config, misspelt, users, isWelcomed } = announcement
  const fields = startFields(announcement)
  // The lines for people below have the rest.
  report('started', isWelcomed ? { address: fields.address } : { ...fields, ...(users && { users }) })
  for (const { name, likely } of misspelt)
    report('misspelt_setting', { setting: name, remedy: likely ? `did you mean ${likely}?` : 'see docs/settings.md' })
  const missing = planProviders(config, settings).flatMap(plan => plan.missing)
  if (missing.length > 0) report('settings_missing', { missing, remedy: remedyForMissing(missing, settings) })
  const isExpired = hasExpiredMachine(config.machines, announcement.now())
  for (const { code, remedy } of adviceFor(settings, planProviders(config, settings), config.roles, isExpired, config))
    report(code, { remedy: phraseIn('en', remedy) })
  if (isWelcomed) process.stdout.write(welcome(fields, settings.AUTH_URL, users))
}

type StartFields = ReturnType<typeof startFields>

export function startFields(announcement: Omit<Announcement, 'misspelt' | 'isWelcomed' | 'now'>) {
  const { settings, inherited, configFile, config, users } = announcement
  const { BASE_URL, HOST, PORT, AUTH_URL, UPSTREAM, WORKERS } = settings
  return {
    address: BASE_URL,
    listening: inherited ? `descriptor ${inherited.fd}, inherited` : `${HOST}:${PORT}`,
    ...(users ? {} : { preset: presetsIn(config, settings) }),
    provider: users ? developmentNote(AUTH_URL) : providersIn(config, settings),
    store: hidePassword(settings.STORE),
    workers: WORKERS,
    config: configFile ?? `none (no ${CONFIG_FILE}.{${ENDINGS.join(',')}} in ${process.cwd()})`,
    rules: countRules(config),
    upstreams: { ...(UPSTREAM && { '/': UPSTREAM }), ...addressesIn(config) },
  }
}

/** Each by its preset and where it is, as far as that is known. */
function providersIn(config: Config, settings: Settings): string {
  const where = ({ issuer, endpoints }: ProviderPlan) => issuer ?? endpoints.authorization
  const plans = planProviders(config, settings)
  if (plans.length === 1 && plans[0].preset === 'idaas') return settings.AUTH_URL ?? 'none yet'
  return plans.map(plan => `${plan.preset} ${where(plan) ?? ''}`.trim()).join(', ')
}

/** Each with its name for users. */
function presetsIn(config: Config, settings: Settings): string {
  const plans = planProviders(config, settings)
  if (isProviderUnset(config, settings)) return `${plans[0].preset} (PROVIDER is not set)`
  return plans.map(({ preset, name }) => (name ? `${preset} (${name})` : preset)).join(', ')
}

function isProviderUnset({ provider, providers }: Config, { PROVIDER }: Settings): boolean {
  const preset = typeof provider === 'string' ? provider : provider?.preset
  return PROVIDER === undefined && preset === undefined && providers === undefined
}

/** Those of `hosts` with their host before the path. */
function addressesIn({ upstreams = {}, hosts = {} }: Config): Record<string, string> {
  const address = (upstream: string | { url: string }) => (typeof upstream === 'string' ? upstream : upstream.url)
  const ofHosts = Object.entries(hosts).flatMap(([name, host]) =>
    Object.entries(upstreamsOfHost(host)).map(([path, upstream]) => [name + path, upstream] as const),
  )
  return Object.fromEntries([...Object.entries(upstreams), ...ofHosts].map(([path, to]) => [path, address(to)]))
}

/** The variable of a preset that is missing, which PROVIDER_VARS can set. */
export function variableOf(missing: string): string | undefined {
  return /^provider\.vars\.(\w+)$/.exec(missing)?.[1]
}

function remedyForMissing(missing: readonly string[], settings: Settings): string {
  const variables = missing.flatMap(name => variableOf(name) ?? [])
  const pairs = variables.length > 0 ? ` (PROVIDER_VARS=${variables.map(name => `${name}=…`).join(',')})` : ''
  const remedy = `set them in the environment or in .env${pairs}`
  if (isProduction(settings)) return remedy
  return `${remedy}; the development provider starts with none of them and a BASE_URL on this machine only`
}

function welcome(fields: StartFields, providerUrl: string | undefined, users?: readonly string[]): string {
  const lines = [`Menshen is at ${fields.address}`, ...announcementLines(fields)]
  lines.push(`console   ${fields.address}${OWN_PATHS.console} (for the role ${CONSOLE_ROLE})`)
  if (users) {
    lines.push(`users     ${users.join(', ')} (one click each)`)
    lines.push(`control   ${providerUrl} (tokens that expire, calls that fail, answers that come late)`)
  }
  return `\n${terminalLines(lines.map(line => `  ${line}`).join('\n'))}\n`
}

/** For people: one line for each. */
export function announcementLines({
  preset,
  provider = 'none yet',
  store,
  config,
  rules,
  upstreams,
}: Omit<StartFields, 'workers'>): string[] {
  const applications = Object.entries(upstreams).map(([path, upstream]) => `${path} → ${upstream}`)
  return [
    ...(preset === undefined ? [] : [`preset    ${preset}`]),
    `provider  ${provider}`,
    `store     ${store}`,
    `config    ${config}, ${rules} rules`,
    `upstream  ${applications.join(', ') || 'none: our own home page'}`,
  ]
}
