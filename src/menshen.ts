// Assembles a running instance from settings and a configuration; reloads and closes it.

import type { RequestListener } from 'node:http'
import { createReadTarget } from './access/request-path.ts'
import { DEFAULT_ROLES, rolesFor } from './access/roles.ts'
import { createRules, type Rules } from './access/rules.ts'
import { createScopedName } from './access/scoped-name.ts'
import { createHome } from './account/home.ts'
import { LANGUAGE_ROUTES } from './account/language.ts'
import { ACCOUNT_ROUTES } from './account/routes.ts'
import { cacheShares } from './config/cache-shares.ts'
import { type Config, type Role, upstreamsOfHost } from './config/config-file.ts'
import {
  refuseBaseUrlAsUpstream,
  refuseForwardedToken,
  refuseTakenHeaders,
  refuseTakenPaths,
} from './config/conflicts.ts'
import { fingerprintOf } from './config/fingerprint.ts'
import { refuseHosts } from './config/host-names.ts'
import type { Settings } from './config/settings.ts'
import { assertUpstreamFiles } from './config/upstream-files.ts'
import { createConsole } from './console/console.ts'
import { createLiveStreams } from './console/live-streams.ts'
import { createDevices } from './devices/devices.ts'
import { DEVICE_ROUTES } from './devices/routes.ts'
import { createExamination, createKnownFindings, type ReloadStatus, reloadFindings } from './doctor/doctor.ts'
import { createTestSignIns } from './doctor/test-sign-ins.ts'
import { MenshenError } from './errors.ts'
import type { Measure, MeasureSync, Report } from './events.ts'
import { type ClientErrorListener, createClientErrorListener } from './gateway/bad-requests.ts'
import type { GatewayContext, Observe } from './gateway/context.ts'
import type { Embedded } from './gateway/embedded.ts'
import { limitHeads } from './gateway/head-limit.ts'
import { createFailureAnswer, createNotFound } from './gateway/listener.ts'
import { createSite } from './gateway/site.ts'
import { STATUS_ROUTES } from './gateway/status.ts'
import { refuseFailure, type UpgradeListener, wantsSocket } from './gateway/upgrade.ts'
import { chooseBetween } from './hosts/choose.ts'
import { createHandoffLimit, LOGIN_OF_HOSTS } from './hosts/handoff.ts'
import { createKnownHosts } from './hosts/known-hosts.ts'
import { HANDOFF_ROUTES, hostRoutes } from './hosts/routes.ts'
import { createHostSite } from './hosts/site.ts'
import { createHandoffCodes, createHostTickets } from './hosts/tickets.ts'
import { createFailedRequests, type OwnAnswer, type Pages, transportSecurityOf } from './http/answers.ts'
import { cookieNames, ourCookies } from './http/cookies.ts'
import { createRateLimit } from './http/rate-limit.ts'
import { createBeginRequest } from './http/request.ts'
import { type BearerPolicy, createBearerCallers } from './identify/bearer.ts'
import { createLostCookieDetector } from './identify/lost-cookies.ts'
import { createProtectedResources } from './identify/protected-resources.ts'
import { createKeyCallers, type KeyCallers } from './keys/callers.ts'
import { createIdentifyByKey } from './keys/identify.ts'
import { createKeyOwners } from './keys/owners.ts'
import { createPersonalKeys } from './keys/personal-keys.ts'
import { createKeyUse } from './keys/use.ts'
import type { Log } from './log.ts'
import { createAudit } from './observe/audit.ts'
import { createTrailReader } from './observe/audit-trail.ts'
import { createMetricsReader, type Gathering, gatherAlone } from './observe/exposition.ts'
import type { EventCounter } from './observe/metrics.ts'
import { observedStore, openObservation } from './observe/observation.ts'
import { createLook, type Look } from './pages/look.ts'
import { createLanguages, type Languages } from './pages/words.ts'
import { ownPathsOf } from './paths.ts'
import { assertVerifiable } from './provider/bearer.ts'
import { assertIdTokens } from './provider/id-token.ts'
import type { ProviderOptions } from './provider/provider.ts'
import { createProviders, type Providers, planProviders } from './provider/providers.ts'
import { createIdentities } from './proxy/identity-headers.ts'
import { createOpenStreams } from './proxy/open-streams.ts'
import { createProxy } from './proxy/proxy.ts'
import { createUpstreamPool } from './proxy/upstream-pool.ts'
import type { Upstreams } from './proxy/upstreams.ts'
import type { ServedApplication } from './server/serve.ts'
import { createSlowClients } from './server/slow-clients.ts'
import { createDataKeyring, type DataKeyring } from './session/data-keys.ts'
import { type DerivedKeys, deriveKeys, sameSecrets, secretProblem, withFormer } from './session/derived-keys.ts'
import { userFields } from './session/session-fields.ts'
import { userIdOf } from './session/session-record.ts'
import { type ClosedSession, createSessions } from './session/sessions.ts'
import { createSigningKeys, type SigningKeys } from './session/signing-keys.ts'
import { createAttempts } from './sign-in/attempts.ts'
import { createAuthHost } from './sign-in/auth-host.ts'
import { createHookCalls, type Hooks, NO_HOOKS } from './sign-in/hooks.ts'
import { signInRoutes, signOutRoutes } from './sign-in/routes.ts'
import { openLimits, openStore } from './stores/open-store.ts'
import { watchWrites } from './stores/write-watch.ts'
import { createExchangedTokens } from './token-exchange/exchanged-tokens.ts'
import { createExchangedTokenFor, createExchangeToken } from './token-exchange/upstream-token.ts'

/** `R` are the roles, and `F` the further fields of the user info, that the options name. */
export interface Menshen<R extends Role = Role, F extends string = string> extends Embedded<R, F> {
  /** For a server of node:http: our own routes, the rules, and the application behind. */
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** For the server's `clientError` event: a page for requests whose headers are too large. */
  readonly clientErrorListener: ClientErrorListener
  /** From now on every answer closes its connection, so that the next request goes to another process. */
  prepareToClose(): void
  /** Ends sockets and event streams, which would not end on their own. Clients open them again, at another process. */
  endStreams(): void
  /** After the file of AUDIT_FILE was moved away. */
  reopenFiles(): void
  /**
   * Ends the streams, finishes the sign-ins and refreshes that are under way, and closes the store. Whatever is not done
   * after this long (10 s) is left behind. A second call is the same as the first.
   */
  close(patienceMs?: number): Promise<void>
}

/** What the command can do besides. */
export interface Core extends Menshen, ServedApplication {
  /**
   * Checks other settings and another configuration as a whole, or throws. The returned function puts them in use for requests
   * that come from then on, and reports `fields`, if there are any.
   */
  prepare(settings: Settings, config: Config): (fields: ReloadFields | undefined) => Promise<void>
  /** For the console: the files differ from what runs. */
  noteRefused(refused: { file: string; detail: string }): void
  /** For the metrics: the server uses a certificate that expires then, in milliseconds since the epoch. */
  noteCertificate(expiresAt: number): void
  /** Logs and counts an event. */
  readonly report: Report
}

export interface ReloadFields {
  /** The names of settings and of parts of the configuration. */
  readonly changed: string
  readonly rules: number
  readonly upstreams: number
}

export interface CoreOptions {
  readonly settings: Settings
  readonly config: Config
  readonly log: Log
  readonly now: () => number
  /** How metrics are put together with those of other processes. */
  readonly gatherMetrics?: Gathering
  /** Counts events that the command itself reports. */
  readonly countedEvents?: EventCounter
  /** Functions of the program around us. */
  readonly hooks?: Hooks
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

const CLOSE_WITHIN_MS = 10_000

/** Starts an instance, for the command and for the library, from settings and a configuration that were checked. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const configuration = checkWhole(options.settings, options.config)
  const deadline = createShutdownDeadline()
  await using opened = new AsyncDisposableStack()
  const parts = await openProcessParts(opened, deadline, configuration, options)
  let current = buildConfigured(parts, configuration)
  parts.use(current)
  opened.defer(() => deadline.wait(current.ownRoutes.settle()))
  const everything = opened.move()
  const endStreams = () => {
    parts.liveStreams.end()
    parts.upstreamPool.endStreams()
  }
  let closed: Promise<void> | undefined
  return {
    ...current.embedded,
    listener: (request, response) => current.listener(request, response),
    upgradeListener: (request, socket, head) => current.upgradeListener(request, socket, head),
    clientErrorListener: (error, socket) => current.clientErrorListener(error, socket),
    shouldUpgrade: wantsSocket,
    prepareToClose() {
      parts.lifecycle.closing = true
    },
    endStreams,
    prepare(settings, config) {
      const next = prepareReload(parts, current, checkWhole(settings, config))
      return async fields => {
        const before = current
        current = next
        parts.use(next)
        parts.reloads.reloadedAt = options.now()
        parts.reloads.refused = undefined
        if (fields) parts.observe.report('config_reloaded', fields)
        await changeSecrets(parts, before.keys, next.keys)
      }
    },
    report: parts.observe.report,
    noteRefused(refused) {
      parts.reloads.refused = { ...refused, at: options.now() }
    },
    noteCertificate(expiresAt) {
      parts.certificate.expiresAt = expiresAt
    },
    reopenFiles: () => parts.audit.reopenFile(),
    close(patienceMs = CLOSE_WITHIN_MS) {
      if (closed) return closed
      deadline.start(patienceMs)
      parts.lifecycle.closing = true
      endStreams()
      closed = everything.disposeAsync().finally(() => deadline.stop())
      return closed
    },
  }
}

// The parts that follow from the configuration. A reload builds all of them again, on top of the process parts.

export type ConfiguredParts = ReturnType<typeof buildConfigured>

/** Changes no process part. */
export function buildConfigured(
  parts: ProcessParts,
  configuration: Configuration,
  directory: AccessPolicy = parts.directory,
  keys: DerivedKeys = parts.keys,
) {
  const { settings, config } = configuration
  const { rules, hostRules } = directory
  const { contextOf, cookies, paths, bearers, keyCallers } = createContexts(parts, configuration, directory, keys)
  const pending = parts.pendingAnswers
  const everywhere = { ...STATUS_ROUTES, ...LANGUAGE_ROUTES, ...signOutRoutes(paths) }

  const hosts = config.hosts && createKnownHosts(settings, hostRules, parts.hostTickets)
  const upstreams = parts.upstreamPool.choose(settings, config)
  const site = createAuthHost(cookies, parts.now, hosts && LOGIN_OF_HOSTS)
  const authHost = { ...contextOf({ settings, site, rules, upstreams }), hostRules, hosts }
  const authHostRoutes = {
    ...everywhere,
    ...signInRoutes(paths),
    ...ACCOUNT_ROUTES,
    ...DEVICE_ROUTES,
    ...createConsole(authHost, parts.liveStreams),
  }
  const home = createHome(authHost)
  const authHostSite = hosts
    ? createSite({ ...authHost, hosts }, { routes: { ...authHostRoutes, ...HANDOFF_ROUTES }, home, pending })
    : createSite(authHost, { routes: authHostRoutes, home, pending })

  const applicationHosts = Object.entries(config.hosts ?? {}).map(([name, hostConfig]) => {
    const ofHost = settingsOfHost(settings, name)
    const host = { name, authHost: settings.BASE_URL, ...parts.hostTickets }
    const context = {
      ...contextOf({
        settings: ofHost,
        site: createHostSite(host, { settings, cookies, now: parts.now }),
        rules: hostRules.get(name) ?? NO_RULES,
        upstreams: parts.upstreamPool.choose(ofHost, { upstreams: upstreamsOfHost(hostConfig) }),
        currentRules: () => parts.currentHostRules(name),
      }),
      host,
    }
    const routes = { ...everywhere, ...hostRoutes(paths) }
    const site = createSite(context, { routes, home: createNotFound(context), pending })
    return { name, site, upstreams: context.proxy.upstreams.all }
  })
  const hostSites = new Map(applicationHosts.map(({ name, site }) => [name, site]))
  const served = limitHeads(authHost, hosts ? chooseBetween(authHost, authHostSite, hostSites) : authHostSite)
  return {
    configuration,
    directory,
    upstreams: { all: [...upstreams.all, ...applicationHosts.flatMap(({ upstreams }) => upstreams)] },
    policy: { settings, rules, bearers, keyCallers },
    keys,
    ownRoutes: authHostSite.ownRoutes,
    listener: served.listener,
    upgradeListener: served.upgradeListener,
    clientErrorListener: createClientErrorListener(authHost),
    embedded: served.embedded,
  }
}

/** What differs between the sites: BASE_URL, and the hosts of `hosts`. */
interface SiteParts extends Pick<GatewayContext, 'settings' | 'site'> {
  readonly rules: Rules
  /** Of a host: those of the configuration that is in use by then; `undefined` if the host is gone. */
  readonly currentRules?: () => Rules | undefined
  readonly upstreams: Upstreams
}

/** The parts that all sites share, and a function that adds those of one site. */
function createContexts(
  parts: ProcessParts,
  { settings, config, plans, languages, look }: Configuration,
  { providers, roles, scopedName }: AccessPolicy,
  keys: DerivedKeys,
) {
  const { store, now, observe, sessions, rateLimit, personalKeys, exchangedTokens } = parts
  const { report } = observe
  const paths = ownPathsOf(settings, Object.keys(config.providers ?? {}))
  const cookies = cookieNames(settings)
  const identities = createIdentities({ settings, keys: parts.signingKeys, now, report })
  const bearers = createBearerCallers({ providers, roles, scopedName, now })
  const [mainProvider] = Object.keys(config.providers ?? {})
  const keyCallers = createKeyCallers({ machines: config.machines, personalKeys, roles, mainProvider, now })
  const probe = createExamination({ settings, config, plans, store, now })
  const examine = async () => [...(await probe()), ...reloadFindings(parts.reloads)]
  const shared = {
    paths,
    now,
    readTarget: createReadTarget(),
    store,
    lifecycle: parts.lifecycle,
    identities,
    exchangeToken: createExchangeToken(exchangedTokens, report),
    observe: { ...observe, beginRequest: createBeginRequest(settings.TRUSTED_PROXIES) },
    doctor: { examine, findings: createKnownFindings(examine, now), testSignIns: parts.testSignIns },
  }
  const auth = {
    providers,
    sessions,
    attempts: parts.attempts,
    bearers,
    personalKeys,
    roles,
    keys,
    cookies,
    lostCookies: parts.lostCookies,
    rateLimit,
    hooks: createHookCalls({ hooks: parts.hooks, providers, settings, report }),
    async onSignOut(ticket: string, closed: ClosedSession) {
      // Tickets of hosts lead nowhere without the session, and expire with it at the latest.
      if (config.hosts) await parts.hostTickets.tickets.removeAllOf(closed.key).catch(() => {})
      await exchangedTokens.endAllOf(ticket, closed).catch(() => {})
    },
  }
  const exchangedToken = createExchangedTokenFor(exchangedTokens, report)
  const ownCookies = ourCookies(cookies)

  function contextOf({ settings, site, rules, upstreams, currentRules }: SiteParts) {
    const { isAuthHost } = site
    const pages: Pages = { settings, languages, look, cookies, paths }
    /** By the configuration that is in use by then, for requests that began under a former one. */
    const currentPolicy = () => {
      const policy = parts.currentPolicy()
      if (isAuthHost) return policy
      const { BASE_URL } = settings
      return { ...policy, settings: { ...policy.settings, BASE_URL }, rules: currentRules?.() ?? NO_RULES }
    }
    const currentKeys = () => {
      const { rules, keyCallers: callers } = currentPolicy()
      return { rules, callers }
    }
    return {
      ...shared,
      settings,
      site,
      pages,
      auth: {
        ...auth,
        rules,
        currentPolicy,
        devices: createDevices({ settings, isAuthHost, cookies, sessions, now, report }),
        identifyByKey: createIdentifyByKey({
          rules,
          callers: keyCallers,
          use: parts.keyUse,
          current: currentKeys,
          rateLimit,
          report,
        }),
      },
      resources: createProtectedResources(settings.BASE_URL, rules, providers),
      proxy: createProxy({
        settings,
        upstreams,
        identities,
        exchangedToken,
        ownCookies,
        transportSecurity: transportSecurityOf(settings),
        rules,
        currentRules,
        streams: parts.streams,
        slowClients: parts.slowClients,
        lifecycle: parts.lifecycle,
        report,
        answered: observe.answered,
        answerFailure: createFailureAnswer(pages),
        refuseFailure,
      }),
    }
  }

  return { contextOf, cookies, paths, bearers, keyCallers }
}

const NO_RULES = createRules([])

/** Its own address; the audience of assertions that forward-auth gives; and nothing of the application of BASE_URL. */
function settingsOfHost(settings: Settings, name: string): Settings {
  const address = `${new URL(settings.BASE_URL).protocol}//${name}`
  return { ...settings, BASE_URL: address, UPSTREAM: undefined, ASSERTION_AUDIENCE: address }
}

// The parts that live as long as the process, whatever the configuration: the store, observation, sessions, connections.

/** What decides about tokens and keys. */
interface Policy extends BearerPolicy {
  readonly keyCallers: KeyCallers
}

interface Basics extends ProviderOptions {
  readonly settings: Settings
  readonly measure: Measure
  readonly measureSync: MeasureSync | undefined
}
type Options = Pick<CoreOptions, 'log' | 'now' | 'worker' | 'gatherMetrics' | 'countedEvents' | 'hooks'>

export type ProcessParts = Awaited<ReturnType<typeof openProcessParts>>

/** Closed in reverse order with the rest of `opened`: at the end, or immediately if a later part fails to open. */
export async function openProcessParts(
  opened: AsyncDisposableStack,
  deadline: ShutdownDeadline,
  configuration: Configuration,
  { log, now, worker, gatherMetrics = gatherAlone, countedEvents, hooks = NO_HOOKS }: Options,
) {
  const { settings, plans } = configuration
  let mainProvider = plans[0].id
  const observed = await openObservation(opened, {
    settings,
    log,
    now,
    worker,
    mainProvider: () => mainProvider,
    countedEvents,
  })
  const { observation, metrics, series: history, shadowRefusals } = observed
  const { report, measure, measureSync, traceCall } = observation
  const basics: Basics = { settings, now, report, measure, measureSync, traceCall }
  const records = await openRecords(opened, deadline, configuration, basics)
  const { store, keyring } = records
  const audit = opened.adopt(createAudit({ settings, store, keyring, now, report, worker }), audit =>
    audit.close(deadline.leftMs()),
  )
  observed.join(audit)
  let directory = createAccessPolicy(configuration, basics)
  opened.defer(() => deadline.wait(directory.providers.close()))
  const rateLimit = await openRateLimit(opened, basics)
  const owners = createKeyOwners({ store, keyring })
  const personalKeys = createPersonalKeys({ ...basics, directory, store, keyring, owners })
  opened.defer(() => deadline.wait(personalKeys.settle()))
  const keyUse = createKeyUse({ store, now, report })
  opened.defer(() => deadline.wait(keyUse.settle()))
  const sessions = createSessions({
    ...basics,
    ...directory,
    store,
    keyring,
    onUserConfirmed: owners.confirm,
    async onUserRefused({ session }) {
      const revoked = await personalKeys.endAllOf(userIdOf(session))
      if (revoked > 0) report('key_revoked', { ...userFields(session), by: 'provider', revoked })
    },
  })
  await sessions.begin(settings)
  opened.defer(() => deadline.wait(sessions.settle()))
  const exchangedTokens = createExchangedTokens({
    ...basics,
    store,
    providers: { get: id => directory.providers.get(id) },
  })
  opened.defer(() => deadline.wait(exchangedTokens.settle()))
  const upstreamPool = opened.adopt(createUpstreamPool(), pool => deadline.wait(pool.close(deadline.leftMs())))
  history.begin({ store, keyring })
  opened.defer(() => deadline.wait(history.close()))
  const currentRules = () => directory.rules
  const currentHostRules = (name: string) => directory.hostRules.get(name)
  let policy: Policy | undefined
  const certificate: { expiresAt?: number } = {}
  const readMetrics =
    metrics &&
    createMetricsReader({
      metrics,
      upstreams: upstreamPool,
      countSessions: () => store.count(),
      certificateExpiry: () => certificate.expiresAt,
    })
  const observe: Omit<Observe, 'beginRequest'> = {
    ...observation,
    history,
    auditTrail: createTrailReader({ store, keyring }),
    shadowRefusals,
    failedRequests: createFailedRequests(),
    metrics: readMetrics && gatherMetrics(readMetrics),
  }
  return {
    ...records,
    /** That of the first configuration. */
    directory,
    /** Sessions, streams and connections follow the configuration that is in use from now on. */
    use(next: {
      configuration: Configuration
      directory: AccessPolicy
      upstreams: Pick<Upstreams, 'all'>
      policy: Policy
    }): void {
      upstreamPool.use(next.upstreams)
      policy = next.policy
      sessions.useSettings(next.configuration.settings)
      if (next.directory === directory) return
      directory = next.directory
      mainProvider = directory.providers.main.plan.id
      sessions.use(directory)
      personalKeys.use(directory)
    },
    currentPolicy(): Policy {
      // There is no request before the first `use`.
      if (!policy) throw new Error('no configuration is in use yet')
      return policy
    },
    /** When the configuration was reloaded last, or a reload refused. */
    reloads: {} as ReloadStatus,
    /** That of the server, if it has one. */
    certificate,
    basics,
    audit,
    observe,
    hooks,
    now,
    rateLimit,
    sessions,
    personalKeys,
    keyUse,
    exchangedTokens,
    upstreamPool,
    lifecycle: { closing: false },
    /** Answers of our own routes that have begun. */
    pendingAnswers: new Set<Promise<OwnAnswer>>(),
    liveStreams: createLiveStreams(),
    attempts: createAttempts({ settings, store, now }),
    testSignIns: createTestSignIns({ store, now }),
    lostCookies: createLostCookieDetector({ settings, now }),
    streams: opened.adopt(createOpenStreams(sessions, currentRules, report, now), streams => streams.stop()),
    currentHostRules,
    hostTickets: {
      tickets: createHostTickets({ store, settings }),
      codes: createHandoffCodes({ store, now }),
      mayHandOff: createHandoffLimit(now),
    },
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
}

/** The store, and the keys that open its records. */
async function openRecords(
  opened: AsyncDisposableStack,
  deadline: ShutdownDeadline,
  { plans: [plan] }: Configuration,
  { settings, now, report, measure, measureSync }: Basics,
) {
  const cache = { size: settings.SESSION_CACHE_SIZE, bytes: cacheShares(settings).recordBytes }
  const opening = await openStore(settings.STORE, now, report, cache)
  const observed = observedStore(opening, measure, measureSync)
  const store = opened.adopt(watchWrites(observed, { now, report }), store => deadline.wait(store.close()))
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plan.clientSecret })
  const keyring = createDataKeyring({ store, keys, now, report })
  const signingKeys = createSigningKeys(store, keys.signing, now)
  await useSecrets(keyring, signingKeys)
  return { store, keys, keyring, signingKeys }
}

async function openRateLimit(opened: AsyncDisposableStack, { settings, report }: Basics) {
  const limits = opened.adopt(await openLimits(settings.STORE), limits => limits?.close())
  return createRateLimit({
    perMinute: settings.RATE_LIMIT_PER_MINUTE,
    shared: limits,
    report,
  })
}

/** A changed SECRET takes effect immediately. With `false` the store was unavailable: it is asked again when the keys are needed. */
export async function useSecrets(keyring: DataKeyring, signingKeys: SigningKeys): Promise<boolean> {
  try {
    await keyring.current()
    await signingKeys.reseal()
    return true
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return false
  }
}

// A configuration that was checked as a whole, as far as that is possible without a store. For start and reload.

export interface Configuration {
  readonly settings: Settings
  readonly config: Config
  readonly plans: ReturnType<typeof planProviders>
  readonly languages: Languages
  readonly look: Look
}

/** Settings and configuration file were checked separately before. */
export function checkWhole(settings: Settings, config: Config): Configuration {
  refuseBaseUrlAsUpstream(settings, config)
  // The configuration of the command was checked when its file was loaded.
  refuseTakenPaths(settings, config, 'createMenshen')
  refuseHosts(settings, config, 'createMenshen')
  refuseTakenHeaders(settings, config, 'createMenshen')
  refuseForwardedToken(settings, config)
  assertUpstreamFiles(config, 'createMenshen')
  const look = createLook(settings, config)
  const languages = createLanguages(settings, config, look)
  const plans = planProviders(config, settings)
  assertVerifiable(config.rules ?? [], plans)
  assertIdTokens(config.rules ?? [], plans)
  for (const [name, { rules = [] }] of Object.entries(config.hosts ?? {})) {
    assertVerifiable(rules, plans, `hosts.${name}.rules`)
    assertIdTokens(rules, plans, `hosts.${name}.rules`)
  }
  const problem = secretProblem(settings, plans[0])
  if (problem) throw new MenshenError('bad_settings', [{ setting: 'SECRET', message: problem }])
  return { settings, config, plans, languages, look }
}

// Providers, roles and rules: who can sign in, and what they may see.

export type AccessPolicy = ReturnType<typeof createAccessPolicy>

/** With the given providers, or with new ones. */
export function createAccessPolicy(
  { config, plans }: Configuration,
  options: ProviderOptions,
  providers: Providers = createProviders(plans, options),
) {
  const ids = Object.keys(config.providers ?? {})
  return {
    providers,
    roles: rolesFor(config.roles ?? DEFAULT_ROLES, ids),
    scopedName: createScopedName(ids),
    rules: createRules(config.rules ?? [], Object.keys(config.upstreams ?? {})),
    hostRules: new Map(
      Object.entries(config.hosts ?? {}).map(([name, host]) => [
        name,
        createRules(host.rules ?? [], Object.keys(upstreamsOfHost(host))),
      ]),
    ),
  }
}

// Reload: another configuration is built and checked first, and then put in use with one assignment. Requests in flight
// finish with the configuration that they began with.

/** Parts that have not changed stay the same objects. Throws if the configuration cannot be used. */
export function prepareReload(parts: ProcessParts, now: ConfiguredParts, next: Configuration): ConfiguredParts {
  assertCompleteProviders(now.configuration, next)
  const directory = directoryFor(parts, now, next)
  return buildConfigured(parts, next, directory, keysFor(now, next))
}

/** Without complete providers nobody could sign in any more. At a start the login page says so; a reload is refused. */
function assertCompleteProviders(now: Configuration, next: Configuration): void {
  const missingIn = ({ plans }: Configuration) => plans.flatMap(({ missing }) => missing)
  const missing = missingIn(next)
  if (missing.length === 0 || missingIn(now).length > 0) return
  throw new MenshenError(
    'bad_settings',
    `${missing.join(', ')}: missing, so that nobody could sign in any more; expected what was there before.`,
  )
}

/** Providers that have not changed keep their metadata and keys. */
function directoryFor(parts: ProcessParts, now: ConfiguredParts, next: Configuration): AccessPolicy {
  const before = now.configuration
  const isSame = (part: (configuration: Configuration) => unknown) =>
    fingerprintOf(part(before)) === fingerprintOf(part(next))
  const sameProviders = isSame(({ plans, config }) => [plans, Object.keys(config.providers ?? {})])
  if (sameProviders && isSame(({ config }) => [config.roles, config.rules, config.hosts])) return now.directory
  const providers = sameProviders ? now.directory.providers : undefined
  return createAccessPolicy(next, { ...parts.basics, settings: next.settings }, providers)
}

function keysFor({ configuration, keys: before }: ConfiguredParts, { settings, plans }: Configuration): DerivedKeys {
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
  if (sameSecrets(before, keys)) return before
  const isDerived = configuration.settings.SECRET === undefined && settings.SECRET === undefined
  // A browser that is at the provider now comes back with a return path that the previous client secret has signed.
  return isDerived ? { ...keys, returnPath: [...keys.returnPath, before.returnPath[0]] } : keys
}

/** Seals again what is sealed under the former secrets; after that they do not count any more. */
export async function changeSecrets(parts: ProcessParts, before: DerivedKeys, next: DerivedKeys): Promise<void> {
  if (before === next) return
  const { keyring, signingKeys } = parts
  const both = withFormer(next, before)
  keyring.use(both)
  signingKeys.use(both.signing)
  if (!(await useSecrets(keyring, signingKeys))) return
  keyring.use(next)
  signingKeys.use(next.signing)
}

// The deadline of a shutdown. After it, parts are closed without waiting for the work that has not finished.

export interface ShutdownDeadline {
  start(patienceMs: number): void
  /** The time that is left. */
  leftMs(): number
  /** Waits for the work, or until the deadline. */
  wait(work: Promise<unknown> | unknown): Promise<void>
  stop(): void
}

export function createShutdownDeadline(): ShutdownDeadline {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let endsAt = Number.POSITIVE_INFINITY
  return {
    start(patienceMs) {
      endsAt = performance.now() + patienceMs
      timer = setTimeout(end, patienceMs)
    },
    leftMs: () => Math.max(0, endsAt - performance.now()),
    async wait(work) {
      await Promise.race([work, over])
    },
    stop: () => clearTimeout(timer),
  }
}
