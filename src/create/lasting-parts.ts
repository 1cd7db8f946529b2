// What lasts as long as the process does: the store, what observes, sessions, connections. Whatever the configuration says,
// it goes on with them.

import type { CoreOptions } from '../create.ts'
import { MenshenError } from '../errors.ts'
import { createLostCookieDetector } from '../gateway/admission/lost-cookie.ts'
import { createLiveStreams } from '../gateway/console/live-streams.ts'
import type { GatewayContext } from '../gateway/context.ts'
import { createOpenStreams } from '../gateway/forward/open-streams.ts'
import { createUpstreamPool } from '../gateway/forward/upstream-pool.ts'
import type { Upstreams } from '../gateway/forward/upstreams.ts'
import { NO_HOOKS } from '../gateway/hooks.ts'
import { createFailedRequests } from '../gateway/http/failed-requests.ts'
import type { OwnAnswer } from '../gateway/http/page-answers.ts'
import { createRateLimit } from '../gateway/http/rate-limit.ts'
import type { Patience } from '../gateway/patience.ts'
import { createSlowClients } from '../gateway/slow-clients/slow-clients.ts'
import { createAudit } from '../observe/audit/audit.ts'
import { createTrailReader } from '../observe/audit/trail-reader.ts'
import type { ReloadStatus } from '../observe/doctor/reload-finding.ts'
import { createTrials } from '../observe/doctor/trials.ts'
import { createReader, gatherAlone } from '../observe/metrics/gathering.ts'
import type { Observation } from '../observe/observation.ts'
import { observedStore } from '../observe/observed-store.ts'
import { openObservation } from '../observe/open-observation.ts'
import { createAttempts } from '../session/attempts.ts'
import { createDataKeyring, type DataKeyring } from '../session/keys/data-keys.ts'
import { deriveKeys } from '../session/keys/derived-keys.ts'
import { createSigningKeys, type SigningKeys } from '../session/keys/signing-keys.ts'
import { createSessions } from '../session/sessions.ts'
import { cacheShares } from '../settings/cache-shares.ts'
import { openLimits, openStore } from '../stores/open-store.ts'
import type { Configuration } from './configuration.ts'
import { createDirectory, type Directory } from './directory.ts'

type Basics = Pick<GatewayContext, 'settings' | 'now' | 'report' | 'measure'> &
  Pick<Observation, 'measureAtOnce' | 'traceCall'>
type Options = Pick<CoreOptions, 'log' | 'now' | 'worker' | 'gatherMetrics' | 'hooks'>

/** What requests that were begun under a former configuration ask for. */
type InUse = ReturnType<GatewayContext['inUse']>

export type LastingParts = Awaited<ReturnType<typeof openLastingParts>>

/** Closed in reverse order with the rest of `opened`: at the end, or at once if something that follows fails. */
export async function openLastingParts(
  opened: AsyncDisposableStack,
  patience: Patience,
  configuration: Configuration,
  { log, now, worker, gatherMetrics = gatherAlone, hooks = NO_HOOKS }: Options,
) {
  const { settings, plans } = configuration
  let mainProvider = plans[0].id
  const observed = await openObservation(opened, { settings, log, now, mainProvider: () => mainProvider })
  const { observation, metrics, series, shadowRefusals } = observed
  const { report, measure, measureAtOnce, traceCall } = observation
  const basics: Basics = { settings, now, report, measure, measureAtOnce, traceCall }
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
  const readMetrics = metrics && createReader({ metrics, upstreams: upstreamPool, countSessions: () => store.count() })
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
    trials: createTrials({ store, now }),
    failedRequests: createFailedRequests({ settings }),
    lostCookies: createLostCookieDetector({ settings, now }),
    streams: opened.adopt(createOpenStreams(sessions, rulesNow, report), streams => streams.stop()),
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
}

/** What is kept, and the keys that open it. */
async function openRecords(
  opened: AsyncDisposableStack,
  patience: Patience,
  { plans: [plan] }: Configuration,
  { settings, now, report, measure, measureAtOnce }: Basics,
) {
  const cache = { size: settings.SESSION_CACHE_SIZE, bytes: cacheShares(settings).recordBytes }
  const opening = await openStore(settings.STORE, now, report, cache)
  const store = opened.adopt(observedStore(opening, measure, measureAtOnce), store => patience.wait(store.close()))
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
