// menshen/testing: an instance for tests of an application, and users who are signed in without a provider.

import { randomUUID } from 'node:crypto'
import { DEFAULT_ROLES, roleNamesIn } from './access/roles.ts'
import { isProduction } from './config/deployment.ts'
import { subOf } from './config/dev-provider.ts'
import type { Config } from './config/file.ts'
import type { DEFAULT_ROLE, DefaultRole, Role } from './config/role-names.ts'
import { closestName } from './config/suggestions.ts'
import { MenshenError } from './errors.ts'
import { cookieNames, readCookie } from './http/cookies.ts'
import { type Core, createCore, type Menshen } from './menshen.ts'
import { type MenshenOptions, nodeEnvironment, readStart, toPublicInstance } from './options.ts'
import type { UserInfo } from './provider/user.ts'
import { checkedData } from './sign-in/hooks.ts'
import type { UserSession } from './sign-in/user-session.ts'

/** A user to sign in: any field of the user info, and more. A field that is left out is empty. */
export type TestUser<R extends Role = Role, F extends string = never> = UserFields<F> & {
  readonly username: string
  readonly groups?: readonly string[] | undefined
  /** Without it, `roles` of the options decide, as for every user. */
  readonly role?: R | undefined
  /** What `onSignIn` would have returned. */
  readonly data?: object | undefined
  /** In seconds; 3600 by default. */
  readonly expiresIn?: number | undefined
  /** One of `providers`; the first by default. */
  readonly provider?: string | undefined
}

/** If the names of the fields are not known, any name is possible. */
export type UserFields<F extends string> = string extends F
  ? Readonly<Record<string, unknown>>
  : Readonly<Partial<UserInfo<F>>>

export interface TestSignIn<R extends Role = Role, F extends string = string> {
  /** A Cookie header, for every adapter. */
  readonly cookie: string
  readonly session: UserSession<R, F>
}

export interface TestMenshen<R extends Role = Role, F extends string = string> extends Menshen<R, F> {
  /** Opens a new session. Hooks do not run. Rejects for a role that the options do not know. */
  signIn(user: TestUser<R, F>): Promise<TestSignIn<R, F>>
  /** Ends the session of a cookie. Hooks do not run. */
  signOut(cookie: string): Promise<void>
}

const EXPIRES_IN = 3600
/** The claim that gives a role to a test user; applications do not see it. */
const ROLE_CLAIM = 'menshen_test_role'

/**
 * An instance with sessions in memory, without a network: no provider is called, the development provider is not started. It takes
 * the options of `createMenshen`. Refuses to start in production.
 */
export async function createTestMenshen<R extends Role = DefaultRole, F extends string = never>(
  options: MenshenOptions<R, F> = {},
): Promise<TestMenshen<R | typeof DEFAULT_ROLE, F>> {
  const instance = await start(options as MenshenOptions)
  return instance as unknown as TestMenshen<R | typeof DEFAULT_ROLE, F>
}

async function start({ devProvider: _, instanceName: __, ...options }: MenshenOptions): Promise<TestMenshen> {
  refuseProduction(nodeEnvironment())
  const baseUrl = options.baseUrl ?? (options.settings ? undefined : 'http://localhost')
  const { settings, config, log, now, hooks } = await readStart({ ...options, baseUrl, store: 'memory:' })
  refuseProduction(settings.NODE_ENV)
  const roles = roleNamesIn(config.roles ?? DEFAULT_ROLES)
  const core = await createCore({ settings, config: withTestRoles(config, roles), log, now, hooks, isOffline: true })
  const auth = toPublicInstance(core)
  const { session: cookieName } = cookieNames(settings)
  const providers = Object.keys(config.providers ?? {})
  return {
    ...auth,
    async signIn(user) {
      const ticket = await openSession(core, user, { roles, providers, at: now() })
      const cookie = `${cookieName}=${ticket}`
      const session = await auth.session({ headers: { cookie } })
      if (!session) throw new MenshenError('no_session', 'signIn: the session has already ended.')
      return { cookie, session }
    },
    async signOut(cookie) {
      const ticket = readCookie(cookie, cookieName)
      if (ticket !== undefined) await core.sessions.close(ticket)
    },
  }
}

function refuseProduction(nodeEnv: string | undefined): void {
  if (isProduction({ NODE_ENV: nodeEnv }))
    throw new MenshenError(
      'bad_settings',
      `createTestMenshen: NODE_ENV is "${nodeEnv}"; it signs in any user, and starts only in tests; expected test or development.`,
    )
}

/** A row for each role comes before those of the configuration. */
function withTestRoles(config: Config, roles: readonly string[]): Config {
  const ids = Object.keys(config.providers ?? {})
  const ofAll = ids.length > 0 ? { provider: ids } : {}
  const rows = roles.map(role => ({ ...ofAll, role, claim: { [ROLE_CLAIM]: [role] } }))
  return { ...config, roles: [...rows, ...(config.roles ?? DEFAULT_ROLES)] }
}

interface Known {
  readonly roles: readonly string[]
  readonly providers: readonly string[]
  readonly at: number
}

async function openSession({ sessions }: Core, user: TestUser, { roles, providers, at }: Known): Promise<string> {
  const {
    groups = [],
    role,
    data,
    expiresIn = EXPIRES_IN,
    provider = providers[0],
    ...fields
  } = Object(user) as TestUser
  if (typeof fields.username !== 'string' || fields.username === '')
    throw refused("expected a username, for example signIn({ username: 'ann' })")
  if (role !== undefined && !roles.includes(role)) throw refused(unknownName('role', role, roles))
  if (provider !== undefined && !providers.includes(provider))
    throw refused(unknownName('provider', provider, providers))
  if (!Number.isFinite(expiresIn) || expiresIn <= 0)
    throw refused(
      'expiresIn: expected a number of seconds above 0; for an expired session, advance the clock that `now` of createTestMenshen returns',
    )
  if (!Array.isArray(groups) || !groups.every(isText)) throw refused('groups: expected a list of names')
  const wrong = Object.entries(fields).find(([, value]) => value !== undefined && !isText(value))
  if (wrong) throw refused(`${wrong[0]}: expected text`)
  const checked = data === undefined ? undefined : checkedData('signIn', data)
  const { ticket } = await sessions.open(
    {
      tokens: { accessToken: `test-${randomUUID()}`, expiresIn, receivedAt: at },
      user: {
        userInfo: userInfoOf(fields),
        groups: [...groups],
        claims: role === undefined ? {} : { [ROLE_CLAIM]: role },
      },
      provider,
    },
    async () => checked,
  )
  return ticket
}

function userInfoOf(fields: Readonly<Partial<UserInfo>> & { readonly username: string }): UserInfo {
  const {
    username,
    nickname = username,
    email = '',
    phone_number = '',
    ou_id = '',
    ou_name = '',
    sub,
    ...more
  } = fields
  return { sub: subOf({ username, sub }), ou_id, nickname, phone_number, ou_name, email, username, ...more }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function unknownName(kind: 'role' | 'provider', given: string, known: readonly string[]): string {
  const likely = closestName(String(given), known)
  const names = known.map(name => JSON.stringify(name)).join(', ')
  const expected = known.length === 0 ? `the options have no ${kind}` : `expected one of ${names}`
  const remedy = likely === undefined ? '' : `; did you mean ${JSON.stringify(likely)}?`
  return `${kind} is ${JSON.stringify(given)}; ${expected}${remedy}`
}

function refused(what: string): MenshenError {
  return new MenshenError('bad_settings', `signIn: ${what.endsWith('?') ? what : `${what}.`}`)
}
