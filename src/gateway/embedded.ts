// The transport of embedding applications: answers are values instead of writes to a response.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Role } from '../config/role-names.ts'
import type { TokenExchangeConfig } from '../config/upstreams.ts'
import { MenshenError } from '../errors.ts'
import { type AnswerWithCookies, addCookies } from '../http/add-cookies.ts'
import {
  clientClosedAnswer,
  errorAnswer,
  failureAnswer,
  foreignAnswer,
  type OwnAnswer,
  unreadableAnswer,
} from '../http/answers.ts'
import type { Identification } from '../http/caller.ts'
import { isHeaders, isRequest } from '../http/form.ts'
import { removeKeys } from '../http/remove-keys.ts'
import type { Peer, RequestHead } from '../http/request.ts'
import { identify, noteActivity } from '../identify/session.ts'
import { type ObservedRequest, REQUEST_ID } from '../observe/observed-request.ts'
import type { LoadedSession } from '../session/cache.ts'
import { tokenExpiresAt } from '../session/record.ts'
import { createRequire } from '../sign-in/denial.ts'
import { checkedData } from '../sign-in/hooks.ts'
import { createToUserSession, type UserSession, withSignal } from '../sign-in/user-session.ts'
import { isForeignSocket } from '../util/fetch-metadata.ts'
import type { GatewayContext } from './context.ts'
import { denialAnswer } from './denial-answer.ts'
import { ALLOWED } from './listener.ts'
import { handleRequest, isOwn, type Transport } from './pipeline.ts'
import type { OwnRoutes } from './routes.ts'
import { announcesBody, isAuthCheck } from './upgrade.ts'

/** What a token is for. It needs an audience, a resource or a scope. */
export type TokenExchange = TokenExchangeConfig

/** What to do with a request of the application. */
export interface Admitted<R extends Role = Role, F extends string = string> {
  /** The signed-in user; absent for a visitor of a public page. */
  readonly user?: UserSession<R, F> | undefined
  /** Send this in place of the application's own answer: one of our pages, a redirect to the login page, or a refusal. */
  readonly answer?: Response | undefined
  /** The application's answer must set them (`addCookies`); `answer` has its own already. */
  readonly cookies: readonly string[]
  /** Identifies our log lines; use it in the application's own, and as `X-Request-Id` of its answer. */
  readonly requestId: string
  /**
   * For a page that requires more than the rules do: a signed-in user, with one of these roles if any are named. Returns
   * `undefined` if the caller is one; otherwise the answer to send.
   */
  require(roles?: readonly R[]): Response | undefined
}

export interface Embedded<R extends Role = Role, F extends string = string> {
  /**
   * Answers a request to one of our own routes (`signInPaths` and everything below `/_menshen/`), and returns `undefined` for
   * any other.
   */
  fetch(request: Request, source?: RequestSource): Promise<Response | undefined>
  /**
   * The signed-in user, with tokens refreshed if they were due. A renewed cookie is set on `response`. For a request that `admit`
   * has accepted by a bearer token or a key, the machine or the owner of the key. Rejects with `provider_unavailable` while the
   * tokens have expired and the provider cannot be reached: the user is not signed out.
   */
  session(request: WithHeaders, response?: AnswerWithCookies): Promise<UserSession<R, F> | undefined>
  /**
   * The access token for calls in the user's name: refreshed if it was due, and never one that has expired or is bound to a key
   * (DPoP). With `target`, one for another application, by token exchange: it rejects with a `MenshenError` if the provider issues
   * none. `undefined` if no user is signed in.
   */
  accessToken(request: WithHeaders, target?: TokenExchange): Promise<string | undefined>
  /**
   * Replaces `data` of the session, for all requests and processes: an object (JSON, at most 16 KB). Of two calls at the same
   * time the last one wins. A `user` that `admit` has already returned keeps the old data. Rejects with a `MenshenError` if no
   * user is signed in (`no_session`) or the data cannot be stored.
   */
  updateData(request: WithHeaders, data: object): Promise<void>
  /** Applies our own routes and the rules to a request before the application sees it. Removes keys from its headers. */
  admit(request: IncomingMessage | Request, source?: RequestSource): Promise<Admitted<R, F>>
  /** The path of the login page: LOGIN_PATH, by default `/login`. */
  readonly loginPath: string
  /** The paths of the sign-in, for `isOwnPath`: `/login`, `/callback`, `/logout`, and with `providers` `/callback/<id>` for each. */
  readonly signInPaths: readonly string[]
  /** Where the providers send browsers back, below `baseUrl`: `/callback`, or with `providers` `/callback/<id>` for each. */
  readonly callbackPaths: readonly string[]
}

/** A request of the application on its way through the pipeline. */
interface EmbeddedRequest {
  readonly source: IncomingMessage | Request
  /** Present for an upgrade, for which Node has detached the socket. */
  readonly upgrade: IncomingMessage | undefined
  /** Whether it is an upgrade that announces a body. */
  readonly hasBody: boolean
}

export function createEmbedded(context: GatewayContext, ownRoutes: OwnRoutes): Embedded {
  const { settings, paths, now, auth, pages, observe } = context
  const toUserSession = createToUserSession(auth.providers)
  /** The machines whose requests were admitted: `session` gets a request without its path, which the rules need. */
  const machines = new WeakMap<object, UserSession>()

  const entrance: Transport<EmbeddedRequest, OwnAnswer, Admitted> = {
    isTraced: false,

    onReset(observed, { upgrade, hasBody }) {
      if (upgrade && hasBody) cutOff(upgrade)
      return send(observed, clientClosedAnswer(observed))
    },

    begin(_observed, { upgrade, hasBody }) {
      if (upgrade && hasBody) cutOff(upgrade)
    },

    unreadable: (head, { requestId }) => unreadableAnswer(pages, head, requestId),

    ownRoute(request, { source, upgrade, hasBody }) {
      const { headers, observed } = request
      const url = request.path + request.search
      if (hasBody) return unreadableAnswer(pages, { headers, url }, observed.requestId)
      // Our pages and streams need a response. A forward-auth check carries the headers of the browser's own upgrade.
      if (upgrade && !isAuthCheck({ url })) return errorAnswer(pages, request, 'not_found')
      return ownRoutes.answer(request, source)
    },

    precheck(request, { hasBody }) {
      const { headers, observed } = request
      if (hasBody) return unreadableAnswer(pages, { headers, url: request.path + request.search }, observed.requestId)
      if (request.method === 'TRACE')
        return errorAnswer(pages, request, 'method_not_allowed', { headers: { allow: ALLOWED } })
      return isForeignSocket(request, settings.BASE_URL) ? foreignAnswer(context, request) : undefined
    },

    deny: (request, admission) => denialAnswer(context, request, admission),

    forward(request, admission, { source }) {
      const { observed } = request
      const { requestId } = observed
      const { loaded, program, cookies } = admission
      const require = createRequire(context, request, admission)
      // The status is the application's.
      observe.ended(observed, 0)
      if (loaded) return { user: userOf(admission, loaded), cookies, requestId, require }
      if (!program) return { cookies, requestId, require }
      const user: UserSession = {
        ...toUserSession({ session: program.user, expiresAt: program.expiresAt }),
        machine: true,
      }
      machines.set(source, user)
      return { user, cookies, requestId, require }
    },

    fail: (request, error, { source }) =>
      hasDisconnected(source) ? clientClosedAnswer(request.observed) : failureAnswer(context, request, error),

    send,
  }

  function userOf({ ticket }: Pick<Identification, 'ticket'>, loaded: LoadedSession): UserSession {
    const user = toUserSession(loaded)
    return ticket === undefined ? user : withSignal(user, () => context.endSignals.signalFor(ticket, loaded))
  }

  function send(observed: ObservedRequest, answer: OwnAnswer): Admitted {
    const response = toResponse(answer)
    const { requestId } = observed
    response.headers.set(REQUEST_ID, requestId)
    observe.ended(observed, response.status)
    return { answer: response, cookies: [], requestId, require: () => response }
  }

  async function identifyCaller(request: WithHeaders & { readonly method?: unknown }) {
    const headers = headersOf(request)
    const identification = await identify(context, {
      headers,
      observed: observe.beginRequest({ headers, socket: {} }),
    })
    const method = typeof request.method === 'string' ? request.method : 'GET'
    if (identification.loaded) noteActivity(context, { method, headers }, identification.loaded)
    return identification
  }

  const embedded: Embedded = {
    loginPath: paths.login,
    signInPaths: [...paths.signIn],
    callbackPaths: [...paths.callbacks],

    async fetch(request, source = {}) {
      const path = context.readTarget(headOf(request, source).url ?? '')?.path
      if (path === undefined || !isOwn(context, path)) return undefined
      return (await embedded.admit(request, source)).answer
    },

    async session(request, response) {
      const identification = await identifyCaller(request)
      const { loaded, cookies, isProviderUnavailable } = identification
      if (response) addCookies(response, cookies)
      if (loaded) return userOf(identification, loaded)
      const machine = machines.get(request)
      if (machine) return structuredClone(machine)
      if (isProviderUnavailable) throw providerUnavailable()
      return undefined
    },

    async accessToken(request, target) {
      const wanted = target && context.exchangeToken.read(target)
      const { loaded, ticket, isProviderUnavailable } = await identifyCaller(request)
      if (isProviderUnavailable) throw providerUnavailable()
      if (wanted) return loaded && ticket !== undefined ? context.exchangeToken.get(ticket, loaded, wanted) : undefined
      // A token that is bound to our key (DPoP) is useless to others.
      if (!loaded || loaded.session.dpopKey !== undefined) return undefined
      return tokenExpiresAt(loaded.session) > now() ? loaded.session.accessToken || undefined : undefined
    },

    async updateData(request, data) {
      const checked = checkedData('updateData', data)
      const { loaded, ticket, isProviderUnavailable } = await identifyCaller(request)
      if (isProviderUnavailable) throw providerUnavailable()
      const changed = loaded && ticket !== undefined && (await auth.sessions.changeData(ticket, loaded, checked))
      if (!changed) throw new MenshenError('no_session', 'updateData: no user is signed in with this request.')
    },

    async admit(request, source = {}) {
      const upgrade = wasUpgraded(request) ? request : undefined
      if (upgrade) listenToErrors(upgrade)
      const hasBody = upgrade !== undefined && announcesBody(upgrade)
      const admitted = await handleRequest(context, entrance, headOf(request, source), {
        source: request,
        upgrade,
        hasBody,
      })
      removeKeys(request)
      if (source.incoming) removeKeys(source.incoming)
      return admitted
    },
  }
  return embedded
}

/** `undefined` would mean that the user is signed out. */
function providerUnavailable(): MenshenError {
  return new MenshenError(
    'provider_unavailable',
    'the access token of the session has expired, and the provider is unreachable',
  )
}

/** Whether it came with the server's `upgrade` event: then Node has detached its socket. */
export function wasUpgraded(
  request: (IncomingMessage | Request) & { readonly upgrade?: unknown },
): request is IncomingMessage {
  return request.upgrade === true
}

/** Sockets that an instance of this process listens to: one listener is enough for all instances. */
const SOCKETS_WITH_LISTENER = new WeakSet<object>()

/** An error without a listener would end the process, while the application waits for us. */
function listenToErrors({ socket }: IncomingMessage): void {
  if (SOCKETS_WITH_LISTENER.has(socket)) return
  SOCKETS_WITH_LISTENER.add(socket)
  socket.on('error', () => socket.destroy())
}

/**
 * If an upgrade announces a body, Node creates a stream beside the socket that passes on the socket's errors, and only the
 * application could listen to it. A destroyed socket has no more errors.
 */
export function cutOff({ socket }: IncomingMessage): void {
  socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  socket.destroy()
}

function hasDisconnected(request: IncomingMessage | Request): boolean {
  return isRequest(request) ? request.signal.aborted : request.readableAborted
}

export function toResponse(answer: OwnAnswer): Response {
  if ('response' in answer) {
    const { response, sharedBody } = answer
    return sharedBody ? new Response(sharedBody, response) : response
  }
  const headers = new Headers()
  const list = answer.common.listFor(answer)
  for (let n = 0; n < list.length; n += 2) headers.append(list[n] ?? '', list[n + 1] ?? '')
  return new Response(null, { status: answer.status, headers })
}

// A request of an application, from node:http or as a Request, in the form that the gateway reads.

/** What only the embedding program knows about a request. */
export interface RequestSource {
  /**
   * The address at the other end of the connection. Without one (a Request has none) no client is a trusted proxy, and nothing
   * is counted by address.
   */
  readonly address?: string | undefined
  /** The connection itself, if the program has it: its address is used, and a client that reset it gets no answer. */
  readonly socket?: Peer | undefined
  /** The node:http request that a Request was made from, if the application can read it: keys are removed from it, too. */
  readonly incoming?: IncomingMessage | undefined
}

/** A request, or only its headers. */
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

/** Below a mount path, Express removes that path from `url`, and keeps the whole in `originalUrl`. */
function headOfMessage(
  request: IncomingMessage & { readonly originalUrl?: unknown },
  headers: IncomingHttpHeaders,
  given: Peer | undefined,
): RequestHead {
  const { method = 'GET', originalUrl } = request
  const url = typeof originalUrl === 'string' ? originalUrl : (request.url ?? '')
  return { method, url, headers, socket: given ?? request.socket ?? {} }
}

/** A repeated header is always one string, except in headers that a program has built by hand. */
export function headersOf({ headers = {} }: Partial<WithHeaders>): IncomingHttpHeaders {
  if (isHeaders(headers)) return Object.fromEntries(headers)
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
