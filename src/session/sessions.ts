// A session's life: opened at sign-in, found again by its ticket, refreshed when due, closed at sign-out.
import { MenshenError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { TokenSet, UserInfo } from '../provider/answers.ts'
import type { Provider } from '../provider/provider.ts'
import type { Settings } from '../settings.ts'
import type { Store, Stored } from '../stores/store.ts'
import type { HouseKeys } from './keys.ts'
import { createOpenedCache, type Opened } from './opened.ts'
import {
  type Card,
  cardOf,
  isDue,
  latestEnd,
  newSession,
  SESSION_LABEL,
  type Session,
  SUB_LABEL,
  sameTokens,
  sessionEndsAt,
  sessionOf,
  toEntry,
  withCard,
  withTokens,
} from './record.ts'
import { createRefresher, type Refreshed, type RefresherOptions } from './refresh.ts'
import { isTicket, newTicket, recordKey } from './ticket.ts'

export interface Listed {
  readonly key: string
  readonly expiresAt: number
  /** Absent if the session was opened under another client secret. */
  readonly card?: Card
}

export interface Sessions {
  open(tokens: TokenSet, userInfo: UserInfo): Promise<{ ticket: string; opened: Opened }>
  /** The session of a ticket if it is at hand, proven and not due: the way of nearly every request, without waiting. */
  glance(ticket: string): Opened | undefined
  /** The session of a ticket, its tokens refreshed if they were due. */
  current(ticket: string): Promise<Refreshed>
  /** The session of a ticket as it is. */
  find(ticket: string): Promise<Opened | undefined>
  /** Ends it, and gives what it was. */
  close(ticket: string): Promise<Session | undefined>
  list(query: { username?: string; after?: string; limit: number }): Promise<{ sessions: Listed[]; next?: string }>
  /** Ends a session that was listed. */
  end(key: string): Promise<boolean>
  /** Ends all sessions of the user, on every device, and says how many there were. */
  endAllOf(sub: string): Promise<number>
  /** Ends all sessions of whoever has this listed one. */
  endAllLike(key: string): Promise<number>
  /** Resolves when no refresh is under way. */
  settle(): Promise<void>
}

export interface SessionsOptions {
  readonly store: Store
  readonly provider: Pick<Provider, 'refresh'>
  readonly keys: HouseKeys
  readonly settings: RefresherOptions['settings'] &
    Pick<Settings, 'REFRESH_LEAD_SECONDS' | 'SESSION_MAX_HOURS' | 'SESSION_CACHE_SIZE'>
  readonly now: () => number
  readonly log: Log
}

const NOTE_AGAIN_MS = 10_000
/** "Last seen" is exact to this: a request must not cost a write. */
const SEEN_STEP_MS = 5 * 60_000

export function createSessions({ store, provider, keys, settings, now, log }: SessionsOptions): Sessions {
  const cache = createOpenedCache(settings.SESSION_CACHE_SIZE)
  const refresher = createRefresher({ store, provider, settings, now, log, load, save })
  const entryOf = (ticket: string, session: Session, card: Card) =>
    toEntry(ticket, session, card, settings.SESSION_MAX_HOURS, keys)

  function atHand(ticket: string): Opened | undefined {
    const opened = cache.get(ticket)
    return opened && opened.expiresAt > now() && store.holds(opened.key, opened.version) ? opened : undefined
  }

  async function find(ticket: string): Promise<Opened | undefined> {
    return isTicket(ticket) ? (atHand(ticket) ?? load(ticket)) : undefined
  }

  async function load(ticket: string): Promise<Opened | undefined> {
    const stored = await store.read(recordKey(ticket))
    const opened = stored && openStored(stored, ticket)
    if (opened) cache.set(ticket, opened)
    else cache.delete(ticket)
    return opened
  }

  function openStored(stored: Stored, ticket: string): Opened | undefined {
    const session = sessionOf(stored, ticket)
    if (!session) {
      log.error({ session: stored.key }, 'a record does not open with its own ticket')
      return undefined
    }
    const card = cardOf(stored, stored.key, keys) ?? cardFor(session, session.tokenIssuedAt)
    const { signedInAt, seenAt } = card
    const expiresAt = sessionEndsAt(session, signedInAt, settings.SESSION_MAX_HOURS)
    return { key: stored.key, version: stored.version, expiresAt, signedInAt, seenAt, session }
  }

  async function save(
    ticket: string,
    seen: Opened,
    change: { tokens: TokenSet } | { until: number },
  ): Promise<Opened | undefined> {
    let latest: Opened | undefined = seen
    while (latest) {
      // A late loser must not overwrite newer tokens.
      if (!sameTokens(latest.session, seen.session)) return latest
      const card = { ...cardFor(latest.session, latest.signedInAt), seenAt: now() }
      const session = 'tokens' in change ? withTokens(latest.session, change.tokens, now()) : latest.session
      const entry = entryOf(ticket, session, card)
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
  function noteVisit(opened: Opened): void {
    if (now() - opened.seenAt < SEEN_STEP_MS || noting.has(opened.key)) return
    noting.add(opened.key)
    const card = { ...cardFor(opened.session, opened.signedInAt), seenAt: now() }
    store
      .read(opened.key)
      .then(stored => stored && store.replace(opened.key, withCard(stored, card, opened.key, keys), stored.version))
      .catch((error: unknown) => log.warn({ err: error }, 'last seen not saved'))
      // A store that cannot be written is not asked again at every request.
      .finally(() => setTimeout(() => noting.delete(opened.key), NOTE_AGAIN_MS).unref())
  }

  async function endAllWith(label: string): Promise<number> {
    let ended = 0
    // Always the first page: what was listed is gone after it.
    for (;;) {
      const { entries } = await store.list({ label, limit: 100 })
      const removed = await Promise.all(entries.map(({ key }) => store.remove(key)))
      ended += removed.filter(Boolean).length
      if (entries.length === 0) return ended
    }
  }

  let warned = false
  function warnOfShortLife(expiresIn: number): void {
    if (warned || expiresIn > settings.REFRESH_LEAD_SECONDS) return
    warned = true
    log.warn(
      { expiresIn, remedy: 'set REFRESH_LEAD_SECONDS well below the lifetime of the tokens' },
      'tokens live no longer than REFRESH_LEAD_SECONDS: every request refreshes them',
    )
  }

  return {
    async open(tokens, userInfo) {
      warnOfShortLife(tokens.expiresIn)
      const ticket = newTicket()
      const session = newSession(tokens, userInfo, now())
      const card = cardFor(session, session.tokenIssuedAt)
      if (!(await store.create(recordKey(ticket), entryOf(ticket, session, card))))
        throw new MenshenError('store_unavailable', 'the store already has a record for a new ticket')
      const opened = await load(ticket)
      if (!opened) throw new MenshenError('store_unavailable', 'a new session was gone at once')
      return { ticket, opened }
    },

    find,

    glance(ticket) {
      const opened = atHand(ticket)
      if (!opened || isDue(opened.session, settings.REFRESH_LEAD_SECONDS, now())) return undefined
      noteVisit(opened)
      return opened
    },

    async current(ticket) {
      const opened = await find(ticket)
      if (!opened) return undefined
      if (isDue(opened.session, settings.REFRESH_LEAD_SECONDS, now())) return refresher.refresh(ticket, opened)
      noteVisit(opened)
      return opened
    },

    async close(ticket) {
      const opened = await find(ticket)
      cache.delete(ticket)
      // Of parallel sign-outs one has ended it.
      return opened && (await store.remove(opened.key)) ? opened.session : undefined
    },

    async list({ username, after, limit }) {
      const label = username === undefined ? SESSION_LABEL : keys.label('username', username)
      const page = await store.list({ label, limit, ...(after === undefined ? {} : { after }) })
      const sessions = page.entries.map(entry => {
        const card = cardOf(entry, entry.key, keys)
        return { key: entry.key, expiresAt: entry.expiresAt, ...(card ? { card } : {}) }
      })
      return { sessions, ...(page.next === undefined ? {} : { next: page.next }) }
    },

    end: key => store.remove(key),

    endAllOf: sub => endAllWith(keys.label('sub', sub)),

    async endAllLike(key) {
      const label = (await store.read(key))?.labels[SUB_LABEL]
      return label === undefined ? 0 : endAllWith(label)
    },

    settle: () => refresher.settle(),
  }
}

function cardFor({ userInfo, userRole }: Session, signedInAt: number): Card {
  const { username, nickname } = userInfo
  return { username, nickname, userRole, signedInAt, seenAt: signedInAt }
}
