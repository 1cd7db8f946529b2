// Loads the settings and the configuration for every command and for the library: the environment, .env, the configuration
// file and what it imports. Each takes the parts that it needs.

import { randomUUID } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire, type LoadHookSync, type ResolveHookSync, registerHooks } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { MenshenError, type Problem, refuseIf } from '../errors.ts'
import { type Phrase, phrase, phrasedProblem, phrasesOf } from '../text/text.ts'
import { isPresent } from '../util/is-present.ts'
import { refuseTakenHeaders, refuseTakenPaths } from './conflicts.ts'
import { DATA_EXTENSIONS, isDataFile, readDataFile } from './data/file.ts'
import { DEVELOPMENT_CLIENT } from './dev-provider.ts'
import { ENV_FILE, withEnvFile as mergeEnvFile, namesInEnvFile, unreadLineIn } from './env-file.ts'
import { type Config, checkConfig } from './file.ts'
import { refuseHosts } from './host-names.ts'
import { checkSettings, overrideSettings, readSettings, wantsDevProvider } from './read.ts'
import { readSecrets } from './secret-references.ts'
import { type Environment, isSetting, type Row, SETTINGS, type Settings } from './settings.ts'
import { findMisspelt, type MisspeltName } from './suggestions.ts'
import { assertUpstreamFiles, filesOfUpstreams } from './upstream-files.ts'

export { ENV_FILE }

export interface ConfigurationSources {
  /** Settings as text, keyed by name. */
  readonly environment: Environment
  /** A file of settings. The environment wins over it. */
  readonly envFile?: string | undefined
  /** Settings of the development provider, where it runs. They win over the environment. */
  readonly development?: Environment | undefined
  /** Settings that were read before. The environment wins over them. */
  readonly base?: Settings | undefined
  /** The folder that is searched for a configuration file if CONFIG names none. */
  readonly folder?: string | undefined
  /** The file to read instead of CONFIG, or a configuration instead of a file. A given configuration is not checked here. */
  readonly config?: string | Config | undefined
  /** With `leave`, secrets that the configuration names and files of its upstreams are not read, and may be missing. */
  readonly secrets?: 'read' | 'leave' | undefined
}

export interface LoadedConfiguration {
  /** Includes the settings of `envFile` and `development`. */
  readonly environment: Environment
  readonly settings: Settings
  readonly config: Config
  /** Absent if there is none. */
  readonly configFile: string | undefined
  /** The configuration file, the scripts that it imports, without packages, its secrets and the files of its upstreams. */
  readonly scripts: ReadonlySet<string>
  /** Whether the file is YAML or JSON without any value. */
  readonly isEmptyFile: boolean
  /** The variables that the configuration names. */
  readonly variables: readonly string[]
  /** Adds the positions of the problems if the configuration is YAML or JSON. */
  locate(error: MenshenError): MenshenError
  /** Whether the settings ask for the development provider. */
  readonly isDevelopment: boolean
}

/** A part is absent if it cannot be used; `errors` has the reason. */
export interface ConfigurationAttempt extends Omit<LoadedConfiguration, 'settings' | 'config' | 'isDevelopment'> {
  readonly settings: Settings | undefined
  readonly config: Config | undefined
  readonly errors: { readonly [Part in ConfigurationPart]?: MenshenError }
}

export type ConfigurationPart = 'envFile' | 'settings' | 'config'

/** Throws a ConfigurationError for the first part that cannot be used. */
export async function loadConfiguration(sources: ConfigurationSources): Promise<LoadedConfiguration> {
  const { settings, config, errors, ...attempt } = await tryConfiguration(sources, 'stop')
  const { configFile, environment, scripts } = attempt
  const error = errors.envFile ?? errors.settings ?? errors.config
  if (error) throw new ConfigurationError(configFile ?? fileAtFault(error, environment), error, scripts)
  if (!settings || !config) throw new Error('a part is absent without an error')
  // Without the settings of the development provider, which would look like a provider of the operator.
  const own = sources.development ? readSettings(environmentOf(sources)) : settings
  return { ...attempt, settings, config, isDevelopment: usesDevProvider(own, config) }
}

/** Loads as many parts as can be used, or stops at the first that cannot. */
export async function tryConfiguration(
  sources: ConfigurationSources,
  afterError: 'stop' | 'continue' = 'continue',
): Promise<ConfigurationAttempt> {
  const errors: { [Part in ConfigurationPart]?: MenshenError } = {}
  async function attempt<T>(part: ConfigurationPart, work: () => T | Promise<T>): Promise<T | undefined> {
    if (afterError === 'stop' && Object.keys(errors).length > 0) return undefined
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof MenshenError)) throw error
      errors[part] = error
      return undefined
    }
  }
  const { base, folder, config: given } = sources
  const scripts = new Set<string>()
  const withFile = await attempt('envFile', () => environmentOf(sources))
  const environment = { ...(withFile ?? sources.environment), ...sources.development }
  const settings = await attempt('settings', () =>
    base ? overrideSettings(checkSettings(base), environment) : readSettings(environment),
  )
  const named = typeof given === 'string' ? given : environment.CONFIG || base?.CONFIG
  const isGiven = given !== undefined && given !== null && typeof given !== 'string'
  let locate = (error: MenshenError) => error
  let variables: readonly string[] = []
  let isEmptyFile = false
  async function readFor(file: string): Promise<Config> {
    scripts.add(file)
    const data = isDataFile(file) ? await readDataFile(file) : undefined
    const config = data?.config ?? (await importConfig(file, scripts))
    if (data) locate = error => withPositions(error, data.locate)
    isEmptyFile = data?.isEmpty === true
    try {
      return complete(config)
    } catch (error) {
      throw error instanceof MenshenError ? withPositions(error, data?.locate ?? (() => file)) : error
    }
  }
  function complete(config: Config): Config {
    refuseTakenPaths(settings ?? environment, config)
    if (settings) refuseHosts(settings, config)
    if (settings) refuseTakenHeaders(settings, config)
    if (sources.secrets === 'leave') return config
    const secrets = readSecrets(config, environment)
    variables = secrets.variables
    // One of them may need the correction.
    for (const named of [...secrets.files.values(), ...filesOfUpstreams(config).values()]) scripts.add(named)
    refuseIf(secrets.problems)
    assertUpstreamFiles(secrets.config)
    return secrets.config
  }
  const configFile = isGiven ? undefined : await attempt('config', () => findConfigFile(folder, named))
  const config = errors.config
    ? undefined
    : await attempt('config', () => (isGiven ? given : configFile ? readFor(configFile) : {}))
  return { environment, settings, config, configFile, scripts, isEmptyFile, variables, locate, errors }
}

/** Adds the file and the position to each problem of the configuration. */
function withPositions(error: MenshenError, locate: (path: string) => string): MenshenError {
  const phrases = phrasesOf(new MenshenError(error.code, error.problems))
  const problems = error.problems.map((problem, n) => {
    const { message: _, ...fields } = problem
    const message = phrases[n]
    if (problem.path === undefined || !message) return problem
    return phrasedProblem(fields, phrase('config.in_source', { source: locate(problem.path), message }))
  })
  return new MenshenError(error.code, problems, error.cause, error.phrase)
}

/** An error that names the file with the problem. */
export class ConfigurationError extends MenshenError {
  readonly file: string
  /** Absolute paths of files whose change may solve it. */
  readonly files: readonly string[]

  constructor(file: string, error: MenshenError, files: Iterable<string> = []) {
    super(error.code, error.problems, error.cause)
    this.file = file
    this.files = [...new Set([file, ...files].map(each => resolve(each)))]
  }
}

/** The file that a setting names, if that cannot be used; otherwise the setting itself is wrong, in .env. */
function fileAtFault({ problems }: MenshenError, environment: Environment): string {
  const isFile = (name: string) => isSetting(name) && (SETTINGS[name] as Row<unknown>).file !== undefined
  const named = problems.find(({ setting = '' }) => isFile(setting))
  return environment[named?.setting ?? ''] || ENV_FILE
}

// When the development provider is used, and with which settings.

/** Whether no provider is named, and this is a developer's own machine. */
export function usesDevProvider(settings: Settings, { provider, providers }: Config): boolean {
  return provider === undefined && providers === undefined && wantsDevProvider(settings)
}

/** The settings that a start uses, with those of the development provider if it would be started. */
export function settingsInUse(environment: Environment, settings: Settings, config: Config) {
  const isDevelopment = usesDevProvider(settings, config)
  const AUTH_URL = `http://localhost:${settings.DEV_PROVIDER_PORT}`
  return {
    settings: isDevelopment ? readSettings({ ...environment, ...DEVELOPMENT_CLIENT, AUTH_URL }) : settings,
    isDevelopment,
  }
}

// The configuration file.

export const CONFIG_FILE = 'menshen.config'
export const EXTENSIONS = ['ts', 'mts', 'js', 'mjs', ...DATA_EXTENSIONS]
const UNSUPPORTED_DATA_EXTENSIONS = ['jsonc', 'json5', 'toml']
/** Endings that users of other products try. A file that is not read would leave every page to every signed-in user. */
const UNSUPPORTED_EXTENSIONS = ['cts', 'cjs', 'tsx', ...UNSUPPORTED_DATA_EXTENSIONS]

/** The file that is named, otherwise the one in the folder; `undefined` if there is none. */
function findConfigFile(folder: string | undefined, named: string | undefined): string | undefined {
  if (named !== undefined) return namedFile(resolve(folder ?? '.', named))
  if (folder === undefined) return undefined
  const found = EXTENSIONS.map(extension => `${CONFIG_FILE}.${extension}`).filter(name => isPresent(join(folder, name)))
  if (found.length > 1) throw refusal(phrase('config.data_two_files', { files: found, folder }))
  const unread = UNSUPPORTED_EXTENSIONS.map(extension => `${CONFIG_FILE}.${extension}`).find(name =>
    isPresent(join(folder, name)),
  )
  if (unread && found.length === 0) throw refusal(phrase('config.file_not_read', { file: join(folder, unread) }))
  return found[0] && join(folder, found[0])
}

/** Files that would be read if they existed. */
export function configCandidates(named: string | undefined): string[] {
  return named === undefined ? EXTENSIONS.map(extension => `${CONFIG_FILE}.${extension}`) : [named]
}

function namedFile(file: string): string {
  if (UNSUPPORTED_DATA_EXTENSIONS.some(extension => file.toLowerCase().endsWith(`.${extension}`)))
    throw refusal(phrase('config.named_not_read', { file }), { setting: 'CONFIG', example: `${CONFIG_FILE}.yaml` })
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isFile()) return file
  if (found)
    throw refusal(phrase('config.named_no_file', { file }), { setting: 'CONFIG', example: `${CONFIG_FILE}.yaml` })
  throw refusal(phrase('cli.no_config_file', { file }), { setting: 'CONFIG', example: `${CONFIG_FILE}.ts` })
}

function refusal(problem: Phrase, fields: Omit<Problem, 'message'> = {}, cause?: unknown): MenshenError {
  return new MenshenError('bad_settings', [phrasedProblem(fields, problem)], cause)
}

/** Reads the files again even if they were loaded before. Adds them to `files`, even if loading fails. */
async function importConfig(file: string, files: Set<string>): Promise<Config> {
  // Node loads an address once. A unique query makes it another address, for the file and for what it imports.
  const mark = `?read=${randomUUID()}`
  files.add(file)
  const { cache } = createRequire(import.meta.url)
  const known = new Set(Object.keys(cache))
  const resolve: ResolveHookSync = (specifier, context, next) => {
    if (specifier === 'menshen') return resolveOurselves()
    const isImported = context.parentURL?.endsWith(mark)
    // Also a file that does not exist yet.
    if (isImported && /^\.{1,2}\//.test(specifier)) files.add(fileURLToPath(new URL(specifier, context.parentURL)))
    const resolved = next(specifier, context)
    return isImported && isOurs(resolved.url) ? { ...resolved, url: resolved.url + mark } : resolved
  }
  const load: LoadHookSync = (url, context, next) => {
    if (!url.endsWith(mark)) return next(url, context)
    files.add(fileURLToPath(url))
    return loadAsModule(url, context, next)
  }
  const code = readConfigText(file)
  const hooks = registerHooks({ resolve, load })
  try {
    // Node remembers the first target of a symbolic link.
    const { default: config } = await import(pathToFileURL(realpathSync(file)).href + mark)
    assertExports(file, code)
    return checkConfig(config, file, phrase('config.whole_export'))
  } catch (error) {
    throw error instanceof MenshenError ? error : cannotBeLoaded(file, error)
  } finally {
    hooks.deregister()
    // CommonJS modules are cached by their path, without the query.
    for (const path of Object.keys(cache))
      if (!known.has(path) && isOurs(pathToFileURL(path).href)) {
        files.add(path)
        delete cache[path]
      }
  }
}

/** A line that is a comment, or a block of them. */
const COMMENTS = /^\s*(?:\/\/.*$|\/\*[\s\S]*?\*\/)/gm

/** A CommonJS script that exports nothing would be a configuration without rules. */
function assertExports(file: string, code: string): void {
  const statements = code.replace(COMMENTS, '')
  if (!/\S/.test(statements)) throw refusal(phrase('config.script_empty', { file }))
  if (!/\bexports?\b/.test(statements)) throw refusal(phrase('config.script_exports_nothing', { file }))
}

function readConfigText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw refusal(phrase('config.script_unreadable', { file, code: String(code) }))
  }
}

function isOurs(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/')
}

/** Lets the file `import { defineConfig } from 'menshen'` in any folder, with or without node_modules. */
function resolveOurselves() {
  const url = import.meta.url.replace(/config\/load(\.\w+)$/, 'index$1')
  return { url, shortCircuit: true }
}

/**
 * A script with `export` is a module, even in a folder whose package.json says commonjs. Loaded as TypeScript, because
 * only then does a syntax error have its line.
 */
const loadAsModule: LoadHookSync = (url, context, next) => {
  const isModule = /^\s*(import|export)\b/m.test(readFileSync(new URL(url), 'utf8'))
  return next(url, isModule ? { ...context, format: 'module-typescript' } : context)
}

function cannotBeLoaded(file: string, error: unknown): MenshenError {
  const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
  const reason = message
    .replace(/\?read=[\w-]+/g, '')
    .replace(/\s+/g, ' ')
    // JSON.parse quotes the text around the error, which may be a secret.
    .replace(/Unexpected token .* is not valid JSON/, 'not valid JSON')
  // The position of a missing module is in the loader; the message names the file that imports it.
  const position = Object(error).code === 'ERR_MODULE_NOT_FOUND' ? '' : positionIn(stack)
  return refusal(phrase('config.script_fails', { file, reason: `${reason}${position}` }), {}, error)
}

/** The first position in the stack; empty if it is in this file, at the call that loads the configuration. */
function positionIn(stack: string): string {
  const [, file = '', line] = /^(?: +at (?:.* \()?)?((?:file:\/\/)?\/.*?):(\d+)(?::\d+)?\)?$/m.exec(stack) ?? []
  if (file === import.meta.url) return ''
  if (!file) return ''
  return ` (${file.startsWith('file:') ? fileURLToPath(file) : file}:${line})`
}

/** Refuses a line that would be ignored. The message has only its number, because the line may be part of a secret. */
export function withEnvFile(environment: Environment, file: string): Environment {
  const line = unreadLineIn(file)
  if (line !== undefined) throw refusal(phrase('config.env_line', { file, line }))
  return mergeEnvFile(environment, file)
}

function environmentOf({ environment, envFile }: ConfigurationSources): Environment {
  return envFile === undefined ? environment : withEnvFile(environment, envFile)
}

/** `variables` are those that the configuration names. */
export function misspeltSettings(environment: Environment, variables: readonly string[]): MisspeltName[] {
  return findMisspelt(environment, variables, namesInEnvFile(ENV_FILE))
}
