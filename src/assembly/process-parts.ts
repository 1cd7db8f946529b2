// The parts that live as long as the process, whatever the configuration: the store, observation, sessions, connections.

import { cacheShares } from '../config/cache-shares.ts'
import type { Settings } from '../config/settings.ts'
import { createLiveStreams } from '../console/live-streams.ts'
import type { ReloadStatus } from '../doctor/doctor.ts'
import { createTestSignIns } from '../doctor/test-sign-ins.ts'
import { MenshenError } from '../errors.ts'
import type { Observe } from '../gateway/context.ts'
import { createHandoffLimit } from '../hosts/handoff.ts'
import { createHandoffCodes, createHostTickets } from '../hosts/tickets.ts'
import { createFailedRequests, type OwnAnswer } from '../http/answers.ts'
import { createRateLimit } from '../http/rate-limit.ts'
import type { BearerPolicy } from '../identify/bearer.ts'
import { createLostCookieDetector } from '../identify/lost-cookies.ts'
import type { KeyCallers } from '../keys/callers.ts'
import { createKeyOwners } from '../keys/owners.ts'
import { createPersonalKeys } from '../keys/personal.ts'
import { createKeyUse } from '../keys/use.ts'
import type { Log } from '../log.ts'
import type { Measure, MeasureSync } from '../measure.ts'
import { createAudit } from '../observe/audit.ts'
import { createTrailReader } from '../observe/audit-trail.ts'
import { createMetricsReader, type GatherMetrics, gatherAlone } from '../observe/exposition.ts'
import type { EventCounter } from '../observe/metrics.ts'
import { observedStore, openObservation } from '../observe/observation.ts'
import type { ProviderOptions } from '../provider/provider.ts'
import { createOpenStreams } from '../proxy/open-streams.ts'
import { createUpstreamPool } from '../proxy/upstream-pool.ts'
import type { Upstreams } from '../proxy/upstreams.ts'
import { createSlowClients } from '../server/slow-clients.ts'
import { createDataKeyring, type DataKeyring } from '../session/data-keys.ts'
import { deriveKeys } from '../session/derived-keys.ts'
import { userFields } from '../session/fields.ts'
import { userIdOf } from '../session/record.ts'
import { createSessions } from '../session/sessions.ts'
import { createSigningKeys, type SigningKeys } from '../session/signing-keys.ts'
import { createAttempts } from '../sign-in/attempts.ts'
import { type Hooks, NO_HOOKS } from '../sign-in/hooks.ts'
import { openLimits, openStore } from '../stores/open.ts'
import { watchWrites } from '../stores/write-watch.ts'
import { createExchangedTokens } from '../token-exchange/exchanged-tokens.ts'
import { type AccessPolicy, type Configuration, createAccessPolicy } from './configuration.ts'
import type { ShutdownDeadline } from './shutdown-deadline.ts'

/** What decides about tokens and keys. */
interface Policy extends BearerPolicy {
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
  /** How metrics are put together with those of other processes. */
  readonly gatherMetrics?: GatherMetrics
  /** Counts events that the command itself reports. */
  readonly countedEvents?: EventCounter
  /** Functions of the program around us. */
  readonly hooks?: Hooks
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

export type ProcessParts = Awaited<ReturnType<typeof openProcessParts>>

/** Closed in reverse order with the rest of `opened`: at the end, or immediately if a later part fails to open. */
export async function openProcessParts(
  opened: AsyncDisposableStack,
  deadline: ShutdownDeadline,
  configuration: Configuration,
  { log, now, worker, gatherMetrics = gatherAlone, countedEvents, hooks = NO_HOOKS }: ProcessOptions,
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
    /** That of the first configuration. */
    accessPolicy,
    /** Sessions, streams and connections follow the configuration that is in use from now on. */
    use(next: {
      configuration: Configuration
      accessPolicy: AccessPolicy
      upstreams: Pick<Upstreams, 'all'>
      policy: Policy
    }): void {
      upstreamPool.use(next.upstreams)
      policy = next.policy
      sessions.useSettings(next.configuration.settings)
      if (next.accessPolicy === accessPolicy) return
      accessPolicy = next.accessPolicy
      mainProvider = accessPolicy.providers.main.plan.id
      sessions.use(accessPolicy)
      personalKeys.use(accessPolicy)
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
