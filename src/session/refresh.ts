// Refreshes a session's tokens: once at a time for each session, whatever number of requests, processes and machines ask
// for it, and to its end even if whoever asked has gone away. Lock, reload, check again, refresh, save.

import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import { type Measure, type Report, unmeasured } from '../events.ts'
import { createSlots, type Slots } from '../provider/fetch.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { Provider } from '../provider/provider.ts'
import type { SessionTokens } from '../provider/sign-out.ts'
import type { TokenSet } from '../provider/token.ts'
import type { Store } from '../stores/store.ts'
import type { LoadedSession } from './session-cache.ts'
import { sessionFields, shortKey } from './session-fields.ts'
import { type Session, sameTokens, tokenExpiresAt } from './session-record.ts'

/** The session as it is now; `ended` if the refresh failed and closed it; `undefined` if it was gone already. */
export type RefreshResult = LoadedSession | 'ended' | undefined

interface Refresher {
  refresh(ticket: string, seen: LoadedSession): Promise<RefreshResult>
  /** Resolves when no refresh is under way, or none gets any further. */
  settle(): Promise<void>
}

/** What a session needs of its provider. */
export interface SessionProvider extends Pick<Provider, 'refresh' | 'signOut'> {
  readonly plan: Pick<ProviderPlan, 'refreshLead'>
}

export interface RefresherOptions {
  readonly store: Store
  /** By the id that a session has of its provider. */
  readonly providers: { get(id: string | undefined): SessionProvider | undefined }
  readonly settings: Pick<Settings, 'REFRESH_FAILURE' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'>
  readonly now: () => number
  readonly report: Report
  readonly measure?: Measure
  /** Whether its tokens have to be refreshed at that time. */
  isDueAt(session: Session, at: number): boolean
  /** Reads the session anew. */
  load(ticket: string): Promise<LoadedSession | undefined>
  /** The same, or what was seen if the store provably still has just that. */
  reload(ticket: string, seen: LoadedSession): Promise<LoadedSession | undefined>
  /** Saves new tokens, or without them only makes sure that the record lives until `until`; `undefined` if gone. */
  save(
    ticket: string,
    seen: LoadedSession,
    change: { tokens: TokenSet } | { until: number },
  ): Promise<LoadedSession | undefined>
}

/** What the steps of a refresh share. */
export interface RefreshContext extends RefresherOptions {
  readonly leaseMs: number
  /** How long a refresh may take. */
  readonly longestMs: number
  readonly leases: Leases
  readonly backoffs: Backoffs
  readonly slots: Slots
}

/** One refresh of one session. */
export interface Refresh {
  readonly ticket: string
  /** The session as it was when the refresh was asked for. */
  readonly seen: LoadedSession
  /** Tells those who wait that waiting makes no sense for a request any more. */
  inTrouble(error: unknown): void
}

interface RefreshInFlight {
  readonly result: Promise<RefreshResult>
  readonly trouble: Promise<never>
}

/** What a lease outlasts the slowest call and its retries by. */
const LEASE_MARGIN_MS = 5000

/** Longer than a call and its retries may take; what takes longer renews it. */
export function leaseLife(providerTimeoutMs: number): number {
  return providerTimeoutMs * 2 + LEASE_MARGIN_MS
}

/**
 * From cold, with OpenID Connect: the discovery and its names, the tokens with their retries (one and a half), the keys, and the
 * keys once more if the one that signed is new.
 */
function longestRefresh(providerTimeoutMs: number): number {
  return providerTimeoutMs * 6 + LEASE_MARGIN_MS
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, settings, now, report, measure = unmeasured } = options
  const leaseMs = leaseLife(settings.PROVIDER_TIMEOUT_MS)
  const context: RefreshContext = {
    ...options,
    leaseMs,
    longestMs: longestRefresh(settings.PROVIDER_TIMEOUT_MS),
    leases: createLeases(store, leaseMs, now, report),
    backoffs: createBackoffs(now),
    // Nobody is turned away, for that would sign them out.
    slots: createSlots(settings.PROVIDER_PARALLEL_CALLS, Number.POSITIVE_INFINITY),
  }
  const inFlight = new Map<string, RefreshInFlight>()

  function start(ticket: string, seen: LoadedSession): RefreshInFlight {
    const { promise: trouble, reject: inTrouble } = Promise.withResolvers<never>()
    const run = () => runRefresh(context, { ticket, seen, inTrouble })
    const result = measure('refresh', 'tokens', run).finally(() => inFlight.delete(seen.key))
    // Nobody may be waiting for them any more.
    trouble.catch(() => {})
    result.catch(() => {})
    return { result, trouble }
  }

  return {
    async refresh(ticket, seen) {
      if (context.backoffs.isOn(seen.key) && isValid(seen, now())) return seen
      let refreshing = inFlight.get(seen.key)
      if (!refreshing) {
        refreshing = start(ticket, seen)
        inFlight.set(seen.key, refreshing)
      }
      return Promise.race([refreshing.result, afterOneMoreSaving(refreshing.trouble)])
    },

    async settle() {
      const endings = [...inFlight.values()].map(({ result, trouble }) => Promise.race([result, trouble]))
      await Promise.allSettled(endings)
      await context.leases.settle()
    },
  }
}

/** A store that is back is only noticed by the next saving. */
async function afterOneMoreSaving(trouble: Promise<never>): Promise<never> {
  try {
    return await trouble
  } catch (error) {
    await pause(2 * LONGEST_SAVE_WAIT_MS)
    throw error
  }
}

// A refresh from its beginning to its end: keeps the record alive, tries when it has a slot, and waits while somebody else
// is refreshing.

const POLL_MS = 100
/** How long a record is kept alive for a refresh that has to wait its turn. */
const QUEUE_MS = 10 * 60_000

export async function runRefresh(context: RefreshContext, refresh: Refresh): Promise<RefreshResult> {
  const { slots, longestMs, now, save } = context
  const { ticket, seen } = refresh
  let latest: LoadedSession | undefined = seen
  let alive = seen.expiresAt
  for (;;) {
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    // A record that expired while the refresh waits or takes its time would sign the user out by accident.
    const needed = slots.isFull() ? QUEUE_MS : longestMs
    if (alive < now() + needed) {
      alive = now() + needed * 2
      latest = await save(ticket, latest, { until: alive })
      continue
    }
    const outcome = await slots.withSlot(() => attemptRefresh(context, refresh))
    if (outcome !== 'taken') return outcome
    const waited = await waitForHolder(context, refresh)
    latest = waited.latest
    // Its failure counts for all.
    if (latest && waited.failed && mayKeep(context, latest)) return keepSession(context, latest)
  }
}

/** Until there are new tokens, or the lease is free: given back without them, or run out. */
async function waitForHolder(
  { leases, load, now }: RefreshContext,
  { ticket, seen }: Refresh,
): Promise<{ latest: LoadedSession | undefined; failed: boolean }> {
  let runsOut = (await leases.endOf(seen.key)) ?? 0
  for (;;) {
    await pause(POLL_MS)
    const latest = await load(ticket)
    if (!latest || !sameTokens(latest.session, seen.session)) return { latest, failed: false }
    const end = await leases.endOf(seen.key)
    if (end === undefined) return { latest, failed: now() < runsOut }
    // Its holder has renewed it.
    runsOut = end
  }
}

// One attempt to refresh a session, by whoever has its lease: asks the provider, and saves what it gave or decides what
// its failure means.

/** `taken` if somebody else is refreshing. */
export async function attemptRefresh(context: RefreshContext, refresh: Refresh): Promise<RefreshResult | 'taken'> {
  const lease = await context.leases.take(refresh.seen.key)
  if (!lease) return 'taken'
  let outcome: RefreshResult | 'taken' = 'taken'
  try {
    outcome = await refreshAsHolder(context, refresh, lease)
    return outcome
  } finally {
    if (isWantedSoon(context, outcome)) lease.release()
    else lease.leave()
  }
}

/** Whether somebody may ask for the lease before it runs out by itself: to give it back costs a write. */
function isWantedSoon({ isDueAt, leaseMs, now }: RefreshContext, outcome: RefreshResult | 'taken'): boolean {
  if (outcome === undefined || outcome === 'ended') return false
  return outcome === 'taken' || isDueAt(outcome.session, now() + leaseMs)
}

async function refreshAsHolder(
  context: RefreshContext,
  refresh: Refresh,
  lease: Lease,
): Promise<RefreshResult | 'taken'> {
  const { reload, backoffs, report } = context
  const { ticket, seen } = refresh
  try {
    const latest = await reload(ticket, seen)
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    const { session } = latest
    const { refreshToken } = session
    if (!refreshToken || !(await lease.isOurs())) return 'taken'
    const provider = providerOf(context, session)
    const tokens = await provider.refresh({ ...session, refreshToken })
    const saved = await saveTokens(context, refresh, latest, tokens)
    backoffs.forget(seen.key)
    if (saved) report('session_refreshed', sessionFields(seen))
    else await revokeTokens(context, provider, latest, { refreshToken, ...tokens })
    return saved
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
    return await failRefresh(context, refresh, error, lease)
  }
}

/** A provider that was taken out of the configuration vouches for nobody any more. */
function providerOf({ providers }: RefreshContext, { provider }: Session): SessionProvider {
  const found = providers.get(provider)
  if (!found) throw new MenshenError('provider_refused', 'the provider of this session is not configured any more')
  return found
}

async function failRefresh(
  context: RefreshContext,
  { ticket, seen }: Refresh,
  error: MenshenError,
  lease: Lease,
): Promise<RefreshResult | 'taken'> {
  const { store, load, backoffs, report } = context
  const latest = await load(ticket)
  if (!latest || !sameTokens(latest.session, seen.session)) return latest
  const facts = { ...sessionFields(seen), ...errorFields(error), reason: error.code }
  // Only a refusal is a verdict on the session. Everything else may be over in a moment, or be the operator's to mend.
  if (error.code !== 'provider_refused' && mayKeep(context, latest)) {
    report('session_refresh_failed', { ...facts, outcome: 'kept' })
    return keepSession(context, latest)
  }
  // Whoever has the lease now may be about to succeed.
  if (!(await lease.isOurs())) return 'taken'
  backoffs.forget(seen.key)
  await store.remove(seen.key)
  report('session_refresh_failed', { ...facts, outcome: 'ended' })
  return 'ended'
}

export function mayKeep({ settings, now }: RefreshContext, loaded: LoadedSession): boolean {
  return settings.REFRESH_FAILURE === 'keep' && isValid(loaded, now())
}

export function keepSession({ backoffs }: RefreshContext, loaded: LoadedSession): LoadedSession {
  backoffs.lengthen(loaded.key)
  return loaded
}

export function isValid({ session }: LoadedSession, now: number): boolean {
  return tokenExpiresAt(session) > now
}

// What becomes of tokens that the provider has just given: they are saved at last, or revoked if their session has ended.

const FIRST_SAVE_WAIT_MS = 50
export const LONGEST_SAVE_WAIT_MS = 800
/** Failed savings after which requests are told, while saving goes on. */
const PATIENT_SAVINGS = 6

/** The old tokens are spent: as long as the new ones are worth anything, a store that is away must not cost them. */
export async function saveTokens(
  { now, report, save }: Pick<RefreshContext, 'now' | 'report' | 'save'>,
  { ticket, inTrouble }: Refresh,
  latest: LoadedSession,
  tokens: TokenSet,
): Promise<LoadedSession | undefined> {
  const worthless = tokens.receivedAt + tokens.expiresIn * 1000
  let wait = FIRST_SAVE_WAIT_MS
  for (let failures = 1; ; failures++) {
    try {
      return await save(ticket, latest, { tokens })
    } catch (error) {
      if (now() > worthless) throw error
      report('tokens_not_saved', { ...sessionFields(latest), ...errorFields(error) })
      if (failures === PATIENT_SAVINGS) inTrouble(error)
      await pause(wait)
      wait = Math.min(wait * 2, LONGEST_SAVE_WAIT_MS)
    }
  }
}

/** Whoever ended the session could only tell the provider of the old tokens. */
export async function revokeTokens(
  { report }: Pick<RefreshContext, 'report'>,
  provider: SessionProvider,
  ended: LoadedSession,
  held: SessionTokens,
): Promise<void> {
  try {
    await provider.signOut(held)
  } catch (error) {
    report('provider_not_told', { ...errorFields(error), ...sessionFields(ended) })
  }
}

// A lease in the store: of all requests, processes and machines that want to do something for a session, one does it.
// Its holder renews it while the work takes longer, and can tell whether it still has it. It runs out if its holder dies.

export interface Lease {
  isOurs(): Promise<boolean>
  /** Gives it back, unless somebody else has it by now. Nobody has to wait for that. */
  release(): void
  /** Leaves it to run out by itself. */
  leave(): void
}

export interface Leases {
  /** `undefined` if somebody else has it. */
  take(name: string): Promise<Lease | undefined>
  /** When the present one runs out; `undefined` if nobody has it. */
  endOf(name: string): Promise<number | undefined>
  /** Resolves when those that were released are given back. */
  settle(): Promise<void>
}

const NOTHING = new Uint8Array()

export function createLeases(store: Store, lifeMs: number, now: () => number, report: Report): Leases {
  const keyOf = (name: string) => `lease:${name}`
  const releasing = new Map<string, Promise<void>>()

  /** What has expired is absent, and only our own version is replaced: a key never has the same version twice. */
  async function giveBack(name: string, latest: Promise<number>): Promise<void> {
    try {
      const version = await latest
      await store.replace(keyOf(name), { value: NOTHING, expiresAt: now(), labels: [] }, version)
    } catch (error) {
      report('lease_not_released', { ...errorFields(error), session: shortKey(name) })
    }
  }

  /** Somebody else's stays as it is. */
  async function renew(key: string, version: number): Promise<number> {
    return (await store.replace(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] }, version)) ?? version
  }

  return {
    async take(name) {
      // Otherwise we would take our own for somebody else's.
      await releasing.get(name)
      const key = keyOf(name)
      const version = await store.create(key, { value: NOTHING, expiresAt: now() + lifeMs, labels: [] })
      if (version === undefined) return undefined
      let latest = Promise.resolve(version)
      // What takes long, such as a provider that has to be discovered first, must not be done by somebody else as well. One that
      // could not be renewed runs out.
      const renewal = setInterval(() => {
        latest = latest.then(version => renew(key, version).catch(() => version))
      }, lifeMs / 3).unref()
      return {
        async isOurs() {
          const version = await latest
          return store.holds(key, version) || (await store.read(key))?.version === version
        },
        release() {
          clearInterval(renewal)
          const given = giveBack(name, latest).finally(() => releasing.delete(name))
          releasing.set(name, given)
        },
        leave: () => clearInterval(renewal),
      }
    },
    endOf: async name => (await store.read(keyOf(name)))?.expiresAt,
    async settle() {
      await Promise.all(releasing.values())
    },
  }
}

// How long not to bother the provider again about a session whose refresh has just failed.

export interface Backoffs {
  isOn(key: string): boolean
  /** Another failure: twice as long as the last time. */
  lengthen(key: string): void
  forget(key: string): void
}

const FIRST_MS = 1000
const LONGEST_MS = 30_000
/** Those whose session is gone fall out. */
const MOST = 10_000

export function createBackoffs(now: () => number): Backoffs {
  const backoffs = new LRUCache<string, { until: number; wait: number }>({ max: MOST })
  return {
    isOn: key => now() < (backoffs.get(key)?.until ?? 0),
    lengthen(key) {
      const wait = Math.min((backoffs.get(key)?.wait ?? FIRST_MS / 2) * 2, LONGEST_MS)
      backoffs.set(key, { until: now() + wait, wait })
    },
    forget: key => void backoffs.delete(key),
  }
}
