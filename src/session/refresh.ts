// Refreshes a session's tokens: once at a time for each session, whatever number of requests, processes and machines ask
// for it, and to its end even if whoever asked has gone away. Lock, reload, check again, refresh, save.
import { setTimeout as pause } from 'node:timers/promises'
import { MenshenError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { TokenSet } from '../provider/answers.ts'
import { createGate } from '../provider/gate.ts'
import type { Provider } from '../provider/provider.ts'
import type { Settings } from '../settings.ts'
import type { Store } from '../stores/store.ts'
import type { Opened } from './opened.ts'
import { sameTokens, tokenExpiresAt } from './record.ts'

/** The session as it is now; `ended` if the refresh failed and closed it; `undefined` if it was gone already. */
export type Refreshed = Opened | 'ended' | undefined

export interface Refresher {
  refresh(ticket: string, seen: Opened): Promise<Refreshed>
  /** Resolves when no refresh is under way. */
  settle(): Promise<void>
}

export interface RefresherOptions {
  readonly store: Store
  readonly provider: Pick<Provider, 'refresh'>
  readonly settings: Pick<Settings, 'REFRESH_FAILURE' | 'PROVIDER_TIMEOUT_MS' | 'PROVIDER_PARALLEL_CALLS'>
  readonly now: () => number
  readonly log: Log
  /** Reads the session anew. */
  load(ticket: string): Promise<Opened | undefined>
  /** Saves new tokens, or without them only makes sure that the record lives until `until`; `undefined` if gone. */
  save(ticket: string, seen: Opened, change: { tokens: TokenSet } | { until: number }): Promise<Opened | undefined>
}

const POLL_MS = 100
/** What a lease outlasts the slowest allowed call by: the retries before it, and the saving after it. */
const LEASE_MARGIN_MS = 5000
const SAVE_AGAIN_AFTER_MS = [50, 100, 200, 400, 800, 1600]
const FIRST_BACKOFF_MS = 1000
const LONGEST_BACKOFF_MS = 30_000

export function createRefresher(options: RefresherOptions): Refresher {
  const { store, provider, settings, now, log, load, save } = options
  const leaseMs = settings.PROVIDER_TIMEOUT_MS + LEASE_MARGIN_MS
  // Before the lease is taken: waiting must not use it up. Nobody is turned away, for that would sign them out.
  const gate = createGate(settings.PROVIDER_PARALLEL_CALLS, Number.POSITIVE_INFINITY)
  const flights = new Map<string, Promise<Refreshed>>()
  const backoffs = new Map<string, { until: number; wait: number }>()

  async function fly(ticket: string, seen: Opened): Promise<Refreshed> {
    const lease = `lease:${seen.key}`
    while (!(await store.create(lease, { value: new Uint8Array(), expiresAt: now() + leaseMs, labels: [] }))) {
      await pause(POLL_MS)
      const latest = await load(ticket)
      if (!latest || !sameTokens(latest.session, seen.session)) return latest
    }
    try {
      const latest = await load(ticket)
      if (!latest || !sameTokens(latest.session, seen.session)) return latest
      return await refreshHolding(ticket, latest)
    } finally {
      // If it cannot be given back now, it runs out by itself.
      await store.remove(lease).catch((error: unknown) => log.warn({ err: error }, 'a lease was not given back'))
    }
  }

  async function refreshHolding(ticket: string, seen: Opened): Promise<Refreshed> {
    const until = now() + leaseMs
    // A record that expired while the provider takes its time would sign the user out by accident.
    const held = seen.expiresAt < until ? await save(ticket, seen, { until }) : seen
    if (!held?.session.refreshToken) return held
    try {
      const tokens = await provider.refresh(held.session.refreshToken)
      backoffs.delete(seen.key)
      const saved = await saveAtLast(ticket, held, tokens)
      log.info({ session: seen.key }, 'session refreshed')
      return saved
    } catch (error) {
      if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
      return refreshFailed(ticket, held, error)
    }
  }

  /** The old tokens are spent: a store that blinks must not cost the session. */
  async function saveAtLast(ticket: string, seen: Opened, tokens: TokenSet): Promise<Opened | undefined> {
    for (const wait of SAVE_AGAIN_AFTER_MS) {
      try {
        return await save(ticket, seen, { tokens })
      } catch (error) {
        log.warn({ session: seen.key, err: error }, 'refreshed tokens not saved yet')
        await pause(wait)
      }
    }
    return save(ticket, seen, { tokens })
  }

  async function refreshFailed(ticket: string, seen: Opened, error: MenshenError): Promise<Refreshed> {
    const latest = await load(ticket)
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    const facts = { session: seen.key, code: error.code, reason: error.message }
    const refused = error.code === 'provider_refused'
    if (settings.REFRESH_FAILURE === 'keep' && !refused && tokenExpiresAt(seen.session) > now()) {
      const wait = Math.min((backoffs.get(seen.key)?.wait ?? FIRST_BACKOFF_MS / 2) * 2, LONGEST_BACKOFF_MS)
      backoffs.set(seen.key, { until: now() + wait, wait })
      log.warn(facts, 'refresh failed, session kept')
      return latest
    }
    backoffs.delete(seen.key)
    await store.remove(seen.key)
    log.warn(facts, 'refresh failed, session ended')
    return 'ended'
  }

  return {
    async refresh(ticket, seen) {
      const backoff = backoffs.get(seen.key)
      if (backoff && now() < backoff.until && tokenExpiresAt(seen.session) > now()) return seen
      const underway = flights.get(seen.key)
      if (underway) return underway
      const flight = gate(() => fly(ticket, seen)).finally(() => flights.delete(seen.key))
      flights.set(seen.key, flight)
      return flight
    },

    async settle() {
      await Promise.allSettled(flights.values())
    },
  }
}
