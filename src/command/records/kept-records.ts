// Opens what a Menshen keeps, for commands that run beside it: its store and the keys to it, and nothing else.
import { existsSync } from 'node:fs'
import { MenshenError } from '../../errors.ts'
import { readDataKeys } from '../../session/keys/data-keys.ts'
import { deriveKeys } from '../../session/keys/derived-keys.ts'
import type { DataKeys } from '../../session/session-record.ts'
import { type Environment, readSettings } from '../../settings/read.ts'
import { openStore } from '../../stores/open-store.ts'
import type { Store } from '../../stores/store.ts'
import { loadConfig, settingsInUse } from '../settings-in-use.ts'
import type { Paint } from '../terminal/colours.ts'

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
  demandReadable(settings.STORE)
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

function demandReadable(address: string): void {
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
