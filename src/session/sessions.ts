// A session's life: loaded at sign-in, found again by its ticket, refreshed when due, closed at sign-out.
import { factsOf, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { ProviderSession, TokenSet, UserInfo } from '../provider/answers.ts'
import type { Settings } from '../settings/read.ts'
import type { Store, Stored } from '../stores/store.ts'
import type { DerivedKeys } from './derived-keys.ts'
import { createRefresher, type Refreshed, type RefresherOptions } from './refresh/refresher.ts'
import { createSessionCache, type LoadedSession } from './session-cache.ts'
import {
  hasProviderSession,
  isDue,
  latestEnd,
  newSession,
  type PublicPart,
  providerSessionLabel,
  publicPartOf,
  SESSION_LABEL,
  type Session,
  SUB_LABEL,
  sameTokens,
  sessionEndsAt,
  sessionOf,
  toEntry,
  withPublicPart,
  withTokens,
} from './session-record.ts'
import { isTicket, newTicket, recordKey } from './ticket.ts'

export interface Listed {
  readonly key: string
  readonly expiresAt: number
  /** Absent if the session was loaded under another client secret. */
  readonly publicPart?: PublicPart
}

export interface Sessions {
  open(tokens: TokenSet, userInfo: UserInfo): Promise<{ ticket: string; loaded: LoadedSession }>
  /** The session of a ticket if it is at hand, proven and not due: the way of nearly every request, without waiting. */
  getCached(ticket: string): LoadedSession | undefined
  /** The session of a ticket, its tokens refreshed if they were due. */
  getFresh(ticket: string): Promise<Refreshed>
  /** The session of a ticket as it is. */
  get(ticket: string): Promise<LoadedSession | undefined>
  /** Ends it, and gives what it was. */
  close(ticket: string): Promise<Session | undefined>
  list(query: { username?: string; after?: string; limit: number }): Promise<{ sessions: Listed[]; next?: string }>
  /** Ends a session that was listed. */
  end(key: string): Promise<boolean>
  /** Ends all sessions of the user, on every device, and says how many there were. */
  endAllOf(sub: string): Promise<number>
  /** Ends what was opened at this session of the provider (`sid`): one device, usually. Says how many there were. */
  endProviderSession(providerSession: ProviderSession): Promise<number>
  /** Ends those sessions of the user of which it is not known at which session of the provider they were opened. */
  endUnknownDevicesOf(sub: string): Promise<number>
  /** Ends all sessions of whoever has this listed one. */
  endAllLike(key: string): Promise<number>
  /** Resolves when no refresh is under way. */
  settle(): Promise<void>
}

export interface SessionsOptions {
  readonly store: Store
  readonly provider: RefresherOptions['provider']
  readonly keys: DerivedKeys
  readonly settings: RefresherOptions['settings'] &
    Pick<Settings, 'REFRESH_LEAD_SECONDS' | 'SESSION_MAX_HOURS' | 'SESSION_CACHE_SIZE'>
  readonly now: () => number
  readonly report: Report
}

const NOTE_AGAIN_MS = 10_000
/** "Last seen" is exact to this: a request must not cost a write. */
const SEEN_STEP_MS = 5 * 60_000

export function createSessions({ store, provider, keys, settings, now, report }: SessionsOptions): Sessions {
  const cache = createSessionCache(settings.SESSION_CACHE_SIZE)
  const refresher = createRefresher({ store, provider, settings, now, report, load, save })
  const entryOf = (ticket: string, session: Session, publicPart: PublicPart) =>
    toEntry(ticket, session, publicPart, settings.SESSION_MAX_HOURS, keys)

  function proven(ticket: string): LoadedSession | undefined {
    const loaded = cache?.get(ticket)
    return loaded && loaded.expiresAt > now() && store.holds(loaded.key, loaded.version) ? loaded : undefined
  }

  async function get(ticket: string): Promise<LoadedSession | undefined> {
    return isTicket(ticket) ? (proven(ticket) ?? load(ticket)) : undefined
  }

  async function load(ticket: string): Promise<LoadedSession | undefined> {
    const stored = await store.read(recordKey(ticket))
    const loaded = stored && loadStored(stored, ticket)
    if (loaded) cache?.set(ticket, loaded)
    else cache?.delete(ticket)
    return loaded
  }

  function loadStored(stored: Stored, ticket: string): LoadedSession | undefined {
    const session = sessionOf(stored, ticket)
    if (!session) {
      report('record_unreadable', { session: stored.key })
      return undefined
    }
    const publicPart = publicPartOf(stored, stored.key, keys) ?? publicPartFor(session, session.tokenIssuedAt)
    const { signedInAt, seenAt } = publicPart
    const expiresAt = sessionEndsAt(session, signedInAt, settings.SESSION_MAX_HOURS)
    return { key: stored.key, version: stored.version, expiresAt, signedInAt, seenAt, session }
  }

  async function save(
    ticket: string,
    seen: LoadedSession,
    change: { tokens: TokenSet } | { until: number },
  ): Promise<LoadedSession | undefined> {
    let latest: LoadedSession | undefined = seen
    while (latest) {
      // A late loser must not overwrite newer tokens.
      if (!sameTokens(latest.session, seen.session)) return latest
      const publicPart = { ...publicPartFor(latest.session, latest.signedInAt), seenAt: now() }
      const session = 'tokens' in change ? withTokens(latest.session, change.tokens) : latest.session
      const entry = entryOf(ticket, session, publicPart)
      const latestPossible = latestEnd(latest.signedInAt, settings.SESSION_MAX_HOURS)
      const until = 'until' in change ? Math.min(change.until, latestPossible) : 0
      const kept = { ...entry, expiresAt: Math.max(entry.expiresAt, until) }
      // Only if still there: a sign-out during the refresh must win.
      const replaced = await store.replace(latest.key, kept, latest.version)
      latest = await load(ticket)
      if (replaced) return latest
    }
    return undefined
  }

  const noting = new Set<string>()
  function noteVisit(loaded: LoadedSession): void {
    if (now() - loaded.seenAt < SEEN_STEP_MS || noting.has(loaded.key)) return
    noting.add(loaded.key)
    const publicPart = { ...publicPartFor(loaded.session, loaded.signedInAt), seenAt: now() }
    store
      .read(loaded.key)
      .then(
        stored =>
          stored && store.replace(loaded.key, withPublicPart(stored, publicPart, loaded.key, keys), stored.version),
      )
      .catch((error: unknown) => report('last_seen_not_saved', factsOf(error)))
      // A store that cannot be written is not asked again at every request.
      .finally(() => setTimeout(() => noting.delete(loaded.key), NOTE_AGAIN_MS).unref())
  }

  async function endAllWith(label: string, isMeant = (_entry: Stored) => true): Promise<number> {
    let ended = 0
    let after: string | undefined
    // A page can be empty and still not be the last: only `next` says.
    do {
      const page = await store.list({ label, limit: 100, ...(after === undefined ? {} : { after }) })
      const removed = await Promise.all(page.entries.filter(isMeant).map(({ key }) => store.remove(key)))
      ended += removed.filter(Boolean).length
      after = page.next
    } while (after !== undefined)
    return ended
  }

  let warned = false
  function warnOfShortLife(expiresIn: number): void {
    if (warned || expiresIn > settings.REFRESH_LEAD_SECONDS) return
    warned = true
    report('short_token_life', {
      expiresIn,
      remedy: 'set REFRESH_LEAD_SECONDS well below the lifetime of the tokens',
    })
  }

  return {
    async open(tokens, userInfo) {
      warnOfShortLife(tokens.expiresIn)
      const ticket = newTicket()
      const session = newSession(tokens, userInfo)
      const publicPart = publicPartFor(session, session.tokenIssuedAt)
      if (!(await store.create(recordKey(ticket), entryOf(ticket, session, publicPart))))
        throw new MenshenError('store_unavailable', 'the store already has a record for a new ticket')
      const loaded = await load(ticket)
      if (!loaded) throw new MenshenError('store_unavailable', 'a new session was gone at once')
      return { ticket, loaded }
    },

    get,

    getCached(ticket) {
      const loaded = proven(ticket)
      if (!loaded || isDue(loaded.session, settings.REFRESH_LEAD_SECONDS, now())) return undefined
      noteVisit(loaded)
      return loaded
    },

    async getFresh(ticket) {
      const loaded = await get(ticket)
      if (!loaded) return undefined
      if (isDue(loaded.session, settings.REFRESH_LEAD_SECONDS, now())) return refresher.refresh(ticket, loaded)
      noteVisit(loaded)
      return loaded
    },

    async close(ticket) {
      cache?.delete(ticket)
      if (!isTicket(ticket) || !(await store.read(recordKey(ticket)))) return undefined
      // Of parallel sign-outs one has ended it, and what it gives are the latest tokens: a refresh may just have saved them.
      const entry = await store.take(recordKey(ticket))
      return entry && sessionOf(entry, ticket)
    },

    async list({ username, after, limit }) {
      const label = username === undefined ? SESSION_LABEL : keys.label('username', username)
      const page = await store.list({ label, limit, ...(after === undefined ? {} : { after }) })
      const sessions = page.entries.map(entry => {
        const publicPart = publicPartOf(entry, entry.key, keys)
        return { key: entry.key, expiresAt: entry.expiresAt, ...(publicPart ? { publicPart } : {}) }
      })
      return { sessions, ...(page.next === undefined ? {} : { next: page.next }) }
    },

    end: key => store.remove(key),

    endAllOf: sub => endAllWith(keys.label('sub', sub)),

    endProviderSession: providerSession => endAllWith(providerSessionLabel(providerSession, keys)),

    endUnknownDevicesOf: sub => endAllWith(keys.label('sub', sub), entry => !hasProviderSession(entry)),

    async endAllLike(key) {
      const label = (await store.read(key))?.labels[SUB_LABEL]
      return label === undefined ? 0 : endAllWith(label)
    },

    settle: () => refresher.settle(),
  }
}

function publicPartFor({ userInfo, userRole }: Session, signedInAt: number): PublicPart {
  const { username, nickname } = userInfo
  return { username, nickname, userRole, signedInAt, seenAt: signedInAt }
}
