// Refreshes a session's tokens: once at a time for each session, whatever number of requests, processes and machines ask
// for it, and to its end even if whoever asked has gone away. Lock, reload, check again, refresh, save.
import { setTimeout as pause } from 'node:timers/promises'
import { factsOf, MenshenError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { TokenSet } from '../provider/answers.ts'
import { createGate } from '../provider/gate.ts'
import type { Provider } from '../provider/provider.ts'
import type { Settings } from '../settings.ts'
import type { Store } from '../stores/store.ts'
import { type Backoffs, createBackoffs } from './backoffs.ts'
import { createLeases, type Lease } from './lease.ts'
import type { Opened } from './opened.ts'
import { sameTokens, tokenExpiresAt } from './record.ts'

/** The session as it is now; `ended` if the refresh failed and closed it; `undefined` if it was gone already. */
export type Refreshed = Opened | 'ended' | undefined

export interface Refresher {
  refresh(ticket: string, seen: Opened): Promise<Refreshed>
  /** Resolves when no refresh is under way, or none gets any further. */
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

interface Flight {
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
  const { store, provider, settings, now, log, load, save } = options
  const leaseMs = leaseLife(settings.PROVIDER_TIMEOUT_MS)
  const leases = createLeases(store, leaseMs, now, log)
  const backoffs: Backoffs = createBackoffs(now)
  // Nobody is turned away, for that would sign them out.
  const gate = createGate(settings.PROVIDER_PARALLEL_CALLS, Number.POSITIVE_INFINITY)
  const flights = new Map<string, Flight>()

  const isValid = (opened: Opened) => tokenExpiresAt(opened.session) > now()

  function takeOff(ticket: string, seen: Opened): Flight {
    const { promise: trouble, reject } = Promise.withResolvers<never>()
    const result = fly(ticket, seen, reject).finally(() => flights.delete(seen.key))
    // Nobody may be waiting for them any more.
    trouble.catch(() => {})
    result.catch(() => {})
    return { result, trouble }
  }

  async function fly(ticket: string, seen: Opened, inTrouble: (error: unknown) => void): Promise<Refreshed> {
    let latest: Opened | undefined = seen
    let alive = seen.expiresAt
    for (;;) {
      if (!latest || !sameTokens(latest.session, seen.session)) return latest
      // A record that expired while the refresh waits or takes its time would sign the user out by accident.
      const needed = gate.isFull() ? QUEUE_MS : leaseMs
      if (alive < now() + needed) {
        alive = now() + needed * 2
        latest = await save(ticket, latest, { until: alive })
        continue
      }
      const outcome = await gate.pass(() => attempt(ticket, seen, inTrouble))
      if (outcome !== 'taken') return outcome
      const waited = await waitForHolder(ticket, seen)
      latest = waited.latest
      // Its failure counts for all.
      if (latest && waited.failed && mayKeep(latest)) return keep(latest)
    }
  }

  /** Until there are new tokens, or the lease is free: given back without them, or run out. */
  async function waitForHolder(ticket: string, seen: Opened): Promise<{ latest: Opened | undefined; failed: boolean }> {
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
    seen: Opened,
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
      log.info({ session: seen.key }, 'session refreshed')
      return saved
    } catch (error) {
      if (!(error instanceof MenshenError) || error.code === 'store_unavailable') throw error
      return await fail(ticket, seen, error, lease)
    } finally {
      await lease.release()
    }
  }

  /** The old tokens are spent: as long as the new ones are worth anything, a store that is away must not cost them. */
  async function saveAtLast(ticket: string, seen: Opened, tokens: TokenSet, inTrouble: (error: unknown) => void) {
    const worthless = now() + tokens.expiresIn * 1000
    let wait = FIRST_SAVE_WAIT_MS
    for (let failures = 1; ; failures++) {
      try {
        return await save(ticket, seen, { tokens })
      } catch (error) {
        if (now() > worthless) throw error
        log.warn({ session: seen.key, ...factsOf(error) }, 'refreshed tokens not saved yet')
        if (failures === PATIENT_SAVINGS) inTrouble(error)
        await pause(wait)
        wait = Math.min(wait * 2, LONGEST_SAVE_WAIT_MS)
      }
    }
  }

  async function fail(ticket: string, seen: Opened, error: MenshenError, lease: Lease): Promise<Refreshed | 'taken'> {
    const latest = await load(ticket)
    if (!latest || !sameTokens(latest.session, seen.session)) return latest
    const facts = { session: seen.key, ...factsOf(error) }
    if (error.code !== 'provider_refused' && mayKeep(latest)) {
      log.warn(facts, 'refresh failed, session kept')
      return keep(latest)
    }
    // Whoever has the lease now may be about to succeed.
    if (!(await lease.isOurs())) return 'taken'
    backoffs.forget(seen.key)
    await store.remove(seen.key)
    log.warn(facts, 'refresh failed, session ended')
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

  function mayKeep(opened: Opened): boolean {
    return settings.REFRESH_FAILURE === 'keep' && isValid(opened)
  }

  function keep(opened: Opened): Opened {
    backoffs.lengthen(opened.key)
    return opened
  }

  return {
    async refresh(ticket, seen) {
      if (backoffs.isOn(seen.key) && isValid(seen)) return seen
      let flight = flights.get(seen.key)
      if (!flight) {
        flight = takeOff(ticket, seen)
        flights.set(seen.key, flight)
      }
      return Promise.race([flight.result, afterOneMoreSaving(flight.trouble)])
    },

    async settle() {
      const landings = [...flights.values()].map(({ result, trouble }) => Promise.race([result, trouble]))
      await Promise.allSettled(landings)
    },
  }
}
