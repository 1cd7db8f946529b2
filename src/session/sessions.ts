// A session's life: opened at sign-in, found again by its ticket, refreshed when due, closed at sign-out.
import type { TokenSet, UserInfo } from '../provider/answers.ts'
import type { Settings } from '../settings/read.ts'
import { createLastSeen } from './last-seen.ts'
import { createRefresher, type Refreshed, type RefresherOptions } from './refresh/refresher.ts'
import type { LoadedSession } from './session-cache.ts'
import { createSessionListing, type SessionListing } from './session-listing.ts'
import { isDue, newSession, type Session } from './session-record.ts'
import { createStoredSessions, type StoredSessionsOptions } from './stored-sessions.ts'

export interface Sessions extends SessionListing {
  open(tokens: TokenSet, userInfo: UserInfo): Promise<{ ticket: string; loaded: LoadedSession }>
  /** The session of a ticket if it is at hand, proven and not due: the way of nearly every request, without waiting. */
  getCached(ticket: string): LoadedSession | undefined
  /** The session of a ticket, its tokens refreshed if they were due. */
  getFresh(ticket: string): Promise<Refreshed>
  /** The session of a ticket as it is. */
  get(ticket: string): Promise<LoadedSession | undefined>
  /** Ends it, and gives what it was. */
  close(ticket: string): Promise<Session | undefined>
  /** Resolves when no refresh is under way. */
  settle(): Promise<void>
}

interface SessionsOptions extends StoredSessionsOptions {
  readonly provider: RefresherOptions['provider']
  readonly settings: StoredSessionsOptions['settings'] &
    RefresherOptions['settings'] &
    Pick<Settings, 'REFRESH_LEAD_SECONDS'>
}

export function createSessions(options: SessionsOptions): Sessions {
  const { store, keyring, settings, now } = options
  const stored = createStoredSessions(options)
  const noteVisit = createLastSeen(options)
  const warnOfShortLife = createShortLifeWarning(options)
  const refresher = createRefresher({ ...options, load: stored.load, save: stored.save })
  const mustRefresh = ({ session }: LoadedSession) => isDue(session, settings.REFRESH_LEAD_SECONDS, now())

  return {
    ...createSessionListing({ store, keyring }),
    get: stored.get,
    close: stored.take,
    settle: refresher.settle,

    async open(tokens, userInfo) {
      warnOfShortLife(tokens.expiresIn)
      return stored.create(newSession(tokens, userInfo))
    },

    getCached(ticket) {
      const loaded = stored.getCached(ticket)
      if (!loaded || mustRefresh(loaded)) return undefined
      noteVisit(loaded)
      return loaded
    },

    async getFresh(ticket) {
      const loaded = await stored.get(ticket)
      if (!loaded) return undefined
      if (mustRefresh(loaded)) return refresher.refresh(ticket, loaded)
      noteVisit(loaded)
      return loaded
    },
  }
}

function createShortLifeWarning({ settings, report }: Pick<SessionsOptions, 'settings' | 'report'>) {
  let warned = false
  return (expiresIn: number): void => {
    if (warned || expiresIn > settings.REFRESH_LEAD_SECONDS) return
    warned = true
    report('short_token_life', {
      expiresIn,
      remedy: 'set REFRESH_LEAD_SECONDS well below the lifetime of the tokens',
    })
  }
}
