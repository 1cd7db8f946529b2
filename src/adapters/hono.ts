// menshen/hono: sign-in for a Hono application on Node, as a middleware in front of everything else.
// The application's Hono may be a different copy, of any version 4: our symbols and classes mean nothing to it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, MiddlewareHandler } from 'hono'
import { cloneRawRequest } from 'hono/request'
import type { StatusCode } from 'hono/utils/http-status'
import {
  type Admitted,
  addCookies,
  isOwnPath,
  type Menshen,
  MenshenError,
  type RequestSource,
  type Role,
  type Session,
} from '../index.ts'
import { assertInstance, assertNoArguments, assertRoles, notInFront } from './registered.ts'

/** What `menshen(auth)` provides for the routes: `c.get('user')`. */
export interface MenshenVariables<R extends Role = Role, F extends string = string> {
  /** The signed-in user; `undefined` for a visitor of a public page. */
  user: Session<R, F> | undefined
}

declare module 'hono' {
  interface ContextVariableMap extends MenshenVariables {}
}

/** A middleware that another copy of Hono accepts: its classes have private parts, so ours do not match them. */
export type AnyMiddleware = (c: AnyContext, next: () => Promise<void>) => Promise<Response | undefined>

export interface AnyContext {
  readonly req: { readonly raw: Request; readonly path: string }
  readonly res: Response
}

const ADMITTED = new WeakMap<AnyContext, Admitted>()

/** In front of every other middleware and route: our own pages, the rules, and `c.get('user')`. */
export function menshen<R extends Role, F extends string>(
  auth: Pick<Menshen<R, F>, 'admit'> & Partial<Pick<Menshen, 'signInPaths'>>,
): AnyMiddleware & MiddlewareHandler<{ Variables: MenshenVariables<R, F> }> {
  assertInstance(auth, 'app.use(menshen(auth))')
  return handler(async (c, next) => {
    // `routePath` is deprecated in favour of a helper that reads a symbol of its own copy.
    assertRoot(c.req.routePath, auth.signInPaths)
    const admitted = await auth.admit(await wholeRequest(c, auth.signInPaths), sourceOf(c))
    if (admitted.answer) return toHono(c, admitted.answer)
    c.set('user', admitted.user)
    ADMITTED.set(c, admitted)
    const { outgoing } = bindingsOf(c)
    // On Node's own response too: a middleware in front of this one may change the answer afterwards.
    if (outgoing) addCookies(outgoing, admitted.cookies)
    await next()
    addToAnswer(c, admitted.cookies)
    return undefined
  })
}

/** The compiler accepts it as a middleware of our copy, which knows the variables, and of any other. */
function handler<H extends MiddlewareHandler>(middleware: (c: Context, next: Next) => Promise<Response | undefined>) {
  return middleware as AnyMiddleware & H
}

type Next = () => Promise<void>

/** Below a path, visitors would be redirected to a login page that does not exist. */
function assertRoot(path: string, signInPaths?: readonly string[]): void {
  if (path === '*' || path === '/*' || isOwnPath(path.replace(/\*$/, ''), signInPaths)) return
  const [loginPath = '/login'] = signInPaths ?? []
  throw new MenshenError(
    'bad_settings',
    `menshen: this middleware is mounted at "${path}", where ${loginPath} would not be found; use app.use(menshen(auth)) at the root, and use rules for public pages.`,
  )
}

/** For a route: redirects visitors to the login page. */
export function requireUser(...none: never[]): AnyMiddleware & MiddlewareHandler {
  assertNoArguments(none)
  return require('requireUser')
}

/** For a route: refuses users who have none of these roles. */
export function requireRole<R extends Role>(...roles: [R, ...R[]]): AnyMiddleware & MiddlewareHandler {
  assertRoles(roles)
  return require('requireRole', roles)
}

function require(name: 'requireUser' | 'requireRole', roles?: readonly Role[]): AnyMiddleware & MiddlewareHandler {
  return handler(async (c, next) => {
    const admitted = ADMITTED.get(c)
    if (!admitted) throw notInFront(name, 'app.use(menshen(auth)) has to come first')
    const answer = admitted.require(roles)
    if (answer) return toHono(c, answer)
    await next()
    return undefined
  })
}

/** Includes what earlier middleware has set, above all cookies. */
function toHono(c: Context, { body, status, headers }: Response): Response {
  return c.newResponse(body, { status: status as StatusCode, headers })
}

/** A form that an earlier middleware has read is still available there. */
function wholeRequest({ req }: Context, signInPaths?: readonly string[]): Request | Promise<Request> {
  return req.raw.bodyUsed && isOwnPath(req.path, signInPaths) ? cloneRawRequest(req) : req.raw
}

/** The source of the client's address; unknown outside Node. */
function sourceOf(c: Context): RequestSource {
  const { incoming } = bindingsOf(c)
  return { socket: incoming?.socket, incoming }
}

/** The bindings of @hono/node-server. */
function bindingsOf({ env }: Context): { readonly incoming?: IncomingMessage; readonly outgoing?: ServerResponse } {
  return env?.server ?? env ?? {}
}

function addToAnswer(c: Context, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  // Gives the answer headers that can be changed.
  c.header('cache-control', 'no-store')
  addCookies(c.res, cookies)
}
