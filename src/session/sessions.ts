// Sessions: opened at sign-in, found by their ticket, refreshed when due, closed at sign-out.
import { type RoleInput, roleOf } from '../access/roles.ts'
import type { ScopedName } from '../access/scoped-name.ts'
import type { RoleConfig } from '../config/config-file.ts'
import type { Settings } from '../config/settings.ts'
import type { Measure } from '../events.ts'
import { createLastSeen } from './last-seen.ts'
import { createRefresher, type RefresherOptions, type RefreshResult } from './refresh.ts'
import type { LoadedSession } from './session-cache.ts'
import { claimsToKeep, isLost, type KeptClaims } from './session-claims.ts'
import { identityOf, sessionFields, userFields } from './session-fields.ts'
import { createSessionListing, type SessionListing } from './session-listing.ts'
import { isDue, newSession, type Session, type SessionData, type SignedIn } from './session-record.ts'
import { createStoredSessions, type StoredSessionsOptions } from './stored-sessions.ts'

export interface Sessions extends SessionListing {
  /** `addData` returns the application's data for the session. */
  open(signedIn: SignedIn, addData?: AddData): Promise<{ ticket: string; loaded: LoadedSession }>
  /** The session of a ticket if it is in the cache, current and not due. Nearly every request ends here, without waiting. */
  getCached(ticket: string): LoadedSession | undefined
  /** The session of a ticket that is not in the cache, if the store can be read without waiting and it is not due. */
  loadSync(ticket: string): LoadedSession | undefined
  /** Whether a loaded session is unchanged in the store and not due, without waiting. */
  isCurrent(loaded: LoadedSession): boolean
  /** The session of a ticket, after a refresh if that was due. */
  getFresh(ticket: string): Promise<RefreshResult>
  /** The session of a ticket, without a refresh. */
  get(ticket: string): Promise<LoadedSession | undefined>
  /** Ends the session and returns it. */
  close(ticket: string): Promise<ClosedSession | undefined>
  /** Changes the providers and roles. Sessions get their roles by the new ones. */
  use(directory: SessionDirectory): void
  /** Resolves when no refresh is under way. */
  settle(): Promise<void>
}

export type AddData = (session: Session) => Promise<SessionData | undefined>

export type ClosedSession = Pick<LoadedSession, 'key' | 'session'>

/** The part of the configuration that decides who users are. */
export interface SessionDirectory {
  readonly providers: RefresherOptions['providers']
  readonly roles: readonly RoleConfig[]
  /** Absent with a single provider. */
  readonly scopedName?: ScopedName
}

interface SessionsOptions extends SessionDirectory, Omit<StoredSessionsOptions, 'identify'> {
  readonly measure?: Measure
  readonly settings: StoredSessionsOptions['settings'] &
    RefresherOptions['settings'] &
    Pick<Settings, 'REFRESH_LEAD_SECONDS'>
}

export function createSessions(options: SessionsOptions): Sessions {
  const { store, keyring, settings, now } = options
  let directory: SessionDirectory = options
  const stored = createStoredSessions({
    ...options,
    identify: (session, claims) => identifyIn(directory, session, claims),
  })
  const { load, reload, save } = stored
  const providers = { get: (id: string | undefined) => directory.providers.get(id) }
  const noteVisit = createLastSeen(options)
  const warnOfShortLife = createShortLifeWarning(options)
  const isDueAt = (session: Session, at: number) => isDue(session, leadOf(session), at)
  const refresher = createRefresher({ ...options, load, reload, save, providers, isDueAt })
  const providerOf = ({ provider }: Session) => directory.providers.get(provider)
  const mustRefresh = ({ session }: LoadedSession) => isDueAt(session, now())

  /** Except for `idaas` (specification 7.1), a token is used for half of its life at least. */
  function leadOf(session: Session): number {
    const lead = settings.REFRESH_LEAD_SECONDS
    const isFixed = providerOf(session)?.plan.refreshLead !== 'half'
    return isFixed ? lead : Math.min(lead, session.tokenExpiresIn / 2)
  }

  /** `undefined` if the session cannot be used without a refresh. */
  function visited(loaded: LoadedSession | undefined): LoadedSession | undefined {
    if (!loaded || mustRefresh(loaded) || !providerOf(loaded.session)) return undefined
    noteVisit(loaded)
    return loaded
  }

  /** A session of a provider that is no longer configured ends. */
  async function endAbandoned(ticket: string, loaded: LoadedSession): Promise<'ended'> {
    await stored.take(ticket)
    options.report('session_ended', { ...sessionFields(loaded), by: 'configuration', ended: 1 })
    return 'ended'
  }

  return {
    ...createSessionListing({ store, keyring }),
    get: stored.get,
    close: stored.take,
    settle: refresher.settle,

    use(next) {
      directory = next
      stored.forget()
    },

    async open(signedIn, addData) {
      const { tokens, user, origin } = signedIn
      const { kept, left } = claimsToKeep(user.claims, directory.roles, tokens)
      const { provider } = signedIn
      // By the claims that are kept, as at every later request: otherwise the first request could have another role.
      const known = knownOf({ provider, username: user.userInfo.username, groups: user.groups }, () => kept)
      const session = newSession(signedIn, roleOf(known, directory.roles))
      warnOfShortLife(session.tokenExpiresIn, leadOf(session))
      if (left.length > 0) options.report('claims_left_out', { ...userFields(session), claims: left.slice(0, 20) })
      const data = await addData?.(session)
      return stored.create(data ? { ...session, data } : session, origin, kept)
    },

    getCached: ticket => visited(stored.getCached(ticket)),
    loadSync: ticket => visited(stored.loadSync(ticket)),
    isCurrent: loaded => stored.isCurrent(loaded) && visited(loaded) !== undefined,

    async getFresh(ticket) {
      const loaded = await stored.get(ticket)
      if (!loaded) return undefined
      if (!providerOf(loaded.session)) return endAbandoned(ticket, loaded)
      if (mustRefresh(loaded)) return refresher.refresh(ticket, loaded)
      noteVisit(loaded)
      return loaded
    },
  }
}

const asItIs: ScopedName = (_provider, name) => name

/** Claims are opened only if a role asks for them. */
function knownOf(who: Omit<RoleInput, 'claims' | 'isLost'>, openClaims: () => KeptClaims): RoleInput {
  let opened: KeptClaims | undefined
  const kept = () => {
    opened ??= openClaims()
    return opened
  }
  return {
    ...who,
    get claims() {
      return kept().claims
    },
    isLost: place => isLost(kept(), place),
  }
}

/** The stored role is that of an earlier configuration. The current one decides. */
function identifyIn({ roles, scopedName = asItIs }: SessionDirectory, session: Session, openClaims: () => KeptClaims) {
  const { provider, userInfo, groups = [], userRole } = session
  const role = roleOf(knownOf({ provider, username: userInfo.username, groups }, openClaims), roles)
  const now = role === userRole ? session : { ...session, userRole: role }
  return { session: now, who: identityOf(now, scopedName) }
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
