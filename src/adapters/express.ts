// menshen/express: sign-in for an Express application, as a middleware in front of everything else.
import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import { type Admitted, addCookies, type Role, sendAnswer } from '../index.ts'
import { type AnyMenshen, demandRoles, notInFront, type SessionOf } from './registered.ts'

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
      /** Who is signed in; `undefined` for a visitor of a public page. */
      user?: User | undefined
    }
  }
}

const ADMITTED = Symbol('menshen.admitted')
type WithAdmitted = IncomingMessage & { [ADMITTED]?: Admitted<Role, never> }

/** In front of every other middleware and route: our own pages, the rules, and `req.user`. */
export function menshen(auth: AnyMenshen): RequestHandler {
  return async (request, response, next) => {
    // The whole address, however deep the middleware stands, and the sender as the socket says: `trust proxy` is Express’s
    // alone.
    const admitted = await auth.admit(request)
    if (admitted.answer) return sendAnswer(response, admitted.answer)
    Object.assign(request, { user: admitted.user, [ADMITTED]: admitted })
    addCookies(response, admitted.cookies)
    next()
  }
}

/** For a route: visitors are led to the login page. */
export function requireUser(): RequestHandler {
  return require('requireUser')
}

/** For a route: whoever has none of these roles is refused. */
export function requireRole(...roles: [UserRole, ...UserRole[]]): RequestHandler {
  demandRoles(roles)
  return require('requireRole', roles)
}

function require(name: 'requireUser' | 'requireRole', roles?: readonly Role[]): RequestHandler {
  return async (request: WithAdmitted, response, next) => {
    const admitted = request[ADMITTED]
    if (!admitted) throw notInFront(name, 'app.use(menshen(auth)) has to come first')
    const answer = admitted.require(roles)
    if (answer) return sendAnswer(response, answer)
    next()
  }
}
