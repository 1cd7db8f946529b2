// Refreshes a session's tokens: once at a time for each session, whatever number of requests, processes and machines ask
// for it, and to its end even if whoever asked has gone away. Lock, reload, check again, refresh, save.
import { setTimeout as pause } from 'node:timers/promises'
import { factsOf, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { TokenSet } from '../provider/answers.ts'
import type { Provider } from '../provider/provider.ts'
import { createSlots } from '../provider/slots.ts'
import type { Settings } from '../settings/read.ts'
import type { Store } from '../stores/store.ts'
import { type Backoffs, createBackoffs } from './backoffs.ts'
import { createLeases, type Lease } from './lease.ts'
import type { LoadedSession } from './session-cache.ts'
import { sameTokens, tokenExpiresAt } from './session-record.ts'

/** The session as it is now; `ended` if the refresh failed and closed it; `undefined` if it was gone already. */
export type Refreshed = LoadedSession | 'ended' | undefined

export interface Refresher {
  refresh(ticket: string, seen: LoadedSession): Promise<Refreshed>
  /** Resolves when no refresh is under way, or none gets any further. */
  settle(): Promise<void>
}

export interface RefresherOptions {
  readonly store: Store
  readonly provider: Pick<Provider, 'refresh'>
  readonly settings: Pick<Settings, 'REFRESH_FAILURE' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'>
  readonly now: () => number
  readonly report: Report
  /** Reads the session anew. */
  load(ticket: string): Promise<LoadedSession | undefined>
  /** Saves new tokens, or without them only makes sure that the record lives until `until`; `undefined` if gone. */
  save(
    ticket: string,
    seen: LoadedSession,
    change: { tokens: TokenSet } | { until: number },
  ): Promise<LoadedSession | undefined>
}

interface RefreshInFlight {
  readonly result: Promise<Refreshed>
  /** Rejects when waiting for the result makes no sense for a request any more. */
  readonly trouble: Promise<never>
}

const POLL_MS = 100
/** What a lease outlasts the slowest call and its retries by. */
const LEASE_MARGIN_MS = 5000
/** How long a record is kept alive for a refresh that has to wait its turn. */
const QUEUE_MS = 10 * 60_000
const FIRST_SAVE_WAIT_MS = 50
const LONGEST_SAVE_WAIT_MS = 800
/** Failed savings after which requests are told, while saving goes on. */
const PATIENT_SAVINGS = 6

/** Longer than a call and its retries may take. */
export function leaseLife(providerTimeoutMs: number): number {
  return providerTimeoutMs * 2 + LEASE_MARGIN_MS
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, provider, settings, now, report, load, save } = options
  const leaseMs = leaseLife(settings.PROVIDER_TIMEOUT_MS)
  const leases = createLeases(store, leaseMs, now, report)
  const backoffs: Backoffs = createBackoffs(now)
  // Nobody is turned away, for that would sign them out.
  const slots = createSlots(settings.PROVIDER_PARALLEL_CALLS, Number.POSITIVE_INFINITY)
  const inFlight = new Map<string, RefreshInFlight>()

  const isValid = (loaded: LoadedSession) => tokenExpiresAt(loaded.session) > now()

  function start(ticket: string, seen: LoadedSession): RefreshInFlight {
    const { promise: trouble, reject } = Promise.withResolvers<never>()
    const result = run(ticket, seen, reject).finally(() => inFlight.delete(seen.key))
    // Nobody may be waiting for them any more.
    trouble.catch(() => {})
    result.catch(() => {})
    return { result, trouble }
  }

  async function run(ticket: string, seen: LoadedSession, inTrouble: (error: unknown) => void): Promise<Refreshed> {
    let latest: LoadedSession | undefined = seen
    let alive = seen.expiresAt
    for (;;) {
      if (!latest || !sameTokens(latest.session, seen.session)) return latest
      // A record that expired while the refresh waits or takes its time would sign the user out by accident.
      const needed = slots.isFull() ? QUEUE_MS : leaseMs
      if (alive < now() + needed) {
        alive = now() + needed * 2
        latest = await save(ticket, latest, { until: alive })
        continue
      }
      const outcome = await slots.withSlot(() => attempt(ticket, seen, inTrouble))
      if (outcome !== 'taken') return outcome
      const waited = await waitForHolder(ticket, seen)
      latest = waited.latest
      // Its failure counts for all.
      if (latest && waited.failed && mayKeep(latest)) return keep(latest)
    }
  }

  /** Until there are new tokens, or the lease is free: given back without them, or run out. */
  async function waitForHolder(
    ticket: string,
    seen: LoadedSession,
  ): Promise<{ latest: LoadedSession | undefined; failed: boolean }> {
    const runsOut = (await leases.endOf(seen.key)) ?? 0
    for (;;) {
      await pause(POLL_MS)
      const latest = await load(ticket)
      if (!latest || !sameTokens(latest.session, seen.session)) return { latest, failed: false }
      if ((await leases.endOf(seen.key)) === undefined) return { latest, failed: now() < runsOut }
    }
  }

  /** `taken` if somebody else is refreshing. */
  async function attempt(
    ticket: string,
    seen: LoadedSession,
    inTrouble: (error: unknown) => void,
  ): Promise<Refreshed | 'taken'> {
    const lease = await leases.take(seen.key)
    if (!lease) return 'taken'
    try {
      const latest = await load(ticket)
      if (!latest || !sameTokens(latest.session, seen.session)) return latest
      if (!latest.session.refreshToken || !(await lease.isOurs())) return 'taken'
      const tokens = await provider.refresh(latest.session.refreshToken)
      const saved = await saveAtLast(ticket, latest, tokens, inTrouble)
      backoffs.forget(seen.key)
      report('session_refreshed', { session: seen.key })
      return saved
    } catch (error) {
      if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
      return await fail(ticket, seen, error, lease)
    } finally {
      await lease.release()
    }
  }

  /** The old tokens are spent: as long as the new ones are worth anything, a store that is away must not cost them. */
  async function saveAtLast(
    ticket: string,
    seen: LoadedSession,
    tokens: TokenSet,
    inTrouble: (error: unknown) => void,
  ) {
    const worthless = tokens.receivedAt + tokens.expiresIn * 1000
    let wait = FIRST_SAVE_WAIT_MS
    for (let failures = 1; ; failures++) {
      try {
        return await save(ticket, seen, { tokens })
      } catch (error) {
        if (now() > worthless) throw error
        report('tokens_not_saved', { session: seen.key, ...factsOf(error) })
        if (failures === PATIENT_SAVINGS) inTrouble(error)
        await pause(wait)
        wait = Math.min(wait * 2, LONGEST_SAVE_WAIT_MS)
      }
    }
  }

  async function fail(
    ticket: string,
    seen: LoadedSession,
    error: MenshenError,
    lease: Lease,
  ): Promise<Refreshed | 'taken'> {
    const latest = await load(ticket)
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    const facts = { session: seen.key, ...factsOf(error), reason: error.code }
    if (error.code !== 'provider_refused' && mayKeep(latest)) {
      report('session_refresh_failed', { ...facts, outcome: 'kept' })
      return keep(latest)
    }
    // Whoever has the lease now may be about to succeed.
    if (!(await lease.isOurs())) return 'taken'
    backoffs.forget(seen.key)
    await store.remove(seen.key)
    report('session_refresh_failed', { ...facts, outcome: 'ended' })
    return 'ended'
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

  function mayKeep(loaded: LoadedSession): boolean {
    return settings.REFRESH_FAILURE === 'keep' && isValid(loaded)
  }

  function keep(loaded: LoadedSession): LoadedSession {
    backoffs.lengthen(loaded.key)
    return loaded
  }

  return {
    async refresh(ticket, seen) {
      if (backoffs.isOn(seen.key) && isValid(seen)) return seen
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
    },
  }
}
