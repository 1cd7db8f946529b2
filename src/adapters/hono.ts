// menshen/hono: sign-in for a Hono application on Node, as a middleware in front of everything else.
import type { HttpBindings } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import { cloneRawRequest } from 'hono/request'
import type { StatusCode } from 'hono/utils/http-status'
import { type Admitted, isOwnPath, type Menshen, type Role, type Session } from '../index.ts'
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
    const admitted = await auth.admit(await wholeRequest(c), { socket: socketOf(c) })
    if (admitted.answer) return toHono(c, admitted.answer)
    c.set('user', admitted.user)
    ADMITTED.set(c, admitted)
    await next()
    for (const cookie of admitted.cookies) c.header('set-cookie', cookie, { append: true })
    if (admitted.cookies.length > 0) c.header('cache-control', 'no-store')
  }
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
function socketOf({ env }: Context): HttpBindings['incoming']['socket'] | undefined {
  const bindings: Partial<HttpBindings> = env?.server ?? env ?? {}
  return bindings.incoming?.socket
}
