// Sessions in the store: created, loaded, and saved with new tokens. Loaded sessions stay in a cache, and are valid while the
// store holds the same version.

import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { TokenSet } from '../provider/token.ts'
import type { MappedUser } from '../provider/user.ts'
import {
  type Entry,
  type Freshness,
  newFreshness,
  type Store,
  type StoredEntry,
  type StoredValue,
} from '../stores/store.ts'
import { ownCopy } from '../util/own-copy.ts'
import { createSessionCache, type LoadedSession } from './cache.ts'
import { openClaims, type StoredClaims, sealClaims } from './claims.ts'
import type { DataKeyring } from './data-keys.ts'
import { type Identity, sameIdentity, shortKey } from './fields.ts'
import {
  boundedOrigin,
  type DeviceBinding,
  isBound,
  labelsOf,
  latestEnd,
  newSummary,
  openSession,
  type Session,
  type SessionData,
  type SessionSummary,
  type SignInOrigin,
  sameTokens,
  sealSummary,
  sessionEndsAt,
  summaryOf,
  toEntry,
  type WritableSession,
  withTokens,
  withUser,
} from './record.ts'
import { isNewerSession, unpackRecord } from './sealing.ts'

import { isTicket, newTicket, recordKey } from './ticket.ts'

interface StoredSessions {
  create(
    session: Session,
    origin?: SignInOrigin,
    claims?: StoredClaims,
    since?: number,
  ): Promise<{ ticket: string; loaded: LoadedSession }>
  /** Whether the store provably still holds this version, without waiting. */
  isCurrent(loaded: LoadedSession): boolean
  /** From the cache, if it is current. */
  getCached(ticket: string): LoadedSession | undefined
  /** From the cache, if the store confirmed it in the last ten minutes: for use while the store is unavailable. */
  getUnconfirmed(ticket: string): LoadedSession | undefined
  /** From the store without waiting, where that is possible. `undefined` does not prove that there is none. */
  loadSync(ticket: string): LoadedSession | undefined
  /** From the cache or from the store. */
  get(ticket: string): Promise<LoadedSession | undefined>
  /** From the store. */
  load(ticket: string): Promise<LoadedSession | undefined>
  /** From the store, with every change that another process has made before the call. */
  loadLatest(ticket: string): Promise<LoadedSession | undefined>
  /** Reads the record, or returns `seen` if that is current. */
  reload(ticket: string, seen: LoadedSession): Promise<LoadedSession | undefined>
  /** The provider's claims of the user, from the store. */
  readClaims(ticket: string): Promise<StoredClaims>
  /**
   * Applies the change to the session as the store has it, and writes it if that version is still there; otherwise tries again
   * with the new version. Returns the session as it is then; `undefined` if it is gone.
   */
  save(ticket: string, seen: LoadedSession, change: SessionChange): Promise<LoadedSession | undefined>
  /** Removes the session and returns it. If the store fails, it may remove the session all the same: `onUnconfirmed` gets it. */
  take(ticket: string, onUnconfirmed?: (session: TakenSession) => void): Promise<TakenSession | undefined>
  /** Empties the cache. */
  forget(): void
}

type TakenSession = Pick<LoadedSession, 'key' | 'session'>

/** New tokens; the user as they are now; another device or other data; or only a time until which the record is kept at least. */
export type SessionChange =
  | { readonly tokens: TokenSet }
  | { readonly user: UserChange }
  | { readonly device: DeviceChange }
  | { readonly data: SessionData }
  | { readonly until: number }

/** Returns the new device, or `undefined` to leave it as it is. */
export type DeviceChange = (device: DeviceBinding | undefined) => DeviceBinding | undefined

/** Who the user of a session is now. */
export interface UserChange extends Pick<MappedUser, 'userInfo' | 'groups'> {
  readonly claims: StoredClaims
}

export interface StoredSessionsOptions {
  readonly store: Store
  readonly keyring: Pick<DataKeyring, 'current' | 'latest'>
  readonly settings: Pick<Settings, 'SESSION_MAX_HOURS' | 'SESSION_CACHE_SIZE' | 'SESSION_CACHE_MB'> &
    Partial<Pick<Settings, 'STORE'>>
  /** The user according to the current configuration, and the session with that role. Claims are opened only if a role needs them. */
  readonly identify: (
    session: Session,
    claims: () => StoredClaims,
  ) => { readonly session: Session; readonly who: Identity }
  /** Whether a refresh leaves the time of last use as it is. */
  readonly countsActivity?: () => boolean
  /** Whether this process has ended the session of a key since a time. */
  readonly hasEndedSince?: (key: string, time: number) => boolean
  readonly now: () => number
  readonly report: Report
}

const NO_CLAIMS = new Uint8Array()
/** How long after its last confirmation a session may still open the console, which shows what is wrong with the store. */
const UNCONFIRMED_MS = 10 * 60_000

export function createStoredSessions(options: StoredSessionsOptions): StoredSessions {
  const { store, keyring, settings, identify, now, report } = options
  const maxHours = settings.SESSION_MAX_HOURS
  const cache = createSessionCache(settings)
  const reportUnreadable = createUnreadableReport(report)

  function isCurrent(loaded: LoadedSession): boolean {
    const at = now()
    if (loaded.expiresAt <= at || !store.isCurrent(loaded.key, loaded.version, loaded)) return false
    loaded.confirmedAt = at
    return true
  }

  function getUnconfirmed(ticket: string): LoadedSession | undefined {
    const loaded = cache?.get(ticket)
    const at = now()
    if (!loaded || loaded.expiresAt <= at) return undefined
    const age = at - loaded.confirmedAt
    // After the clock was set back, nothing tells how long ago that was, nor whether the session has ended since then.
    if (age < 0 || age > UNCONFIRMED_MS) return undefined
    return options.hasEndedSince?.(loaded.key, loaded.confirmedAt) ? undefined : loaded
  }

  function getCached(ticket: string): LoadedSession | undefined {
    const loaded = cache?.get(ticket)
    return loaded && isCurrent(loaded) ? loaded : undefined
  }

  const load = (ticket: string) => keepRead(ticket, store.read(recordKey(ticket)))

  async function keepRead(
    ticket: string,
    reading: Promise<StoredEntry | undefined>,
  ): Promise<LoadedSession | undefined> {
    const stored = await reading
    const opened = stored && readSession(stored, ticket, maxHours)
    if (stored && !opened) reportUnreadable(stored)
    // SESSION_MAX_HOURS may have become shorter than the life of the record.
    if (opened && latestEnd(opened.signedInAt, maxHours) > now()) return keep(ticket, opened)
    cache?.delete(ticket)
    return undefined
  }

  function loadSync(ticket: string): LoadedSession | undefined {
    const stored = store.readSync && isTicket(ticket) ? store.readSync(recordKey(ticket)) : undefined
    const opened = stored && readSession(stored, ticket, maxHours)
    return opened && opened.expiresAt > now() ? keep(ticket, opened) : undefined
  }

  /** Synchronous: a configuration change during a wait would leave a user of the old configuration in the cache. */
  function keep(ticket: string, opened: ReadSession, before?: LoadedSession): LoadedSession {
    const { key, version, expiresAt, signedInAt, seenAt, bytes, freshness } = opened
    const { session, who } = identify(opened.session, () => openClaims(opened.claimsPart, ticket, key))
    // Signing an assertion takes longer than all other headers. It contains nothing about the tokens.
    const isSameUser = before?.session.userInfo === session.userInfo && sameIdentity(before.who, who)
    const loaded = {
      key,
      version,
      expiresAt,
      signedInAt,
      seenAt,
      session,
      user: session,
      who,
      hasNewRole: session !== opened.session,
      identityHeaders: isSameUser ? before.identityHeaders : undefined,
      upstreamHeaders: undefined,
      deviceNotes: undefined,
      confirmedAt: now(),
      validIn: freshness.validIn,
      validUntil: freshness.validUntil,
    }
    cache?.set(ownCopy(ticket), loaded, bytes)
    return loaded
  }

  /** A session that was just written. It is read again only if the store cannot prove that it holds it. */
  async function loadWritten(written: WrittenSession, before?: LoadedSession): Promise<LoadedSession | undefined> {
    const { ticket, key, version } = written
    return store.isCurrent(key, version) ? asWritten(written, before) : load(ticket)
  }

  function asWritten(written: WrittenSession, before?: LoadedSession): LoadedSession {
    const { ticket, key, version, session, signedInAt, seenAt, claimsPart, entry } = written
    const expiresAt = sessionEndsAt(session, signedInAt, maxHours)
    const bytes = unpackRecord(entry.value)?.sealedPart.length ?? 0
    const freshness = newFreshness()
    return keep(ticket, { key, version, expiresAt, signedInAt, seenAt, session, bytes, claimsPart, freshness }, before)
  }

  /** The origin of a session is only in its summary. */
  async function readOrigin(stored: StoredEntry | undefined): Promise<SignInOrigin> {
    return boundedOrigin((stored && (await summary(stored))) ?? {})
  }

  async function summary(stored: StoredEntry): Promise<SessionSummary | undefined> {
    const latest = keyring.latest()
    return (
      (latest && summaryOf(stored, stored.key, latest)) ??
      // Other instances may use other keys by now.
      summaryOf(stored, stored.key, await keyring.current())
    )
  }

  /** Writes the session over this version of it. `undefined` if the store has another version by now, or none: a sign-out wins. */
  async function replace(
    ticket: string,
    latest: LoadedSession,
    applied: Session,
    change: SessionChange,
  ): Promise<WrittenSession | undefined> {
    const { key, signedInAt } = latest
    const user = 'user' in change ? change.user : undefined
    // The role is derived, as at every load.
    const session = user ? identify(applied, () => user.claims).session : applied
    const stored = await store.read(key)
    const parts = stored && unpackRecord(stored.value)
    const claimsPart = user ? sealClaims(user.claims, ticket, key) : (parts?.claimsPart ?? NO_CLAIMS)
    const times = { signedInAt, seenAt: options.countsActivity?.() ? latest.seenAt : now() }
    const keys = await keyring.current()
    const labels = labelsOf(session, keys)
    // With the same labels, the data keys are the same as well.
    const isPublicAsBefore =
      !user &&
      !latest.hasNewRole &&
      isBound(session.device) === isBound(latest.session.device) &&
      stored?.labels.join() === labels.join()
    const summaryPart =
      parts && isPublicAsBefore
        ? parts.summaryPart
        : sealSummary(newSummary(session, times, await readOrigin(stored)), key, keys)
    const writable = { ticket, key, session, labels, ...times, summaryPart, claimsPart }
    const entry = toEntry(writable, maxHours)
    const keepUntil = Math.min(keptUntil(change, stored), latestEnd(signedInAt, maxHours))
    const expiresAt = Math.max(entry.expiresAt, keepUntil)
    const since = stored?.since ?? signedInAt
    const version = await store.replace(key, { ...entry, since, expiresAt }, latest.version)
    return version === undefined ? undefined : { ...writable, version, entry }
  }

  return {
    isCurrent,
    getCached,
    getUnconfirmed,
    loadSync,
    load,
    loadLatest: ticket => keepRead(ticket, store.readLatest(recordKey(ticket))),
    reload: async (ticket, seen) => (isCurrent(seen) ? seen : load(ticket)),
    forget: () => cache?.clear(),

    async get(ticket) {
      return isTicket(ticket) ? (getCached(ticket) ?? load(ticket)) : undefined
    },

    async create(session, origin, claims, since = session.tokenIssuedAt) {
      const ticket = newTicket()
      const key = recordKey(ticket)
      const { tokenIssuedAt } = session
      const times = { signedInAt: tokenIssuedAt, seenAt: tokenIssuedAt }
      const claimsPart = claims ? sealClaims(claims, ticket, key) : NO_CLAIMS
      const keys = await keyring.current()
      const summaryPart = sealSummary(newSummary(session, times, origin), key, keys)
      const writable = { ticket, key, session, labels: labelsOf(session, keys), ...times, summaryPart, claimsPart }
      const entry = { ...toEntry(writable, maxHours), since }
      const version = await store.create(key, entry)
      if (version === undefined)
        throw new MenshenError('store_unavailable', 'the store already has a record for a new ticket')
      const written = { ...writable, version, entry }
      // A parallel sign-in of the same user may have ended it (SESSIONS_PER_USER): the next request finds that out.
      // The session is stored: if the store fails from now on, that fails the next request, not this sign-in.
      return { ticket, loaded: (await loadWritten(written).catch(() => undefined)) ?? asWritten(written) }
    },

    async save(ticket, seen, change) {
      for (let latest: LoadedSession | undefined = seen; latest; latest = await load(ticket)) {
        const applied = applyChange(change, seen.session, latest.session)
        if (!applied) return latest
        const written = await replace(ticket, latest, applied, change)
        if (written) return loadWritten(written, latest)
      }
      return undefined
    },

    async readClaims(ticket) {
      const key = recordKey(ticket)
      const stored = await store.read(key)
      const parts = stored && unpackRecord(stored.value)
      return openClaims(parts?.claimsPart ?? NO_CLAIMS, ticket, key)
    },

    async take(ticket, onUnconfirmed) {
      cache?.delete(ticket)
      if (!isTicket(ticket)) return undefined
      const key = recordKey(ticket)
      const open = (entry: Pick<StoredEntry, 'value'> | undefined): TakenSession | undefined => {
        const parts = entry && unpackRecord(entry.value)
        const opened = parts && openSession(parts, ticket, key)
        return opened && { key, session: opened.session }
      }
      const stored = await store.read(key)
      if (!stored) return undefined
      try {
        // Only one of several parallel callers gets it, with the latest tokens: a refresh may just have saved them.
        return open(await store.take(key))
      } catch (error) {
        const unconfirmed = open(stored)
        if (unconfirmed) onUnconfirmed?.(unconfirmed)
        throw error
      }
    },
  }
}

/**
 * The session after a change; `undefined` if there is nothing to write. `seen` is the session that the change was made for,
 * `latest` the session as the store has it: other tokens mean that another process was faster, and its tokens are newer.
 */
export function applyChange(change: SessionChange, seen: Session, latest: Session): Session | undefined {
  if ('device' in change) {
    const device = change.device(latest.device)
    return device && { ...latest, device }
  }
  if ('data' in change) return { ...latest, data: change.data }
  if (!sameTokens(latest, seen)) return undefined
  if ('tokens' in change) return withTokens(latest, change.tokens)
  if ('user' in change) return withUser(latest, change.user)
  return latest
}

/** Until when the record is kept at least. A change of device or data must not undo what a refresh in flight has asked for. */
function keptUntil(change: SessionChange, stored: StoredEntry | undefined): number {
  if ('until' in change) return change.until
  return 'device' in change || 'data' in change ? (stored?.expiresAt ?? 0) : 0
}

interface WrittenSession extends WritableSession {
  readonly version: number
  readonly entry: Entry
}

/** A session as read from its record, with its length in bytes. Claims stay sealed: the cache does not hold them. */
type ReadSession = Omit<
  LoadedSession,
  | 'user'
  | 'who'
  | 'hasNewRole'
  | 'identityHeaders'
  | 'upstreamHeaders'
  | 'deviceNotes'
  | 'confirmedAt'
  | keyof Freshness
> & {
  readonly bytes: number
  readonly claimsPart: Uint8Array
  readonly freshness: Freshness
}

/** `undefined` if the ticket does not open the record, or if its format is unknown. */
function readSession(stored: StoredValue, ticket: string, maxHours: number): ReadSession | undefined {
  const { key, version, value, freshness = newFreshness() } = stored
  const parts = unpackRecord(value)
  const opened = parts && openSession(parts, ticket, key)
  if (!opened) return undefined
  const { seenAt, claimsPart } = parts
  const { session, signedInAt, bytes } = opened
  const expiresAt = sessionEndsAt(session, signedInAt, maxHours)
  return { key, version, expiresAt, signedInAt, seenAt, session, bytes, claimsPart, freshness }
}

/** Reports each record that cannot be read. Records of a later version are reported once: there may be many. */
function createUnreadableReport(report: Report): (stored: StoredEntry) => void {
  let hasReportedNewer = false
  return ({ key, value }) => {
    const isNewer = isNewerSession(value)
    if (!isNewer) report('record_unreadable', { session: shortKey(key) })
    else if (!hasReportedNewer) report('newer_format', { record: 'session' })
    hasReportedNewer ||= isNewer
  }
}
