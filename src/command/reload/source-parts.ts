// What can change, part by part: settings, parts of the configuration, and the contents of files. Told apart by fingerprints,
// so that nobody learns a secret from what has changed.
import { readFileSync } from 'node:fs'
import type { Config } from '../../settings/config/config-file.ts'
import type { Environment, Name, Settings } from '../../settings/read.ts'
import { fingerprintOf } from '../../settings/reload/fingerprint.ts'
import { SETTINGS } from '../../settings/rows.ts'

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
