// Assembles a running instance from settings and a configuration; reloads and closes it.

import type { RequestListener } from 'node:http'
import { DEFAULT_ROLES, rolesFor } from './access/roles.ts'
import { createRules, createScopedName } from './access/rules.ts'
import { cacheShares } from './config/cache-shares.ts'
import type { Config, Role } from './config/config-file.ts'
import { refuseBaseUrlAsUpstream } from './config/conflicts.ts'
import type { Settings } from './config/settings.ts'
import { createLiveStreams } from './console/live-streams.ts'
import { createExamination, createKnownFindings, type ReloadStatus, reloadFindings } from './doctor/doctor.ts'
import { createTestSignIns } from './doctor/test-sign-ins.ts'
import { MenshenError } from './errors.ts'
import { createLostCookieDetector } from './gateway/admission.ts'
import { createBearerCallers } from './gateway/bearer-callers.ts'
import type { GatewayContext } from './gateway/context.ts'
import { cookieNames } from './gateway/cookies.ts'
import { createEmbedded, type Embedded } from './gateway/embedded.ts'
import { type Hooks, NO_HOOKS } from './gateway/hooks.ts'
import { createIdentities } from './gateway/identity-headers.ts'
import { createListener } from './gateway/listener.ts'
import { createRateLimit } from './gateway/rate-limit.ts'
import { createFailedRequests, type OwnAnswer } from './gateway/respond.ts'
import { createOwnRoutes } from './gateway/routes.ts'
import type { Log } from './log.ts'
import { createAudit } from './observe/audit.ts'
import { createTrailReader } from './observe/audit-trail.ts'
import { createMetricsReader, type Gathering, gatherAlone } from './observe/exposition.ts'
import { type Observation, observedStore, openObservation } from './observe/observation.ts'
import { createLook, type Look } from './pages/look.ts'
import { createLanguages, type Languages } from './pages/words/words.ts'
import { assertVerifiable } from './provider/bearer.ts'
import type { ProviderOptions } from './provider/provider.ts'
import { createProviders, type Providers, planProviders } from './provider/providers.ts'
import { createOpenStreams } from './proxy/open-streams.ts'
import { createRequestHeaders } from './proxy/request-headers.ts'
import { createResponseHeaders } from './proxy/response-headers.ts'
import { createSlowClients } from './proxy/slow-clients.ts'
import { createUpgradeListener, type UpgradeListener } from './proxy/upgrade.ts'
import { createUpstreamPool } from './proxy/upstream-pool.ts'
import type { Upstreams } from './proxy/upstreams.ts'
import { createAttempts } from './session/attempts.ts'
import { createDataKeyring, type DataKeyring } from './session/data-keys.ts'
import { type DerivedKeys, deriveKeys, sameSecrets, secretProblem, withFormer } from './session/derived-keys.ts'
import { createSessions } from './session/sessions.ts'
import { createSigningKeys, type SigningKeys } from './session/signing-keys.ts'
import { openLimits, openStore } from './stores/open-store.ts'
import { fingerprintOf } from './util/fingerprint.ts'

/** `R` are the roles, and `F` the further fields of the user info, that the options name. */
export interface Menshen<R extends Role = Role, F extends string = string> extends Embedded<R, F> {
  /** For a server of node:http: our own routes, the rules, and the application behind. */
  readonly listener: RequestListener
  /** For the server's `upgrade` event. */
  readonly upgradeListener: UpgradeListener
  /** From now on every answer closes its connection, so that the next request goes elsewhere. */
  prepareToClose(): void
  /** Sockets and event streams: they would never end by themselves, and open anew elsewhere. */
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
export interface Core extends Menshen {
  /**
   * Checks other settings and another configuration as a whole, or throws. What it returns puts them in use: for requests that
   * come from then on. It tells of it with `facts`, if there are any.
   */
  prepare(settings: Settings, config: Config): (facts: ReloadFacts | undefined) => Promise<void>
  /** For the console: the files are not what runs. */
  noteRefused(refused: { file: string; detail: string }): void
}

export interface ReloadFacts {
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
  /** Functions of the program around us. */
  readonly hooks?: Hooks
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

const CLOSE_PATIENCE_MS = 10_000

/** What the command and the library start alike, from settings and a configuration that were checked. */
export async function createCore(options: CoreOptions): Promise<Core> {
  const configuration = checkWhole(options.settings, options.config)
  const patience = createShutdownDeadline()
  await using opened = new AsyncDisposableStack()
  const lasting = await openProcessParts(opened, patience, configuration, options)
  let current = buildConfigured(lasting, configuration)
  lasting.use(current)
  opened.defer(() => patience.wait(current.ownRoutes.settle()))
  const everything = opened.move()
  const endStreams = () => {
    lasting.liveStreams.end()
    lasting.upstreamPool.endStreams()
  }
  let closed: Promise<void> | undefined
  return {
    ...current.embedded,
    listener: (request, response) => current.listener(request, response),
    upgradeListener: (request, socket, head) => current.upgradeListener(request, socket, head),
    prepareToClose() {
      lasting.lifecycle.closing = true
    },
    endStreams,
    prepare(settings, config) {
      const next = prepareReload(lasting, current, checkWhole(settings, config))
      return async facts => {
        const before = current
        current = next
        lasting.use(next)
        lasting.reloads.reloadedAt = options.now()
        lasting.reloads.refused = undefined
        if (facts) lasting.report('config_reloaded', facts)
        await changeSecrets(lasting, before.keys, next.keys)
      }
    },
    noteRefused(refused) {
      lasting.reloads.refused = { ...refused, at: options.now() }
    },
    reopenFiles: () => lasting.audit.reopenFile(),
    close(patienceMs = CLOSE_PATIENCE_MS) {
      if (closed) return closed
      patience.start(patienceMs)
      lasting.lifecycle.closing = true
      endStreams()
      closed = everything.disposeAsync().finally(() => patience.stop())
      return closed
    },
  }
}

// What follows from the configuration: who may see what, where it leads, and how it looks. Made anew as a whole, on top of
// what lasts.

export type ConfiguredParts = ReturnType<typeof buildConfigured>

/** Changes nothing of what lasts. */
export function buildConfigured(
  lasting: ProcessParts,
  configuration: Configuration,
  directory: Directory = lasting.directory,
  keys: DerivedKeys = lasting.keys,
) {
  const { settings, config, plans, languages, look } = configuration
  const { store, signingKeys, now, report } = lasting
  const { providers, roles, rules, scopedName } = directory
  const cookies = cookieNames(settings)
  const identities = createIdentities({ settings, keys: signingKeys, now, report })
  const probe = createExamination({ settings, config, plans, store, now })
  const examine = async () => [...(await probe()), ...reloadFindings(lasting.reloads)]
  const upstreams = lasting.upstreamPool.choose(settings, config)
  const context: GatewayContext = {
    ...lasting,
    keys,
    settings,
    languages,
    look,
    providers,
    roles,
    upstreams,
    examine,
    findings: createKnownFindings(examine, now),
    rules,
    bearers: createBearerCallers({ providers, roles, scopedName, now }),
    cookies,
    identities,
    requestHeaders: createRequestHeaders({ settings, identities, cookies }),
    responseHeaders: createResponseHeaders({ settings, cookies, upstreams }),
  }
  const ownRoutes = createOwnRoutes(context, lasting.underway)
  const listener = createListener(context, ownRoutes)
  return {
    configuration,
    directory,
    upstreams,
    inUse: context,
    keys,
    ownRoutes,
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    embedded: createEmbedded(context, ownRoutes),
  }
}

// What lasts as long as the process does: the store, what observes, sessions, connections. Whatever the configuration says,
// it goes on with them.

type Basics = Pick<GatewayContext, 'settings' | 'now' | 'report' | 'measure'> &
  Pick<Observation, 'measureSync' | 'traceCall'>
type Options = Pick<CoreOptions, 'log' | 'now' | 'worker' | 'gatherMetrics' | 'hooks'>

/** What requests that were begun under a former configuration ask for. */
type InUse = ReturnType<GatewayContext['inUse']>

export type ProcessParts = Awaited<ReturnType<typeof openProcessParts>>

/** Closed in reverse order with the rest of `opened`: at the end, or at once if something that follows fails. */
export async function openProcessParts(
  opened: AsyncDisposableStack,
  patience: ShutdownDeadline,
  configuration: Configuration,
  { log, now, worker, gatherMetrics = gatherAlone, hooks = NO_HOOKS }: Options,
) {
  const { settings, plans } = configuration
  let mainProvider = plans[0].id
  const observed = await openObservation(opened, { settings, log, now, mainProvider: () => mainProvider })
  const { observation, metrics, series, shadowRefusals } = observed
  const { report, measure, measureSync, traceCall } = observation
  const basics: Basics = { settings, now, report, measure, measureSync, traceCall }
  const records = await openRecords(opened, patience, configuration, basics)
  const { store, keyring } = records
  const audit = opened.adopt(createAudit({ settings, store, keyring, now, report, worker }), audit =>
    audit.close(patience.leftMs()),
  )
  observed.join(audit)
  let directory = createDirectory(configuration, basics)
  opened.defer(() => patience.wait(directory.providers.close()))
  const rateLimit = await openRateLimit(opened, basics)
  const sessions = createSessions({ ...basics, ...directory, store, keyring })
  opened.defer(() => patience.wait(sessions.settle()))
  const upstreamPool = opened.adopt(createUpstreamPool(), pool => patience.wait(pool.close(patience.leftMs())))
  series.begin(store)
  opened.defer(() => patience.wait(series.close()))
  const rulesNow = () => directory.rules
  let inUse: InUse | undefined
  const readMetrics =
    metrics && createMetricsReader({ metrics, upstreams: upstreamPool, countSessions: () => store.count() })
  return {
    ...records,
    /** That of the first configuration. */
    directory,
    /** Another one is in use: sessions, streams and connections follow. */
    use({
      directory: next,
      upstreams,
      inUse: parts,
    }: {
      directory: Directory
      upstreams: Upstreams
      inUse: InUse
    }): void {
      upstreamPool.use(upstreams)
      inUse = parts
      if (next === directory) return
      directory = next
      mainProvider = next.providers.main.plan.id
      sessions.use(next)
    },
    inUse(): InUse {
      // There is no request before the first `use`.
      if (!inUse) throw new Error('no configuration is in use yet')
      return inUse
    },
    /** When a reload was done last, or refused. */
    reloads: {} as ReloadStatus,
    audit,
    observation,
    report,
    measure,
    traceCall,
    hooks,
    now,
    series,
    shadowRefusals,
    metrics: readMetrics && gatherMetrics(readMetrics),
    rateLimit,
    sessions,
    upstreamPool,
    lifecycle: { closing: false },
    /** What our own routes have begun. */
    underway: new Set<Promise<OwnAnswer>>(),
    liveStreams: createLiveStreams(),
    auditTrail: createTrailReader({ store, keyring }),
    attempts: createAttempts({ store, now }),
    trials: createTestSignIns({ store, now }),
    failedRequests: createFailedRequests({ settings }),
    lostCookies: createLostCookieDetector({ settings, now }),
    streams: opened.adopt(createOpenStreams(sessions, rulesNow, report), streams => streams.stop()),
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
}

/** What is kept, and the keys that open it. */
async function openRecords(
  opened: AsyncDisposableStack,
  patience: ShutdownDeadline,
  { plans: [plan] }: Configuration,
  { settings, now, report, measure, measureSync }: Basics,
) {
  const cache = { size: settings.SESSION_CACHE_SIZE, bytes: cacheShares(settings).recordBytes }
  const opening = await openStore(settings.STORE, now, report, cache)
  const store = opened.adopt(observedStore(opening, measure, measureSync), store => patience.wait(store.close()))
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
    proxies: settings.TRUSTED_PROXIES,
    shared: limits,
    report,
  })
}

/** A changed SECRET takes effect at once. A store that is away (`false`) is asked again when the keys are needed. */
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

// A configuration that was checked as a whole: what can be said about it without a store, at a start and at a reload alike.

export interface Configuration {
  readonly settings: Settings
  readonly config: Config
  readonly plans: ReturnType<typeof planProviders>
  readonly languages: Languages
  readonly look: Look
}

/** Of settings and a configuration file that were checked each by itself. */
export function checkWhole(settings: Settings, config: Config): Configuration {
  refuseBaseUrlAsUpstream(settings, config)
  const look = createLook(settings, config)
  const languages = createLanguages(settings, config, look)
  const plans = planProviders(config, settings)
  assertVerifiable(config.rules ?? [], plans)
  const problem = secretProblem(settings, plans[0])
  if (problem) throw new MenshenError('bad_settings', [{ setting: 'SECRET', message: problem }])
  return { settings, config, plans, languages, look }
}

// Who can sign in, who they are then, and what they may see: providers, roles, rules.

export type Directory = ReturnType<typeof createDirectory>

/** With `providers` that are there already, or with new ones. */
export function createDirectory(
  { config, plans }: Configuration,
  options: ProviderOptions,
  providers: Providers = createProviders(plans, options),
) {
  const ids = Object.keys(config.providers ?? {})
  return {
    providers,
    roles: rolesFor(config.roles ?? DEFAULT_ROLES, ids),
    scopedName: createScopedName(ids),
    rules: createRules(config.rules ?? []),
  }
}

// Another configuration in a process that runs: made and checked first, and then in use with one assignment. Requests in
// flight finish with what they began with.

/** What follows from the configuration, where nothing has changed the very same. Throws if it cannot be used. */
export function prepareReload(lasting: ProcessParts, now: ConfiguredParts, next: Configuration): ConfiguredParts {
  assertCompleteProviders(now.configuration, next)
  const directory = directoryFor(lasting, now, next)
  return buildConfigured(lasting, next, directory, keysFor(now, next))
}

/** Nobody could sign in any more. Who starts like that is told by the login page; who runs already goes on. */
function assertCompleteProviders(now: Configuration, next: Configuration): void {
  const missingIn = ({ plans }: Configuration) => plans.flatMap(({ missing }) => missing)
  const missing = missingIn(next)
  if (missing.length === 0 || missingIn(now).length > 0) return
  throw new MenshenError(
    'bad_settings',
    `${missing.join(', ')}: missing, so that nobody could sign in any more; expected what was there before.`,
  )
}

/** Providers that are as they were keep what they have learnt: metadata, keys. */
function directoryFor(lasting: ProcessParts, now: ConfiguredParts, next: Configuration): Directory {
  const before = now.configuration
  const isSame = (part: (configuration: Configuration) => unknown) =>
    fingerprintOf(part(before)) === fingerprintOf(part(next))
  const sameProviders = isSame(({ plans, config }) => [plans, Object.keys(config.providers ?? {})])
  if (sameProviders && isSame(({ config }) => [config.roles, config.rules])) return now.directory
  const providers = sameProviders ? now.directory.providers : undefined
  return createDirectory(next, { ...lasting, settings: next.settings }, providers)
}

function keysFor({ configuration, keys: before }: ConfiguredParts, { settings, plans }: Configuration): DerivedKeys {
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plans[0].clientSecret })
  if (sameSecrets(before, keys)) return before
  const isDerived = configuration.settings.SECRET === undefined && settings.SECRET === undefined
  // Whoever is on the way to the provider comes back with a return path that the client secret of before has signed.
  return isDerived ? { ...keys, returnPath: [...keys.returnPath, before.returnPath[0]] } : keys
}

/** What is sealed under the former secrets is sealed anew, and then they count no more. */
export async function changeSecrets(lasting: ProcessParts, before: DerivedKeys, next: DerivedKeys): Promise<void> {
  if (before === next) return
  const { keyring, signingKeys } = lasting
  const both = withFormer(next, before)
  keyring.use(both)
  signingKeys.use(both.signing)
  if (!(await useSecrets(keyring, signingKeys))) return
  keyring.use(next)
  signingKeys.use(next.signing)
}

// How long what is under way may still take once somebody wants to end. After that the rest is closed without it.

export interface ShutdownDeadline {
  start(patienceMs: number): void
  /** What is left of it. */
  leftMs(): number
  /** Waits for the work, or until the patience is over. */
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
      // What fails after the patience is over, nobody waits for.
      if (work instanceof Promise) work.catch(() => {})
      await Promise.race([work, over])
    },
    stop: () => clearTimeout(timer),
  }
}
