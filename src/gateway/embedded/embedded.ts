// Menshen inside an application: who is there, may they, and our own routes, without a gateway in between.
import type { IncomingMessage } from 'node:http'
import { CLIENT_LEFT } from '../../observe/observation.ts'
import type { ObservedRequest } from '../../observe/observed-request.ts'
import { isOwnPath } from '../../own-paths.ts'
import { tokenExpiresAt } from '../../session/session-record.ts'
import type { Role } from '../../settings/config/config-file.ts'
import { type Admission, admit, identify } from '../admission/admit.ts'
import { createRequire } from '../admission/require.ts'
import { turnedAway } from '../admission/turned-away.ts'
import type { GatewayContext } from '../context.ts'
import { announcesBody, isQuestion } from '../forward/upgrade.ts'
import { failureAnswer } from '../http/failure-answer.ts'
import { isRequest } from '../http/form.ts'
import { errorAnswer, foreignAnswer, type OwnAnswer, unreadableAnswer } from '../http/page-answers.ts'
import { wasReset } from '../http/peer.ts'
import { beginRequest, isForeignSocket, readVisit, type Visit } from '../http/request.ts'
import { REQUEST_ID } from '../http/request-id.ts'
import { ALLOWED } from '../listener.ts'
import type { OwnRoutes } from '../own-routes.ts'
import { type AnswerWithCookies, addCookies } from './add-cookies.ts'
import { headersOf, headOf, type RequestSource, type WithHeaders } from './request-head.ts'
import { createToUserSession, type UserSession } from './user-session.ts'

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
    return { head, observed, visit: readVisit(head, observed), isGone: wasReset(head.socket) }
  }

  async function answerOwn(visit: Visit, request: IncomingMessage | Request): Promise<Response> {
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

  async function judge(visit: Visit): Promise<Admission | Response> {
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
        if (isUpgrade && !isQuestion(head)) return instead(errorAnswer(context, visit, 'not_found'))
        return instead(await answerOwn(visit, request))
      }
      const admission = await judge(visit)
      if ('body' in admission) return instead(admission)
      const answer = turnedAway(context, visit, admission)
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
