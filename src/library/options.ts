// What createMenshen takes: every setting under its option's name, what defineConfig takes, and what only a program can
// give. The settings are checked by their own rows.
import { MenshenError } from '../errors.ts'
import type { Hooks } from '../gateway/hooks.ts'
import type { Log } from '../log.ts'
import { CONFIG_NAMES, type Config, checkConfig } from '../settings/config/config-file.ts'
import type { DevProviderConfig } from '../settings/config/dev-provider-config.ts'
import { findConfigFile, loadConfigFile } from '../settings/config/load-config.ts'
import { type Checked, checkSettings, type Name, readOver, readSettings, type Settings } from '../settings/read.ts'
import type { Row } from '../settings/row.ts'
import { SETTINGS } from '../settings/rows.ts'
import { type OptionName, settingOf, unknownOption } from './option-names.ts'

/** Numbers and booleans as such; everything else is the text that the environment would have. */
type OptionValue<T> = [T] extends [number | undefined]
  ? number
  : [T] extends [boolean | undefined]
    ? boolean
    : [T] extends [string | undefined]
      ? NonNullable<T>
      : string

/** Those two are more than text here. */
type PlainName = Exclude<Name, 'PROVIDER' | 'CONFIG'>

/** Every setting in camelCase: `BASE_URL` is `baseUrl`. docs/settings.md says what each of them means. */
export type SettingOptions = {
  readonly [K in PlainName as OptionName<K>]?: OptionValue<Checked[K]> | undefined
}

export interface MenshenOptions<R extends string = string, F extends string = string>
  extends SettingOptions,
    Omit<Config<R, F>, 'devProvider'>,
    Hooks {
  /** What `readSettings` read from an environment; options beside it win. */
  readonly settings?: Settings | undefined
  /** The path of a configuration file, or what `defineConfig` gave. */
  readonly config?: string | Config<R, F> | undefined
  /**
   * Where events are written. A pino logger is one. Without it the console is told that nobody can sign in, that the
   * development provider is in use, or that a function of yours failed, and nothing else is written.
   */
  readonly log?: Log | undefined
  /** The clock, in milliseconds since 1970. */
  readonly now?: (() => number) | undefined
  /**
   * Starts the embedded development provider, on `devProviderPort` or a free port, with its own users or with yours
   * (`{ users: [{ username: 'ann', groups: ['finance'] }] }`). It lets anybody in.
   */
  readonly devProvider?: boolean | DevProviderConfig | undefined
}

export interface ReadOptions {
  readonly settings: Settings
  readonly config: Config
  readonly log: Log
  /** Whether the program has given one. */
  readonly isLogged: boolean
  readonly now: (() => number) | undefined
  readonly devProvider: boolean
  /** `undefined` if any free one will do. */
  readonly devProviderPort: number | undefined
  readonly hooks: Hooks
}

const OWN_NAMES = ['settings', 'config', 'log', 'now', 'devProvider', 'onSignIn', 'onSignOut']
const SILENT: Log = { info() {}, warn() {}, error() {} }
/** The mistakes of the program that has given no log, which nobody would find otherwise. */
const HOOKS_ALONE: Log = { info() {}, warn: tellOfHook, error: tellOfHook }

function tellOfHook(facts: { hook?: unknown; user?: unknown; err?: unknown; detail?: unknown }): void {
  const { hook, user, err, detail } = facts
  // biome-ignore lint/suspicious/noConsole: the program has given no log, and has to know
  if (hook !== undefined && (err ?? detail)) console.error(`Menshen: ${hook} failed for ${user}:`, err ?? detail)
}

type Given = readonly (readonly [option: string, value: unknown])[]

/** One start names everything that is wrong with the settings. `nodeEnv` is the process's own. */
export async function readOptions(options: MenshenOptions, nodeEnv: string | undefined): Promise<ReadOptions> {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new MenshenError('bad_settings', 'createMenshen: expected an object of options.')
  const { settings: base, config, log, now, devProvider = false, onSignIn, onSignOut, ...rest } = options
  const hooks = { onSignIn, onSignOut }
  const isDescribed = typeof devProvider === 'object' && devProvider !== null
  const given: Given = Object.entries(rest).filter(([, value]) => value !== undefined)
  const { texts, problems } = textsOf(given.filter(([name]) => !CONFIG_NAMES.includes(name)))
  const settings = collect([...problems, ...ownProblems({ log, now, devProvider, ...hooks })], () => {
    const environment = { NODE_ENV: base?.NODE_ENV ?? nodeEnv, ...texts }
    return base ? readOver(checkSettings(base), environment) : readSettings(environment)
  })
  const isPortGiven = base !== undefined || texts.DEV_PROVIDER_PORT !== undefined
  const fields = {
    ...Object.fromEntries(given.filter(([name]) => CONFIG_NAMES.includes(name))),
    ...(isDescribed && { devProvider }),
  }
  return {
    settings,
    config: await readConfig(config ?? settings.CONFIG, fields),
    log: log ?? HOOKS_ALONE,
    isLogged: log !== undefined,
    now,
    devProvider: isDescribed || devProvider,
    hooks,
    devProviderPort: isPortGiven ? settings.DEV_PROVIDER_PORT : undefined,
  }
}

/** As the environment would have them. */
function textsOf(given: Given): { texts: Record<string, string>; problems: string[] } {
  const texts: Record<string, string> = {}
  const problems: string[] = []
  for (const [option, value] of given) {
    const setting = settingOf(option)
    if (setting === undefined) problems.push(unknownOption(option, [...OWN_NAMES, ...CONFIG_NAMES]))
    else if (typeof value === typeIn(setting) && value !== '') texts[setting] = String(value)
    else problems.push(wrongType(option, value, ROWS[setting]))
  }
  return { texts, problems }
}

const ROWS: Readonly<Record<string, Row<unknown> | undefined>> = SETTINGS

/** What a program gives it as: the row's own example says so. */
function typeIn(setting: string): string {
  const row = ROWS[setting]
  const type = typeof row?.check.safeParse(row.example).data
  return type === 'number' || type === 'boolean' ? type : 'string'
}

function wrongType(option: string, value: unknown, row: Row<unknown> | undefined): string {
  const shown = row?.secret ? 'not usable' : shownAs(value)
  return `${option} is ${shown}; expected ${row?.expected}, for example ${row?.example}.`
}

function shownAs(value: unknown): string {
  if (typeof value === 'string') return `the text ${JSON.stringify(value.slice(0, LONGEST_SHOWN))}`
  if (typeof value === 'number' || typeof value === 'boolean') return `the ${typeof value} ${value}`
  return value === null ? 'null' : `of the type ${Array.isArray(value) ? 'array' : typeof value}`
}

const LONGEST_SHOWN = 100

function ownProblems({ log = SILENT, now, devProvider, ...hooks }: Record<string, unknown>): string[] {
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
  for (const [name, hook] of Object.entries(hooks))
    if (hook !== undefined && typeof hook !== 'function')
      problems.push(`${name} is ${shownAs(hook)}; expected a function that takes the user.`)
  return problems
}

/** Reads if it can; throws with everything that is wrong. */
function collect(problems: readonly string[], read: () => Settings): Settings {
  try {
    const settings = read()
    if (problems.length === 0) return settings
  } catch (error) {
    if (!(error instanceof MenshenError) || problems.length === 0) throw error
    throw new MenshenError(error.code, [...problems, error.message].join('\n'))
  }
  throw new MenshenError('bad_settings', problems.join('\n'))
}

async function readConfig(config: string | Config | undefined, fields: Config): Promise<Config> {
  const whole = typeof config === 'string' ? await loadConfigFile(findConfigFile(process.cwd(), config)) : config
  const twice = Object.keys(fields).filter(name => Object.hasOwn(Object(whole), name))
  if (twice.length > 0)
    throw new MenshenError('bad_settings', `createMenshen: ${twice.join(', ')} stand in config and beside it.`)
  // Told apart, so that what is wrong with `config` as a whole is said as that.
  const checked = checkConfig(whole ?? {}, 'createMenshen', 'config')
  return checkConfig({ ...checked, ...fields }, 'createMenshen', 'options')
}
