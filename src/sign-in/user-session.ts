// What an application learns of a signed-in user. Never a token.

import type { Role } from '../config/file.ts'
import type { Providers } from '../provider/providers.ts'
import type { UserInfo } from '../provider/user.ts'
import type { SessionUser } from '../session/fields.ts'
import type { SessionData } from '../session/record.ts'

/** `R` are the roles and `F` the further fields of the user info that the configuration names. */
export interface UserSession<R extends Role = Role, F extends string = string> {
  readonly userInfo: UserInfo<F>
  readonly userRole: R
  readonly groups: readonly string[]
  /** Which of several providers: a name means nothing beyond its own. Absent where there is one. */
  readonly provider?: string
  /** A program with a bearer token or a key, in place of a signed-in user. */
  readonly machine?: true
  /** What `onSignIn` of the application returned. */
  readonly data?: SessionData
  /** When it ends if nothing refreshes it, in milliseconds since 1970. */
  readonly expiresAt: number
}

export type ToUserSession = (known: {
  readonly session: SessionUser & { readonly data?: SessionData }
  readonly expiresAt: number
}) => UserSession

/** Each call makes a copy, which the application may change. */
export function createToUserSession(providers: Providers): ToUserSession {
  // A session may be older than the mapping of a field, or come from a provider that does not have it.
  const fields = providers.all.flatMap(({ plan }) => Object.keys(plan.fields)).filter(field => field !== 'groups')
  const empty = Object.fromEntries(fields.map(field => [field, '']))
  return ({ session, expiresAt }) => {
    const { userInfo, userRole, groups = [], provider, data } = session
    return {
      userInfo: { ...empty, ...userInfo },
      userRole,
      groups: [...groups],
      ...(provider === undefined ? {} : { provider }),
      ...(data === undefined ? {} : { data: structuredClone(data) }),
      expiresAt,
    }
  }
}
