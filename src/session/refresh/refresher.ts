// Refreshes a session's tokens: once at a time for each session, whatever number of requests, processes and machines ask
// for it, and to its end even if whoever asked has gone away. Lock, reload, check again, refresh, save.
import { setTimeout as pause } from 'node:timers/promises'
import { type Measure, type Report, unmeasured } from '../../events.ts'
import { createSlots, type Slots } from '../../provider/calls/slots.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import type { Provider } from '../../provider/provider.ts'
import type { TokenSet } from '../../provider/token-answer.ts'
import type { Settings } from '../../settings/read.ts'
import type { Store } from '../../stores/store.ts'
import type { LoadedSession } from '../session-cache.ts'
import type { Session } from '../session-record.ts'
import { type Backoffs, createBackoffs } from './backoffs.ts'
import { createLeases, type Leases } from './lease.ts'
import { isValid } from './refresh-attempt.ts'
import { runRefresh } from './refresh-run.ts'
import { LONGEST_SAVE_WAIT_MS } from './token-saving.ts'

/** The session as it is now; `ended` if the refresh failed and closed it; `undefined` if it was gone already. */
export type Refreshed = LoadedSession | 'ended' | undefined

interface Refresher {
  refresh(ticket: string, seen: LoadedSession): Promise<Refreshed>
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
  readonly result: Promise<Refreshed>
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
