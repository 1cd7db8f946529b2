// menshen/hono: sign-in for a Hono application on Node, as a middleware in front of everything else.
import type { HttpBindings } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import { cloneRawRequest } from 'hono/request'
import { routePath } from 'hono/route'
import type { StatusCode } from 'hono/utils/http-status'
import { type Admitted, addCookies, isOwnPath, type Menshen, MenshenError, type Role, type Session } from '../index.ts'
import { demandRoles, notInFront } from './registered.ts'

/** What `menshen(auth)` leaves for the routes: `c.get('user')`. */
export interface MenshenVariables<R extends Role = Role, F extends string = string> {
  /** Who is signed in; `undefined` for a visitor of a public page. */
  user: Session<R, F> | undefined
}

declare module 'hono' {
  interface ContextVariableMap extends MenshenVariables {}
}

const ADMITTED = new WeakMap<Context, Admitted>()

/** In front of every other middleware and route: our own pages, the rules, and `c.get('user')`. */
export function menshen<R extends Role, F extends string>(
  auth: Pick<Menshen<R, F>, 'admit'>,
): MiddlewareHandler<{ Variables: MenshenVariables<R, F> }> {
  return async (c, next) => {
    demandRoot(routePath(c))
    const admitted = await auth.admit(await wholeRequest(c), { socket: socketOf(c) })
    if (admitted.answer) return toHono(c, admitted.answer)
    c.set('user', admitted.user)
    ADMITTED.set(c, admitted)
    const { outgoing } = bindingsOf(c)
    // On Node's own response too: a middleware in front of this one may change the answer afterwards.
    if (outgoing) addCookies(outgoing, admitted.cookies)
    await next()
    addToAnswer(c, admitted.cookies)
  }
}

/** Below a path, visitors would be led to a login page that is not there. */
function demandRoot(path: string): void {
  if (path === '*' || path === '/*' || isOwnPath(path.replace(/\*$/, ''))) return
  throw new MenshenError(
    'bad_settings',
    `menshen: this middleware stands at "${path}", where /login would not be found; use app.use(menshen(auth)) at the root, with rules for what is public.`,
  )
}

/** For a route: visitors are led to the login page. */
export function requireUser(): MiddlewareHandler {
  return require('requireUser')
}

/** For a route: whoever has none of these roles is refused. */
export function requireRole<R extends Role>(...roles: [R, ...R[]]): MiddlewareHandler {
  demandRoles(roles)
  return require('requireRole', roles)
}

function require(name: 'requireUser' | 'requireRole', roles?: readonly Role[]): MiddlewareHandler {
  return async (c, next) => {
    const admitted = ADMITTED.get(c)
    if (!admitted) throw notInFront(name, 'app.use(menshen(auth)) has to come first')
    const answer = admitted.require(roles)
    if (answer) return toHono(c, answer)
    await next()
  }
}

/** With what the middleware before has set, cookies above all. */
function toHono(c: Context, { body, status, headers }: Response): Response {
  return c.newResponse(body, { status: status as StatusCode, headers })
}

/** A form of ours that a middleware before has read is still at hand there. */
function wholeRequest({ req }: Context): Request | Promise<Request> {
  return req.raw.bodyUsed && isOwnPath(req.path) ? cloneRawRequest(req) : req.raw
}

/** Whose address it is; unknown elsewhere than on Node. */
function socketOf(c: Context): HttpBindings['incoming']['socket'] | undefined {
  return bindingsOf(c).incoming?.socket
}

function bindingsOf({ env }: Context): Partial<HttpBindings> {
  return env?.server ?? env ?? {}
}

function addToAnswer(c: Context, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  // Makes the answer one whose headers can be changed.
  c.header('cache-control', 'no-store')
  addCookies(c.res, cookies)
}
