// Opens what a Menshen keeps, for commands that run beside it: its store and the keys to it, and nothing else.

import { existsSync } from 'node:fs'
import type { Config } from '../config/config-file.ts'
import { findConfigFile, loadConfigFile } from '../config/load-config.ts'
import { readSettings, wantsDevProvider } from '../config/read.ts'
import type { Environment, Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { DEVELOPMENT_CLIENT } from '../options.ts'
import { planProviders } from '../provider/providers.ts'
import { readDataKeys } from '../session/data-keys.ts'
import { deriveKeys } from '../session/derived-keys.ts'
import type { DataKeys } from '../session/session-record.ts'
import { openStore } from '../stores/open-store.ts'
import type { Store } from '../stores/store.ts'
import type { Paint } from './terminal.ts'

/** How a command is run. */
export interface CommandRun {
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

export type KeptRecords = Awaited<ReturnType<typeof openKeptRecords>>

export async function openKeptRecords({ environment, now }: Pick<CommandRun, 'environment' | 'now'>) {
  const given = { settings: readSettings(environment), config: await loadConfig(environment) }
  const { settings, plans } = settingsInUse(environment, given)
  assertReadable(settings.STORE)
  const store = await openStore(settings.STORE, now, () => {})
  try {
    const derived = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
    const allKeys = await keysOf(store, derived)
    const [keys] = allKeys
    return { settings, store, allKeys, keyring: { current: async () => keys, latest: () => keys } }
  } catch (error) {
    await store.close()
    throw error
  }
}

function assertReadable(address: string): void {
  if (address === 'memory:')
    throw new MenshenError(
      'cannot_start',
      'STORE is "memory:", which only the Menshen that runs can see; expected a store that others can read too, for example lmdb:./data.',
    )
  const folder = address.startsWith('lmdb:') ? address.slice('lmdb:'.length) : undefined
  if (folder !== undefined && !existsSync(folder))
    throw new MenshenError('cannot_start', `There is no store in ${folder}: no Menshen has kept anything there yet.`)
}

async function keysOf(store: Store, derived: ReturnType<typeof deriveKeys>): Promise<[DataKeys, ...DataKeys[]]> {
  const [first, ...others] = derived.wrapping.length > 0 ? await readDataKeys(store, derived) : []
  if (first) return [first, ...others]
  throw new MenshenError(
    'bad_settings',
    'What the store keeps cannot be opened: SECRET, or without it CLIENT_SECRET, has to be the one that the running Menshen has.',
  )
}

// The settings that a start in this folder would use, for commands that look at what it keeps: with those of the development
// provider where that would be started.

export interface Given {
  readonly settings: Settings
  readonly config: Config
}

export async function loadConfig({ CONFIG }: Environment): Promise<Config> {
  return loadConfigFile(findConfigFile(process.cwd(), CONFIG || undefined))
}

export function settingsInUse(environment: Environment, { settings: given, config }: Given) {
  const isConfigured = config.provider !== undefined || config.providers !== undefined
  const isDevelopment = !isConfigured && wantsDevProvider(given)
  const AUTH_URL = `http://localhost:${given.DEV_PROVIDER_PORT}`
  const settings = isDevelopment ? readSettings({ ...environment, ...DEVELOPMENT_CLIENT, AUTH_URL }) : given
  return { settings, config, plans: planProviders(config, settings), isDevelopment }
}
