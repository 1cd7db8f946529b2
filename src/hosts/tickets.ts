// Tickets of `hosts`. Each host has its own cookie, with a ticket that is valid only at that host. Its record contains the ticket of
// the session, sealed under the host's ticket: a reader of the store cannot open it, and no other host finds it.
//
//   key     host-ticket:<host>:<hash of host and ticket>     found by the ticket at its own host only
//   value   the ticket of the session, sealed
//   label   hosts.<key of the session>                       the hosts of a session, for the console

import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Settings } from '../config/settings.ts'
import type { LoadedSession } from '../session/cache.ts'
import { latestEnd } from '../session/record.ts'
import { decodeJson, encodeJson, sealValue, unsealValue } from '../session/sealing.ts'
import { isTicket, newTicket, sealingKey } from '../session/ticket.ts'
import { allEntries, entryPages } from '../stores/pages.ts'
import { type Freshness, newFreshness, type Store, type StoredValue } from '../stores/store.ts'
import { ownCopy } from '../util/own-copy.ts'
import { atMost } from '../util/recent.ts'

export interface HostTickets {
  /**
   * Creates a ticket for one host that leads to the session of `sessionTicket`, valid for as long as the session can live. A session has
   * at most a hundred at a host: others are removed.
   */
  create(host: string, sessionTicket: string, session: SessionOfTicket): Promise<string>
  /** The ticket of the session, if that is known without waiting. */
  getSync(host: string, ticket: string): string | undefined
  /** The ticket of the session; `undefined` if this ticket was not made for this host. */
  get(host: string, ticket: string): Promise<string | undefined>
  remove(host: string, ticket: string): Promise<void>
  /** The hosts that a session has entered, in the order of their names. */
  hostsOf(sessionKey: string): Promise<string[]>
  /** Removes the tickets of a session that has ended. They no longer lead anywhere. */
  removeAllOf(sessionKey: string): Promise<void>
}

type SessionOfTicket = Pick<LoadedSession, 'key' | 'signedInAt'>

interface HostTicketsOptions {
  readonly store: Store
  readonly settings: Pick<Settings, 'SESSION_MAX_HOURS' | 'SESSION_CACHE_SIZE'>
}

const PREFIX = 'host-ticket:'
const recordSchema = z.object({ ticket: z.string() })
/**
 * A browser uses one, but each tab that opens at the same time gets its own, and so does a browser that has lost its cookies. Without a
 * limit, one user could fill the store.
 */
const MAX_PER_HOST = 100
/** If a user opens more hosts than this, only the first ones are listed. */
const MAX_LISTED = 100
const MIN_CACHE_SIZE = 1000

export function createHostTickets({ store, settings }: HostTicketsOptions): HostTickets {
  /** An entry is used only while the store holds its record: another instance may have removed it. */
  const cache = new LRUCache<string, CachedTicket>(atMost(Math.max(MIN_CACHE_SIZE, settings.SESSION_CACHE_SIZE)))

  function remember(ticket: string, cached: CachedTicket): void {
    cache.set(ownCopy(ticket), cached)
  }

  function getCached(host: string, ticket: string): string | undefined {
    const cached = cache.get(ticket)
    if (cached?.host !== host || !store.isCurrent(cached.key, cached.version, cached.freshness)) return undefined
    return cached.sessionTicket
  }

  function open(host: string, ticket: string, key: string, stored: StoredValue | undefined): string | undefined {
    const opened = stored && decodeJson(recordSchema, unsealValue(sealingKey(ticket), stored.value, key))
    if (!opened) {
      cache.delete(ticket)
      return undefined
    }
    const { version, freshness = newFreshness() } = stored
    remember(ticket, { host, key, version, freshness, sessionTicket: opened.ticket })
    return opened.ticket
  }

  async function removeOthers(newest: string, host: string, sessionKey: string): Promise<void> {
    const entries = await allEntries(store, labelOf(sessionKey))
    const others = entries.map(({ key }) => key).filter(key => key !== newest && hostIn(key) === host)
    await Promise.all(others.slice(MAX_PER_HOST - 1).map(key => store.remove(key)))
  }

  return {
    async create(host, sessionTicket, session) {
      const ticket = newTicket()
      const key = keyOf(host, ticket)
      const version = await store.create(key, {
        value: sealValue(sealingKey(ticket), encodeJson({ ticket: sessionTicket }), key),
        expiresAt: latestEnd(session.signedInAt, settings.SESSION_MAX_HOURS),
        labels: [labelOf(session.key)],
      })
      if (version !== undefined) remember(ticket, { host, key, version, freshness: newFreshness(), sessionTicket })
      await removeOthers(key, host, session.key)
      return ticket
    },

    getSync(host, ticket) {
      const cached = getCached(host, ticket)
      if (cached !== undefined || !store.readSync || !isTicket(ticket)) return cached
      const key = keyOf(host, ticket)
      return open(host, ticket, key, store.readSync(key))
    },

    async get(host, ticket) {
      const cached = getCached(host, ticket)
      if (cached !== undefined || !isTicket(ticket)) return cached
      const key = keyOf(host, ticket)
      return open(host, ticket, key, await store.read(key))
    },

    async remove(host, ticket) {
      cache.delete(ticket)
      if (isTicket(ticket)) await store.remove(keyOf(host, ticket))
    },

    async hostsOf(sessionKey) {
      const { entries } = await store.list({ label: labelOf(sessionKey), limit: MAX_LISTED })
      return [...new Set(entries.map(({ key }) => hostIn(key)))].sort()
    },

    async removeAllOf(sessionKey) {
      for await (const entries of entryPages(store, labelOf(sessionKey)))
        await Promise.all(entries.map(({ key }) => store.remove(key)))
    },
  }
}

interface CachedTicket {
  readonly host: string
  readonly key: string
  readonly version: number
  readonly freshness: Freshness
  readonly sessionTicket: string
}

function keyOf(host: string, ticket: string): string {
  return `${PREFIX}${host}:${hash('sha256', `menshen host ${host} ${ticket}`, 'base64url')}`
}

/** The name may have a port. */
function hostIn(key: string): string {
  return key.slice(PREFIX.length, key.lastIndexOf(':'))
}

function labelOf(sessionKey: string): string {
  return `hosts.${sessionKey}`
}

// The code that takes a browser from BASE_URL to a host. It is valid once, within a minute, at one host, for one browser.

export interface HandoffCode {
  /** The hash of the nonce that the browser has in a cookie of the host. */
  readonly challenge: string
  /** The session's ticket. */
  readonly ticket: string
  /** The path that was requested at the host, with its query. */
  readonly path: string
  /** The language that was chosen at BASE_URL. */
  readonly language?: string | undefined
}

export interface HandoffCodes {
  issue(host: string, entry: HandoffCode): Promise<string>
  /** Only one of several parallel callers gets it. `undefined` if it is unknown, was taken, has expired, or is for another host. */
  take(host: string, code: string): Promise<HandoffCode | undefined>
  /** Whether this is the first failed entry of the session to this page of the host within ten seconds. */
  isFirstFailure(host: string, entry: HandoffCode): Promise<boolean>
}

const CODE_SECONDS = 60
export const HANDOFF_BACKOFF_SECONDS = 10

const codeSchema: z.ZodType<HandoffCode> = z.object({
  challenge: z.string(),
  ticket: z.string(),
  path: z.string(),
  language: z.string().optional(),
})

export function createHandoffCodes({
  store,
  now,
}: {
  readonly store: Store
  readonly now: () => number
}): HandoffCodes {
  return {
    async issue(host, entry) {
      const code = newTicket()
      const key = codeKey(host, code)
      const value = sealValue(sealingKey(code), encodeJson(entry), key)
      await store.create(key, { value, expiresAt: now() + CODE_SECONDS * 1000, labels: [] })
      return code
    },

    async take(host, code) {
      if (!isTicket(code)) return undefined
      const key = codeKey(host, code)
      const entry = await store.take(key)
      return entry && decodeJson(codeSchema, unsealValue(sealingKey(code), entry.value, key))
    },

    async isFirstFailure(host, { ticket, path }) {
      const key = `entry-failed:${hash('sha256', `${host} ${ticket} ${path}`, 'base64url')}`
      const entry = { value: Buffer.of(1), expiresAt: now() + HANDOFF_BACKOFF_SECONDS * 1000, labels: [] }
      return (await store.create(key, entry)) !== undefined
    },
  }
}

function codeKey(host: string, code: string): string {
  return `entry:${hash('sha256', `menshen entry ${host} ${code}`, 'base64url')}`
}
