// The gateway inside of a program: answers as values instead of writing to a response.

import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Role } from '../config/config-file.ts'
import { CLIENT_LEFT, type ObservedRequest } from '../observe/observed-request.ts'

import { isOwnPath } from '../paths.ts'
import type { UserInfo } from '../provider/user.ts'
import { announcesBody, destroyAfter, isAuthCheck } from '../proxy/upgrade.ts'
import type { Claimed } from '../session/session-fields.ts'
import { type SessionData, tokenExpiresAt } from '../session/session-record.ts'
import { type Admission, admit, createRequire, denialResponse, identify } from './admission.ts'
import type { GatewayContext } from './context.ts'
import { areOfTheWeb, isRequest } from './form.ts'
import { ALLOWED } from './listener.ts'
import {
  beginRequest,
  type GatewayRequest,
  isForeignSocket,
  newRequestId,
  type Peer,
  REQUEST_ID,
  type RequestHead,
  readGatewayRequest,
  wasReset,
} from './request.ts'
import { errorAnswer, failureAnswer, foreignAnswer, type OwnAnswer, send, unreadableAnswer } from './respond.ts'
import type { OwnRoutes } from './routes.ts'
import { CACHE_HEADERS, FOR_SHARED_CACHES } from './shared-caches.ts'

/** What is to be done with a request of the application. */
export interface Admitted<R extends Role = Role, F extends string = string> {
  /** Whoever is signed in; absent for a visitor of a public page. */
  readonly user?: UserSession<R, F> | undefined
  /** To be sent in place of the application's own: one of our pages, the way to the login page, or a refusal. */
  readonly answer?: Response | undefined
  /** To be set by the application's answer (`addCookies`); those of `answer` stand in it. */
  readonly cookies: readonly string[]
  /** By which our log lines are found; for the application's own, and for `X-Request-Id` of its answer. */
  readonly requestId: string
  /**
   * For a page that wants more than the rules say: that somebody is signed in, with one of these roles if any are named.
   * `undefined` if so; otherwise what is to be sent in its place.
   */
  require(roles?: readonly R[]): Response | undefined
}

export interface Embedded<R extends Role = Role, F extends string = string> {
  /**
   * Answers a request to one of our own routes (`/login`, `/callback` or with `providers` `/callback/<id>`, `/logout` and
   * everything below `/_menshen/`), and gives `undefined` for every other.
   */
  fetch(request: Request, source?: RequestSource): Promise<Response | undefined>
  /**
   * Who is signed in, with tokens refreshed if they were due. A renewed cookie goes to `response`. Of a request that `admit`
   * has let in by a bearer token, the machine.
   */
  session(request: WithHeaders, response?: AnswerWithCookies): Promise<UserSession<R, F> | undefined>
  /** The access token for calls in the user's name: refreshed if it was due, and never one that has expired. */
  accessToken(request: WithHeaders): Promise<string | undefined>
  /** Our own routes and the rules, for every request before the application sees it. */
  admit(request: IncomingMessage | Request, source?: RequestSource): Promise<Admitted<R, F>>
  /** Where the providers send browsers back, below `baseUrl`: `/callback`, or with `providers` `/callback/<id>` for each. */
  readonly callbackPaths: readonly string[]
}

export function createEmbedded(context: GatewayContext, ownRoutes: OwnRoutes): Embedded {
  const toUserSession = createToUserSession(context)
  const { callbackPaths } = context.providers
  /** The machines whose requests were admitted: without its path, a request says nothing about them. */
  const machines = new WeakMap<object, UserSession>()

  function begin(request: IncomingMessage | Request, source: RequestSource) {
    const head = headOf(request, source)
    const observed = beginRequest(context, head)
    return { head, observed, visit: readGatewayRequest(head, observed), isGone: wasReset(head.socket) }
  }

  async function answerOwn(visit: GatewayRequest, request: IncomingMessage | Request): Promise<Response> {
    try {
      return toResponse(await ownRoutes.answer(visit, request))
    } catch (error) {
      // Nobody is left to be told, and nothing of ours failed.
      if (hasLeft(request)) return new Response(null, { status: CLIENT_LEFT })
      return failureAnswer(context, visit, error)
    }
  }

  /** Counted, and found again by its id. */
  function sent(observed: ObservedRequest, answer: Response): Response {
    answer.headers.set(REQUEST_ID, observed.requestId)
    context.observation.ended(observed, answer.status)
    return answer
  }

  async function judge(visit: GatewayRequest): Promise<Admission | Response> {
    if (visit.method === 'TRACE')
      return errorAnswer(context, visit, 'method_not_allowed', { headers: { allow: ALLOWED } })
    if (isForeignSocket(visit, context.settings.BASE_URL)) return foreignAnswer(context, visit)
    try {
      return await admit(context, visit)
    } catch (error) {
      return failureAnswer(context, visit, error)
    }
  }

  function callerOf(request: WithHeaders) {
    const headers = headersOf(request)
    const observed = beginRequest(context, { headers, socket: {} })
    return identify(context, { headers, observed })
  }

  return {
    callbackPaths: [...callbackPaths],

    async fetch(request, source = {}) {
      const { observed, visit, isGone } = begin(request, source)
      if (!visit || !isOwnPath(visit.path, callbackPaths)) return undefined
      return sent(observed, isGone ? gone(observed) : await answerOwn(visit, request))
    },

    async session(request, response) {
      const { loaded, cookies } = await callerOf(request)
      if (response) addCookies(response, cookies)
      return loaded ? toUserSession(loaded) : copied(machines.get(request))
    },

    async accessToken(request) {
      const { loaded } = await callerOf(request)
      return loaded && tokenExpiresAt(loaded.session) > context.now()
        ? loaded.session.accessToken || undefined
        : undefined
    },

    async admit(request, source = {}) {
      const isUpgrade = wasUpgraded(request)
      const hasBody = isUpgrade && announcesBody(request)
      if (isUpgrade) listenToErrors(request)
      const { head, observed, visit, isGone } = begin(request, source)
      const { requestId } = observed
      const instead = (answer: Response): Admitted => {
        sent(observed, answer)
        return { answer, cookies: [], requestId, require: () => answer }
      }
      if (hasBody) cutOff(request)
      if (isGone) return instead(gone(observed))
      if (!visit || hasBody) {
        observed.outcome = 'refused'
        return instead(unreadableAnswer(context, head, requestId))
      }
      if (isOwnPath(visit.path, callbackPaths)) {
        // Our pages and streams need a response; a proxy's question is answered in the browser's own words.
        if (isUpgrade && !isAuthCheck(head)) return instead(errorAnswer(context, visit, 'not_found'))
        return instead(await answerOwn(visit, request))
      }
      const admission = await judge(visit)
      if ('body' in admission) return instead(admission)
      const answer = denialResponse(context, visit, admission)
      if (answer) return instead(answer)
      // What the application answers is its own business.
      context.observation.ended(observed, 0)
      const { loaded, bearer, cookies } = admission
      const known = loaded ?? bearer
      const require = createRequire(context, visit, admission)
      if (!known) return { cookies, requestId, require }
      const user: UserSession = loaded ? toUserSession(loaded) : { ...toUserSession(known), machine: true }
      if (user.machine) machines.set(request, user)
      return { user, cookies, requestId, require }
    },
  }
}

/** Comes with the server's `upgrade` event: Node has let go of its socket. */
function wasUpgraded(
  request: (IncomingMessage | Request) & { readonly upgrade?: unknown },
): request is IncomingMessage {
  return request.upgrade === true
}

const LISTENED = new WeakSet<object>()

/** An error that nobody listens to would end the process, and the application waits for us meanwhile. */
function listenToErrors({ socket }: IncomingMessage): void {
  if (LISTENED.has(socket)) return
  LISTENED.add(socket)
  socket.on('error', () => socket.destroy())
}

/**
 * Beside a socket with a body, Node makes a stream that passes on the errors of the socket, and that only the application
 * could listen to. After this there are none.
 */
function cutOff({ socket }: IncomingMessage): void {
  socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  socket.destroy()
}

function copied(user: UserSession | undefined): UserSession | undefined {
  return user && structuredClone(user)
}

/** Nobody is there any more: nothing is asked of the provider or the store. */
function gone(observed: ObservedRequest): Response {
  observed.outcome = 'refused'
  return new Response(null, { status: CLIENT_LEFT })
}

function hasLeft(request: IncomingMessage | Request): boolean {
  return isRequest(request) ? request.signal.aborted : request.readableAborted
}

function toResponse(answer: OwnAnswer): Response {
  if ('body' in answer) return answer
  const headers = new Headers()
  for (let n = 0; n < answer.headers.length; n += 2)
    headers.append(answer.headers[n] ?? '', answer.headers[n + 1] ?? '')
  return new Response(null, { status: answer.status, headers })
}

// Puts our cookies on an answer of the application, whichever kind of answer it is, so that no shared cache keeps it.

/** Where cookies can be put: a response of node:http, headers, or a Response whose headers can be changed. */
export type AnswerWithCookies =
  | Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'>
  | Headers
  | { readonly headers: Headers }

/**
 * Sets the cookies and `cache-control: no-store`. On a response of node:http they are set once more when its head is
 * written, so that no header of the application takes their place. An answer whose head was sent stays as it is.
 */
export function addCookies(answer: AnswerWithCookies, cookies: readonly string[]): void {
  if (cookies.length === 0) return
  if ('setHeader' in answer) addToResponse(answer, cookies)
  else addToHeaders('getSetCookie' in answer ? answer : answer.headers, cookies)
}

function addToHeaders(headers: Headers, cookies: readonly string[]): void {
  const kept = without(headers.getSetCookie(), cookies)
  headers.delete('set-cookie')
  for (const cookie of [...kept, ...cookies]) headers.append('set-cookie', cookie)
  for (const name of FOR_SHARED_CACHES) headers.delete(name)
  headers.set('cache-control', 'no-store')
}

type NodeResponse = Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent'> &
  Partial<Pick<ServerResponse, 'removeHeader' | 'writeHead'>> & { readonly stream?: unknown }

/** The cookies that wait for the head of each response. */
const WAITING = new WeakMap<object, readonly string[]>()

function addToResponse(response: NodeResponse, cookies: readonly string[]): void {
  if (response.headersSent) return
  const waiting = WAITING.get(response)
  const all = waiting ? [...without(waiting, cookies), ...cookies] : cookies
  WAITING.set(response, all)
  setOn(response, response.getHeader('set-cookie'), all)
  if (waiting) return
  setWithHead(response)
  setWithStream(response)
}

function setOn(response: NodeResponse, theirs: unknown, cookies: readonly string[]): void {
  response.setHeader('set-cookie', [...without(texts(theirs), cookies), ...cookies])
  for (const name of FOR_SHARED_CACHES) response.removeHeader?.(name)
  response.setHeader('cache-control', 'no-store')
}

/** `writeHead` is called for every head, by Node itself where the application does not. Its headers win over those before. */
function setWithHead(response: NodeResponse): void {
  const { writeHead } = response
  if (!writeHead) return
  Object.assign(response, {
    writeHead(...args: unknown[]) {
      if (response.headersSent) return Reflect.apply(writeHead, response, args)
      const given = typeof args[1] === 'string' ? args[2] : (args[2] ?? args[1])
      const theirs = valuesIn(given, 'set-cookie')
      setOn(response, theirs.length > 0 ? theirs : response.getHeader('set-cookie'), WAITING.get(response) ?? [])
      const rest = args.map(arg => (arg === given ? withoutOurs(arg) : arg))
      return Reflect.apply(writeHead, response, rest)
    },
  })
}

/** Node does not call `writeHead` for the head of an HTTP/2 response that the application leaves to it. */
function setWithStream(response: NodeResponse): void {
  const { stream } = response
  const { respond } = Object(stream)
  if (typeof respond !== 'function') return
  Object.assign(Object(stream), {
    respond(headers: Record<string, unknown> = {}, ...rest: unknown[]) {
      const cookies = WAITING.get(response) ?? []
      headers['set-cookie'] = [...without(texts(headers['set-cookie']), cookies), ...cookies]
      for (const name of FOR_SHARED_CACHES) delete headers[name]
      headers['cache-control'] = 'no-store'
      return Reflect.apply(respond, stream, [headers, ...rest])
    },
  })
}

/** Headers as `writeHead` takes them: an object, names and values in turn, or pairs of them. */
function valuesIn(given: unknown, wanted: string): string[] {
  return entriesOf(given).flatMap(([name, value]) => (name.toLowerCase() === wanted ? texts(value) : []))
}

function withoutOurs(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given
  const kept = entriesOf(given).filter(
    ([name]) => name.toLowerCase() !== 'set-cookie' && !CACHE_HEADERS.has(name.toLowerCase()),
  )
  return Array.isArray(given) ? kept.flat() : Object.fromEntries(kept)
}

function entriesOf(given: unknown): [name: string, value: unknown][] {
  if (!Array.isArray(given)) return Object.entries(Object(given))
  if (given.every(pair => Array.isArray(pair))) return given.map(([name, value]) => [String(name), value])
  return Array.from({ length: Math.ceil(given.length / 2) }, (_, n) => [String(given[2 * n]), given[2 * n + 1]])
}

function texts(value: unknown): string[] {
  return [value ?? []].flat().map(String)
}

/** Whoever asks twice gets each cookie once. */
function without(before: readonly string[], cookies: readonly string[]): string[] {
  const names = cookies.map(nameOf)
  return before.filter(cookie => !names.includes(nameOf(cookie)))
}

function nameOf(cookie: string): string {
  return cookie.slice(0, cookie.indexOf('='))
}

// What an application has of a request, in the one form that the gateway reads: node:http's, or a Request of the web.

/** What only the program knows of a request. */
export interface RequestSource {
  /**
   * The address at the other end of the connection. Without one (a Request has none) nobody is a trusted proxy, and nothing
   * is counted by address.
   */
  readonly address?: string | undefined
  /** The connection itself, for a program that has it: its address is read, and who has reset it is not waited for. */
  readonly socket?: Peer | undefined
}

/** A request, or no more of it than its headers. */
export interface WithHeaders {
  readonly headers: IncomingHttpHeaders | Headers
}

export function headOf(request: IncomingMessage | Request, source: RequestSource): RequestHead {
  const headers = headersOf(request)
  const { address, socket = address === undefined ? undefined : { remoteAddress: address } } = source
  if (!isRequest(request)) return headOfMessage(request, headers, socket)
  const { pathname, search, host } = new URL(request.url)
  return {
    method: request.method,
    url: pathname + search,
    headers: { host, ...headers },
    socket: socket ?? {},
  }
}

/** Below a path of its own, Express cuts that path off `url` and keeps the whole. */
function headOfMessage(
  request: IncomingMessage & { readonly originalUrl?: unknown },
  headers: IncomingHttpHeaders,
  given: Peer | undefined,
): RequestHead {
  const { method = 'GET', originalUrl } = request
  const url = typeof originalUrl === 'string' ? originalUrl : (request.url ?? '')
  return { method, url, headers, socket: given ?? request.socket ?? {} }
}

/** A header that stands there several times is one text everywhere but in what was put together by hand. */
export function headersOf({ headers = {} }: Partial<WithHeaders>): IncomingHttpHeaders {
  if (areOfTheWeb(headers)) return Object.fromEntries(headers)
  for (const name in headers) if (Array.isArray(headers[name]) && name !== 'set-cookie') return withoutLists(headers)
  return headers
}

function withoutLists(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, joined(name, value)]))
}

function joined(name: string, value: string | string[] | undefined): string | string[] | undefined {
  if (!Array.isArray(value) || name === 'set-cookie') return value
  return value.join(name === 'cookie' ? '; ' : ', ')
}

// Puts an answer of ours in the place of the application's.

/** How long a refused client may take to read the answer and to close. */
const FAREWELL_MS = 1000

/**
 * Writes it to a response of node:http, as a stream where it is one. Cookies that the application has set stay there. Or to the
 * socket of an `upgrade` event, which it closes.
 */
export function sendAnswer(target: ServerResponse | Duplex, answer: Response): Promise<void> {
  return isResponse(target) ? sendToResponse(target, answer) : sendToSocket(target, answer)
}

function isResponse(target: ServerResponse | Duplex): target is ServerResponse {
  return 'writeHead' in target
}

function sendToResponse(response: ServerResponse, answer: Response): Promise<void> {
  const cookies = answer.headers.getSetCookie()
  addCookies(response, cookies)
  if (cookies.length > 0) answer.headers.delete('set-cookie')
  return send(response, answer, answer.headers.get(REQUEST_ID) ?? newRequestId())
}

/** Whatever still comes is thrown away: unread bytes would make the system drop our answer. */
async function sendToSocket(socket: Duplex, answer: Response): Promise<void> {
  socket.on('error', () => socket.destroy()).resume()
  const body = Buffer.from(await answer.arrayBuffer())
  if (socket.destroyed) return
  const lines = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, 'connection: close']
  for (const [name, value] of answer.headers) if (!OF_THE_WIRE.has(name)) lines.push(`${name}: ${value}`)
  const head = Buffer.from(`${[...lines, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n`, 'latin1')
  socket.end(Buffer.concat([head, body]))
  destroyAfter(socket, FAREWELL_MS)
}

const OF_THE_WIRE = new Set(['connection', 'content-length', 'transfer-encoding'])

// What an application learns of whoever is signed in. Never a token.

/** `R` are the roles and `F` the further fields of the user info that the configuration names. */
export interface UserSession<R extends Role = Role, F extends string = string> {
  readonly userInfo: UserInfo<F>
  readonly userRole: R
  readonly groups: readonly string[]
  /** Which of several providers: a name means nothing beyond its own. Absent where there is one. */
  readonly provider?: string
  /** A program with a bearer token, in place of somebody who has signed in. */
  readonly machine?: true
  /** What `onSignIn` of the application returned. */
  readonly data?: SessionData
  /** When it ends if nothing refreshes it, in milliseconds since 1970. */
  readonly expiresAt: number
}

export type ToUserSession = (known: {
  readonly session: Claimed & { readonly data?: SessionData }
  readonly expiresAt: number
}) => UserSession

/** Each application gets a copy of its own: what it does to it is nobody else's business. */
export function createToUserSession({ providers }: Pick<GatewayContext, 'providers'>): ToUserSession {
  // A session may be older than the mapping of a field, or come from a provider that does not have it.
  const fields = providers.all.flatMap(({ plan }) => Object.keys(plan.fields)).filter(field => field !== 'groups')
  const empty = Object.fromEntries(fields.map(field => [field, '']))
  return ({ session, expiresAt }) => {
    const { userInfo, userRole, groups = [], provider, data } = session
    return {
      userInfo: { ...empty, ...userInfo },
      userRole,
      groups: [...groups],
      ...(provider === undefined ? {} : { provider }),
      ...(data === undefined ? {} : { data: structuredClone(data) }),
      expiresAt,
    }
  }
}
