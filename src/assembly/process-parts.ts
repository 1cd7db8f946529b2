// The parts that live as long as the process, independently of the configuration: the store, observation, sessions, connections.

import type { Rules } from '../access/rules.ts'
import { cacheShares } from '../config/cache-shares.ts'
import type { Settings } from '../config/settings.ts'
import { createLiveStreams, type LiveStreams } from '../console/live-streams.ts'
import type { ReloadStatus } from '../doctor/doctor.ts'
import { createTestSignIns, type TestSignIns } from '../doctor/test-sign-ins.ts'
import { MenshenError } from '../errors.ts'
import type { Observe } from '../gateway/context.ts'
import type { KnownHosts } from '../hosts/context.ts'
import { createHandoffLimit } from '../hosts/handoff.ts'
import { createHandoffCodes, createHostTickets } from '../hosts/tickets.ts'
import { createFailedRequests, type OwnAnswer } from '../http/answers.ts'
import { createRateLimit, type RateLimit } from '../http/rate-limit.ts'
import type { BearerPolicy } from '../identify/bearer.ts'
import { createLostCookieDetector, type LostCookieDetector } from '../identify/lost-cookies.ts'
import type { KeyCallers } from '../keys/callers.ts'
import { createKeyOwners } from '../keys/owners.ts'
import { createPersonalKeys, type PersonalKeys } from '../keys/personal.ts'
import { createKeyUse, type KeyUse } from '../keys/use.ts'
import type { Log } from '../log.ts'
import type { Measure, MeasureSync } from '../measure.ts'
import { type Audit, createAudit } from '../observe/audit.ts'
import { createTrailReader } from '../observe/audit-trail.ts'
import { createMetricsReader, type GatherMetrics, gatherAlone } from '../observe/exposition.ts'
import type { EventCounter } from '../observe/metrics.ts'
import { observedStore, openObservation } from '../observe/observation.ts'
import type { ProviderOptions } from '../provider/provider.ts'
import { scopeOf } from '../provider/providers.ts'
import { createOpenStreams, type OpenStreams } from '../proxy/open-streams.ts'
import { createUpstreamPool, type UpstreamPool } from '../proxy/upstream-pool.ts'
import type { Upstreams } from '../proxy/upstreams.ts'
import { createSlowClients, type SlowClients } from '../server/slow-clients.ts'
import { createDataKeyring, type DataKeyring } from '../session/data-keys.ts'
import { type DerivedKeys, deriveKeys } from '../session/derived-keys.ts'
import { createEndSignals, type EndSignals } from '../session/end-signals.ts'
import { userFields } from '../session/fields.ts'
import { userIdOf } from '../session/record.ts'
import { createSessions, type Sessions } from '../session/sessions.ts'
import { createSigningKeys, type SigningKeys } from '../session/signing-keys.ts'
import { type Attempts, createAttempts } from '../sign-in/attempts.ts'
import { type Hooks, NO_HOOKS } from '../sign-in/hooks.ts'
import { createReplacedSessions, type ReplacedSessions } from '../sign-in/replaced-sessions.ts'
import { openLimits, openStore } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import { watchWrites } from '../stores/write-watch.ts'
import { createExchangedTokens, type ExchangedTokens } from '../token-exchange/exchanged-tokens.ts'
import { type AccessPolicy, type Configuration, createAccessPolicy } from './configuration.ts'
import type { ShutdownDeadline } from './shutdown-deadline.ts'

/** Decides about tokens and keys. */
export interface Policy extends BearerPolicy {
  readonly keyCallers: KeyCallers
}

interface Basics extends ProviderOptions {
  readonly settings: Settings
  readonly measure: Measure
  readonly measureSync: MeasureSync | undefined
}

export interface ProcessOptions {
  readonly log: Log
  readonly now: () => number
  /** Combines metrics with those of other processes. */
  readonly gatherMetrics?: GatherMetrics
  /** Counts events that the command itself reports. */
  readonly countedEvents?: EventCounter
  /** Functions of the application around us. */
  readonly hooks?: Hooks
  /** Used instead of a new store for `memory:`. */
  readonly memoryStore?: Store | undefined
  /** The number of this process, if there are several. */
  readonly worker?: number | undefined
}

/** The store, and the keys that open its records. */
interface Records {
  readonly store: Store
  readonly keys: DerivedKeys
  readonly keyring: DataKeyring
  readonly signingKeys: SigningKeys
}

export interface ProcessParts extends Records {
  readonly now: () => number
  readonly basics: Basics
  readonly hooks: Hooks
  readonly lifecycle: { closing: boolean }
  /** Answers of our own routes that have started. */
  readonly pendingAnswers: Set<Promise<OwnAnswer>>
  /** When the configuration was last reloaded, or a reload refused. */
  readonly reloads: ReloadStatus
  /** The certificate of the server, if it has one. */
  readonly certificate: { expiresAt?: number }

  readonly audit: Audit
  readonly observe: Omit<Observe, 'beginRequest'>
  readonly liveStreams: LiveStreams

  /** The policy of the first configuration. */
  readonly accessPolicy: AccessPolicy
  readonly sessions: Sessions
  readonly attempts: Attempts
  readonly replacedSessions: ReplacedSessions
  readonly testSignIns: TestSignIns
  readonly lostCookies: LostCookieDetector
  readonly rateLimit: RateLimit
  readonly personalKeys: PersonalKeys
  readonly keyUse: KeyUse
  readonly exchangedTokens: ExchangedTokens
  readonly hostTickets: Pick<KnownHosts, 'tickets' | 'codes' | 'mayHandOff'>

  readonly upstreamPool: UpstreamPool
  readonly streams: OpenStreams
  readonly endSignals: EndSignals
  readonly slowClients: SlowClients

  /** Makes sessions, streams and connections follow the new configuration from now on. */
  use(next: ConfigurationInUse): void
  currentPolicy(): Policy
  /** `undefined` if the configuration in use has no such host. */
  currentHostRules(name: string): Rules | undefined
}

interface ConfigurationInUse {
  readonly configuration: Configuration
  readonly accessPolicy: AccessPolicy
  readonly upstreams: Pick<Upstreams, 'all'>
  readonly policy: Policy
}

/** Closed in reverse order with the rest of `opened`: at the end, or immediately if a later part fails to open. */
export async function openProcessParts(
  opened: AsyncDisposableStack,
  deadline: ShutdownDeadline,
  configuration: Configuration,
  { log, now, worker, gatherMetrics = gatherAlone, countedEvents, hooks = NO_HOOKS, memoryStore }: ProcessOptions,
): Promise<ProcessParts> {
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
  const records = await openRecords(opened, deadline, configuration, basics, memoryStore)
  const { store, keyring } = records
  const audit = opened.adopt(createAudit({ settings, store, keyring, now, report, worker }), audit =>
    audit.close(deadline.leftMs()),
  )
  observed.join(audit)
  let accessPolicy = createAccessPolicy(configuration, basics)
  opened.defer(() => deadline.wait(accessPolicy.providers.close()))
  const rateLimit = await openRateLimit(opened, basics)
  const owners = createKeyOwners({ store, keyring })
  const personalKeys = createPersonalKeys({ ...basics, directory: accessPolicy, store, keyring, owners })
  opened.defer(() => deadline.wait(personalKeys.settle()))
  const keyUse = createKeyUse({ store, now, report })
  opened.defer(() => deadline.wait(keyUse.settle()))
  const sessions = createSessions({
    ...basics,
    ...accessPolicy,
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
    providers: { get: id => accessPolicy.providers.get(id) },
  })
  opened.defer(() => deadline.wait(exchangedTokens.settle()))
  const replacedSessions = createReplacedSessions()
  opened.defer(() => deadline.wait(replacedSessions.settle()))
  const upstreamPool = opened.adopt(createUpstreamPool(), pool => deadline.wait(pool.close(deadline.leftMs())))
  history.begin({ store, keyring })
  opened.defer(() => deadline.wait(history.close()))
  const currentRules = () => accessPolicy.rules
  const currentHostRules = (name: string) => accessPolicy.hostRules.get(name)
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
    accessPolicy,
    use(next) {
      upstreamPool.use(next.upstreams)
      policy = next.policy
      sessions.useSettings(next.configuration.settings)
      if (next.accessPolicy === accessPolicy) return
      const { providers } = next.accessPolicy
      const removed = accessPolicy.providers.all.map(scopeOf).filter(id => !providers.get(id))
      accessPolicy = next.accessPolicy
      mainProvider = accessPolicy.providers.main.plan.id
      sessions.use(accessPolicy, removed)
      personalKeys.use(accessPolicy)
    },
    currentPolicy() {
      // There is no request before the first `use`.
      if (!policy) throw new Error('no configuration is in use yet')
      return policy
    },
    reloads: {},
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
    pendingAnswers: new Set(),
    liveStreams: createLiveStreams(),
    attempts: createAttempts({ settings, store, now }),
    replacedSessions,
    testSignIns: createTestSignIns({ store, now }),
    lostCookies: createLostCookieDetector({ settings, now }),
    streams: opened.adopt(createOpenStreams(sessions, currentRules, report, now), streams => streams.stop()),
    endSignals: opened.adopt(createEndSignals(sessions, report), signals => signals.stop()),
    currentHostRules,
    hostTickets: {
      tickets: createHostTickets({ store, settings }),
      codes: createHandoffCodes({ store, now }),
      mayHandOff: createHandoffLimit(now),
    },
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
}

async function openRecords(
  opened: AsyncDisposableStack,
  deadline: ShutdownDeadline,
  { plans: [plan] }: Configuration,
  { settings, now, report, measure, measureSync }: Basics,
  memoryStore: Store | undefined,
): Promise<Records> {
  const cache = { size: settings.SESSION_CACHE_SIZE, bytes: cacheShares(settings).recordBytes }
  const opening = memoryStore ?? (await openStore(settings.STORE, now, report, cache))
  const observed = observedStore(opening, measure, measureSync)
  const store = opened.adopt(watchWrites(observed, { now, report }), store => deadline.wait(store.close()))
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plan.clientSecret })
  const keyring = createDataKeyring({ store, keys, now, report })
  const signingKeys = createSigningKeys(store, keyring, now)
  await useSecrets(keyring)
  return { store, keys, keyring, signingKeys }
}

async function openRateLimit(opened: AsyncDisposableStack, { settings, report }: Basics): Promise<RateLimit> {
  const limits = opened.adopt(await openLimits(settings.STORE), limits => limits?.close())
  return createRateLimit({
    perMinute: settings.RATE_LIMIT_PER_MINUTE,
    shared: limits,
    report,
  })
}

/** A changed SECRET takes effect immediately. Returns false if the store was unavailable: it is asked again when the keys are needed. */
export async function useSecrets(keyring: DataKeyring): Promise<boolean> {
  try {
    await keyring.current()
    return true
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    return false
  }
}
