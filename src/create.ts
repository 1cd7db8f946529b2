// Puts the parts together: settings in, the whole sign-in as a request listener out.
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createRules } from './access/rules.ts'
import type { Report } from './events.ts'
import { createLostCookieDetector } from './gateway/admission/lost-cookie.ts'
import type { GatewayContext } from './gateway/context.ts'
import { createOpenStreams } from './gateway/forward/open-streams.ts'
import { createUpgradeListener, type UpgradeListener } from './gateway/forward/upgrade.ts'
import { openUpstreams } from './gateway/forward/upstreams.ts'
import { cookieNames } from './gateway/http/cookies.ts'
import { createRateLimit } from './gateway/http/rate-limit.ts'
import { createIdentities } from './gateway/identity/identity-headers.ts'
import { createListener } from './gateway/listener.ts'
import { createEventLog, type Log } from './log.ts'
import { createProvider, type Provider } from './provider/provider.ts'
import { unconfiguredProvider } from './provider/unconfigured.ts'
import { createAttempts } from './session/attempts.ts'
import { deriveKeys } from './session/derived-keys.ts'
import { createSessions } from './session/sessions.ts'
import { createSigningKeys } from './session/signing-keys.ts'
import type { Config } from './settings/config-file.ts'
import { readSettings, type Settings } from './settings/read.ts'
import { Secret } from './settings/secret.ts'
import { openLimits, openStore } from './stores/open-store.ts'

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
  const events = createEventLog(log, now)
  const { report } = events
  const store = await openStore(settings.STORE, now, report, settings.SESSION_CACHE_SIZE)
  const provider = providerOf(settings, now, report)
  const keys = deriveKeys(settings.CLIENT_SECRET ?? new Secret(randomBytes(32).toString('hex')))
  const sessions = createSessions({ store, provider, keys, settings, now, report })
  const streams = createOpenStreams(sessions, report)
  const upstreams = openUpstreams(settings, config)
  const limits = await openLimits(settings.STORE)
  const lifecycle = { closing: false }
  const context: GatewayContext = {
    lifecycle,
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
    report,
    now,
    identities: createIdentities({ settings, keys: createSigningKeys(store, keys.signing, now), now, report }),
    upstreams,
    streams,
    lostCookies: createLostCookieDetector({ settings }),
  }
  const { listener, settle } = createListener(context)
  return {
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    prepareToClose() {
      lifecycle.closing = true
    },
    async close() {
      streams.stop()
      await upstreams.close()
      await settle()
      await sessions.settle()
      limits?.close()
      await provider.close()
      await store.close()
      events.close()
    },
  }
}

function providerOf(settings: Settings, now: () => number, report: Report): Provider {
  const { AUTH_URL, CLIENT_ID, CLIENT_SECRET } = settings
  if (!AUTH_URL || !CLIENT_ID || !CLIENT_SECRET) return unconfiguredProvider()
  return createProvider({ authUrl: AUTH_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, settings, now, report })
}
