// menshen/express: sign-in for an Express application, as a middleware in front of everything else.
import type { IncomingMessage } from 'node:http'
import type { Request, RequestHandler } from 'express'
import { type Admitted, addCookies, MenshenError, type Role, sendAnswer } from '../index.ts'
import { type AnyMenshen, assertInstance, assertRoles, notInFront, type SessionOf } from './registered.ts'

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
    // The whole address, however deep the middleware is, and the sender as the socket says: `trust proxy` is Express’s
    // alone.
    const admitted = await auth.admit(request)
    if (admitted.answer) return sendAnswer(response, admitted.answer)
    Object.assign(request, { user: admitted.user, [ADMITTED]: admitted })
    addCookies(response, admitted.cookies)
    next()
  }
  return middleware
}

/** Mounted below a path, without our own paths beside it, visitors would be sent to a login page that does not exist. */
function assertOwnPaths(
  { app, baseUrl }: Request,
  middleware: RequestHandler,
  signInPaths: readonly string[] = DEFAULT_PATHS,
): void {
  let root: Application = app
  while (root.parent) root = root.parent
  const lost = [...signInPaths, '/_menshen/me'].find(path => !leadsTo(root.router, path, middleware))
  if (lost === undefined) return
  throw new MenshenError(
    'bad_settings',
    `menshen: this middleware is mounted below "${baseUrl}", and ${lost} does not reach it, so no user could sign in; ` +
      'use app.use(menshen(auth)) at the root, and rules for public pages, or mount ' +
      `${signInPaths.join(', ')} and /_menshen as well.`,
  )
}

/** With what the types leave out: in which application it is mounted. */
interface Application {
  readonly router: unknown
  readonly parent?: Application
}

const DEFAULT_PATHS = ['/login', '/callback', '/logout']

/** What Express keeps of a middleware. */
interface Layer {
  readonly name: string
  readonly handle: unknown
  /** The part of the path that it matched last. */
  readonly path: string | undefined
  match(path: string): boolean
}

function leadsTo(router: unknown, path: string, middleware: RequestHandler): boolean {
  const { stack = [] }: { stack?: readonly Layer[] } = Object(router)
  return stack.some(layer => {
    if (!layer.match(path)) return false
    // What an application that is mounted as a whole holds, Express does not say.
    if (layer.handle === middleware || layer.name === 'mounted_app') return true
    return leadsTo(layer.handle, path.slice(layer.path?.length ?? 0) || '/', middleware)
  })
}

/** For a route: visitors are led to the login page. */
export function requireUser(): RequestHandler {
  return require('requireUser')
}

/** For a route: a user who has none of these roles is refused. */
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
