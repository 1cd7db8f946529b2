// The end of a session as an AbortSignal, for applications that embed Menshen. A session has one signal in a process, however
// many requests ask for it. It is created when it is first read, and watched until the session ends.

import { getEventListeners } from 'node:events'
import { errorFields } from '../errors.ts'
import type { Report } from '../events.ts'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'
import type { LoadedSession } from './cache.ts'
import type { Sessions } from './sessions.ts'

export interface EndSignals {
  /** The signal of the session that the ticket opens. */
  signalFor(ticket: string, loaded: LoadedSession): AbortSignal
  /** Aborts all signals: from then on no session is watched here. */
  stop(): void
}

/** How a session is read and refreshed. */
interface SessionReader {
  isCurrent(loaded: LoadedSession): boolean
  get(ticket: string): Promise<LoadedSession | undefined>
  /** Refreshes it if that is due. */
  getFresh(ticket: string): Promise<unknown>
}

/**
 * A session that a stream or a signal follows without requests. It stays in the memory of this process even if the cache evicts it.
 * A refresh takes as long as the provider does, and the session may end in the meantime, so it is only started here; the next check
 * sees its result. A class, because every response of an application creates one.
 */
export class FollowedSession {
  readonly #ticket: string
  readonly #by: SessionReader
  #loaded: LoadedSession
  #isRefreshing = false
  /** The failure of the last refresh. */
  #failure: { readonly error: unknown } | undefined

  constructor(opened: LoadedSession, ticket: string, by: SessionReader) {
    this.#loaded = opened
    this.#ticket = ticket
    this.#by = by
  }

  /** Whether nothing has changed, as far as this process knows without waiting; usually true. */
  isCurrent(): boolean {
    const isUnchanged = this.#by.isCurrent(this.#loaded)
    if (isUnchanged) this.#failure = undefined
    return isUnchanged
  }

  /** The session as the store has it; `undefined` if it has ended. Rejects if the read or the last refresh failed. */
  async latest(): Promise<LoadedSession | undefined> {
    const latest = await this.#by.get(this.#ticket)
    if (!latest) return undefined
    this.#loaded = latest
    if (this.isCurrent()) return latest
    if (!this.#isRefreshing) void this.#refresh()
    if (this.#failure) throw this.#failure.error
    return latest
  }

  async #refresh(): Promise<void> {
    this.#isRefreshing = true
    try {
      await this.#by.getFresh(this.#ticket)
      this.#failure = undefined
    } catch (error) {
      this.#failure = { error }
    }
    this.#isRefreshing = false
  }
}

interface WatchedSignal extends WatchItem {
  readonly key: string
  readonly controller: AbortController
  readonly session: FollowedSession
  isChecked: boolean
}

const CHECK_INTERVAL_MS = 1000
/** Concurrent reads of the store; the other checks wait for their turn. */
const MAX_CONCURRENT_CHECKS = 50

export function createEndSignals(
  sessions: Pick<Sessions, 'isCurrent' | 'getFresh' | 'isAlive' | 'get'>,
  report: Report,
): EndSignals {
  const byKey = new Map<string, WatchedSignal>()
  const waiting: WatchedSignal[] = []
  let checks = 0
  let isStopped = false
  /** Signals that could not be checked last time. An outage is over when none is left. */
  const unchecked = new Set<WatchedSignal>()
  const watched = createWatchList<WatchedSignal>(CHECK_INTERVAL_MS, enqueueCheck)

  function enqueueCheck(signal: WatchedSignal): void {
    if (signal.isChecked || isCurrent(signal)) return
    signal.isChecked = true
    waiting.push(signal)
    checkNext()
  }

  function isCurrent({ session }: WatchedSignal): boolean {
    try {
      return session.isCurrent()
    } catch {
      // The store fails: `check` reports it.
      return false
    }
  }

  function checkNext(): void {
    if (checks >= MAX_CONCURRENT_CHECKS) return
    const signal = waiting.shift()
    if (!signal) return
    checks++
    void check(signal).finally(() => {
      checks--
      signal.isChecked = false
      checkNext()
    })
  }

  /** A store or provider that cannot answer does not prove that the session has ended. */
  async function check(signal: WatchedSignal): Promise<void> {
    try {
      const latest = await signal.session.latest()
      unchecked.delete(signal)
      if (!latest) end(signal)
    } catch (error) {
      if (unchecked.size === 0) report('streams_unchecked', errorFields(error))
      if (byKey.get(signal.key) === signal) unchecked.add(signal)
    }
  }

  function end(signal: WatchedSignal): void {
    if (byKey.get(signal.key) === signal) byKey.delete(signal.key)
    unchecked.delete(signal)
    watched.remove(signal)
    signal.controller.abort()
  }

  return {
    signalFor(ticket, loaded) {
      const known = byKey.get(loaded.key)
      if (known) return known.controller.signal
      const controller = new AbortController()
      if (isStopped) {
        controller.abort()
        return controller.signal
      }
      // Without a listener nothing is open, and the session is neither refreshed nor seen.
      const isOpen = () => getEventListeners(controller.signal, 'abort').length > 0
      const session = new FollowedSession(loaded, ticket, {
        isCurrent: latest => (isOpen() ? sessions.isCurrent(latest) : sessions.isAlive(latest)),
        get: sessions.get,
        getFresh: async ticket => isOpen() && sessions.getFresh(ticket),
      })
      const signal = { key: loaded.key, controller, session, isChecked: false, index: 0 }
      byKey.set(loaded.key, signal)
      watched.add(signal)
      enqueueCheck(signal)
      return controller.signal
    },

    stop() {
      isStopped = true
      watched.stop()
      for (const signal of [...byKey.values()]) end(signal)
    },
  }
}
