// Loads the settings and the configuration again, and reports what has changed, or why it cannot be used in a running process.

import { existsSync, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { refuseListenerAsUpstream } from '../config/conflicts.ts'
import type { Config } from '../config/file.ts'
import { fingerprintOf } from '../config/fingerprint.ts'
import {
  ConfigurationError,
  type ConfigurationSources,
  configCandidates,
  ENV_FILE,
  type LoadedConfiguration,
  loadConfiguration,
} from '../config/load.ts'
import { type Environment, isSetting, type Name, type Row, SETTINGS, type Settings } from '../config/settings.ts'
import { assertUpstreamAuthority } from '../config/tls-files.ts'
import { filesOfUpstreams } from '../config/upstream-files.ts'
import { MenshenError } from '../errors.ts'
import { planProviders } from '../provider/providers.ts'
import { withDeadline } from '../util/deadline.ts'

/** What was loaded, and what is needed to notice changes. */
export interface Snapshot extends LoadedConfiguration {
  /** Absolute paths of all files that were read, or would be read if they existed. */
  readonly files: readonly string[]
  /** A fingerprint of each part, keyed by its name. */
  readonly parts: Readonly<Record<string, string>>
  /** Whether .env sets anything that the environment does not. */
  readonly usesEnvFile: boolean
}

export interface ReloadOptions {
  readonly sources: ConfigurationSources
  /** Whether there was a .env at the start. */
  readonly hadEnvFile: boolean
  /** Whether this process listens on HOST and PORT instead of an inherited socket. */
  readonly listens: boolean
}

export interface ConfigurationChanges {
  readonly snapshot: Snapshot
  /** The names of settings, parts of the configuration and files. */
  readonly changed: readonly string[]
}

export async function takeSnapshot(sources: ConfigurationSources): Promise<Snapshot> {
  const loaded = await loadConfiguration(sources)
  const named = filesNamedBy(loaded)
  const files = [ENV_FILE, ...configCandidates(loaded.settings.CONFIG), ...loaded.scripts, ...named.values()]
  const others = { ...sources.environment, ...sources.development }
  return {
    ...loaded,
    files: [...new Set(files.map(file => resolve(file)))],
    parts: partsOf(loaded, named),
    usesEnvFile: Object.keys(loaded.environment).some(name => !others[name]),
  }
}

export async function readChanges(
  before: Snapshot,
  { sources, hadEnvFile, listens }: ReloadOptions,
): Promise<ConfigurationChanges> {
  // A file that is being replaced, or a volume that is away for a moment, must not remove all rules.
  if (hadEnvFile && !existsSync(ENV_FILE)) throw reloadError(ENV_FILE, `${ENV_FILE} is gone; expected it where it was.`)
  const snapshot = await loadInTime(takeSnapshot(sources), before.configFile ?? ENV_FILE)
  const { configFile } = snapshot
  if (before.configFile && !configFile)
    throw reloadError(before.configFile, `${before.configFile} is gone; expected it where it was.`)
  // An editor may be writing it right now.
  if (configFile && snapshot.isEmptyFile && !before.isEmptyFile)
    throw reloadError(configFile, `${configFile} is empty; expected a configuration, or {} for an empty one.`)
  if (before.usesEnvFile && !snapshot.usesEnvFile)
    throw reloadError(ENV_FILE, `${ENV_FILE} sets nothing any more; expected its settings, or a restart without them.`)
  const changed = changedParts(before.parts, snapshot.parts)
  const waiting = changed.filter(name => isSetting(name) && !rowOf(name).reloads)
  if (waiting.length > 0) {
    // BASE_URL follows PORT, for example; the message names what the operator has changed.
    const given = waiting.filter(name => before.environment[name] !== snapshot.environment[name])
    const names = given.length > 0 ? given : waiting
    const verb = names.length === 1 ? 'takes' : 'take'
    throw reloadError(
      ENV_FILE,
      `${names.join(', ')}: changed, but ${verb} effect only after a restart; nothing else was applied either.`,
    )
  }
  if (snapshot.isDevelopment !== (sources.development !== undefined))
    throw reloadError(configFile ?? ENV_FILE, 'The development provider starts and ends only with a restart.')
  assertUsable(snapshot, listens)
  return { snapshot, changed }
}

/** Shorter than the deadline for a worker's answer. A script that waits for something must not delay all later reloads. */
const LOAD_TIMEOUT_MS = 5000

async function loadInTime<T>(loading: Promise<T>, file: string): Promise<T> {
  return withDeadline(loading, LOAD_TIMEOUT_MS, () => {
    const message = `${file} is not loaded after ${LOAD_TIMEOUT_MS / 1000} seconds; expected no await in it that takes so long.`
    throw reloadError(file, message)
  })
}

export function reloadError(file: string, message: string): ConfigurationError {
  return new ConfigurationError(file, new MenshenError('bad_settings', message))
}

/** Checks what loading does not check: providers, and upstreams that lead back here. The server checks its own certificate. */
function assertUsable(snapshot: Snapshot, listens: boolean): void {
  const { settings, config } = snapshot
  const { UPSTREAM_CA_FILE: authority = ENV_FILE } = settings
  withFile(authority, snapshot, () => assertUpstreamAuthority(settings))
  withConfigFile(snapshot, () => planProviders(config, settings))
  if (listens) withConfigFile(snapshot, () => refuseListenerAsUpstream(settings, config))
}

/** Makes an error of `check` name this file. The correction may be in any file that was read. */
function withFile<T>(file: string, { files, locate }: Snapshot, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof MenshenError ? new ConfigurationError(file, locate(error), files) : error
  }
}

/** Blames the configuration file, which is usually at fault if the settings and the configuration do not fit together. */
export function withConfigFile<T>(snapshot: Snapshot, check: () => T): T {
  return withFile(snapshot.configFile ?? ENV_FILE, snapshot, check)
}

// The parts that can change: settings, parts of the configuration, and the contents of files. Fingerprints are compared, so
// that changes reveal no secret.

const NAMES = Object.keys(SETTINGS) as Name[]

/** The server watches these itself: they do not match while one of them is being replaced. */
const OWN_CERTIFICATE: readonly Name[] = ['TLS_CERT_FILE', 'TLS_KEY_FILE']

/** Files of settings, and of providers and upstreams in the configuration, keyed by what names them. */
function filesNamedBy({ environment, config }: LoadedConfiguration): Map<string, string> {
  const { provider, providers } = config
  const files = new Map<string, string>()
  for (const name of NAMES) {
    const path = environment[name]
    if (path && rowOf(name).file === 'read' && !OWN_CERTIFICATE.includes(name)) files.set(name, path)
  }
  const single = typeof provider === 'object' ? { provider } : {}
  for (const [id, { clientSecretFile, clientKeyFile, clientCertFile }] of Object.entries({ ...single, ...providers })) {
    if (clientSecretFile) files.set(`${id}.clientSecretFile`, clientSecretFile)
    if (clientKeyFile) files.set(`${id}.clientKeyFile`, clientKeyFile)
    if (clientCertFile) files.set(`${id}.clientCertFile`, clientCertFile)
  }
  for (const [name, file] of filesOfUpstreams(config)) files.set(name, file)
  return files
}

interface PartSources {
  readonly environment: Environment
  readonly settings: Settings
  readonly config: Config
}

function partsOf({ environment, settings, config }: PartSources, named: ReadonlyMap<string, string>) {
  const parts: Record<string, string> = {}
  for (const name of NAMES) {
    // A secret that was read from its file has both names; the content of the file is a part as well.
    if (isSecretFile(name)) parts[name] = fingerprintOf(environment[name])
    else if (!environment[`${name}_FILE`]) parts[name] = fingerprintOf(settings[name])
  }
  for (const [name, part] of Object.entries(config)) parts[name] = fingerprintOf(part)
  for (const [name, file] of named) parts[`content of ${name}`] = fingerprintOf(contentIn(settings, name, file))
  return parts
}

/** A secret as it was read, so that a later change of its file is noticed. A file that cannot be read is refused where it is used. */
function contentIn(settings: Settings, name: string, file: string): unknown {
  if (isSetting(name) && isSecretFile(name)) return settings[name]
  try {
    return statSync(file).isFile() ? readFileSync(file, 'latin1') : undefined
  } catch {
    return undefined
  }
}

/** Whether the value of the setting is the content of a file. */
function isSecretFile(name: Name): boolean {
  const { file, secret } = rowOf(name)
  return file !== undefined && secret === true
}

function rowOf(name: Name): Row<unknown> {
  return SETTINGS[name]
}

function changedParts(before: Snapshot['parts'], after: Snapshot['parts']): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter(name => before[name] !== after[name])
}
