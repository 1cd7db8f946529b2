// What an application learns about a signed-in user. Never a token.

import type { Role } from '../config/role-names.ts'
import type { Providers } from '../provider/providers.ts'
import type { UserInfo } from '../provider/user.ts'
import { publicId, type SessionUser } from '../session/fields.ts'
import type { SessionData } from '../session/record.ts'

/** `R` are the roles and `F` the further fields of the user info that the configuration names. */
export interface UserSession<R extends Role = Role, F extends string = string> {
  /**
   * The public id of the session: the same in the console and in `menshen sessions --json`; the log has its first ten characters.
   * Absent for callers with a token or a key, and in `onSignIn`.
   */
  readonly id?: string
  readonly userInfo: UserInfo<F>
  readonly userRole: R
  readonly groups: readonly string[]
  /** The provider's id if there are several: a username is unique only at its provider. Absent if there is only one. */
  readonly provider?: string
  /** A program with a bearer token or a key, in place of a signed-in user. */
  readonly machine?: true
  /** What the application's `onSignIn` returned, or what `updateData` was last given. */
  readonly data?: SessionData
  /** When it ends if nothing refreshes it, in milliseconds since 1970. */
  readonly expiresAt: number
  /**
   * Aborts when the session ends, for whatever reason and in whichever process, and when Menshen is closed. All requests of a
   * session share it, so remove your listener when its work is done. Not enumerable: a copy of the object does not have it.
   * Absent if `id` is absent.
   */
  readonly signal?: AbortSignal
}

export type ToUserSession = (known: {
  readonly session: SessionUser & { readonly data?: SessionData }
  readonly expiresAt: number
  /** Absent without a session. */
  readonly key?: string
}) => UserSession

/** Each call makes a copy, which the application may change. */
export function createToUserSession(providers: Providers): ToUserSession {
  // A session may be older than the mapping of a field, or come from a provider that does not have it.
  const fields = providers.all.flatMap(({ plan }) => Object.keys(plan.fields)).filter(field => field !== 'groups')
  const empty = Object.fromEntries(fields.map(field => [field, '']))
  return ({ session, expiresAt, key }) => {
    const { userInfo, userRole, groups = [], provider, data } = session
    return {
      ...(key === undefined ? {} : { id: publicId({ key }) }),
      userInfo: { ...empty, ...userInfo },
      userRole,
      groups: [...groups],
      ...(provider === undefined ? {} : { provider }),
      ...(data === undefined ? {} : { data: structuredClone(data) }),
      expiresAt,
    }
  }
}

/** The signal is created when it is first read, and stays the same: aborted, once the session has ended. */
export function withSignal(user: UserSession, createSignal: () => AbortSignal): UserSession {
  let signal: AbortSignal | undefined
  const get = () => {
    signal ??= createSignal()
    return signal
  }
  return Object.defineProperty(user, 'signal', { get, configurable: true })
}
