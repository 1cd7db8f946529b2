// What a report says of a session: which one, and whose it is.
import type { Session } from './session-record.ts'

/** Enough to tell sessions apart in a log. */
const SHORT = 10

export function shortKey(key: string): string {
  return key.slice(0, SHORT)
}

export function userFacts({ userInfo, provider }: Pick<Session, 'userInfo' | 'provider'>): {
  user: string
  sub: string
  provider?: string
} {
  const { username: user, sub } = userInfo
  return provider === undefined ? { user, sub } : { user, sub, provider }
}

/** A machine has no session, and so no key of one. */
export function knownFacts({ key, session }: { key?: string; session: Pick<Session, 'userInfo' | 'provider'> }) {
  return key === undefined ? userFacts(session) : sessionFacts({ key, session })
}

export function sessionFacts({ key, session }: { key: string; session: Pick<Session, 'userInfo' | 'provider'> }) {
  return { session: shortKey(key), ...userFacts(session) }
}
