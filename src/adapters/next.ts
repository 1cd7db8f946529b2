// Menshen in Next 16 (app router, on Node): the proxy answers our own paths and applies the rules; pages, route handlers
// and server actions ask for the user.
import { hash, randomUUID } from 'node:crypto'
import { headers } from 'next/headers.js'
import { notFound, redirect } from 'next/navigation.js'
import { NextResponse } from 'next/server.js'
import { createShared, newEvaluation } from '../dev-reload.ts'
import { addCookies, type Menshen, MenshenError, type Role, type Session, type TokenExchange } from '../index.ts'
import { assertInstance, assertNoArguments, assertRoles } from './registered.ts'

/** The options of `createMenshen` name the roles `R` and the further fields `F` of the user info. */
export interface NextMenshen<R extends Role = Role, F extends string = string> {
  /** For `proxy.ts`: answers our own paths, redirects visitors to the login page, refuses, and renews the cookie. */
  proxy(this: void, request: Request): Promise<Response>
  /** The signed-in user. For server components, route handlers and server actions. */
  auth(this: void): Promise<Session<R, F> | undefined>
  /** The access token for calls on the user's behalf, never an expired one; with `target`, a token for another application. */
  accessToken(this: void, target?: TokenExchange): Promise<string | undefined>
  /** Replaces `data` of the session: an object (JSON, at most 16 KB). Rejects if no user is signed in. */
  updateData(this: void, data: object): Promise<void>
  /** The signed-in user; visitors are redirected to the login page. */
  requireUser(this: void): Promise<Session<R, F>>
  /** The signed-in user if they have one of these roles; for all others the page is not found. */
  requireRole(this: void, ...roles: readonly [R, ...R[]]): Promise<Session<R, F>>
  /** Starts Menshen, once for all bundles: automatically with the first request, or from `instrumentation.ts`. */
  start(this: void): Promise<Menshen<R, F>>
}

export interface NextMenshenOptions {
  /**
   * The client's address, which a request of Next does not contain: for example from a header that the server in front always
   * sets. Without it, `rateLimitPerMinute` limits no client.
   */
  readonly address?: ((request: Request) => string | undefined) | undefined
}

/** The header with which Next marks what it renders for one user. Without it, a prerendered page would be served to everyone. */
const PRIVATE_CACHE_CONTROL = 'private, no-cache, no-store, max-age=0, must-revalidate'

/** With type parameters for them, roles and fields would be inferred from our type instead of the options. */
type AnyMenshen = Pick<Menshen, 'fetch' | 'accessToken' | 'updateData'>
type NextMenshenOf<M> = M extends Menshen<infer R, infer F> ? NextMenshen<R, F> : never

/** `create` is called with the first request, not while the application is built. */
export function menshen<M extends AnyMenshen>(
  create: () => Promise<M>,
  options: NextMenshenOptions = {},
): NextMenshenOf<M> {
  return createAdapter(create as unknown as () => Promise<Menshen>, options) as NextMenshenOf<M>
}

function createAdapter(create: () => Promise<Menshen>, { address }: NextMenshenOptions): NextMenshen {
  if (typeof create !== 'function')
    throw new MenshenError('bad_settings', 'menshen: expected menshen(() => createMenshen({ … })), with a function.')
  const evaluation = newEvaluation()
  const start = async () => {
    const created = await createShared(create, evaluation)
    assertInstance(created, 'menshen(() => createMenshen({ … }))')
    return created
  }

  async function auth() {
    // Before anything else: while the application is built, Next ends the rendering here.
    const asked = { headers: await headers() }
    const machine = machineOf(asked.headers)
    return machine ?? (await start()).session(asked)
  }

  async function requireUser(...none: never[]) {
    assertNoArguments(none)
    return (await auth()) ?? redirect((await start()).loginPath)
  }

  return {
    start,
    auth,
    requireUser,
    async accessToken(target) {
      const asked = { headers: await headers() }
      return (await start()).accessToken(asked, target)
    },
    async updateData(data) {
      const asked = { headers: await headers() }
      await (await start()).updateData(asked, data)
    },
    async requireRole(...roles) {
      assertRoles(roles)
      const user = await requireUser()
      return roles.includes(user.userRole) ? user : notFound()
    },
    async proxy(request) {
      assertNoBasePath(request)
      const running = await start()
      const sent = countHeaders(request)
      const { user, answer, cookies, requestId } = await running.admit(request, { address: address?.(request) })
      if (answer) return withAbsoluteLocation(answer, request.url)
      // The page gets the headers that were sent, unless others are passed: those from which `admit` has removed a key.
      const passedOn = user?.machine
        ? withMachine(request, user)
        : countHeaders(request) < sent && new Headers(request.headers)
      const response = NextResponse.next(passedOn ? { request: { headers: passedOn } } : undefined)
      response.headers.set('x-request-id', requestId)
      addCookies(response, cookies)
      if (user) response.headers.set('cache-control', PRIVATE_CACHE_CONTROL)
      return response
    },
  }
}

function countHeaders({ headers }: Request): number {
  return [...headers.keys()].length
}

/** Next accepts only an absolute address from a proxy, and shortens it afterwards. */
function withAbsoluteLocation(answer: Response, url: string): Response {
  const location = answer.headers.get('location')
  if (location !== null) answer.headers.set('location', new URL(location, url).href)
  return answer
}

/** Our own pages are at the root of the host. */
function assertNoBasePath(request: Request & { readonly nextUrl?: { readonly basePath?: string } }): void {
  const basePath = request.nextUrl?.basePath
  if (basePath)
    throw new MenshenError(
      'bad_settings',
      `menshen: basePath of next.config is "${basePath}", where /login would not be found; Menshen needs an application at the root of its host.`,
    )
}

const MACHINE = 'x-menshen-machine'
const MACHINES = Symbol.for('menshen/next machines')
const MACHINE_MS = 60_000

/** The user of a note, and the hash of the credentials that they sent. */
interface Machine {
  readonly user: Session
  readonly credentials: string
}

type Machines = Map<string, Machine>

function machines(): Machines {
  const shared = globalThis as { [MACHINES]?: Machines }
  shared[MACHINES] ??= new Map()
  return shared[MACHINES]
}

/** Pages see the headers of a request but not its path, which rules need to identify machines: the proxy leaves a note for them. */
function withMachine({ headers: given }: Request, user: Session): Headers {
  const note = randomUUID()
  machines().set(note, { user, credentials: credentialsIn(given) })
  setTimeout(() => machines().delete(note), MACHINE_MS).unref()
  const headers = new Headers(given)
  headers.set(MACHINE, note)
  return headers
}

/** A note cannot be guessed, and is valid only with the token for which it was left. */
function machineOf(headers: Headers): Session | undefined {
  const note = headers.get(MACHINE)
  const machine = note === null ? undefined : machines().get(note)
  return machine?.credentials === credentialsIn(headers) ? machine.user : undefined
}

function credentialsIn(headers: Headers): string {
  return hash('sha256', headers.get('authorization') ?? '', 'base64url')
}
