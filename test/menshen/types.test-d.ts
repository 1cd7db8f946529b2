// What the compiler knows of the library: roles and fields are those that the options name. Checked by tsc alone.
import type { IncomingMessage, ServerResponse } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import {
  createMenshen,
  defineConfig,
  type Menshen,
  type MenshenOptions,
  readSettings,
  type Session,
  type SessionData,
} from 'menshen'
import * as forExpress from 'menshen/express'
import * as forFastify from 'menshen/fastify'
import * as forHono from 'menshen/hono'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <_Holds extends true>() => {}

declare const message: IncomingMessage
declare const response: ServerResponse

/** Without roles they are those of specification 6.3, and the user info has the seven fields of 5.4. */
export async function usual() {
  const menshen = await createMenshen({
    baseUrl: 'http://localhost:3000',
    sessionMaxHours: 8,
    forwardAccessToken: true,
  })
  is<Same<typeof menshen, Menshen<'developer' | 'common', never>>>()
  const session = await menshen.session(message, response)
  is<Same<typeof session, Session<'developer' | 'common', never> | undefined>>()
  if (!session) return
  is<Same<typeof session.userRole, 'developer' | 'common'>>()
  is<Same<typeof session.userInfo.email, string>>()
  is<Same<typeof session.groups, readonly string[]>>()
  is<Same<typeof session.expiresAt, number>>()
  // @ts-expect-error: no such field is mapped
  session.userInfo.employee_no
  // @ts-expect-error: nobody writes into it
  session.userRole = 'developer'
  // @ts-expect-error: never a token
  session.accessToken
}

/** What a configuration names is known, by itself and within the options. */
export async function named() {
  const config = defineConfig({
    provider: { preset: 'oauth2', fields: { employee_no: ['no'], email: ['mail'] } },
    roles: [
      { role: 'auditor', groups: ['audit'] },
      { role: 'boss', username: ['lisi'] },
    ],
    rules: [
      { path: '/finance', roles: ['auditor', 'common'] },
      { path: '/all', roles: ['*'] },
      // @ts-expect-error: nobody can have this role
      { path: '/wrong', roles: ['auditer'] },
    ],
  })
  const menshen = await createMenshen({ ...config, store: 'memory:' })
  const session = await menshen.session(new Request('http://localhost/'), new Headers())
  if (!session) return
  is<Same<typeof session.userRole, 'auditor' | 'boss' | 'common'>>()
  is<Same<typeof session.userInfo.employee_no, string>>()
  // @ts-expect-error: not mapped
  session.userInfo.floor
  const { user, answer, cookies } = await menshen.admit(message)
  is<Same<typeof user, typeof session | undefined>>()
  is<Same<typeof answer, Response | undefined>>()
  is<Same<typeof cookies, readonly string[]>>()
  const whole = await createMenshen({ config })
  is<Same<typeof whole, typeof menshen>>()
}

/** The options say what they take. */
export async function options() {
  // @ts-expect-error: a number
  await createMenshen({ sessionMaxHours: '8' })
  // @ts-expect-error: a text
  await createMenshen({ baseUrl: 5 })
  // @ts-expect-error: one of a few words
  await createMenshen({ stateCheck: 'sufix' })
  // @ts-expect-error: no such option
  await createMenshen({ baseURL: 'http://localhost:3000' })
  // @ts-expect-error: the name of the environment
  await createMenshen({ BASE_URL: 'http://localhost:3000' })
  await createMenshen({ settings: readSettings({}), provider: 'oidc', trustedProxies: '10.0.0.0/8', secret: undefined })
  const loose: MenshenOptions = { rules: [{ path: '/', roles: ['anything'] }] }
  const menshen = await createMenshen(loose)
  is<Same<typeof menshen, Menshen<string, string>>>()
}

/** `Menshen` and `Session` without parameters are those of any options: for a module that hands an instance on. */
export async function anyInstance() {
  const usual = await createMenshen()
  const other = await createMenshen({
    roles: [{ role: 'auditor', groups: ['audit'] }],
    provider: { preset: 'oidc', fields: { employee_no: ['no'] } },
  })
  const instances: Menshen[] = [usual, other, await createMenshen({} as MenshenOptions)]
  const sessions: (Session | undefined)[] = [await usual.session(message), await other.session(message)]
  const { user } = await other.admit(message)
  const session: Session | undefined = user
  const data: SessionData | undefined = session?.data
  return { instances, sessions, data }
}

interface Tenant {
  readonly id: number
}

/** What a function of the application knows of a user: of its own type, or that there is nothing to keep. */
export async function hooks(tenant: Tenant) {
  await createMenshen({ onSignIn: () => tenant })
  await createMenshen({ onSignIn: async ({ userInfo }) => userInfo.username !== 'lisi' })
  await createMenshen({ onSignIn: () => null, onSignOut: async () => {} })
  // @ts-expect-error: not what can be kept
  await createMenshen({ onSignIn: () => 'text' })
}

/** Without a registered instance any role and field; an instance of whichever roles will do. */
export async function inExpress() {
  const app = express()
  app.use(forExpress.menshen(await createMenshen()))
  app.use(forExpress.menshen(await createMenshen({ roles: [{ role: 'auditor', groups: ['audit'] }] })))
  app.get('/', forExpress.requireUser(), forExpress.requireRole('developer', 'auditor'), ({ user }) => {
    is<Same<typeof user, Express.User | undefined>>()
    const session: Session | undefined = user
    return session
  })
  // @ts-expect-error: what is to be checked
  forExpress.requireRole()
  // @ts-expect-error: what createMenshen gives
  forExpress.menshen({})
}

/** As in Express. */
export async function inFastify() {
  const app = fastify()
  app.register(forFastify.menshen, { auth: await createMenshen() })
  app.register(forFastify.menshen, { auth: await createMenshen({ roles: [{ role: 'auditor', groups: ['audit'] }] }) })
  const preHandler = [forFastify.requireUser(), forFastify.requireRole('developer', 'auditor')]
  app.get('/', { preHandler, onRequest: forFastify.requireUser() }, async ({ user }) => {
    is<Same<typeof user, Session | undefined>>()
    return user
  })
  // @ts-expect-error: whose sign-in
  app.register(forFastify.menshen, {})
  // @ts-expect-error: what is to be checked
  forFastify.requireRole()
}

/** Routes that follow on the middleware know the roles and fields of its instance; others know of the user. */
export async function inHono() {
  const auth = await createMenshen({
    roles: [{ role: 'auditor', groups: ['audit'] }],
    provider: { preset: 'oidc', fields: { employee_no: ['no'] } },
  })
  new Hono().use(forHono.menshen(auth)).get('/', forHono.requireRole('auditor'), c => {
    const user = c.get('user')
    is<Same<typeof user, Session<'auditor' | 'common', 'employee_no'> | undefined>>()
    const same: typeof user = c.var.user
    return c.text(String(same))
  })
  const app = new Hono<{ Variables: { other: number } }>()
  app.use(forHono.menshen(auth))
  app.get('/', forHono.requireUser(), c => {
    const user = c.get('user')
    is<Same<typeof user, Session | undefined>>()
    return c.text(String(c.get('other')))
  })
  // @ts-expect-error: what is to be checked
  forHono.requireRole()
}
