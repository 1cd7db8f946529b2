// menshen/express: sign-in for an Express application, as a middleware in front of everything else.
import type { IncomingMessage } from 'node:http'
import type { Request, RequestHandler } from 'express'
import { type Admitted, addCookies, MenshenError, type Role, sendAnswer } from '../index.ts'
import {
  type AnyMenshen,
  assertInstance,
  assertNoArguments,
  assertRoles,
  notInFront,
  type SessionOf,
} from './registered.ts'

/**
 * Tells the compiler the roles and fields of `req.user`:
 * `declare module 'menshen/express' { interface Register { auth: typeof auth } }`
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications fill it
export interface Register {}

type UserRole = SessionOf<Register>['userRole']

declare global {
  namespace Express {
    // Named as the types of passport have it, so that both can be installed.
    interface User extends SessionOf<Register> {}
    interface Request {
      /** The signed-in user; `undefined` for a visitor of a public page. */
      user?: User | undefined
    }
  }
}

const ADMITTED = Symbol('menshen.admitted')
type AdmittedMessage = IncomingMessage & { [ADMITTED]?: Admitted<Role, never> }

/** In front of every other middleware and route: our own pages, the rules, and `req.user`. */
export function menshen(auth: AnyMenshen): RequestHandler {
  assertInstance(auth, 'app.use(menshen(auth))')
  let isFound = false
  const middleware: RequestHandler = async (request, response, next) => {
    if (!isFound && request.baseUrl !== '') assertOwnPaths(request, middleware, auth.signInPaths)
    isFound ||= request.baseUrl !== ''
    // The whole address, however deep the middleware is mounted, and the sender from the socket: `trust proxy` applies only to
    // Express.
    const admitted = await auth.admit(request)
    if (admitted.answer) return sendAnswer(response, admitted.answer)
    Object.assign(request, { user: admitted.user, [ADMITTED]: admitted })
    addCookies(response, admitted.cookies)
    next()
  }
  return middleware
}

/** If it is mounted below a path, and our own paths do not reach it, visitors would be sent to a login page that does not exist. */
function assertOwnPaths(
  { app, baseUrl }: Request,
  middleware: RequestHandler,
  signInPaths: readonly string[] = DEFAULT_PATHS,
): void {
  let root: Application = app
  while (root.parent) root = root.parent
  const lost = [...signInPaths, '/_menshen/me'].find(path => !routesTo(root.router, path, middleware))
  if (lost === undefined) return
  throw new MenshenError(
    'bad_settings',
    `menshen: this middleware is mounted below "${baseUrl}", and ${lost} does not reach it, so no user could sign in; ` +
      'use app.use(menshen(auth)) at the root, and rules for public pages, or mount ' +
      `${signInPaths.join(', ')} and /_menshen as well.`,
  )
}

/** Adds what the types leave out: the application in which it is mounted. */
interface Application {
  readonly router: unknown
  readonly parent?: Application
}

const DEFAULT_PATHS = ['/login', '/callback', '/logout']

/** The part of a middleware's record in Express that is needed here. */
interface Layer {
  readonly name: string
  readonly handle: unknown
  /** The part of the path that it last matched. */
  readonly path: string | undefined
  match(path: string): boolean
}

function routesTo(router: unknown, path: string, middleware: RequestHandler): boolean {
  const { stack = [] }: { stack?: readonly Layer[] } = Object(router)
  return stack.some(layer => {
    if (!layer.match(path)) return false
    // Express does not reveal what a mounted application contains.
    if (layer.handle === middleware || layer.name === 'mounted_app') return true
    return routesTo(layer.handle, path.slice(layer.path?.length ?? 0) || '/', middleware)
  })
}

/** For a route: redirects visitors to the login page. */
export function requireUser(...none: never[]): RequestHandler {
  assertNoArguments(none)
  return require('requireUser')
}

/** For a route: refuses users who have none of these roles. */
export function requireRole(...roles: [UserRole, ...UserRole[]]): RequestHandler {
  assertRoles(roles)
  return require('requireRole', roles)
}

function require(name: 'requireUser' | 'requireRole', roles?: readonly Role[]): RequestHandler {
  return async (request: AdmittedMessage, response, next) => {
    const admitted = request[ADMITTED]
    if (!admitted) throw notInFront(name, 'app.use(menshen(auth)) has to come first')
    const answer = admitted.require(roles)
    if (answer) return sendAnswer(response, answer)
    next()
  }
}
