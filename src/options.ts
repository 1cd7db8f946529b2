// The start of createMenshen: its options, their checks, the development provider, and what it reports at the start.

import { isLoopback, isProduction } from './config/deployment.ts'
import { DEVELOPMENT_CLIENT, type DevProviderConfig, subOf } from './config/dev-provider.ts'
import { CONFIG_NAMES, type Config, checkConfig } from './config/file.ts'
import { fingerprintOf } from './config/fingerprint.ts'
import { problemAt } from './config/issue-text.ts'
import { tryConfiguration } from './config/load.ts'
import { namesProvider, overrideSettings } from './config/read.ts'
import type { DEFAULT_ROLE, DefaultRole, Role } from './config/role-names.ts'
import { readReference, readSecrets, secretReference } from './config/secret-references.ts'
import { type Environment, isSetting, type Name, type Row, SETTINGS, type Settings } from './config/settings.ts'
import { checkShape } from './config/shape-problems.ts'
import { closestName, settingOfAlias } from './config/suggestions.ts'
import { certificateProblem } from './config/tls-files.ts'
import { type Development, type RetainedParts, startInstance } from './dev-reload.ts'
import { MenshenError, type Problem, refuseIf } from './errors.ts'
import { newRequestId } from './http/request.ts'
import { sendAnswer } from './http/send.ts'
import { createEventLog, type EventLog, type Log } from './log.ts'
import { type Core, createCore, type Menshen } from './menshen.ts'
import { REQUEST_ID } from './observe/observed-request.ts'
import { isOwnPath } from './paths.ts'
import { planProviders } from './provider/providers.ts'
import { optionName, SECRET_SETTINGS, type SettingOptions } from './setting-options.ts'
import type { Hooks } from './sign-in/hooks.ts'
import { createMemoryStore } from './stores/memory.ts'
import type { Store } from './stores/store.ts'
import { type Phrase, phrase, phrasedProblem, phraseIn } from './text/text.ts'

export interface MenshenOptions<R extends string = string, F extends string = string>
  extends SettingOptions,
    Omit<Config<R, F>, 'devProvider'>,
    Hooks {
  /** The result of `readSettings`; other options take precedence. */
  readonly settings?: Settings | undefined
  /** The path of a configuration file, or the result of `defineConfig`. */
  readonly config?: string | Config<R, F> | undefined
  /**
   * Where events are written, for example a pino logger. Without it, only warnings are written, to the console: that no user can
   * sign in, that the development provider is in use, or that a function of yours failed.
   */
  readonly log?: Log | undefined
  /** The clock, in milliseconds since 1970. */
  readonly now?: (() => number) | undefined
  /**
   * Starts the embedded development provider, on `devProviderPort` or a free port, with its own users or with yours
   * (`{ users: [{ username: 'ann', groups: ['finance'] }] }`). It lets anyone in.
   */
  readonly devProvider?: boolean | DevProviderConfig | undefined
  /**
   * For a development server that evaluates the call again, such as Vite: outside of production, a later call with this name
   * replaces the instance, and takes over its sessions and its development provider. The adapter for Next needs it only to tell
   * several instances with one `baseUrl` apart.
   */
  readonly instanceName?: string | undefined
}

export interface ReadOptions {
  readonly settings: Settings
  readonly config: Config
  readonly log: Log
  /** Whether the program has given one. */
  readonly isLogged: boolean
  readonly now: (() => number) | undefined
  readonly devProvider: boolean
  /** `undefined` if any free port will do. */
  readonly devProviderPort: number | undefined
  readonly hooks: Hooks
  readonly instanceName: string | undefined
}

/** With the clock of the process, unless the options have another. */
type Start = ReadOptions & { readonly now: () => number }

const OWN_NAMES = ['settings', 'config', 'log', 'now', 'devProvider', 'onSignIn', 'onSignOut', 'instanceName']
const SILENT: Log = { info() {}, warn() {}, error() {} }
/** For a program without a log: the errors of its own functions go to the console. */
const CONSOLE_HOOK_LOG: Log = { info() {}, warn: warnOfHook, error: warnOfHook }

function warnOfHook(fields: { hook?: unknown; user?: unknown; err?: unknown; detail?: unknown }): void {
  const { hook, user, err, detail } = fields
  // biome-ignore lint/suspicious/noConsole: the program has given no log, and has to know
  if (hook !== undefined && (err ?? detail)) console.error(`Menshen: ${hook} failed for ${user}:`, err ?? detail)
}

type OptionEntries = readonly (readonly [option: string, value: unknown])[]

/** Reports all problems of the settings together. `nodeEnv` is the process's own; `variables` are for `{ env }`. */
export async function readOptions(
  options: MenshenOptions,
  nodeEnv: string | undefined,
  variables: Environment = {},
): Promise<ReadOptions> {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new MenshenError('bad_settings', 'createMenshen: expected an options object.')
  const { settings: base, config, log, now, devProvider = false, onSignIn, onSignOut, instanceName, ...rest } = options
  const hooks = { onSignIn, onSignOut }
  const isDescribed = typeof devProvider === 'object' && devProvider !== null
  const given: OptionEntries = Object.entries(rest).filter(([, value]) => value !== undefined)
  const { texts, problems } = textsOf(
    given.filter(([name]) => !CONFIG_NAMES.includes(name)),
    variables,
  )
  const environment = { NODE_ENV: base?.NODE_ENV ?? nodeEnv, ...texts }
  const {
    settings,
    config: whole,
    errors,
  } = await tryConfiguration({ environment, base, config, secrets: 'leave' }, 'stop')
  refuseIf([
    ...problems,
    ...ownProblems({ log, now, devProvider, instanceName, ...hooks }),
    ...(errors.settings?.problems ?? []),
  ])
  if (!settings || errors.config) throw errors.config
  const isPortGiven = base !== undefined || texts.DEV_PROVIDER_PORT !== undefined
  const fields = {
    ...Object.fromEntries(given.filter(([name]) => CONFIG_NAMES.includes(name))),
    ...(isDescribed && { devProvider }),
  }
  return {
    settings,
    config: withSecrets(checkWithFields(whole, fields), variables),
    log: log ?? CONSOLE_HOOK_LOG,
    isLogged: log !== undefined,
    now,
    devProvider: isDescribed || devProvider,
    hooks,
    instanceName,
    devProviderPort: isPortGiven ? settings.DEV_PROVIDER_PORT : undefined,
  }
}

/** As the environment would have them. */
function textsOf(given: OptionEntries, variables: Environment): { texts: Record<string, string>; problems: Problem[] } {
  const texts: Record<string, string> = {}
  const problems: Problem[] = []
  for (const [option, value] of given) {
    const setting = SETTING_BY_OPTION.get(option)
    if (setting === undefined) problems.push({ message: unknownOption(option, [...OWN_NAMES, ...CONFIG_NAMES]) })
    else if (typeof value === SETTINGS[setting].type && value !== '') texts[setting] = String(value)
    else if (SECRET_SETTINGS.includes(setting) && isObject(value)) {
      const read = textOfReference(option, value, variables)
      if (typeof read === 'string') texts[setting] = read
      else problems.push(...read)
    } else problems.push(wrongType(value, setting))
  }
  return { texts, problems }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOfReference(option: string, value: object, variables: Environment): string | Problem[] {
  const checked = checkShape(secretReference, value)
  if ('problems' in checked)
    return checked.problems.map(({ path, phrase }) => problemAt(undefined, path ? `${option}.${path}` : option, phrase))
  const read = readReference(checked.data, variables)
  return 'text' in read ? read.text : [problemAt(undefined, option, read.problem)]
}

function wrongType(value: unknown, setting: Name): Problem {
  const { secret, expected, example }: Row<unknown> = SETTINGS[setting]
  const shown = secret ? 'not usable' : shownAs(value)
  return { setting, message: `${setting} is ${shown}; expected ${expected}, for example ${example}.`, example }
}

function shownAs(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, MAX_SHOWN_LENGTH))}`
  if (typeof value === 'number' || typeof value === 'boolean') return `the ${typeof value} ${value}`
  return value === null ? 'null' : `of the type ${Array.isArray(value) ? 'array' : typeof value}`
}

const MAX_SHOWN_LENGTH = 100

function ownProblems({ log = SILENT, now, devProvider, instanceName, ...hooks }: Record<string, unknown>): Problem[] {
  const problems: string[] = []
  const isLog = ['info', 'warn', 'error'].every(level => typeof Object(log)[level] === 'function')
  if (!isLog)
    problems.push('log cannot be written to; expected an object with info, warn and error, for example pino().')
  if (now !== undefined && typeof now !== 'function')
    problems.push(`now is ${shownAs(now)}; expected a function that gives the milliseconds since 1970.`)
  if (typeof devProvider !== 'boolean' && (typeof devProvider !== 'object' || devProvider === null))
    problems.push(
      `devProvider is ${shownAs(devProvider)}; expected true or false, or an object, for example { users: [{ username: 'ann' }] }.`,
    )
  if (instanceName !== undefined && (typeof instanceName !== 'string' || instanceName === ''))
    problems.push(`instanceName is ${shownAs(instanceName)}; expected text, for example app.`)
  for (const [name, hook] of Object.entries(hooks))
    if (hook !== undefined && typeof hook !== 'function')
      problems.push(`${name} is ${shownAs(hook)}; expected a function that takes the user.`)
  return problems.map(message => ({ message }))
}

function checkWithFields(config: unknown, fields: Config): Config {
  const twice = Object.keys(fields).filter(name => Object.hasOwn(Object(config), name))
  if (twice.length > 0)
    throw new MenshenError('bad_settings', `createMenshen: ${twice.join(', ')} given both in config and beside it.`)
  // Checked apart, so that a problem of `config` as a whole names it.
  const checked = checkConfig(config, 'createMenshen', 'config')
  return checkConfig({ ...checked, ...fields }, 'createMenshen', 'options')
}

function withSecrets(config: Config, variables: Environment): Config {
  const secrets = readSecrets(config, variables)
  refuseIf(secrets.problems.map(problem => ({ ...problem, message: `createMenshen: ${problem.message}` })))
  return secrets.config
}

// The settings as options of the library: the same rows, named the way of JavaScript.

const SETTING_BY_OPTION = new Map((Object.keys(SETTINGS) as Name[]).map(setting => [optionName(setting), setting]))

const MAX_SHOWN_NAME_LENGTH = 60

/** A program knows BASE_URL as `baseUrl`: "baseUrl: BASE_URL is …". */
function withOptionNames(problem: Problem): Problem {
  const { setting, namedSettings = setting === undefined ? [] : [setting], message } = problem
  if (namedSettings.length === 0) return problem
  return { ...problem, message: `${namedSettings.map(optionName).join(', ')}: ${message}` }
}

/** The message about an unknown option, with the name that was probably meant. */
export function unknownOption(given: string, others: readonly string[]): string {
  const names = [...SETTING_BY_OPTION.keys(), ...others]
  const likely = likelyOption(given) ?? closestName(given, names)
  const remedy = likely ? `did you mean ${likely}?` : 'the type MenshenOptions has them all.'
  return `${JSON.stringify(given.slice(0, MAX_SHOWN_NAME_LENGTH))} is not an option; ${remedy}`
}

/** The option for a name that other programs use, such as `upstreamUrl`. */
function likelyOption(given: string): string | undefined {
  const setting = settingOfAlias(given.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase())
  return setting && optionName(setting)
}

// The start of the library. Like the command, it passes the clock on. From the environment it reads NODE_ENV, and what the
// configuration names as `{ env: NAME }`.

export async function startMenshen<R extends Role = DefaultRole, F extends string = never>(
  options: MenshenOptions<R, F>,
): Promise<Menshen<R | typeof DEFAULT_ROLE, F>> {
  try {
    // Its roles and fields are those that the options name.
    return (await start(options as MenshenOptions)) as unknown as Menshen<R | typeof DEFAULT_ROLE, F>
  } catch (error) {
    // A program that passes settings of the environment knows them by those names.
    if (!(error instanceof MenshenError) || options?.settings) throw error
    throw new MenshenError(error.code, error.problems.map(withOptionNames), error.cause, error.phrase)
  }
}

/** The process's own NODE_ENV. */
export function nodeEnvironment(): string | undefined {
  return process.env.NODE_ENV || undefined
}

export async function readStart(options: MenshenOptions): Promise<Start> {
  assertSettings(Object(options).settings)
  const read = await readOptions(options, nodeEnvironment(), process.env)
  return { ...read, now: read.now ?? Date.now }
}

async function start(options: MenshenOptions): Promise<Menshen> {
  const read = await readStart(options)
  const { settings, config, log, now, hooks, isLogged, devProvider, devProviderPort = 0, instanceName } = read
  if (devProvider) {
    assertDevelopment(settings, config)
    assertNoBearer(config)
  }
  return startInstance({
    instanceName,
    settings,
    config,
    others: [devProvider, devProviderPort, isLogged, Object.values(hooks).map(hook => typeof hook)],
    devProviderPort: devProvider ? devProviderPort : 0,
    functions: { log, now, hooks },
    start: (functions, kept) => startWith({ ...read, ...functions }, kept, options.settings === undefined),
  })
}

async function startWith(read: Start, kept: RetainedParts, byOptions: boolean): Promise<Menshen> {
  const { config, log, now, hooks, isLogged } = read
  const development = read.devProvider ? await reuseDevelopment(kept, read) : undefined
  const settings = development ? overrideSettings(read.settings, development.settings) : read.settings
  refuseWithoutProvider(settings, config, byOptions)
  const memoryStore = settings.STORE === 'memory:' ? reuseMemoryStore(kept, now) : undefined
  const core = await createCore({ settings, config, log, now, hooks, memoryStore })
  if (!development) await closeDevelopment(kept)
  reportStart({ settings, config, users: development?.users, log: isLogged ? log : undefined, now, byOptions })
  return toPublicInstance(core)
}

/** Closed by the last instance that uses it. */
function reuseMemoryStore(kept: RetainedParts, now: () => number): Store {
  kept.memoryStore ??= createMemoryStore({ now })
  return { ...kept.memoryStore, close: async () => {} }
}

/** In production an application that no user can sign in to is a mistake, and not the first step of a set-up. */
function refuseWithoutProvider(settings: Settings, config: Config, byOptions: boolean): void {
  const missing = isProduction(settings) ? missingIn(settings, config, byOptions) : []
  if (missing.length === 0) return
  throw new MenshenError(
    'bad_settings',
    `createMenshen: users could not sign in, and NODE_ENV is "${settings.NODE_ENV}"; expected ${missingText(missing, settings, config)}.`,
  )
}

/** OpenID Connect takes an issuer in place of `authUrl`. */
function missingText(missing: readonly string[], { PROVIDER }: Settings, { provider }: Config): string {
  const preset = PROVIDER ?? (typeof provider === 'string' ? provider : provider?.preset)
  const takesIssuer = preset === undefined || preset === 'oidc'
  return missing
    .map(name => (takesIssuer && name === 'authUrl' ? 'authUrl (or issuer, for OpenID Connect)' : name))
    .join(', ')
}

/** What a sign-in needs and lacks, by the names that the program knows. */
function missingIn(settings: Settings, config: Config, byOptions: boolean): string[] {
  return planProviders(config, settings)
    .flatMap(plan => plan.missing)
    .map(name => (byOptions && isSetting(name) ? optionName(name) : name))
}

/** The instance as applications get it. After `close` it answers 503, or rejects. */
export function toPublicInstance(whole: Core): Menshen {
  // An application that wants other settings creates another instance.
  const { prepare: _, noteRefused: __, sessions: ___, ...core } = whole
  let closed: Promise<void> | undefined
  return {
    ...core,
    session: async (...args) => (closed ? refuseClosed() : core.session(...args)),
    accessToken: async (...args) => (closed ? refuseClosed() : core.accessToken(...args)),
    updateData: async (...args) => (closed ? refuseClosed() : core.updateData(...args)),
    fetch: async (request, source) => {
      if (!closed) return core.fetch(request, source)
      return isOwnPath(new URL(request.url).pathname, core.signInPaths) ? closedAnswer() : undefined
    },
    admit: async (request, source) => {
      if (!closed) return core.admit(request, source)
      const answer = closedAnswer()
      return { answer, cookies: [], requestId: answer.headers.get(REQUEST_ID) ?? '', require: () => answer }
    },
    listener: (request, response) => {
      if (closed) sendAnswer(response, closedAnswer()).catch(() => response.destroy())
      else core.listener(request, response)
    },
    close(timeoutMs) {
      closed ??= core.close(timeoutMs)
      return closed
    },
  }
}

/** Refuses an environment, which has only text and no defaults. */
function assertSettings(settings: unknown): void {
  if (settings === undefined || typeof Object(settings).SESSION_MAX_HOURS === 'number') return
  throw new MenshenError('bad_settings', 'settings: expected the result of readSettings, not the environment itself.')
}

/** The development provider's tokens are not JWTs, and it has no introspection. */
function assertNoBearer({ rules = [] }: Config): void {
  const first = rules.findIndex(({ bearer }) => bearer)
  if (first < 0) return
  throw new MenshenError(
    'bad_settings',
    `rules.${first} has bearer, and tokens of devProvider cannot be verified; leave the rule out while devProvider is in use, or use a provider with issuer and jwksUrl, or introspectionUrl.`,
  )
}

function refuseClosed(): never {
  throw new MenshenError('store_unavailable', 'Menshen is closed.')
}

/** A server that was not closed first may still get requests. */
function closedAnswer(): Response {
  const headers = { 'retry-after': '1', 'cache-control': 'no-store', connection: 'close', [REQUEST_ID]: newRequestId() }
  return new Response(null, { status: 503, headers })
}

// The embedded development provider, and the settings for it.

/** The running one, unless it was started for another address, language or port. */
async function reuseDevelopment(kept: RetainedParts, { settings, config, devProviderPort = 0, now }: Start) {
  const { BASE_URL, CALLBACK_PATH, PAGE_LANGUAGE } = settings
  const fingerprint = fingerprintOf([BASE_URL, CALLBACK_PATH, PAGE_LANGUAGE, devProviderPort])
  if (kept.development?.fingerprint === fingerprint) {
    kept.development.running.reconfigure(config)
    return kept.development.running
  }
  await closeDevelopment(kept)
  const running = await startDevelopment(settings, config, devProviderPort, now)
  kept.development = { fingerprint, port: devProviderPort, running }
  return running
}

async function closeDevelopment(kept: RetainedParts): Promise<void> {
  const { development } = kept
  kept.development = undefined
  await development?.running.close()
}

/** `port` 0 is any free port. */
export async function startDevelopment(
  { BASE_URL, CALLBACK_PATH, PAGE_LANGUAGE }: Pick<Settings, 'BASE_URL' | 'CALLBACK_PATH' | 'PAGE_LANGUAGE'>,
  { devProvider }: Config,
  port: number,
  now: () => number,
): Promise<Development> {
  // Loaded only where it is used: nothing of it belongs into an application in production.
  const { startDevProvider } = await import('./dev-provider/dev-provider.ts')
  const provider = await startDevProvider({
    port,
    clientId: DEVELOPMENT_CLIENT.CLIENT_ID,
    clientSecret: DEVELOPMENT_CLIENT.CLIENT_SECRET,
    redirectUri: BASE_URL + CALLBACK_PATH,
    users: usersOf(devProvider),
    language: PAGE_LANGUAGE,
    now,
  }).catch(error => refuseToListen(error, { setting: 'DEV_PROVIDER_PORT', port, host: '127.0.0.1' }))
  return {
    url: provider.url,
    get users() {
      return provider.users
    },
    close: () => provider.close(),
    settings: { AUTH_URL: provider.url, ...DEVELOPMENT_CLIENT },
    reconfigure: ({ devProvider }) => provider.setUsers(usersOf(devProvider)),
  }
}

/** With every field that the provider answers with. */
function usersOf({ users }: DevProviderConfig = {}) {
  return users?.map(user => {
    const { username, nickname = '', email = '', phone_number = '', ou_id = '', ou_name = '', groups = [] } = user
    return { sub: subOf(user), username, nickname, email, phone_number, ou_id, ou_name, groups }
  })
}

/** The development provider lets anyone in, so it runs only on a developer's own machine, and never beside a real provider. */
export function assertDevelopment(settings: Settings, { provider, providers }: Config): void {
  const { NODE_ENV = '', BASE_URL } = settings
  const refuse = (reason: string, expected: string, setting?: Name) => {
    const message = `devProvider is true although ${reason}; expected ${expected}.`
    throw new MenshenError('bad_settings', [{ ...(setting && { setting }), message }])
  }
  if (isProduction(settings))
    refuse(`NODE_ENV is "${NODE_ENV}"`, 'a real provider, because the development provider lets anyone in', 'NODE_ENV')
  if (!isLoopback(BASE_URL))
    refuse(`BASE_URL is "${BASE_URL}"`, 'a BASE_URL on this machine, for example http://localhost:3000', 'BASE_URL')
  if (namesProvider(settings) || provider !== undefined || providers !== undefined)
    refuse('a provider is configured', 'only one of them')
}

/** A developer must know that it is not a real provider, and who its users are. */
export function reportDevelopment(log: EventLog, { BASE_URL, AUTH_URL }: Settings, users: readonly string[]): void {
  log.report('started', { address: BASE_URL, provider: phraseIn('en', developmentPhrase(AUTH_URL)), users })
  log.close()
}

export function developmentPhrase(url: string | undefined): Phrase {
  return phrase('cli.development_note', { url: String(url) })
}

// Why a server could not listen, and which setting to change.

interface FailedAddress {
  readonly setting: 'PORT' | 'DEV_PROVIDER_PORT'
  readonly port: number
  readonly host: string
}

export function refuseToListen({ code }: NodeJS.ErrnoException, failed: FailedAddress): never {
  const { setting: name, port, host } = failed
  const refuse = (about: string, given: Phrase): never => {
    throw new MenshenError('cannot_start', [phrasedProblem({ setting: about }, given)])
  }
  if (code === 'EADDRINUSE')
    // Without PORT, the port of a local BASE_URL is taken, where a proxy may be listening.
    return refuse(
      name,
      name === 'PORT' ? phrase('cli.port_in_use', { name, port }) : phrase('cli.other_port_in_use', { name, port }),
    )
  if (code === 'EACCES') return refuse(name, phrase('cli.port_not_allowed', { name, port, code }))
  if (code?.startsWith('ERR_OSSL')) throw new MenshenError('cannot_start', [certificateProblem(code)])
  return refuse('HOST', phrase('cli.host_not_usable', { host, port, code: String(code) }))
}

// What a program has to know when Menshen has started inside it: that no user can sign in, or that anyone can. It goes to the
// log, or without one to the console.

interface StartReport {
  readonly settings: Settings
  readonly config: Config
  /** The development provider's users, if that is in use. */
  readonly users: readonly string[] | undefined
  /** `undefined` if the program has given none. */
  readonly log: Log | undefined
  readonly now: () => number
  /** The program knows settings as options, not by the names of the environment. */
  readonly byOptions: boolean
}

const REMEDY = 'set them, or devProvider: true while you develop on your own machine'

export function reportStart({ settings, config, users, log, now, byOptions }: StartReport): void {
  const { NODE_ENV = '', BASE_URL } = settings
  if (isProduction(settings) && isLoopback(BASE_URL)) {
    const problem = {
      namedSettings: ['NODE_ENV', 'BASE_URL'],
      message: `NODE_ENV is "${NODE_ENV}" and BASE_URL is "${BASE_URL}"`,
    }
    reportLocalAddress(log, now, (byOptions ? withOptionNames(problem) : problem).message)
  }
  const missing = missingIn(settings, config, byOptions)
  if (log) {
    if (users) reportDevelopment(createEventLog(log, now), settings, users)
    if (missing.length > 0) reportMissing(log, now, missing)
    return
  }
  if (users)
    warn(
      `the development provider is in use (${settings.AUTH_URL}): ${ANYONE_CAN_SIGN_IN_AS} ${users.join(', ')}. Not for production.`,
    )
  if (missing.length > 0) warn(`users cannot sign in: missing ${missingText(missing, settings, config)}; ${REMEDY}.`)
}

/** Usually a forgotten BASE_URL: the provider would send every browser to its own machine. */
function reportLocalAddress(log: Log | undefined, now: () => number, found: string): void {
  if (!log) {
    warn(`${found}, an address of this machine; expected the address that browsers use.`)
    return
  }
  const events = createEventLog(log, now)
  events.report('local_base_url', { remedy: `${found}; expected the address that browsers use` })
  events.close()
}

const ANYONE_CAN_SIGN_IN_AS = 'anyone can sign in as'

function warn(message: string): void {
  // biome-ignore lint/suspicious/noConsole: the program has given no log, and has to know
  console.warn(`Menshen: ${message}`)
}

function reportMissing(log: Log, now: () => number, missing: readonly string[]): void {
  const events = createEventLog(log, now)
  events.report('settings_missing', { missing, remedy: REMEDY })
  events.close()
}
