// The users of the sessions tab, page by page: each user once, with their sessions, newest user first.
//
//   sessions, newest first    B2  A3  C1  A2  B1  A1
//   page 1 of two users       B (B2, B1), A (A3, A2, A1)
//   page 2                    C; A2, B1 and A1 are of users who are on page 1
//
// A user is listed at their newest session. A search looks at every session, because names, addresses and devices are sealed. A page
// looks at a limited number of sessions, and the next page continues there.

import { setImmediate } from 'node:timers/promises'
import type { ListedSession } from '../session/listing.ts'
import type { Sessions } from '../session/sessions.ts'

/** One user with their sessions, newest first; at least one. */
export interface UserSessions {
  readonly sessions: readonly ListedSession[]
  /** Whether there are more sessions than were read. */
  readonly areMore: boolean
}

export interface UserPage {
  readonly users: readonly UserSessions[]
  /** The `after` of the next page; absent on the last one. */
  readonly next?: string
}

export interface UserQuery {
  readonly after: string
  /** A username that is found without a search. */
  readonly username?: string
  /** Whether a session is searched for; without it, every session is. */
  readonly matches?: (session: ListedSession) => boolean
}

/** A page ends after the chunk of sessions that reaches this number. */
const USERS_PER_PAGE = 50
/** The most sessions that one page opens. */
const MAX_SESSIONS_SCANNED = 2000
/** The most users whose sessions are read for one page. */
const MAX_USERS_READ = 200
const MAX_SESSIONS_PER_USER = 50
const CHUNK = 50

export async function findUsers(
  sessions: Pick<Sessions, 'newest' | 'list' | 'listLike'>,
  { after, username = '', matches = () => true }: UserQuery,
): Promise<UserPage> {
  const users: UserSessions[] = []
  const known = new Set<string>()
  let usersRead = 0

  /** Adds the users whose newest match is among these sessions. */
  async function add(candidates: readonly ListedSession[]): Promise<void> {
    const firstOf = new Map<string, ListedSession>()
    for (const session of candidates) {
      const id = userIdOf(session)
      if (!known.has(id) && !firstOf.has(id)) firstOf.set(id, session)
    }
    usersRead += firstOf.size
    const found = await Promise.all([...firstOf.values()].map(session => sessionsLike(sessions, session)))
    for (const [n, [id, session]] of [...firstOf].entries()) {
      const user = found[n]
      if (!user) continue
      known.add(id)
      // If a user has more sessions than were read, the newest one is unknown.
      if (user.areMore || !user.sessions.some(other => matches(other) && sinceOf(other) > sinceOf(session)))
        users.push(user)
    }
  }

  if (username !== '') {
    const exact = await sessions.list({ username, limit: CHUNK })
    // The newest of each user comes first.
    if (after === '') await add(exact.sessions)
    else for (const session of exact.sessions) known.add(userIdOf(session))
  }
  let next: string | undefined = after
  for (
    let scanned = 0;
    scanned < MAX_SESSIONS_SCANNED && usersRead < MAX_USERS_READ && users.length < USERS_PER_PAGE;
    scanned += CHUNK
  ) {
    const page = await sessions.newest({ limit: CHUNK, ...(next && { before: next }) })
    await add(page.sessions.filter(matches))
    next = page.next
    if (next === undefined) break
    // Opening sessions takes time, and other requests are waiting.
    await setImmediate()
  }
  return next === undefined ? { users } : { users, next }
}

/** A session that cannot be opened has an owner, too; a session without one is listed separately. */
export function userIdOf({ key, owner }: ListedSession): string {
  return owner ?? key
}

async function sessionsLike(
  sessions: Pick<Sessions, 'listLike'>,
  session: ListedSession,
): Promise<UserSessions | undefined> {
  const page = await sessions.listLike(session, { limit: MAX_SESSIONS_PER_USER })
  // It may have ended in the meantime.
  return page.sessions.length === 0 ? undefined : { sessions: page.sessions, areMore: page.next !== undefined }
}

/** Sessions that began in the same millisecond are equally new. */
function sinceOf({ summary }: ListedSession): number {
  return summary?.signedInAt ?? 0
}
