// Menshen in the test's own process, with a clock that the test sets and a log that it can read.

import type { RequestListener } from 'node:http'
import { after, type TestContext } from 'node:test'
import type { JWTPayload } from 'jose'
import { wantsSocket } from '../../src/gateway/upgrade.ts'
import { type Config, createMenshen, readSettings } from '../../src/index.ts'
import { createEventLog } from '../../src/log.ts'
import { listenAddress, serve } from '../../src/server/serve.ts'
import { type Client, createClient, type Response, signIn } from './client.ts'
import { freePort } from './free-port.ts'
import type { Environment } from './instance.ts'
import { type OidcServer, signedInAt, startOidcServer } from './oidc-server.ts'
import { openScriptedProvider, type ScriptedProvider } from './scripted-provider.ts'
import type { Behaviour, User } from './strict-provider.ts'
import { createTestLog } from './test-log.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export interface GatewayOptions {
  config?: Config
  /** What the clock shows at first; the present for a gateway that talks to programs with a clock of their own. */
  now?: number
  /** Whether the clock runs; otherwise it shows the same until the test lets time pass. */
  hasRunningClock?: boolean
  /** Whether users sign in at the embedded development provider. */
  devProvider?: boolean
}

export interface SetUpOptions extends GatewayOptions {
  /** The settings besides those of the provider and the application. */
  env?: Environment
  /** How the provider behaves. */
  provider?: Partial<Behaviour>
  /** How the application answers; otherwise with `hello`. */
  answer?: RequestListener
  /** `false` for a gateway without an application behind it. */
  application?: boolean
}

/** A gateway, and the provider where its users sign in. */
export interface GatewayAndProvider extends Gateway {
  readonly provider: ScriptedProvider
  /** Signed in as this user. */
  user(username?: string, more?: Partial<User>): Promise<Client>
}

export interface Scene extends GatewayAndProvider {
  /** The application behind the gateway. */
  readonly upstream: Upstream
}

/** In place of a test, for what all tests of a file share: it ends after the last of them. */
export function wholeFile(): TestContext {
  const ends: (() => unknown)[] = []
  after(async () => {
    for (const end of ends.reverse()) await end()
  })
  return { after: (end: () => unknown) => void ends.push(end) } as unknown as TestContext
}

/** A provider, an application and the gateway in front of it. All of them end with the test. */
export function setUp(t: TestContext, options: SetUpOptions & { application: false }): Promise<GatewayAndProvider>
export function setUp(t: TestContext, options?: SetUpOptions): Promise<Scene>
export async function setUp(t: TestContext, options: SetUpOptions = {}): Promise<GatewayAndProvider> {
  const { env = {}, provider: behaviour, answer, application = true } = options
  const provider = await openScriptedProvider(t, behaviour)
  const upstream = application ? await startUpstream(t, answer) : undefined
  const settings = { ...(upstream && { UPSTREAM: upstream.url }), ...provider.settings, ...env }
  const gateway = await openGateway(t, settings, options)

  async function user(username = 'zhangsan', more: Partial<User> = {}): Promise<Client> {
    const client = gateway.visitor()
    await signIn(client, provider, { username, ...more })
    return client
  }
  return { ...gateway, provider, user, ...(upstream && { upstream }) }
}

export interface OidcSetUpOptions extends Omit<SetUpOptions, 'provider'> {
  /** What the provider's metadata say besides. */
  metadata?: object
}

export interface OidcGateway extends Gateway {
  readonly provider: OidcServer
  /** Signed in as the user with these claims, or as the same user as before. */
  user(claims?: JWTPayload): Promise<Client>
  /** A request of a machine with this access token. */
  bring(token: string, path: string, headers?: Record<string, string>): Promise<Response>
}

export interface OidcScene extends OidcGateway {
  readonly upstream: Upstream
}

/** As `setUp`, with an OpenID Connect provider that has the clock of the gateway. */
export function setUpOidc(t: TestContext, options: OidcSetUpOptions & { application: false }): Promise<OidcGateway>
export function setUpOidc(t: TestContext, options?: OidcSetUpOptions): Promise<OidcScene>
export async function setUpOidc(t: TestContext, options: OidcSetUpOptions = {}): Promise<OidcGateway> {
  const { env = {}, metadata = {}, answer, application = true } = options
  const provider = await startOidcServer(t, { metadata })
  const upstream = application ? await startUpstream(t, answer) : undefined
  const settings = { ...(upstream && { UPSTREAM: upstream.url }), ...provider.settings, ...env }
  const gateway = await openGateway(t, settings, options)
  provider.now = gateway.now
  return {
    ...gateway,
    provider,
    user(claims = provider.user) {
      provider.user = claims
      return signedInAt(gateway.url, gateway.now)
    },
    bring: (token, path, headers = {}) =>
      gateway.visitor().get(path, { headers: { authorization: `Bearer ${token}`, ...headers } }),
    ...(upstream && { upstream }),
  }
}

export type Gateway = Awaited<ReturnType<typeof openGateway>>

/**
 * The gateway alone, as the command serves it, for a test with a provider of its own kind. Sessions are kept in memory and
 * requests are not limited unless `env` says otherwise. It ends with the test.
 */
export async function openGateway(t: TestContext, env: Environment, options: GatewayOptions = {}) {
  const { config = {}, hasRunningClock, devProvider = false } = options
  const port = Number(env.PORT ?? (await freePort()))
  const began = hasRunningClock ? Date.now() : 0
  const clock = { now: options.now ?? (hasRunningClock ? began : Date.parse('2026-03-01T08:00:00Z')) }
  const readClock = () => clock.now + (hasRunningClock ? Date.now() - began : 0)
  const { lines, log } = createTestLog()
  const settings = readSettings({
    STORE: 'memory:',
    PORT: String(port),
    RATE_LIMIT_PER_MINUTE: '0',
    ...(devProvider && { DEV_PROVIDER_PORT: String(await freePort()) }),
    ...env,
  })
  const menshen = await createMenshen({ settings, config, log, now: readClock, devProvider })
  const { report } = createEventLog(log, Date.now)
  // Connections of the tests are closed as soon as Node does it, unless one says otherwise.
  const { keepAliveTimeoutMs, ...address } = listenAddress(settings)
  const keepAlive = env.KEEP_ALIVE_TIMEOUT_MS && keepAliveTimeoutMs ? { keepAliveTimeoutMs } : {}
  const server = await serve(
    { ...menshen, shouldUpgrade: wantsSocket },
    { ...address, ...keepAlive, port, host: '127.0.0.1', certificateGraceMs: 0 },
    report,
  )
  const url = `${settings.TLS_CERT_FILE ? 'https' : 'http'}://localhost:${port}`
  let ended: Promise<void> | undefined
  let closed: Promise<void> | undefined

  /** As SIGTERM does: what is under way may take this long. */
  function end(deadlineMs: number): Promise<void> {
    ended ??= server.close(deadlineMs)
    return ended
  }

  function close(): Promise<void> {
    closed ??= end(0).then(() => menshen.close())
    return closed
  }
  t.after(close)

  return {
    /** Where it listens: BASE_URL, unless `env` gives another. */
    url,
    baseUrl: settings.BASE_URL,
    lines,
    /** The fields of each event with this code. */
    eventsOf: (code: string) =>
      lines.filter(({ event }) => event === code).map(({ fields }) => Object(fields) as Record<string, unknown>),
    /** As a program has it. */
    menshen,
    now: readClock,
    passSeconds(seconds: number): void {
      clock.now += seconds * 1000
    },
    /** The browser of a visitor, whose cookies expire by the same clock. */
    client: createClient(url, readClock),
    /** The browser of another visitor. */
    visitor: (): Client => createClient(url, readClock),
    end,
    close,
  }
}
