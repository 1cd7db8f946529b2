// Reads everything anew and says what has changed, or why that cannot be used in a process that runs.

import { existsSync, readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '../config/config-file.ts'
import { configCandidates, findConfigFile, loadConfig } from '../config/load-config.ts'
import { refuseListenerAsUpstream } from '../config/own-upstream.ts'
import { readSettings, wantsDevProvider } from '../config/read.ts'
import { type Environment, type Name, SETTINGS, type Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { planProviders } from '../provider/providers.ts'
import { withDeadline } from '../util/deadline.ts'
import { fingerprintOf } from '../util/fingerprint.ts'
import { assertAuthority, assertCertificate } from './named-files.ts'

export interface ReadAgain {
  readonly sources: Sources
  /** The names of what is not as it was. */
  readonly changed: readonly string[]
}

export interface Rereading {
  readonly readEnvironment: () => Environment
  /** What leads to the development provider, where that runs. */
  readonly development: Environment | undefined
  /** Whether there was a .env at the start. */
  readonly hadEnvFile: boolean
  /** Whether this process listens by HOST and PORT, and not on a socket that it was given. */
  readonly listens: boolean
}

/** What can be read and not used. */
function assertCertificates(sources: Sources): void {
  const { settings, config } = sources
  const { TLS_CERT_FILE: certificate = ENV_FILE, UPSTREAM_CA_FILE: authority = ENV_FILE } = settings
  blaming(certificate, () => assertCertificate(settings))
  blaming(authority, () => assertAuthority(settings))
  blamingWhole(sources, () => planProviders(config, settings))
}

export async function readAgain(before: Sources, rereading: Rereading): Promise<ReadAgain> {
  const { readEnvironment, development, hadEnvFile, listens } = rereading
  // A file that is just being replaced, or a volume that is not there for a moment, must not open every door.
  if (hadEnvFile && !existsSync(ENV_FILE)) throw refusal(ENV_FILE, `${ENV_FILE} is gone; expected it where it was.`)
  const sources = await inTime(readSources(readEnvironment, development), before.configFile ?? ENV_FILE)
  const { configFile } = sources
  if (before.configFile && !configFile)
    throw refusal(before.configFile, `${before.configFile} is gone; expected it where it was.`)
  const changed = changedParts(before.parts, sources.parts)
  const waiting = waitingForRestart(changed)
  if (waiting.length > 0)
    throw refusal(
      ENV_FILE,
      `${waiting.join(', ')}: changed, which counts only after a restart; nothing else was changed either.`,
    )
  if (sources.wantsDevelopment !== (development !== undefined))
    throw refusal(configFile ?? ENV_FILE, 'The development provider starts and ends only with a restart.')
  assertCertificates(sources)
  if (listens) blamingWhole(sources, () => refuseListenerAsUpstream(sources.settings, sources.config))
  return { sources, changed }
}

/** Less than a worker has for its answer. A script that waits for something must not hold up all reloads that follow. */
const READ_WITHIN_MS = 5000

async function inTime<T>(reading: Promise<T>, file: string): Promise<T> {
  return withDeadline(reading, READ_WITHIN_MS, () => {
    const sentence = `${file} is not loaded after ${READ_WITHIN_MS / 1000} seconds; expected no await in it that takes so long.`
    throw refusal(file, sentence)
  })
}

export function refusal(file: string, sentence: string): SourceProblem {
  return new SourceProblem(file, new MenshenError('bad_settings', sentence))
}

/** What is wrong stands in this file. */
export function blaming<T>(file: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof MenshenError ? new SourceProblem(file, error) : error
  }
}

/** Looks at it as a whole: what is wrong then stands in the configuration, as a rule. */
export function blamingWhole<T>({ configFile = ENV_FILE }: Sources, check: () => T): T {
  return blaming(configFile, check)
}

// Everything that can be read anew while we run: the settings of .env, the configuration with what it imports, and the files
// that either of them names.

export interface Sources {
  readonly settings: Settings
  readonly config: Config
  readonly configFile: string | undefined
  /** Nothing says where to sign in. */
  readonly wantsDevelopment: boolean
  /** What was read, and what would be read if it were there. */
  readonly files: readonly string[]
  /** What each part is like, by its name. */
  readonly parts: Readonly<Record<string, string>>
}

/** Why something cannot be used, and in which file it stands. */
export class SourceProblem extends MenshenError {
  readonly file: string
  /** Where a change may be the mend. */
  readonly files: readonly string[]

  constructor(file: string, { code, message, cause }: MenshenError, files: Iterable<string> = []) {
    super(code, message, cause)
    this.file = file
    this.files = absolute([file, ...files])
  }
}

export const ENV_FILE = '.env'

/** `development` is what leads to the development provider, where that runs. */
export async function readSources(readEnvironment: () => Environment, development?: Environment): Promise<Sources> {
  let environment: Environment = {}
  let configFile: string | undefined
  const files = new Set<string>()
  try {
    const given = readEnvironment()
    environment = { ...given, ...development }
    const settings = readSettings(environment)
    configFile = findConfigFile(process.cwd(), settings.CONFIG)
    const config = configFile ? await loadConfig(configFile, files) : {}
    const isConfigured = config.provider !== undefined || config.providers !== undefined
    const named = filesNamedBy(environment, config)
    const all = [ENV_FILE, ...configCandidates(settings.CONFIG), ...files, ...named.values()]
    return {
      settings,
      config,
      configFile,
      wantsDevelopment: !isConfigured && wantsDevProvider(development ? readSettings(given) : settings),
      files: absolute(all),
      parts: partsOf({ environment, settings, config, named }),
    }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    throw new SourceProblem(configFile ?? fileNamedIn(error.message, environment), error, files)
  }
}

function absolute(files: readonly string[]): string[] {
  return [...new Set(files.map(file => resolve(file)))]
}

/** A setting that cannot be used stands in .env, unless it is what stands in the file that it names. */
function fileNamedIn(message: string, environment: Environment): string {
  const [, setting = ''] = /^(\w+_FILE) is /m.exec(message) ?? []
  return environment[setting] || ENV_FILE
}

// What can change, part by part: settings, parts of the configuration, and the contents of files. Told apart by fingerprints,
// so that nobody learns a secret from what has changed.

interface Read {
  readonly environment: Environment
  readonly settings: Settings
  readonly config: Config
  readonly named: ReadonlyMap<string, string>
}

/** Written to, not read. */
const WRITTEN = 'AUDIT_FILE'
const NAMES = Object.keys(SETTINGS) as Name[]

/** Files of settings, and of providers in the configuration, by what names them. */
export function filesNamedBy(environment: Environment, { provider, providers }: Config): Map<string, string> {
  const files = new Map<string, string>()
  for (const name of NAMES) {
    const path = environment[name]
    if (path && name.endsWith('_FILE') && name !== WRITTEN) files.set(name, path)
  }
  const single = typeof provider === 'object' ? { provider } : {}
  for (const [id, { clientSecretFile, clientKeyFile, clientCertFile }] of Object.entries({ ...single, ...providers })) {
    if (clientSecretFile) files.set(`${id}.clientSecretFile`, clientSecretFile)
    if (clientKeyFile) files.set(`${id}.clientKeyFile`, clientKeyFile)
    if (clientCertFile) files.set(`${id}.clientCertFile`, clientCertFile)
  }
  return files
}

export function partsOf({ environment, settings, config, named }: Read): Record<string, string> {
  const parts: Record<string, string> = {}
  for (const name of NAMES) {
    // A secret that was read from its file stands under both names, and is told of by the file's content.
    if (isSecretFile(name)) parts[name] = fingerprintOf(environment[name])
    else if (!environment[`${name}_FILE`]) parts[name] = fingerprintOf(settings[name])
  }
  for (const [name, part] of Object.entries(config)) parts[name] = fingerprintOf(part)
  for (const [name, file] of named) parts[contentOf(name)] = fingerprintOf(contentIn(settings, name, file))
  return parts
}

/** A secret as it was read: its file may be another one by now, which is then a change. */
function contentIn(settings: Settings, name: string, file: string): unknown {
  return isSetting(name) && isSecretFile(name) ? settings[name] : readFileSync(file, 'utf8')
}

function isSetting(name: string): name is Name {
  return Object.hasOwn(SETTINGS, name)
}

/** The value of such a setting is the content. */
function isSecretFile(name: Name): boolean {
  return name.endsWith('_FILE') && 'secret' in SETTINGS[name]
}

export function contentOf(name: string): string {
  return `content of ${name}`
}

/** The names of what differs. */
export function changedParts(before: Record<string, string>, after: Record<string, string>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter(name => before[name] !== after[name])
}

/** Those of the changed settings that count only after a restart. */
export function waitingForRestart(changed: readonly string[]): string[] {
  return changed.filter(name => isSetting(name) && !('reloads' in SETTINGS[name]))
}

// Notices that one of several files has changed. They are looked at every few seconds by what the system says of them: that works
// the same for a file that is written in place, one that an editor replaces, and one behind the links of a Kubernetes volume.

const LOOK_EVERY_MS = 2000

export interface FileWatch {
  /** From now on these. What has changed of those that are watched already still counts. */
  watch(files: readonly string[]): Promise<void>
  stop(): void
}

/** By file. */
type Appearances = ReadonlyMap<string, string>

/**
 * Calls `onChange` when a change is over: at two looks in a row the files were the same. Also once soon after the first are
 * chosen: they may have changed since they were read.
 */
export function watchFiles(onChange: () => void, everyMs = LOOK_EVERY_MS): FileWatch {
  let files: readonly string[] = []
  let known: Appearances = new Map()
  let latest: Appearances = new Map()
  let isLooking = false

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const seen = await appearancesOf(files)
    isLooking = false
    const isOver = isSame(seen, latest)
    latest = seen
    if (!isOver || isSame(seen, known)) return
    known = seen
    onChange()
  }

  const timer = setInterval(() => void look(), everyMs).unref()
  return {
    async watch(chosen) {
      if (chosen.join() === files.join()) return
      const isFirst = files.length === 0
      files = chosen
      if (isFirst) return
      const seen = await appearancesOf(chosen)
      known = new Map([...seen].map(([file, appearance]) => [file, known.get(file) ?? appearance]))
    },
    stop: () => clearInterval(timer),
  }
}

function isSame(one: Appearances, other: Appearances): boolean {
  return one.size === other.size && [...one].every(([file, appearance]) => other.get(file) === appearance)
}

async function appearancesOf(files: readonly string[]): Promise<Appearances> {
  return new Map(await Promise.all(files.map(async file => [file, await appearanceOf(file)] as const)))
}

async function appearanceOf(file: string): Promise<string> {
  try {
    const { ino, dev, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    // Not there, or not for us to see.
    return String((error as NodeJS.ErrnoException).code)
  }
}
