// The fields of a session in reports (which session, which user), and the user as rules and applications see them.

import type { Subject } from '../access/roles.ts'
import type { ScopedName } from '../access/scoped-name.ts'
import type { Session } from './record.ts'

/** The public id of a session: in the console, for applications, in the API and `menshen sessions --json`. */
export function publicId({ key }: { readonly key: string }): string {
  return key
}

/** Enough to distinguish sessions in a log. */
const SHORT = 10

/** The first characters of the public id. */
export function shortKey(key: string): string {
  return key.slice(0, SHORT)
}

export function userFields({ userInfo, provider }: Pick<Session, 'userInfo' | 'provider'>): {
  user: string
  sub: string
  provider?: string
} {
  const { username: user, sub } = userInfo
  return provider === undefined ? { user, sub } : { user, sub, provider }
}

/** Identifies the user of a session: the same for all of their sessions. */
export function userKey({ userInfo, provider = '' }: Pick<Session, 'userInfo' | 'provider'>): string {
  return `${provider} ${userInfo.sub}`
}

/** The fields of a caller. A program has no session, and so no session key. */
export function identityFields({ key, user }: { key?: string; user: Pick<Session, 'userInfo' | 'provider'> }) {
  return key === undefined ? userFields(user) : sessionFields({ key, session: user })
}

export function sessionFields({ key, session }: { key: string; session: Pick<Session, 'userInfo' | 'provider'> }) {
  return { session: shortKey(key), ...userFields(session) }
}

// With several providers, names carry the provider's id, so that users of different providers cannot be confused.

export interface Identity extends Subject {
  readonly sub: string
  /** The provider's id if there are several. */
  readonly provider?: string
}

/** The part of a session that identifies its user. */
export type SessionUser = Pick<Session, 'userInfo' | 'userRole' | 'groups' | 'provider'>

export function sameIdentity(one: Identity, other: Identity): boolean {
  return (
    one.role === other.role &&
    one.username === other.username &&
    one.sub === other.sub &&
    one.provider === other.provider &&
    one.groups.length === other.groups.length &&
    one.groups.every((group, n) => group === other.groups[n])
  )
}

const NO_GROUPS: readonly string[] = []

export function identityOf(claimed: SessionUser, scoped: ScopedName): Identity {
  const { userInfo, userRole, groups = NO_GROUPS, provider } = claimed
  return {
    role: userRole,
    username: scoped(provider, userInfo.username),
    groups: groups.length === 0 ? NO_GROUPS : groups.map(group => scoped(provider, group)),
    sub: scoped(provider, userInfo.sub),
    ...(provider === undefined ? {} : { provider }),
  }
}
