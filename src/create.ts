// Puts the parts together: settings in, the whole sign-in as a request listener out.
import type { RequestListener } from 'node:http'
import { rolesFor, USUAL_ROLES } from './access/roles.ts'
import { createRules } from './access/rules.ts'
import { createScopedName } from './access/scoped-name.ts'
import { MenshenError } from './errors.ts'
import { createBearerCallers } from './gateway/admission/bearer-callers.ts'
import { createLostCookieDetector } from './gateway/admission/lost-cookie.ts'
import { createLiveStreams } from './gateway/console/live-streams.ts'
import type { GatewayContext } from './gateway/context.ts'
import { createEmbedded, type Embedded } from './gateway/embedded/embedded.ts'
import { createOpenStreams } from './gateway/forward/open-streams.ts'
import { createRequestHeaders } from './gateway/forward/request-headers.ts'
import { createUpgradeListener, type UpgradeListener } from './gateway/forward/upgrade.ts'
import { openUpstreams } from './gateway/forward/upstreams.ts'
import { cookieNames } from './gateway/http/cookies.ts'
import { createFailedRequests } from './gateway/http/failed-requests.ts'
import { createRateLimit } from './gateway/http/rate-limit.ts'
import { createIdentities } from './gateway/identity/identity-headers.ts'
import { createListener } from './gateway/listener.ts'
import { createOwnRoutes } from './gateway/own-routes.ts'
import { createPatience, type Patience } from './gateway/patience.ts'
import { createSlowClients } from './gateway/slow-clients/slow-clients.ts'
import type { Log } from './log.ts'
import { createAudit } from './observe/audit/audit.ts'
import { createTrailReader } from './observe/audit/trail-reader.ts'
import { createExamination } from './observe/doctor/doctor.ts'
import { createKnownFindings } from './observe/doctor/known-findings.ts'
import { createTrials } from './observe/doctor/trials.ts'
import { createReader, type Gathering, gatherAlone } from './observe/metrics/gathering.ts'
import { observedStore } from './observe/observed-store.ts'
import { openObservation } from './observe/open-observation.ts'
import { createLanguages } from './pages/words/languages.ts'
import { demandVerifiable } from './provider/bearer/verifiable.ts'
import { createProviders, planProviders } from './provider/providers.ts'
import { createAttempts } from './session/attempts.ts'
import { createDataKeyring, type DataKeyring } from './session/keys/data-keys.ts'
import { deriveKeys, secretProblem } from './session/keys/derived-keys.ts'
import { createSigningKeys, type SigningKeys } from './session/keys/signing-keys.ts'
import { createSessions } from './session/sessions.ts'
import type { Config, Role } from './settings/config/config-file.ts'
import type { Settings } from './settings/read.ts'
import { openLimits, openStore } from './stores/open-store.ts'

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

export interface CoreOptions {
  readonly settings: Settings
  readonly config: Config
  readonly log: Log
  readonly now: () => number
  /** How metrics are put together with those of other processes. */
  readonly gatherMetrics?: Gathering
  /** Which of several processes this is. */
  readonly worker?: number | undefined
}

const CLOSE_PATIENCE_MS = 10_000

/** What the command and the library start alike, from settings and a configuration that were checked. */
export async function createCore(options: CoreOptions): Promise<Menshen> {
  const { settings, config, log, now, worker, gatherMetrics = gatherAlone } = options
  const languages = createLanguages(settings, config)
  const plans = planProviders(config, settings)
  demandVerifiable(config.rules ?? [], plans)
  const problem = secretProblem(settings, plans[0])
  if (problem) throw new MenshenError('bad_settings', problem)
  // Closed in reverse order: at the end, or at once if something that follows fails.
  await using opened = new AsyncDisposableStack()
  const observed = await openObservation(opened, { settings, log, now, mainProvider: plans[0].id })
  const { observation, metrics, series, shadowRefusals } = observed
  const { report, measure } = observation
  const patience = createPatience()
  const basics = { settings, now, report, measure }
  const records = await openRecords(opened, patience, plans, basics)
  const { store, keys, keyring, signingKeys } = records
  const audit = opened.adopt(createAudit({ settings, store, keyring, now, report, worker }), audit =>
    audit.close(patience.leftMs()),
  )
  observed.join(audit)
  const signIn = await openSignIn(opened, patience, plans, config, { ...records, ...basics })
  const { providers, sessions, roles, scopedName } = signIn
  const upstreams = opened.adopt(openUpstreams(settings, config), upstreams =>
    patience.wait(upstreams.close(patience.leftMs())),
  )
  series.begin(store)
  opened.defer(() => patience.wait(series.close()))
  const cookies = cookieNames(settings)
  const identities = createIdentities({ settings, keys: signingKeys, now, report })
  const lifecycle = { closing: false }
  const liveStreams = createLiveStreams()
  const endStreams = () => {
    liveStreams.end()
    upstreams.endStreams()
  }
  const examine = createExamination({ settings, config, plans, store, now })
  const context: GatewayContext = {
    settings,
    languages,
    report,
    measure,
    observation,
    metrics: metrics && gatherMetrics(createReader({ metrics, upstreams, countSessions: () => store.count() })),
    now,
    lifecycle,
    store,
    keys,
    sessions,
    upstreams,
    providers,
    roles,
    rateLimit: signIn.rateLimit,
    auditTrail: createTrailReader({ store, keyring }),
    attempts: createAttempts({ store, now }),
    trials: createTrials({ store, now }),
    examine,
    findings: createKnownFindings(examine, now),
    series,
    liveStreams,
    rules: createRules(config.rules ?? []),
    shadowRefusals,
    bearers: createBearerCallers({ providers, roles, scopedName, now }),
    cookies,
    identities,
    requestHeaders: createRequestHeaders({ settings, identities, cookies }),
    failedRequests: createFailedRequests({ settings }),
    lostCookies: createLostCookieDetector({ settings }),
    streams: opened.adopt(createOpenStreams(sessions, report), streams => streams.stop()),
    slowClients: opened.adopt(createSlowClients({ settings, report }), clients => clients.stop()),
  }
  const ownRoutes = createOwnRoutes(context)
  opened.defer(() => patience.wait(ownRoutes.settle()))
  const listener = createListener(context, ownRoutes)
  const everything = opened.move()
  let closed: Promise<void> | undefined
  return {
    ...createEmbedded(context, ownRoutes),
    listener,
    upgradeListener: createUpgradeListener(context, listener),
    prepareToClose() {
      lifecycle.closing = true
    },
    endStreams,
    reopenFiles: () => audit.reopenFile(),
    close(patienceMs = CLOSE_PATIENCE_MS) {
      if (closed) return closed
      patience.start(patienceMs)
      endStreams()
      closed = everything.disposeAsync().finally(() => patience.stop())
      return closed
    },
  }
}

type Basics = Pick<GatewayContext, 'settings' | 'now' | 'report' | 'measure'>

/** What is kept, and the keys that open it. */
async function openRecords(
  opened: AsyncDisposableStack,
  patience: Patience,
  [plan]: ReturnType<typeof planProviders>,
  { settings, now, report, measure }: Basics,
) {
  const opening = await openStore(settings.STORE, now, report, settings.SESSION_CACHE_SIZE)
  const store = opened.adopt(observedStore(opening, measure), store => patience.wait(store.close()))
  const keys = deriveKeys({ SECRET: settings.SECRET, CLIENT_SECRET: plan.clientSecret })
  const keyring = createDataKeyring({ store, keys, now, report })
  const signingKeys = createSigningKeys(store, keys.signing, now)
  await useSecrets(keyring, signingKeys)
  return { store, keys, keyring, signingKeys }
}

/** What signing in takes, with or without an application behind. */
async function openSignIn(
  opened: AsyncDisposableStack,
  patience: Patience,
  plans: ReturnType<typeof planProviders>,
  config: Config,
  { settings, now, report, measure, store, keyring }: Basics & Awaited<ReturnType<typeof openRecords>>,
) {
  const providers = opened.adopt(createProviders(plans, { settings, now, report, measure }), providers =>
    patience.wait(providers.close()),
  )
  const limits = opened.adopt(await openLimits(settings.STORE), limits => limits?.close())
  const rateLimit = createRateLimit({
    perMinute: settings.RATE_LIMIT_PER_MINUTE,
    proxies: settings.TRUSTED_PROXIES,
    shared: limits?.client,
    report,
  })
  const ids = Object.keys(config.providers ?? {})
  const roles = rolesFor(config.roles ?? USUAL_ROLES, ids)
  const scopedName = createScopedName(ids)
  const sessions = createSessions({ store, providers, keyring, settings, roles, scopedName, now, report, measure })
  opened.defer(() => patience.wait(sessions.settle()))
  return { providers, rateLimit, sessions, roles, scopedName }
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
