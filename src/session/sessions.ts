// Sessions: opened at sign-in, found by their ticket, refreshed when due, closed at sign-out. The parts:
//
//   stored-sessions.ts            records in the store, and the cache of loaded sessions
//   refresh.ts                    new tokens when they are due; then identity-refresh.ts asks who the user is now
//   idle.ts, limit.ts             ends without activity, and beyond SESSIONS_PER_USER; end-reasons.ts stores why
//   end-signals.ts                the end of a session as an AbortSignal, for applications
//   data-changes.ts               the application's data, replaced by several requests at the same time
//   last-seen.ts                  the time of the last request, for the console
//   listing.ts                    sessions without their tickets, for the console

import { type RoleInput, roleOf } from '../access/roles.ts'
import type { ScopedName } from '../access/scoped-name.ts'
import type { RoleConfig } from '../config/file.ts'
import type { Settings } from '../config/settings.ts'
import { errorFields } from '../errors.ts'
import type { Measure } from '../measure.ts'
import type { LoadedSession } from './cache.ts'
import { isUnknownClaim, type StoredClaims, selectClaims } from './claims.ts'
import { createDataChanges } from './data-changes.ts'
import { createEndReasons, type EndReason } from './end-reasons.ts'
import { watchEnds } from './ends.ts'
import { identityOf, type SessionUser, sessionFields, userFields } from './fields.ts'
import type { SelectClaims } from './identity-refresh.ts'
import { createIdleSessions } from './idle.ts'
import { createLastSeen } from './last-seen.ts'
import { createSessionLimit } from './limit.ts'
import { createSessionListing, type ListedSession, type SessionListing } from './listing.ts'
import { isDue, newSession, type Session, type SessionData, type SignInDetails } from './record.ts'
import { createRefresher, type RefresherOptions, type RefreshResult } from './refresh.ts'
import { createStoredSessions, type DeviceChange, type StoredSessionsOptions } from './stored-sessions.ts'

export interface Sessions extends SessionListing {
  /** `addData` returns the application's data for the session. */
  open(signedIn: SignInDetails, addData?: AddData): Promise<{ ticket: string; loaded: LoadedSession }>
  /** The session of a ticket if it is in the cache, current and not due. Nearly every request needs only this, without waiting. */
  getCached(ticket: string): LoadedSession | undefined
  /** For use while the store is unavailable: the session of a ticket that it confirmed in the last ten minutes. */
  getUnconfirmed(ticket: string): LoadedSession | undefined
  /** The session of a ticket that is not in the cache, if the store can be read without waiting and it is not due. */
  loadSync(ticket: string): LoadedSession | undefined
  /** Whether a loaded session is unchanged in the store and not due, without waiting. */
  isCurrent(loaded: LoadedSession): boolean
  /** Whether a loaded session is unchanged in the store and has not ended, due or not, without waiting. */
  isAlive(loaded: LoadedSession): boolean
  /** The session of a ticket, after a refresh if that was due and `mayRefresh` does not object. */
  getFresh(ticket: string, mayRefresh?: (loaded: LoadedSession) => boolean): Promise<RefreshResult | 'unknown_provider'>
  /** The session of a ticket, without a refresh. */
  get(ticket: string): Promise<LoadedSession | undefined>
  /** The session of a ticket, with every change that another process has made before the call. */
  loadLatest(ticket: string): Promise<LoadedSession | undefined>
  /** Changes the device that a session is bound to, and returns the session as it is afterwards. */
  changeDevice(ticket: string, loaded: LoadedSession, change: DeviceChange): Promise<LoadedSession | undefined>
  /** Replaces the application's data, and returns the session as it is afterwards; `undefined` if it has ended. */
  changeData(ticket: string, loaded: LoadedSession, data: SessionData): Promise<LoadedSession | undefined>
  /** Ends a session whose browser has never proved itself. False if the session has changed since it was loaded. */
  endUnbound(loaded: LoadedSession): Promise<boolean>
  /** The provider's claims of the user. */
  readClaims(ticket: string): Promise<StoredClaims>
  /** Ends the session and returns it. If the store fails, the session may end all the same: `onUnconfirmed` gets it. */
  close(ticket: string, onUnconfirmed?: (session: ClosedSession) => void): Promise<ClosedSession | undefined>
  /** Ends the oldest sessions of the user that are beyond SESSIONS_PER_USER. A failure is reported with `fields`. */
  enforceLimit(loaded: LoadedSession, fields?: object): Promise<void>
  /** Notes activity of the user: SESSION_IDLE_MINUTES starts again. */
  noteActivity(loaded: LoadedSession): void
  /** When a session ends without activity; `undefined` if it does not. */
  idleEndOf(session: Pick<LoadedSession, 'key' | 'seenAt'>): number | undefined
  /** Why the session of this ticket has ended, if its user should be told; `undefined` the second time. */
  takeEndReason(ticket: string): Promise<EndReason | undefined>
  /** Changes the providers and roles. Sessions get their roles from the new ones; those of a removed provider end. */
  use(directory: SessionDirectory, removed?: readonly ProviderId[]): void
  /** Applies the settings at the start, before the first request. */
  begin(settings: EndSettings): Promise<void>
  /** Changes the settings. */
  useSettings(settings: EndSettings): void
  /** Resolves when no refresh is in flight and all activity is written. Afterwards, no session is watched. */
  settle(): Promise<void>
}

export type AddData = (session: Session) => Promise<SessionData | undefined>

/** The provider of a session: `undefined` if there was only one. */
type ProviderId = Session['provider']

export type ClosedSession = Pick<LoadedSession, 'key' | 'session'>

/** The part of the configuration that decides who users are. */
export interface SessionDirectory {
  readonly providers: RefresherOptions['providers']
  readonly roles: readonly RoleConfig[]
  /** Absent with a single provider. */
  readonly scopedName?: ScopedName
}

/** The settings that end sessions, besides the expiry of their tokens. */
export type EndSettings = Pick<Settings, 'SESSION_IDLE_MINUTES' | 'SESSIONS_PER_USER'>

interface SessionsOptions
  extends SessionDirectory,
    Omit<StoredSessionsOptions, 'identify'>,
    Pick<RefresherOptions, 'onUserConfirmed' | 'onUserRefused'> {
  readonly measure?: Measure
  readonly settings: StoredSessionsOptions['settings'] &
    RefresherOptions['settings'] &
    Pick<Settings, 'REFRESH_LEAD_SECONDS'>
}

export function createSessions(given: SessionsOptions): Sessions {
  const { store, hasEndedSince } = watchEnds(given.store, given)
  const options = { ...given, store, hasEndedSince }
  const { keyring, settings, now } = options
  let directory: SessionDirectory = options
  const reasons = createEndReasons(options)
  const idle = createIdleSessions({ ...options, reasons })
  const limit = createSessionLimit({ ...options, reasons, idle })
  const stored = createStoredSessions({
    ...options,
    countsActivity: idle.isOn,
    identify: (session, claims) => identifyIn(directory, session, claims),
  })
  const { load, reload, save, readClaims } = stored
  const providers = { get: (id: string | undefined) => directory.providers.get(id) }
  const noteVisit = createLastSeen(options)
  const removedProviders = new Set<ProviderId>()
  const reportUnknownProvider = createUnknownProviderReport(options)
  const warnOfShortLife = createShortLifeWarning(options)
  const isDueAt = (session: Session, at: number) => isDue(session, leadOf(session), at)
  const selectForRoles: SelectClaims = (user, tokens) => selectClaims(user, directory.roles, tokens)
  const refresher = createRefresher({
    ...options,
    load,
    reload,
    save,
    readClaims,
    selectClaims: selectForRoles,
    providers,
    isDueAt,
    reasons,
  })
  const providerOf = ({ provider }: Session) => directory.providers.get(provider)
  const mustRefresh = ({ session }: LoadedSession) => isDueAt(session, now())

  /** Except for `idaas` (specification 7.1), a token is used for at least half of its life. */
  function leadOf(session: Session): number {
    const lead = settings.REFRESH_LEAD_SECONDS
    const isFixed = providerOf(session)?.plan.refreshLead !== 'half'
    return isFixed ? lead : Math.min(lead, session.tokenExpiresIn / 2)
  }

  /** `undefined` if the session cannot be used without a refresh. */
  function visited(loaded: LoadedSession | undefined): LoadedSession | undefined {
    if (!loaded || mustRefresh(loaded) || !providerOf(loaded.session) || idle.isIdle(loaded)) return undefined
    seen(loaded)
    return loaded
  }

  function seen(loaded: LoadedSession): void {
    if (!idle.isOn()) noteVisit(loaded)
  }

  /** Ends a session that is idle, and returns `undefined` for it. */
  async function getAlive(ticket: string): Promise<LoadedSession | undefined> {
    const loaded = await stored.get(ticket)
    if (!loaded || !idle.isIdle(loaded)) return loaded
    if (!(await idle.end(loaded, sessionFields(loaded)))) return getAlive(ticket)
    // Possible only with the ticket: without it the tokens of a session cannot be read.
    providerOf(loaded.session)?.discard?.(loaded.session)
    return undefined
  }

  /**
   * A session of a provider that is not configured ends if a reload has removed the provider. A process that has never had it may
   * have an older configuration than the instance where the user signed in.
   */
  async function endAbandoned(ticket: string, loaded: LoadedSession): Promise<'ended' | 'unknown_provider'> {
    if (!removedProviders.has(loaded.session.provider)) {
      reportUnknownProvider(loaded)
      return 'unknown_provider'
    }
    await stored.take(ticket)
    options.report('session_ended', { ...sessionFields(loaded), by: 'configuration', ended: 1 })
    return 'ended'
  }

  const isListedAlive = ({ key, summary }: ListedSession) => !summary || !idle.isIdle({ key, seenAt: summary.seenAt })
  const listing = createSessionListing({ store, keyring, isAlive: isListedAlive })

  return {
    ...listing,
    get: getAlive,
    loadLatest: stored.loadLatest,
    changeDevice: (ticket, loaded, device) => save(ticket, loaded, { device }),
    changeData: createDataChanges((ticket, loaded, data) => save(ticket, loaded, { data })),
    close: stored.take,
    enforceLimit: (loaded, fields = sessionFields(loaded)) =>
      limit.enforce(loaded).catch((error: unknown) => {
        options.report('sign_in_incomplete', { ...fields, ...errorFields(error), step: 'limit' })
      }),
    noteActivity: idle.note,
    idleEndOf: idle.endsAt,
    takeEndReason: reasons.take,
    readClaims,

    async endUnbound(loaded) {
      const current = await store.read(loaded.key)
      if (current?.version !== loaded.version || !(await reasons.endUnchanged(current, 'unbound'))) return false
      options.report('session_ended', { ...sessionFields(loaded), reason: 'unbound', ended: 1 })
      return true
    },

    async settle() {
      await Promise.all([refresher.settle(), idle.close()])
    },

    async begin({ SESSION_IDLE_MINUTES, SESSIONS_PER_USER }) {
      limit.use(SESSIONS_PER_USER)
      await idle.begin(SESSION_IDLE_MINUTES)
    },

    useSettings({ SESSION_IDLE_MINUTES, SESSIONS_PER_USER }) {
      limit.use(SESSIONS_PER_USER)
      idle.use(SESSION_IDLE_MINUTES)
    },

    use(next, removed = []) {
      directory = next
      for (const id of removed) removedProviders.add(id)
      stored.forget()
    },

    async open(signedIn, addData) {
      const { tokens, user, origin } = signedIn
      const { storedClaims, droppedClaims } = selectForRoles(user, tokens)
      const { provider } = signedIn
      // Uses the stored claims, as every later request does; otherwise the first request could have another role.
      const known = new KnownUser(
        { provider, username: user.userInfo.username, groups: user.groups },
        () => storedClaims,
      )
      const session = newSession(signedIn, roleOf(known, directory.roles))
      warnOfShortLife(session.tokenExpiresIn, leadOf(session))
      if (droppedClaims.length > 0)
        options.report('claims_left_out', { ...userFields(session), claims: droppedClaims.slice(0, 20) })
      const data = await addData?.(session)
      const since = await limit.sinceOf(session, session.tokenIssuedAt)
      const [opened] = await Promise.all([
        stored.create(data ? { ...session, data } : session, origin, storedClaims, since),
        // The session does not depend on it.
        options
          .onUserConfirmed?.({ ...session, claims: storedClaims, askedAt: session.tokenIssuedAt })
          .catch((error: unknown) => {
            options.report('sign_in_incomplete', { ...userFields(session), ...errorFields(error), step: 'key_owner' })
          }),
      ])
      idle.watch(opened.loaded)
      return opened
    },

    getCached: ticket => visited(stored.getCached(ticket)),
    getUnconfirmed(ticket) {
      const loaded = stored.getUnconfirmed(ticket)
      return loaded && providerOf(loaded.session) && !idle.isIdle(loaded) ? loaded : undefined
    },
    // A session that is cached and current needs a refresh if it was not returned: opening its record again would not change that.
    loadSync: ticket => (stored.getCached(ticket) ? undefined : visited(stored.loadSync(ticket))),
    isCurrent: loaded => stored.isCurrent(loaded) && visited(loaded) !== undefined,
    isAlive: loaded => stored.isCurrent(loaded) && !idle.isIdle(loaded),

    async getFresh(ticket, mayRefresh = () => true) {
      const loaded = await getAlive(ticket)
      if (!loaded) return undefined
      if (!providerOf(loaded.session)) return endAbandoned(ticket, loaded)
      if (!mayRefresh(loaded)) return loaded
      if (mustRefresh(loaded)) return refresher.refresh(ticket, loaded)
      seen(loaded)
      return loaded
    },
  }
}

const asItIs: ScopedName = (_provider, name) => name

/** Claims are opened only if a role asks for them. A class: V8 creates a literal with a getter fifty times more slowly. */
class KnownUser implements RoleInput {
  readonly provider: string | undefined
  readonly username: string
  readonly groups: readonly string[]
  readonly #openClaims: () => StoredClaims
  #opened: StoredClaims | undefined

  constructor({ provider, username, groups }: Omit<RoleInput, 'claims' | 'isLost'>, openClaims: () => StoredClaims) {
    this.provider = provider
    this.username = username
    this.groups = groups
    this.#openClaims = openClaims
  }

  get claims() {
    return this.#stored.claims
  }

  isLost(path: string): boolean {
    return isUnknownClaim(this.#stored, path)
  }

  get #stored(): StoredClaims {
    this.#opened ??= this.#openClaims()
    return this.#opened
  }
}

/** The stored role is that of an earlier configuration. The current one decides. */
export function identifyIn<S extends SessionUser>(
  { roles, scopedName = asItIs }: Pick<SessionDirectory, 'roles' | 'scopedName'>,
  session: S,
  openClaims: () => StoredClaims,
) {
  const { provider, userInfo, groups = [], userRole } = session
  const role = roleOf(new KnownUser({ provider, username: userInfo.username, groups }, openClaims), roles)
  const now = role === userRole ? session : { ...session, userRole: role }
  return { session: now, who: identityOf(now, scopedName) }
}

/** Once per provider: one log line is enough to find the instance whose configuration differs. */
function createUnknownProviderReport({ report }: Pick<SessionsOptions, 'report'>) {
  const reported = new Set<ProviderId>()
  return (loaded: LoadedSession): void => {
    const { provider } = loaded.session
    if (reported.has(provider)) return
    reported.add(provider)
    report('unknown_provider', {
      ...sessionFields(loaded),
      remedy: 'give all instances the same providers; if the provider was removed, its sessions expire',
    })
  }
}

function createShortLifeWarning({ report }: Pick<SessionsOptions, 'report'>) {
  let warned = false
  return (expiresIn: number, leadSeconds: number): void => {
    if (warned || expiresIn > leadSeconds) return
    warned = true
    report('short_token_life', {
      expiresIn,
      remedy: 'set REFRESH_LEAD_SECONDS well below the lifetime of the tokens',
    })
  }
}
