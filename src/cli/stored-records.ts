// Opens the store and its keys, for commands that run beside a running Menshen.

import { loadConfiguration, settingsInUse } from '../config/load.ts'
import { hidePassword } from '../config/secret.ts'
import type { Environment } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { EVENTS, type Report } from '../events.ts'
import { planProviders } from '../provider/providers.ts'
import { needsDataKeys, newDataKeys, readDataKeys } from '../session/data-keys.ts'
import { deriveKeys } from '../session/derived-keys.ts'
import type { DataKeys } from '../session/record.ts'
import { openStore, storeFile } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import { phrase, phrasedError, phraseOf } from '../text/text.ts'
import { isAbsent } from '../util/is-present.ts'
import { safeJson, sanitize } from '../util/safe-text.ts'
import type { Paint } from './terminal.ts'

/** How a command is run. */
export interface CommandRun {
  readonly environment: Environment
  readonly now: () => number
  readonly paint: Paint
}

export type StoredRecords = Awaited<ReturnType<typeof openStoredRecords>>

/** `isList`: sessions or personal keys are only listed. If there are none, no secret is needed. */
export async function openStoredRecords(
  { environment, now }: Pick<CommandRun, 'environment' | 'now'>,
  { isList = false } = {},
) {
  const loaded = await loadConfiguration({ environment, folder: process.cwd() })
  const { settings } = settingsInUse(environment, loaded.settings, loaded.config)
  const [{ clientSecret }] = planProviders(loaded.config, settings)
  assertReadable(settings.STORE)
  let reason: string | undefined
  const store = await openStore(settings.STORE, now, (code, fields) => {
    if (code === 'store_unreachable') reason ??= String(fields?.reason)
  })
  try {
    const derived = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: clientSecret })
    const allKeys = await keysOf(store, derived, isList)
    const [keys] = allKeys
    const hasHosts = loaded.config.hosts !== undefined
    return { settings, hasHosts, store, allKeys, keyring: { current: async () => keys, latest: () => keys } }
  } catch (error) {
    await store.close()
    throw reason === undefined ? error : withRemedy(error, reason)
  }
}

/** Only Redis can be unreachable; the error of a file says what to do. */
function withRemedy(error: unknown, reason: string): unknown {
  const problem = error instanceof MenshenError && phraseOf(error)
  if (!problem) return error
  const seen = phrase('store_failed', { problem, reason: sanitize(hidePassword(reason), 200) })
  const remedy = phrase('check_store_server')
  return phrasedError('store_unavailable', phrase('cli.store_failed', { problem: seen, remedy }), error)
}

function assertReadable(address: string): void {
  if (address === 'memory:') throw phrasedError('cannot_start', phrase('cli.store_in_memory'))
  const file = storeFile(address)
  if (file !== undefined) assertExists(file)
}

/** Other failures are left to the opening of the store, whose error names the reason. */
export function assertExists(file: string): void {
  if (isAbsent(file)) throw phrasedError('cannot_start', phrase('cli.no_store', { file }))
}

async function keysOf(
  store: Store,
  derived: ReturnType<typeof deriveKeys>,
  isList: boolean,
): Promise<[DataKeys, ...DataKeys[]]> {
  const [first, ...others] = derived.wrapping.length > 0 ? await readDataKeys(store, derived) : []
  if (first) return [first, ...others]
  if (isList && !(await needsDataKeys(store))) return [newDataKeys()]
  throw phrasedError('bad_settings', phrase('cli.store_closed'))
}

/** For the audit of a command: writes problems to stderr, and makes the command fail. */
export const writeProblem: Report = (code, fields = {}) => {
  const { level, message } = EVENTS[code]
  if (level === 'info') return
  process.stderr.write(`${code}: ${message} ${safeJson(fields)}\n`)
  process.exitCode = 1
}
