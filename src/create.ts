// Puts the parts together: settings in, the whole sign-in as a request listener out.
import type { RequestListener } from 'node:http'
import { createRules } from './access/rules.ts'
import { MenshenError } from './errors.ts'
import type { Report } from './events.ts'
import { createLostCookieDetector } from './gateway/admission/lost-cookie.ts'
import type { GatewayContext } from './gateway/context.ts'
import { createOpenStreams } from './gateway/forward/open-streams.ts'
import { createRequestHeaders } from './gateway/forward/request-headers.ts'
import { createUpgradeListener, type UpgradeListener } from './gateway/forward/upgrade.ts'
import { openUpstreams } from './gateway/forward/upstreams.ts'
import { cookieNames } from './gateway/http/cookies.ts'
import { createRateLimit } from './gateway/http/rate-limit.ts'
import { createSlowClients } from './gateway/http/slow-clients.ts'
import { createIdentities } from './gateway/identity/identity-headers.ts'
import { createListener } from './gateway/listener.ts'
import { createEventLog, type Log } from './log.ts'
import { createProvider, type Provider } from './provider/provider.ts'
import { unconfiguredProvider } from './provider/unconfigured.ts'
import { createAttempts } from './session/attempts.ts'
import { createDataKeyring, type DataKeyring } from './session/data-keys.ts'
import { deriveKeys } from './session/derived-keys.ts'
import { createSessions } from './session/sessions.ts'
import { createSigningKeys, type SigningKeys } from './session/signing-keys.ts'
import { type Config, checkConfig } from './settings/config-file.ts'
import { checkSettings, readSettings, type Settings } from './settings/read.ts'
import { openLimits, openStore } from './stores/open-store.ts'

export interface Menshen {
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** From now on every answer closes its connection, so that the next request goes elsewhere. */
  prepareToClose(): void
  /** Sockets and event streams: they would never end by themselves, and open anew elsewhere. */
  endStreams(): void
  /**
   * Ends the streams, finishes the sign-ins and refreshes that are under way, and closes the store. Answers of the
   * application have this long to arrive.
   */
  close(patienceMs?: number): Promise<void>
}

export interface MenshenOptions {
  readonly settings?: Settings
  readonly config?: Config
  readonly log: Log
  readonly now?: () => number
}

const CLOSE_PATIENCE_MS = 10_000

export async function createMenshen(options: MenshenOptions): Promise<Menshen> {
  const { log, now = Date.now } = options
  const settings = options.settings ? checkSettings(options.settings) : readSettings({})
  const config = checkConfig(options.config ?? {}, 'createMenshen', 'config')
  // Closed in reverse order: at the end, or at once if something that follows fails.
  await using opened = new AsyncDisposableStack()
  const { report } = opened.adopt(createEventLog(log, now), events => events.close())
  const signIn = await openSignIn(opened, { settings, now, report })
  const { store, keys, signingKeys, sessions } = signIn
  let patience = 0
  const upstreams = opened.adopt(openUpstreams(settings, config), upstreams => upstreams.close(patience))
  const cookies = cookieNames(settings)
  const identities = createIdentities({ settings, keys: signingKeys, now, report })
  const lifecycle = { closing: false }
  const context: GatewayContext = {
    settings,
    report,
    now,
    lifecycle,
    store,
    keys,
    sessions,
    upstreams,
    provider: signIn.provider,
    rateLimit: signIn.rateLimit,
    attempts: createAttempts({ store, settings, now }),
    rules: createRules(config.rules ?? []),
    cookies,
    identities,
    requestHeaders: createRequestHeaders({ settings, identities, cookies }),
    lostCookies: createLostCookieDetector({ settings }),
    streams: opened.adopt(createOpenStreams(sessions, report), streams => streams.stop()),
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
  const { listener, settle } = createListener(context)
  opened.defer(settle)
  const everything = opened.move()
  let closed: Promise<void> | undefined
  return {
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    prepareToClose() {
      lifecycle.closing = true
    },
    endStreams: () => upstreams.endStreams(),
    close(patienceMs = CLOSE_PATIENCE_MS) {
      patience = patienceMs
      upstreams.endStreams()
      closed ??= everything.disposeAsync()
      return closed
    },
  }
}

/** What signing in takes, with or without an application behind: the store, the provider, the keys, the sessions. */
async function openSignIn(
  opened: AsyncDisposableStack,
  { settings, now, report }: Pick<GatewayContext, 'settings' | 'now' | 'report'>,
) {
  const store = opened.adopt(await openStore(settings.STORE, now, report, settings.SESSION_CACHE_SIZE), store =>
    store.close(),
  )
  const provider = opened.adopt(providerOf(settings, now, report), provider => provider.close())
  const limits = opened.adopt(await openLimits(settings.STORE), limits => limits?.close())
  const rateLimit = createRateLimit({
    perMinute: settings.RATE_LIMIT_PER_MINUTE,
    proxies: settings.TRUSTED_PROXIES,
    shared: limits?.client,
    report,
  })
  const keys = deriveKeys(settings)
  const keyring = createDataKeyring({ store, keys, now, report })
  const signingKeys = createSigningKeys(store, keys.signing, now)
  await useSecrets(keyring, signingKeys)
  const sessions = createSessions({ store, provider, keyring, settings, now, report })
  opened.defer(() => sessions.settle())
  return { store, provider, rateLimit, keys, signingKeys, sessions }
}

/** A changed SECRET takes effect at the start. A store that is away is asked again when the keys are needed. */
async function useSecrets(keyring: DataKeyring, signingKeys: SigningKeys): Promise<void> {
  try {
    await keyring.current()
    await signingKeys.reseal()
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
  }
}

function providerOf(settings: Settings, now: () => number, report: Report): Provider {
  const { AUTH_URL, CLIENT_ID, CLIENT_SECRET } = settings
  if (!AUTH_URL || !CLIENT_ID || !CLIENT_SECRET) return unconfiguredProvider()
  return createProvider({ authUrl: AUTH_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, settings, now, report })
}
