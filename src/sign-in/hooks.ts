// The functions of an application that are called when a user signs in or out.

import type { Settings } from '../config/settings.ts'
import { errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import type { ProxyRequest } from '../http/caller.ts'
import { requestFields } from '../observe/observed-request.ts'
import type { Providers } from '../provider/providers.ts'
import { sessionFields } from '../session/fields.ts'
import { type Session, type SessionData, sessionEndsAt } from '../session/record.ts'
import type { ClosedSession } from '../session/sessions.ts'
import { withDeadline } from '../util/deadline.ts'
import { createToUserSession, type UserSession } from './user-session.ts'

export interface Hooks {
  /**
   * Called when a user is about to be signed in: the provider has authenticated them, and the session is not stored yet. The object
   * that it returns (JSON, at most 16 KB) is kept in the session, sealed, and is `data` of the user from then on; nothing or `true`
   * stores no data. `false` refuses the sign-in with `access_denied`; an error refuses it with `callback_error`. The function has ten
   * seconds.
   */
  readonly onSignIn?: ((user: UserSession) => SignInResult | Promise<SignInResult>) | undefined
  /**
   * Called when a user has signed out, at `/logout` or on all devices. Not called for sessions that expire, or that are ended by the
   * provider, in the console or from another device, because those cannot be opened without their cookie. The browser waits at
   * most ten seconds for it.
   */
  readonly onSignOut?: ((user: UserSession) => void | Promise<void>) | undefined
}

// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is the usual one
export type SignInResult = object | boolean | null | undefined | void

export const NO_HOOKS: Hooks = {}
const MAX_DATA_BYTES = 16 * 1024
/** Longer than a call to a database takes, shorter than browsers and proxies wait. */
const DEADLINE_MS = 10_000

/** The application does not want this user. */
export class SignInRefusal extends Error {}

/** A function of the application failed, or returned data that cannot be stored. */
export class HookError extends Error {
  /** For the log. */
  readonly fields: { readonly hook: 'onSignIn'; readonly user: string }

  constructor(user: string, cause: unknown) {
    super('onSignIn failed', { cause })
    this.fields = { hook: 'onSignIn', user }
  }
}

/** Calls the functions of the application. */
export interface HookCalls {
  /** Returns the data that the application keeps with a session. Throws `SignInRefusal` or `HookError`. */
  signIn(request: ProxyRequest, session: Session): Promise<SessionData | undefined>
  /** Never fails a sign-out: an error or a timeout goes to the log. */
  signOut(request: ProxyRequest, closed: ClosedSession): Promise<void>
}

interface HookCallsOptions {
  readonly hooks: Hooks
  readonly providers: Providers
  readonly settings: Pick<Settings, 'SESSION_MAX_HOURS'>
  readonly report: Report
}

export function createHookCalls({ hooks, providers, settings, report }: HookCallsOptions): HookCalls {
  const { onSignIn, onSignOut } = hooks
  const toUserSession = createToUserSession(providers)

  function userOf(known: { readonly session: Session; readonly key?: string }): UserSession {
    const { session } = known
    const expiresAt = sessionEndsAt(session, session.tokenIssuedAt, settings.SESSION_MAX_HOURS)
    return toUserSession({ ...known, expiresAt })
  }

  return {
    async signIn(request, session) {
      if (!onSignIn) return undefined
      try {
        const data = await withHookTimeout('onSignIn', () => onSignIn(userOf({ session })))
        if (data === false) throw new SignInRefusal()
        return data === true || data === undefined || data === null ? undefined : checkedData('onSignIn', data)
      } catch (error) {
        if (error instanceof SignInRefusal) throw error
        if (error instanceof HookTimeoutError)
          report('hook_failed', { ...errorFields(error), ...requestFields(request), hook: 'onSignIn' })
        throw new HookError(session.userInfo.username, error)
      }
    },

    async signOut(request, closed) {
      if (!onSignOut) return
      try {
        await withHookTimeout('onSignOut', () => onSignOut(userOf(closed)))
      } catch (error) {
        report('hook_failed', {
          ...errorFields(error),
          ...requestFields(request),
          ...sessionFields(closed),
          hook: 'onSignOut',
        })
      }
    },
  }
}

class HookTimeoutError extends MenshenError {
  constructor(hook: keyof Hooks) {
    super('hook_timeout', `${hook} of the application was not done within ${DEADLINE_MS / 1000} s.`)
  }
}

/** A function that never returns must not block a sign-in forever. */
async function withHookTimeout<Result>(hook: keyof Hooks, call: () => Result): Promise<Awaited<Result>> {
  return withDeadline(Promise.resolve(call()), DEADLINE_MS, () => {
    throw new HookTimeoutError(hook)
  })
}

type DataSource = 'onSignIn' | 'updateData' | 'signIn'

const EXPECTED = {
  onSignIn: 'an object, true, false or nothing to be returned',
  updateData: 'an object',
  signIn: 'data to be an object',
} as const satisfies Record<DataSource, string>

/** The data as it will be read back. */
export function checkedData(source: DataSource, data: unknown): SessionData {
  const isObject = typeof data === 'object' && data !== null && !Array.isArray(data)
  const written = isObject ? writeJson(source, data) : undefined
  if (!written?.startsWith('{')) throw new MenshenError('bad_settings', `${source}: expected ${EXPECTED[source]}.`)
  const bytes = Buffer.byteLength(written)
  if (bytes > MAX_DATA_BYTES)
    throw new MenshenError(
      'bad_settings',
      `${source}: the data has ${bytes} bytes of JSON; expected at most ${MAX_DATA_BYTES}, for example the key of a row in your database.`,
    )
  return JSON.parse(written)
}

/** JSON cannot keep a bigint, or an object that contains itself. */
function writeJson(source: DataSource, data: object): string | undefined {
  try {
    return JSON.stringify(data, (_, value) => plain(source, value))
  } catch (error) {
    if (error instanceof MenshenError) throw error
    const [reason] = String((error as Error).message).split('\n')
    throw new MenshenError('bad_settings', `${source}: the data cannot be written as JSON: ${reason}.`, error)
  }
}

/** JSON loses a Map, or an object of a class, in whole or in part. */
function plain(source: DataSource, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const prototype = Object.getPrototypeOf(value)
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return value
  const given = prototype.constructor?.name || 'class'
  const where = source === 'onSignIn' ? ' to be returned' : ''
  throw new MenshenError(
    'bad_settings',
    `${source}: expected plain objects, which JSON can keep, and not a ${given}${where}.`,
  )
}
