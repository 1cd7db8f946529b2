// menshen/fastify: sign-in for a Fastify application, as a plugin for the scope that registers it.
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, preHandlerAsyncHookHandler } from 'fastify'
import { type Admitted, addCookies, isOwnPath, MenshenError, type Role } from '../index.ts'
import {
  type AnyMenshen,
  assertInstance,
  assertNoArguments,
  assertRoles,
  notInFront,
  type SessionOf,
} from './registered.ts'

/**
 * Tells the compiler the roles and fields of `request.user`:
 * `declare module 'menshen/fastify' { interface Register { auth: typeof auth } }`
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications fill it
export interface Register {}

type UserSession = SessionOf<Register>
type UserRole = UserSession['userRole']

const ADMITTED = Symbol('menshen.admitted')

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in user; `undefined` for a visitor of a public page. */
    user: UserSession | undefined
    [ADMITTED]: Admitted<Role, never> | undefined
  }
}

export interface MenshenPluginOptions {
  /** The result of `createMenshen`. */
  readonly auth: AnyMenshen
}

/** Our own pages, the rules, and `request.user`, for every route of the scope that registers it. */
export const menshen: FastifyPluginAsync<MenshenPluginOptions> = Object.assign(plugin, {
  // What fastify-plugin would add: hooks and decorators apply to the scope itself, not to a scope of the plugin.
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'menshen',
  [Symbol.for('plugin-meta')]: { name: 'menshen', fastify: '5.x' },
})

async function plugin(app: FastifyInstance, options: MenshenPluginOptions & { prefix?: string }): Promise<void> {
  const { auth, prefix = '' } = options
  assertRegistration(app, auth, prefix)
  app.decorateRequest('user', undefined)
  app.decorateRequest(ADMITTED, undefined)
  addOwnRoutes(app, auth)

  // Before any body is read: we read the forms of our own pages, and leave all others unread.
  app.addHook('onRequest', async (request, reply) => {
    const admitted = await auth.admit(request.raw)
    if (admitted.answer) return sendResponse(reply, admitted.answer)
    // Its roles and fields are those of the instance that the application has registered.
    request.user = admitted.user as UserSession | undefined
    request[ADMITTED] = admitted
    // On Node's own response: no hook of the application runs after that, and a hijacked reply does not bypass it.
    addCookies(reply.raw, admitted.cookies)
  })
}

function assertRegistration(app: FastifyInstance, auth: AnyMenshen, prefix: string): void {
  assertInstance(auth, 'app.register(menshen, { auth })')
  const [loginPath = '/login'] = auth.signInPaths ?? []
  if (app.prefix !== '')
    throw new MenshenError(
      'bad_settings',
      `menshen: this scope is mounted below "${app.prefix}", where ${loginPath} would not be found; register it at the root, and use rules for public pages.`,
    )
  // Fastify would ignore it, because this plugin has no scope.
  if (prefix !== '')
    throw new MenshenError(
      'bad_settings',
      `menshen: prefix is "${prefix}", where ${loginPath} would not be found; leave it out, and use rules for public pages.`,
    )
  if (app.hasRequestDecorator('user'))
    throw new MenshenError(
      'bad_settings',
      'menshen: request.user already exists, from another plugin or from menshen itself.',
    )
}

const DEFAULT_PATHS = ['/login', '/callback', '/logout']

/** Makes Fastify call the scope for them; no route of the application can have the same addresses. */
function addOwnRoutes(app: FastifyInstance, { signInPaths = DEFAULT_PATHS, callbackPaths = [] }: AnyMenshen): void {
  const own = new Set([...signInPaths, ...callbackPaths])
  const taken = (url: string) =>
    new MenshenError('bad_settings', `menshen: the application has a route ${url}, which is an address of Menshen.`)
  for (const url of ['/_menshen/*', ...own]) {
    if (app.supportedMethods.some(method => app.hasRoute({ method, url }))) throw taken(url)
    // Not ours after all: a different spelling that only the application’s router accepts.
    app.all(url, (_request, reply) => reply.callNotFound())
  }
  app.addHook('onRoute', ({ url }) => {
    if (isOwnPath(url, own)) throw taken(url)
  })
}

/** For a route's `preHandler`: redirects visitors to the login page. */
export function requireUser(...none: never[]): preHandlerAsyncHookHandler {
  assertNoArguments(none)
  return require('requireUser')
}

/** For a route's `preHandler`: refuses users who have none of these roles. */
export function requireRole(...roles: [UserRole, ...UserRole[]]): preHandlerAsyncHookHandler {
  assertRoles(roles)
  return require('requireRole', roles)
}

function require(name: 'requireUser' | 'requireRole', roles?: readonly Role[]): preHandlerAsyncHookHandler {
  return async (request, reply) => {
    const admitted = request[ADMITTED]
    if (!admitted) throw notInFront(name, 'app.register(menshen, { auth }) has to come first')
    const answer = admitted.require(roles)
    if (answer) return sendResponse(reply, answer)
  }
}

/** Field by field: Fastify accepts a whole `Response`, but not in answer to HEAD. */
function sendResponse(reply: FastifyReply, { status, headers, body }: Response): FastifyReply {
  for (const [name, value] of headers) reply.header(name, value)
  return reply.code(status).send(body ?? undefined)
}
