// Refreshes a session's tokens: one refresh at a time per session, across all requests, processes and machines. It completes even
// if the client has gone. Lock, reload, check again, refresh, save. Then asks who the user is now (identity-refresh.ts).
//
// Two processes, two requests of one user, an access token that is due:
//
//   process A                                             process B
//   takes a slot, then the session's lease                cannot take the lease: waits (lease.ts)
//   reloads the session: its tokens are the same          looks at the session every 100 ms
//   sends the refresh token to the provider
//   saves the new tokens over the version that it read    sees other tokens: answers its request with them
//   answers its request
//   A fails: it releases the lease without new tokens     B takes the failure as its own, and does not ask the provider too
//   A dies: its lease expires                             B takes the lease, and refreshes
//   the user signs out: there is no version to save over, and the new tokens are revoked
//
// A session with a refresh token outlives its access token (for every provider but `idaas`). With tokens of 5 minutes:
//
//   0:00  sign-in: the record and the cookie last until the refresh token expires, or for SESSION_MAX_HOURS
//   0:03  a request: the token is due; it is refreshed, then the request is answered
//   0:40  the next request: the token has expired; the same, once for all requests that arrive by then
//   0:40  the provider refuses (invalid_grant): the session ends, and the login page shows why
//   0:40  the provider has an outage: 503, and the session stays (REFRESH_FAILURE=keep). An expired token is never used. The next
//         attempt is made after a pause, which grows: one for the session, and a short one for all sessions of the provider (outages.ts)

import { setTimeout as pause } from 'node:timers/promises'
import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { type Measure, unmeasured } from '../measure.ts'
import { UnsentRequestError } from '../provider/fetch.ts'
import { InvalidToken } from '../provider/id-token.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { Provider } from '../provider/provider.ts'
import { RefusalError } from '../provider/refusal.ts'
import type { SessionTokens } from '../provider/sign-out.ts'
import { createSlots, type Slots } from '../provider/slots.ts'
import { SubjectMismatch, type TokenSet, type UnverifiedIdToken } from '../provider/token.ts'
import type { Store } from '../stores/store.ts'
import { type Backoffs, createBackoffs } from './backoffs.ts'
import type { LoadedSession } from './cache.ts'
import { sessionFields, userKey } from './fields.ts'
import {
  createIdentityRefreshes,
  endSession,
  type IdentityProvider,
  type IdentityRefreshes,
  type IdentityRefreshOptions,
  type RefreshResult,
} from './identity-refresh.ts'
import { createLateVerifications, type LateVerifications } from './late-verification.ts'
import { createLeases, type Lease, type Leases, leaseLife } from './lease.ts'
import { createOutages, type Outages } from './outages.ts'
import { type Session, sameTokens, tokenExpiresAt } from './record.ts'
import type { SessionChange } from './stored-sessions.ts'

export type { RefreshResult }

type RefreshOutcome =
  | { readonly kind: 'result'; readonly result: RefreshResult }
  /** The access token has expired, and the provider is unavailable. The session stays. */
  | { readonly kind: 'unavailable' }

/** `leased`: another process is refreshing the session. */
type AttemptOutcome = RefreshOutcome | { readonly kind: 'leased' }

const UNAVAILABLE: RefreshOutcome = { kind: 'unavailable' }
const LEASED: AttemptOutcome = { kind: 'leased' }

function resultOutcome(result: RefreshResult): RefreshOutcome {
  return { kind: 'result', result }
}

interface Refresher {
  /** Rejects with `provider_unavailable` if the access token has expired and the provider is unavailable. */
  refresh(ticket: string, seen: LoadedSession): Promise<RefreshResult>
  /** Resolves when no refresh is under way, or none makes progress. */
  settle(): Promise<void>
}

/** The calls to a provider that a session needs. */
export interface SessionProvider extends Pick<Provider, 'refresh' | 'signOut'>, IdentityProvider {
  readonly plan: Pick<ProviderPlan, 'refreshLead'> & IdentityProvider['plan']
}

export interface RefresherOptions extends IdentityRefreshOptions {
  readonly store: Store
  /** Keyed by the provider's id in the session. */
  readonly providers: { get(id: string | undefined): SessionProvider | undefined }
  readonly settings: Pick<Settings, 'REFRESH_FAILURE' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'> &
    IdentityRefreshOptions['settings']
  readonly now: () => number
  readonly report: Report
  readonly measure?: Measure
  /** Whether the session's tokens have to be refreshed at that time. */
  isDueAt(session: Session, at: number): boolean
  /** Reads the session from the store. */
  load(ticket: string): Promise<LoadedSession | undefined>
  /** Reads it, unless the store provably still holds `seen`. */
  reload(ticket: string, seen: LoadedSession): Promise<LoadedSession | undefined>
  /** Saves new tokens, or keeps the record at least until `until`; `undefined` if the session is gone. */
  save(ticket: string, seen: LoadedSession, change: SessionChange): Promise<LoadedSession | undefined>
}

/** What the steps of a refresh share. */
interface RefreshContext extends RefresherOptions {
  readonly leaseMs: number
  /** How long a refresh may take. */
  readonly longestMs: number
  readonly leases: Leases
  readonly backoffs: Backoffs
  /** Keyed by the provider's id. */
  readonly outages: Outages
  readonly slots: Slots
  readonly identityRefreshes: IdentityRefreshes
  readonly lateVerifications: LateVerifications
}

/** One refresh of one session. */
interface Refresh {
  readonly ticket: string
  /** The session when the refresh was requested. */
  readonly seen: LoadedSession
  /** Called when the tokens cannot be saved now: requests stop waiting, while saving goes on. */
  abandonWaiters(error: unknown): void
}

interface RefreshInFlight {
  readonly result: Promise<RefreshOutcome>
  /** Rejects when requests should stop waiting for the result. */
  readonly abandoned: Promise<never>
}

/** Short: users see an error page until it is over. */
const MAX_OUTAGE_BACKOFF_MS = 5000
const MARGIN_MS = 5000

/**
 * The longest refresh, with OpenID Connect and nothing cached: discovery, its host names, the tokens with their retries (one and a
 * half, and with DPoP two more), the keys, and the keys again if the signing key is new.
 */
function maxRefreshMs(providerTimeoutMs: number): number {
  return providerTimeoutMs * 8 + MARGIN_MS
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, settings, now, report, measure = unmeasured } = options
  const leaseMs = leaseLife(settings.PROVIDER_TIMEOUT_MS)
  const context: RefreshContext = {
    ...options,
    leaseMs,
    longestMs: maxRefreshMs(settings.PROVIDER_TIMEOUT_MS),
    leases: createLeases(store, leaseMs, now, report),
    backoffs: createBackoffs(now),
    outages: createOutages(now, MAX_OUTAGE_BACKOFF_MS),
    // No limit on waiting: a refusal would sign the user out. Users have their turns: one with a thousand sessions delays no other.
    slots: createSlots(settings.PROVIDER_PARALLEL_CALLS, Number.POSITIVE_INFINITY),
    identityRefreshes: createIdentityRefreshes(options),
    lateVerifications: createLateVerifications(options),
  }
  const inFlight = new Map<string, RefreshInFlight>()

  function start(ticket: string, seen: LoadedSession): RefreshInFlight {
    const { promise: abandoned, reject: abandonWaiters } = Promise.withResolvers<never>()
    const run = async () => {
      const outcome = await runRefresh(context, { ticket, seen, abandonWaiters })
      if (outcome.kind !== 'result') return outcome
      return resultOutcome(await context.identityRefreshes.latest(ticket, outcome.result))
    }
    const result = measure('refresh', 'tokens', run).finally(() => inFlight.delete(seen.key))
    // There may be no caller left to handle a rejection.
    abandoned.catch(() => {})
    result.catch(() => {})
    return { result, abandoned }
  }

  return {
    async refresh(ticket, seen) {
      const isPaused = context.backoffs.isOn(seen.key) || isOutage(context, seen)
      const paused = isPaused ? duringOutage(context, seen) : undefined
      if (paused) return assertAvailable(paused)
      let refreshing = inFlight.get(seen.key)
      if (!refreshing) {
        refreshing = start(ticket, seen)
        inFlight.set(seen.key, refreshing)
      }
      return assertAvailable(await Promise.race([refreshing.result, rejectAfterGrace(refreshing.abandoned)]))
    },

    async settle() {
      const endings = [...inFlight.values()].map(({ result, abandoned }) => Promise.race([result, abandoned]))
      await Promise.allSettled(endings)
      await context.lateVerifications.stop()
      await context.identityRefreshes.settle()
      await context.leases.settle()
    },
  }
}

function assertAvailable(outcome: RefreshOutcome): RefreshResult {
  if (outcome.kind === 'result') return outcome.result
  throw new MenshenError('provider_unavailable', 'the access token has expired, and the provider is unreachable')
}

/** Rejects after one more attempt to save, because only that notices that the store is available again. */
async function rejectAfterGrace(abandoned: Promise<never>): Promise<never> {
  try {
    return await abandoned
  } catch (error) {
    await pause(2 * MAX_SAVE_BACKOFF_MS)
    throw error
  }
}

// A whole refresh: keeps the record alive, tries when it has a slot, and waits while another process refreshes.

/** How long a record is kept alive for a refresh that waits for a slot. */
const QUEUE_MS = 10 * 60_000

async function runRefresh(context: RefreshContext, refresh: Refresh): Promise<RefreshOutcome> {
  const { slots, longestMs, leases, now, load, save } = context
  const { ticket, seen } = refresh
  let latest: LoadedSession | undefined = seen
  let alive = seen.expiresAt
  for (;;) {
    if (!isUnchanged(latest, seen)) return resultOutcome(latest)
    // A record that expires during the refresh would sign the user out.
    const needed = slots.isFull() ? QUEUE_MS : longestMs
    if (alive < now() + needed) {
      alive = now() + needed * 2
      latest = await save(ticket, latest, { until: alive })
      continue
    }
    const outcome = await slots.withSlot(() => attemptRefresh(context, refresh), userKey(seen.session))
    if (outcome.kind !== 'leased') return outcome
    const result = await leases.waitForHolder(seen.key, async () => {
      latest = await load(ticket)
      return !isUnchanged(latest, seen)
    })
    // A failure of the lease's holder applies to all who wait.
    const kept = latest && result === 'failed' ? keepSession(context, latest) : undefined
    if (kept) return kept
  }
}

/** Whether the session still exists with the tokens that were seen. Other tokens come from a later refresh. */
function isUnchanged(latest: LoadedSession | undefined, seen: LoadedSession): latest is LoadedSession {
  return latest !== undefined && sameTokens(latest.session, seen.session)
}

// One attempt to refresh a session, by the holder of its lease: asks the provider, and saves the tokens or handles the failure.

async function attemptRefresh(context: RefreshContext, refresh: Refresh): Promise<AttemptOutcome> {
  // Checked after the wait for a slot: a refresh that held one may have found an outage of the provider.
  const kept = isOutage(context, refresh.seen) ? duringOutage(context, refresh.seen) : undefined
  if (kept) return kept
  const lease = await context.leases.take(refresh.seen.key)
  if (!lease) return LEASED
  let outcome = LEASED
  try {
    outcome = await refreshAsHolder(context, refresh, lease)
    return outcome
  } finally {
    if (shouldRelease(context, outcome)) lease.release()
    else lease.letExpire()
  }
}

/** Whether the lease may be needed before it expires: releasing it costs a write. */
function shouldRelease({ isDueAt, leaseMs, now }: RefreshContext, outcome: AttemptOutcome): boolean {
  if (outcome.kind !== 'result') return true
  const { result } = outcome
  return typeof result === 'object' && isDueAt(result.session, now() + leaseMs)
}

async function refreshAsHolder(context: RefreshContext, refresh: Refresh, lease: Lease): Promise<AttemptOutcome> {
  const { reload, backoffs, outages, report } = context
  const { ticket, seen } = refresh
  try {
    const latest = await reload(ticket, seen)
    if (!isUnchanged(latest, seen)) return resultOutcome(latest)
    const { session } = latest
    const { refreshToken } = session
    if (!refreshToken || !(await lease.isOurs())) return LEASED
    const provider = providerOf(context, session)
    const tokens = await provider.refresh({ ...session, refreshToken })
    const saved = await saveTokens(context, refresh, latest, tokens)
    backoffs.reset(seen.key)
    outages.reset(outageKey(seen))
    if (saved) {
      report('session_refreshed', sessionFields(seen))
      if (tokens.unverified) verifyLater(context, ticket, saved, provider, tokens, tokens.unverified)
      else context.identityRefreshes.begin(ticket, saved, tokens, provider)
    } else await revokeTokens(context, provider, latest, { refreshToken, ...tokens })
    return resultOutcome(saved)
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
    return await failRefresh(context, refresh, error, lease)
  }
}

function verifyLater(
  context: RefreshContext,
  ticket: string,
  saved: LoadedSession,
  provider: SessionProvider,
  tokens: TokenSet,
  { error, verify }: UnverifiedIdToken,
): void {
  context.report('id_token_unverified', { ...sessionFields(saved), ...errorFields(error) })
  context.lateVerifications.begin({
    saved,
    tokens,
    verify,
    async done(verified) {
      const latest = await context.save(ticket, saved, { tokens: verified })
      // A later refresh has returned another id_token.
      if (!isUnchanged(latest, saved)) return
      context.identityRefreshes.begin(ticket, latest, verified, provider)
    },
    async failed(error) {
      const latest = await context.load(ticket)
      if (!isUnchanged(latest, saved)) return
      if (error instanceof SubjectMismatch) await endSession(context, saved, 'subject_changed')
      else await endByFailure(context, saved, error)
    },
  })
}

/** Fails if the provider is no longer configured. */
function providerOf({ providers }: RefreshContext, { provider }: Session): SessionProvider {
  const found = providers.get(provider)
  if (!found) throw new MenshenError('provider_refused', 'the provider of this session is no longer configured')
  return found
}

async function failRefresh(
  context: RefreshContext,
  { ticket, seen }: Refresh,
  error: MenshenError,
  lease: Lease,
): Promise<AttemptOutcome> {
  const { load, backoffs, report } = context
  noteOutage(context, seen, error)
  const latest = await load(ticket)
  if (!isUnchanged(latest, seen)) return resultOutcome(latest)
  // An invalid id_token is final, too. Any other failure may be temporary, or the operator may have to fix it.
  const isFinal = error.code === 'provider_refused' || error instanceof InvalidToken
  const kept = isFinal ? undefined : keepSession(context, latest)
  if (kept) {
    report('session_refresh_failed', { ...failureFields(seen, error), outcome: 'kept' })
    return kept
  }
  // If another process has the lease by now, it may be about to succeed.
  if (!(await lease.isOurs())) return LEASED
  backoffs.reset(seen.key)
  const ended =
    error instanceof SubjectMismatch
      ? await endSession(context, seen, 'subject_changed', { during: 'refresh' })
      : await endByFailure(context, seen, error)
  return resultOutcome(ended)
}

async function endByFailure(
  { store, report, reasons, providers }: RefreshContext,
  seen: LoadedSession,
  error: MenshenError,
): Promise<'ended' | undefined> {
  const ended = await store.take(seen.key)
  if (!ended) return undefined
  providers.get(seen.session.provider)?.discard?.(seen.session)
  await reasons?.note(seen.key, ended, 'refresh_failed')
  report('session_refresh_failed', { ...failureFields(seen, error), outcome: 'ended' })
  report('session_ended', { ...sessionFields(seen), reason: 'refresh_failed', ended: 1 })
  return 'ended'
}

function failureFields(seen: LoadedSession, error: MenshenError) {
  return { ...sessionFields(seen), ...errorFields(error), reason: error.code }
}

/** The outcome for a request while the provider is unavailable; `undefined` if that ends the session. */
function duringOutage({ settings, providers, now }: RefreshContext, loaded: LoadedSession): RefreshOutcome | undefined {
  const plan = providers.get(loaded.session.provider)?.plan
  const onFailure = settings.REFRESH_FAILURE ?? (plan?.preset === 'idaas' ? 'clear' : 'keep')
  if (onFailure === 'clear') return undefined
  if (isValid(loaded, now())) return resultOutcome(loaded)
  return loaded.expiresAt > now() ? UNAVAILABLE : undefined
}

/** The outcome for a request after a failed attempt. The next attempt is made later. */
function keepSession(context: RefreshContext, loaded: LoadedSession): RefreshOutcome | undefined {
  const kept = duringOutage(context, loaded)
  if (kept) context.backoffs.lengthen(loaded.key)
  return kept
}

/** Too many requests, and the answers of a proxy during an outage of the provider. A 500 may be about one user's account. */
const OUTAGE_STATUSES: readonly number[] = [429, 502, 503, 504]

/** No answer, or an answer that the provider is overloaded, can be an outage for all sessions. Other failures concern one session. */
function noteOutage({ outages }: RefreshContext, seen: LoadedSession, error: MenshenError): void {
  const isOverloaded = error instanceof RefusalError && OUTAGE_STATUSES.includes(error.status)
  if (error instanceof UnsentRequestError) outages.note(outageKey(seen))
  else if (error.code === 'provider_unreachable' || isOverloaded) outages.note(outageKey(seen), userKey(seen.session))
}

function isOutage({ outages }: RefreshContext, seen: LoadedSession): boolean {
  return outages.isOn(outageKey(seen), userKey(seen.session))
}

function outageKey({ session }: LoadedSession): string {
  return session.provider ?? ''
}

/** Whether the access token is valid. */
function isValid({ session }: LoadedSession, now: number): boolean {
  return tokenExpiresAt(session) > now
}

// New tokens are saved however long it takes, or revoked if their session has ended.

const INITIAL_SAVE_BACKOFF_MS = 50
const MAX_SAVE_BACKOFF_MS = 800
/** Failed attempts to save after which requests give up, while saving goes on. */
const SAVES_BEFORE_GIVING_UP = 6

/** The old tokens are spent, so saving is retried as long as the new ones are valid, even if the store is unavailable for a while. */
async function saveTokens(
  { now, report, save }: Pick<RefreshContext, 'now' | 'report' | 'save'>,
  { ticket, abandonWaiters }: Refresh,
  latest: LoadedSession,
  tokens: TokenSet,
): Promise<LoadedSession | undefined> {
  const expiresAt = tokens.receivedAt + tokens.expiresIn * 1000
  let wait = INITIAL_SAVE_BACKOFF_MS
  for (let failures = 1; ; failures++) {
    try {
      return await save(ticket, latest, { tokens })
    } catch (error) {
      if (now() > expiresAt) throw error
      report('tokens_not_saved', { ...sessionFields(latest), ...errorFields(error) })
      if (failures === SAVES_BEFORE_GIVING_UP) abandonWaiters(error)
      await pause(wait)
      wait = Math.min(wait * 2, MAX_SAVE_BACKOFF_MS)
    }
  }
}

/** The sign-out that ended the session could revoke only the old tokens. */
async function revokeTokens(
  { report }: Pick<RefreshContext, 'report'>,
  provider: SessionProvider,
  ended: LoadedSession,
  tokens: SessionTokens,
): Promise<void> {
  try {
    await provider.signOut(tokens)
  } catch (error) {
    report('provider_not_told', { ...errorFields(error), ...sessionFields(ended) })
  }
}
