// The transport of the HTTP server: writes answers to a response of node:http, and forwards what is admitted.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { errorFields } from '../errors.ts'
import {
  busyAnswer,
  clientClosedAnswer,
  errorAnswer,
  failureAnswer,
  type OwnAnswer,
  type Pages,
  type StatusAnswer,
  unreadableAnswer,
} from '../http/answers.ts'
import { type GatewayRequest, hasBody } from '../http/request.ts'
import { send, sentBy, whenClosed } from '../http/send.ts'
import type { Admission } from '../identify/admission.ts'
import { CLIENT_CLOSED_REQUEST, type ObservedRequest, observedFields } from '../observe/observed-request.ts'
import { type ForwardOptions, sendContinue } from '../proxy/forward.ts'
import { createSendPrepared, PreparedResponse } from '../server/fast-path.ts'
import { Http2Response } from '../server/http2-messages.ts'
import { isFullySent } from '../server/slow-clients.ts'
import { type MaybePromise, orElse } from '../util/maybe-promise.ts'
import type { GatewayContext } from './context.ts'
import { denialAnswer } from './denial-answer.ts'
import { toGrpcResponse } from './grpc-answers.ts'
import { handleRequest, isOwn, reply, type Transport } from './pipeline.ts'
import type { OwnRoutes } from './routes.ts'

/** The methods that are forwarded to an application. TRACE would show a script the cookies that it must not see. */
export const ALLOWED = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

/** Answers requests for paths that no application serves. */
export type Home = (request: GatewayRequest, admission: Admission, response: ServerResponse) => MaybePromise<void>

/** A host of `hosts` has no home page. */
export function createNotFound({ pages }: GatewayContext): Home {
  return (request, { cookies }, response) =>
    send(response, errorAnswer(pages, request, 'not_found', { cookies }).response, request.observed.requestId)
}

export function createListener(context: GatewayContext, ownRoutes: OwnRoutes, home: Home): RequestListener {
  const { site, store, lifecycle, proxy, pages, observe } = context
  const sendPrepared = createSendPrepared(context.now)
  const isEmptyHost = !site.isAuthHost && proxy.upstreams.all.length === 0

  const entrance: Transport<ServerResponse, OwnAnswer, void> = {
    isTraced: true,

    onReset(observed, response) {
      observe.ended(observed, CLIENT_CLOSED_REQUEST)
      response.req.socket.destroy()
    },

    begin(_observed, response) {
      if (lifecycle.closing) response.shouldKeepAlive = false
    },

    unreadable(head, { requestId }) {
      const answer = unreadableAnswer(pages, head, requestId)
      return looksLikeAuthCheck(head) ? answer : toGrpcResponse(head, answer)
    },

    ownRoute(request, response) {
      if (request.headers.expect) sendContinue(response)
      return ownRoutes.answer(request, response.req)
    },

    precheck(request) {
      if (request.method === 'TRACE')
        return toGrpcResponse(
          request,
          errorAnswer(pages, request, 'method_not_allowed', { headers: { allow: ALLOWED } }),
        )
      // A host without an application is for forward-auth.
      return isEmptyHost ? toGrpcResponse(request, errorAnswer(pages, request, 'not_found')) : undefined
    },

    deny: (request, admission) => toGrpcResponse(request, denialAnswer(context, request, admission)),

    forward(request, admission, response) {
      const upstream = proxy.upstreams.for(request.path)
      return upstream ? proxy.forward(upstream, request, admission, response) : home(request, admission, response)
    },

    fail(request, error, response) {
      const hasLeft = response.headersSent || response.destroyed || response.req.socket.destroyed
      if (hasLeft) return clientClosedAnswer(request.observed)
      const answer = failureAnswer(context, request, error)
      // Our own paths include those of forward-auth, where the proxy takes 200 for yes.
      return isOwn(context, request.path) ? answer : toGrpcResponse(request, answer)
    },

    send(observed, answer, response) {
      if (lifecycle.closing) response.shouldKeepAlive = false
      if (response instanceof PreparedResponse && canBePrepared(response, answer)) return sendPrepared(response, answer)
      return sendToResponse(observed, answer, response)
    },

    end(observed, response) {
      if (isFinished(response)) observe.ended(observed, response.statusCode, sentBy(response))
      else watchToEnd(context, observed, response)
    },
  }

  return (incoming, response) => {
    try {
      store.beginTurn?.()
      void orElse(handleRequest(context, entrance, incoming, response), () => void response.destroy())
    } catch (error) {
      // An error that is thrown from here ends the process.
      observe.report('request_failed', { ...errorFields(error), method: incoming.method ?? '', path: '' })
      response.destroy()
    }
  }
}

/** Whether this unreadable path may be a proxy's check: Envoy puts our prefix in front of what its client has sent. */
function looksLikeAuthCheck({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return url.includes('_menshen')
}

/** True for nearly every answer to a check. If the client expects 100, Node decides whether the connection stays open. */
function canBePrepared({ req }: ServerResponse, answer: OwnAnswer): answer is StatusAnswer {
  return 'status' in answer && answer.status === 200 && req.headers.expect === undefined
}

function sendToResponse(
  { requestId }: ObservedRequest,
  answer: OwnAnswer,
  response: ServerResponse,
): MaybePromise<void> {
  if ('response' in answer) return send(response, answer.response, requestId, answer.sharedBody)
  if (answer.status === CLIENT_CLOSED_REQUEST) return void response.destroy()
  response.writeHead(answer.status, answer.common.listFor(answer))
  response.end()
}

/** Whether it is already answered, with nothing left that the client could be slow to read or to send. */
function isFinished(response: ServerResponse): boolean {
  return isFullySent(response) && (response instanceof Http2Response || !hasBody(response.req))
}

function watchToEnd({ proxy, observe }: GatewayContext, observed: ObservedRequest, response: ServerResponse): void {
  const sent = sentBy(response)
  // While an application answers, forward.ts does this if it takes longer than a moment.
  if (observed.upstream === undefined) proxy.slowClients.watch(observed, response)
  whenClosed(response, () => {
    const status = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST
    // forward.ts reports this for answers of applications.
    if (response instanceof Http2Response && response.isRefused && observed.upstream === undefined)
      observe.report('client_cut_off', { ...observedFields(observed), reason: 'too_much_unread' })
    observe.ended(observed, status, sent)
  })
}

const FAILURE_PAGES = { timeout: 'gateway_timeout', unreachable: 'bad_gateway', no_token: 'no_token' } as const

/** The page in place of an application that failed. */
export function createFailureAnswer(pages: Pages): ForwardOptions['answerFailure'] {
  const sender = {
    send(observed: ObservedRequest, answer: OwnAnswer, response: ServerResponse): void {
      // Nothing can be added to an answer that broke off.
      if (response.destroyed) return
      void orElse(sendToResponse(observed, answer, response), () => void response.destroy())
    },
  }
  return (failure, request, { loaded }, response) => {
    const outcome = 'error'
    const answer =
      failure === 'busy'
        ? busyAnswer(pages, request, { outcome })
        : errorAnswer(pages, request, FAILURE_PAGES[failure], {
            isUser: loaded !== undefined,
            outcome,
          })
    reply(sender, request.observed, toGrpcResponse(request, answer), response)
  }
}
