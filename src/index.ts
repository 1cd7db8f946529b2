// The library's only door: the whole sign-in as one request listener.
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { cookieNames } from './gateway/cookies.ts'
import { createListener } from './gateway/listener.ts'
import { createRateLimit } from './gateway/rate-limit.ts'
import type { Log } from './log.ts'
import { createProvider, type Provider } from './provider/provider.ts'
import { unconfiguredProvider } from './provider/unconfigured.ts'
import { Secret } from './secret.ts'
import { createAttempts } from './session/attempts.ts'
import { deriveKeys } from './session/keys.ts'
import { DEFAULT_RULES } from './session/rules.ts'
import { createSessions } from './session/sessions.ts'
import { readSettings, type Settings } from './settings.ts'
import { openStore } from './stores/open.ts'

export { MenshenError } from './errors.ts'
export type { Log } from './log.ts'
export { type Environment, readSettings, type Settings } from './settings.ts'

export interface Menshen {
  readonly listener: RequestListener
  close(): Promise<void>
}

export interface MenshenOptions {
  readonly settings?: Settings
  readonly log: Log
  readonly now?: () => number
}

export async function createMenshen({
  settings = readSettings({}),
  log,
  now = Date.now,
}: MenshenOptions): Promise<Menshen> {
  const store = await openStore(settings.STORE, now)
  const provider = providerOf(settings)
  const keys = deriveKeys(settings.CLIENT_SECRET ?? new Secret(randomBytes(32).toString('hex')))
  const listener = createListener({
    settings,
    store,
    provider,
    keys,
    sessions: createSessions({ store, provider, keys, settings, now, log }),
    attempts: createAttempts({ store, settings, now }),
    rules: DEFAULT_RULES,
    cookies: cookieNames(settings),
    rateLimit: createRateLimit(settings.RATE_LIMIT_PER_MINUTE),
    log,
    now,
  })
  return {
    listener,
    async close() {
      await provider.close()
      await store.close()
    },
  }
}

function providerOf(settings: Settings): Provider {
  const { AUTH_URL, CLIENT_ID, CLIENT_SECRET } = settings
  if (!AUTH_URL || !CLIENT_ID || !CLIENT_SECRET) return unconfiguredProvider()
  return createProvider({ authUrl: AUTH_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, settings })
}
