// What a report says of a session: which one, and whose it is.
import type { LoadedSession } from './session-cache.ts'
import type { Session } from './session-record.ts'

export function userFacts({ userInfo }: Pick<Session, 'userInfo'>): { user: string; sub: string } {
  return { user: userInfo.username, sub: userInfo.sub }
}

export function sessionFacts({ key, session }: Pick<LoadedSession, 'key' | 'session'>) {
  return { session: key, ...userFacts(session) }
}
