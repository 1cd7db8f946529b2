// The library's only door: the whole sign-in as one request listener.
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import type { Config } from './config-file.ts'
import { cookieNames } from './gateway/cookies.ts'
import { createUpgradeListener, type UpgradeListener } from './gateway/forward/upgrade.ts'
import { openUpstreams } from './gateway/forward/upstreams.ts'
import type { House } from './gateway/house.ts'
import { createIdentities } from './gateway/identity.ts'
import { createLandings } from './gateway/landing.ts'
import { createListener } from './gateway/listener.ts'
import { createOpenStreams } from './gateway/open-streams.ts'
import { createRateLimit } from './gateway/rate-limit.ts'
import type { Log } from './log.ts'
import { createProvider, type Provider } from './provider/provider.ts'
import { unconfiguredProvider } from './provider/unconfigured.ts'
import { Secret } from './secret.ts'
import { createAttempts } from './session/attempts.ts'
import { deriveKeys } from './session/keys.ts'
import { createRules } from './session/rules.ts'
import { createSessions } from './session/sessions.ts'
import { createSigningKeys } from './session/signing-keys.ts'
import { readSettings, type Settings } from './settings.ts'
import { openLimits, openStore } from './stores/open.ts'

export { type Config, defineConfig, type Role, type Rule } from './config-file.ts'
export { MenshenError } from './errors.ts'
export type { Log } from './log.ts'
export { type Environment, readSettings, type Settings } from './settings.ts'

export interface Menshen {
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** From now on every answer closes its connection, so that the next request goes elsewhere. */
  prepareToClose(): void
  /** Finishes the sign-ins and refreshes that are under way, and closes the store. */
  close(): Promise<void>
}

export interface MenshenOptions {
  readonly settings?: Settings
  readonly config?: Config
  readonly log: Log
  readonly now?: () => number
}

export async function createMenshen(options: MenshenOptions): Promise<Menshen> {
  const { settings = readSettings({}), config = {}, log, now = Date.now } = options
  const store = await openStore(settings.STORE, now, log, settings.SESSION_CACHE_SIZE)
  const provider = providerOf(settings, now)
  const keys = deriveKeys(settings.CLIENT_SECRET ?? new Secret(randomBytes(32).toString('hex')))
  const sessions = createSessions({ store, provider, keys, settings, now, log })
  const streams = createOpenStreams(sessions, log)
  const upstreams = openUpstreams(settings, config)
  const limits = await openLimits(settings.STORE)
  const door = { closing: false }
  const house: House = {
    door,
    settings,
    store,
    provider,
    keys,
    sessions,
    attempts: createAttempts({ store, settings, now }),
    rules: createRules(config.rules ?? []),
    cookies: cookieNames(settings),
    rateLimit: createRateLimit({
      perMinute: settings.RATE_LIMIT_PER_MINUTE,
      proxies: settings.TRUSTED_PROXIES,
      shared: limits?.client,
    }),
    log,
    now,
    identities: createIdentities(settings, createSigningKeys(store, keys.signing, now), now),
    upstreams,
    streams,
    landings: createLandings({ settings }),
  }
  const { listener, settle } = createListener(house)
  return {
    listener,
    upgradeListener: createUpgradeListener(house),
    prepareToClose() {
      door.closing = true
    },
    async close() {
      streams.stop()
      await upstreams.close()
      await settle()
      await sessions.settle()
      limits?.close()
      await provider.close()
      await store.close()
    },
  }
}

function providerOf(settings: Settings, now: () => number): Provider {
  const { AUTH_URL, CLIENT_ID, CLIENT_SECRET } = settings
  if (!AUTH_URL || !CLIENT_ID || !CLIENT_SECRET) return unconfiguredProvider()
  return createProvider({ authUrl: AUTH_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, settings, now })
}
