// Sessions without their tickets: listed for the console, and ended one by one, by user or by provider session.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ProviderSession } from '../provider/id-token.ts'
import { entryPages } from '../stores/pages.ts'
import type { Page, Store, StoredEntry } from '../stores/store.ts'
import type { DataKeyring } from './data-keys.ts'
import { type EndReason, endWithReason } from './end-reasons.ts'
import {
  type DataKeys,
  hasOwnSubject,
  hasProviderSession,
  labelOf,
  providerSessionLabel,
  providerSubLabel,
  SESSION_LABEL,
  type SessionSummary,
  SUB_LABEL,
  summaryOf,
  type UserId,
  userLabel,
} from './record.ts'

export interface ListedSession {
  readonly key: string
  readonly expiresAt: number
  /** The label under which all sessions of this user are listed. */
  readonly owner?: string
  /** Absent if it was sealed under a secret that is gone. */
  readonly summary?: SessionSummary
}

interface SessionPage {
  readonly sessions: ListedSession[]
  /** Where the next page begins; absent on the last one. A page can be empty and not the last. */
  readonly next?: string
}

export interface SessionListing {
  /** The sessions of all users, the newest first. */
  newest(query: { before?: string | undefined; limit: number }): Promise<SessionPage>
  /** The sessions of one username or of all, in pages of any order, each with the newest first. */
  list(query: { username?: string; after?: string | undefined; limit: number }): Promise<SessionPage>
  /**
   * The sessions of one username, the newest first. If there are more than ten thousand, those among the first ten thousand keys
   * come first. A `before` that is not the `next` of an earlier page is ignored.
   */
  newestNamed(username: string, query: { before?: string | undefined; limit: number }): Promise<SessionPage>
  /** The sessions of one user, in pages of any order, each with the newest first. */
  listOf(user: UserId, query: { after?: string | undefined; limit: number }): Promise<SessionPage>
  /** The sessions of the user of this listed session, in the same way as `listOf`. */
  listLike(session: ListedSession, query: { after?: string | undefined; limit: number }): Promise<SessionPage>
  /** The number of sessions that `newest` lists. */
  count(): Promise<number>
  /** One session as the list shows it. */
  getListed(key: string): Promise<ListedSession | undefined>
  /** Ends a session that was listed. The login page of its browser shows why. */
  end(key: string, reason?: EndReason): Promise<boolean>
  /** Ends all sessions of the users with this name, at every provider, and yields each as soon as it has ended. */
  endNamed(username: string, reason?: EndReason): AsyncGenerator<ListedSession>
  /** Ends all sessions of the user, on every device. */
  endAllOf(user: UserId, reason?: EndReason): Promise<EndedSessions>
  /** Ends all sessions of the user except one. */
  endOthersOf(user: UserId, keptKey: string): Promise<EndedSessions>
  /** Ends a session if it belongs to this user. */
  endOneOf(user: UserId, key: string): Promise<boolean>
  /** Ends the sessions that were opened in this session of the provider (`sid`), usually one device. */
  endProviderSession(providerSession: ProviderSession): Promise<EndedSessions>
  /** Ends all sessions of the user with this `sub` at the provider, which may differ from ours. */
  endAllOfSubject(subject: UserId): Promise<EndedSessions>
  /** Ends the subject's sessions that have no known provider session. */
  endUnknownDevicesOfSubject(subject: UserId): Promise<EndedSessions>
  /** Ends all sessions of the user of this listed session. */
  endAllLike(session: ListedSession, reason?: EndReason): Promise<EndedSessions>
}

/** How many were ended, and whose, if that could be read. */
export interface EndedSessions {
  readonly count: number
  readonly user?: string
}

export function createSessionListing({
  store,
  keyring,
  isAlive = () => true,
}: {
  store: Store
  keyring: Pick<DataKeyring, 'current'>
  /** False for a session that has ended but whose record is still there. */
  isAlive?: (session: ListedSession) => boolean
}): SessionListing {
  async function endAllWith(
    label: string,
    reason: EndReason,
    isMeant = (_entry: StoredEntry) => true,
  ): Promise<EndedSessions> {
    const keys = await keyring.current()
    let user: string | undefined
    let count = 0
    for await (const entries of entryPages(store, label)) {
      const meant = entries.filter(isMeant)
      const removed = await Promise.all(meant.map(({ key }) => endWithReason({ store, keyring }, key, reason)))
      const ended = meant.filter((_, n) => removed[n])
      for (const entry of ended) user ??= summaryOf(entry, entry.key, keys)?.username
      count += ended.length
    }
    return user === undefined ? { count } : { count, user }
  }

  async function endAllLabelled(
    label: (keys: DataKeys) => string,
    reason: EndReason,
    isMeant?: (entry: StoredEntry) => boolean,
  ): Promise<EndedSessions> {
    return endAllWith(label(await keyring.current()), reason, isMeant)
  }

  /** A user with a separate `sub` at the provider is found by that, not by ours. */
  async function endSubject(subject: UserId, isMeant = (_entry: StoredEntry) => true): Promise<EndedSessions> {
    const [own, other] = await Promise.all([
      endAllLabelled(
        keys => userLabel(subject, keys),
        'ended_by_provider',
        entry => !hasOwnSubject(entry) && isMeant(entry),
      ),
      endAllLabelled(keys => providerSubLabel(subject, keys), 'ended_by_provider', isMeant),
    ])
    const user = own.user ?? other.user
    return { count: own.count + other.count, ...(user === undefined ? {} : { user }) }
  }

  const withoutExpired = (page: SessionPage) => ({ ...page, sessions: page.sessions.filter(isAlive) })

  async function listWith(label: string, query: { after?: string | undefined; limit: number }): Promise<SessionPage> {
    const page = withoutExpired(pageOf(await store.list({ label, ...query }), await keyring.current()))
    return { ...page, sessions: page.sessions.sort((one, other) => sinceOf(other) - sinceOf(one)) }
  }

  return {
    async newest(query) {
      return withoutExpired(pageOf(await store.newest(query), await keyring.current()))
    },

    async list({ username, ...query }) {
      const keys = await keyring.current()
      return listWith(username === undefined ? SESSION_LABEL : labelOf('username', username, keys), query)
    },

    async newestNamed(username, { before, limit }) {
      const keys = await keyring.current()
      return withoutExpired(
        pageOf(await newestWith(store, labelOf('username', username, keys), { before, limit }), keys),
      )
    },

    listOf: async (user, query) => listWith(userLabel(user, await keyring.current()), query),

    listLike: async (session, query) =>
      session.owner === undefined ? { sessions: [session] } : listWith(session.owner, query),

    count: () => store.count(),

    async getListed(key) {
      const stored = await store.read(key)
      const listed = stored && listedOf(stored, await keyring.current())
      return listed && isAlive(listed) ? listed : undefined
    },

    end: (key, reason = 'ended_by_developer') => endWithReason({ store, keyring }, key, reason),

    async *endNamed(username, reason = 'ended_by_developer') {
      const keys = await keyring.current()
      for await (const entries of entryPages(store, labelOf('username', username, keys))) {
        const results = await Promise.allSettled(
          entries.map(({ key }) => endWithReason({ store, keyring }, key, reason)),
        )
        for (const [n, entry] of entries.entries()) {
          const result = results[n]
          if (result?.status === 'fulfilled' && result.value) yield listedOf(entry, keys)
        }
        // Thrown after the sessions that have ended are yielded, so that the caller reports them.
        for (const result of results) if (result.status === 'rejected') throw result.reason
      }
    },

    endAllOf: (user, reason = 'ended_by_user') => endAllLabelled(keys => userLabel(user, keys), reason),

    endOthersOf: (user, keptKey) =>
      endAllLabelled(
        keys => userLabel(user, keys),
        'ended_by_user',
        entry => entry.key !== keptKey,
      ),

    async endOneOf(user, key) {
      const label = userLabel(user, await keyring.current())
      const stored = await store.read(key)
      return stored?.labels[SUB_LABEL] === label && endWithReason({ store, keyring }, key, 'ended_by_user')
    },

    endProviderSession: providerSession =>
      endAllLabelled(keys => providerSessionLabel(providerSession, keys), 'ended_by_provider'),

    endAllOfSubject: subject => endSubject(subject),
    endUnknownDevicesOfSubject: subject => endSubject(subject, entry => !hasProviderSession(entry)),

    endAllLike: async ({ owner }, reason = 'ended_by_developer') =>
      owner === undefined ? { count: 0 } : endAllWith(owner, reason),
  }
}

function pageOf({ entries, next }: Page, keys: DataKeys): SessionPage {
  return { sessions: entries.map(entry => listedOf(entry, keys)), ...(next === undefined ? {} : { next }) }
}

function sinceOf({ summary }: ListedSession): number {
  return summary?.signedInAt ?? 0
}

function listedOf(entry: StoredEntry, keys: DataKeys): ListedSession {
  const { key, expiresAt, labels } = entry
  const summary = summaryOf(entry, key, keys)
  const owner = labels[SUB_LABEL]
  return { key, expiresAt, ...(owner === undefined ? {} : { owner }), ...(summary ? { summary } : {}) }
}

// The newest entries with a label. A store lists them in the order of their keys, so all of them are read for one page, but
// only the page is kept. To keep a page fast, at most `MAX_SORTED` are read; the others form a part that is listed separately.
//
//   15,000 entries   the first page reads those up to the key k (10,000), and has the newest of them
//   next             1763450000000:aB3d…::k…   older than this one, from the first key to k
//                    ::k…:                     all of the first part was listed: from k to the end

const MAX_SORTED = 10_000
const PAGE_SIZE = 200

/** Where a page begins: only entries before `since` and `key`, whose keys are after `from` and not after `to`. */
const START = /^(?:(\d{1,16}):([\w-]{43}))?(?::([\w-]{43})?:([\w-]{43})?)?$/

interface Start {
  readonly last?: { readonly since: number; readonly key: string } | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

function readStart(text: string): Start {
  const [, since, key, from, to] = START.exec(text) ?? []
  return { last: key === undefined ? undefined : { since: Number(since), key }, from, to }
}

function startText({ last, from, to }: Start): string {
  const position = last ? `${last.since}:${last.key}` : ''
  return from === undefined && to === undefined ? position : `${position}:${from ?? ''}:${to ?? ''}`
}

async function newestWith(
  store: Pick<Store, 'list'>,
  label: string,
  { before = '', limit }: { before?: string | undefined; limit: number },
): Promise<Page> {
  const { last, from, to } = readStart(before)
  let newest: StoredEntry[] = []
  let end = to
  let after = from
  for (let read = 0; ; ) {
    const { entries, next } = await store.list({ label, after, limit: PAGE_SIZE })
    const inside = entries.filter(entry => (end === undefined || entry.key <= end) && (!last || isOlder(entry, last)))
    newest = [...newest, ...inside].sort((one, other) => (isOlder(other, one) ? -1 : 1)).slice(0, limit + 1)
    read += entries.length
    after = next
    if (next === undefined || (end !== undefined && next >= end)) break
    if (end === undefined && read >= MAX_SORTED) {
      end = next
      break
    }
    await nextTurn()
  }
  const page = newest.slice(0, limit)
  const oldest = page.at(-1)
  if (oldest && newest.length > limit)
    return { entries: page, next: startText({ last: { since: oldest.since ?? 0, key: oldest.key }, from, to: end }) }
  return after === undefined ? { entries: page } : { entries: page, next: startText({ from: end }) }
}

function isOlder(one: Pick<StoredEntry, 'since' | 'key'>, other: Pick<StoredEntry, 'since' | 'key'>): boolean {
  const [since, otherSince] = [one.since ?? 0, other.since ?? 0]
  return since === otherSince ? one.key < other.key : since < otherSince
}
