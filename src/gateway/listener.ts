// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { errorFields } from '../errors.ts'
import { CLIENT_LEFT, type ObservedRequest } from '../observe/observed-request.ts'

import { isOwnPath } from '../paths.ts'
import { forward } from '../proxy/forward.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { type Admission, admit, denialResponse } from './admission.ts'
import type { GatewayContext } from './context.ts'
import { beginRequest, bringsBody, type GatewayRequest, readGatewayRequest, wasReset } from './request.ts'
import { errorAnswer, failureAnswer, type OwnAnswer, sayContinue, send, unreadableAnswer } from './respond.ts'
import { createHome } from './routes/home.ts'
import type { OwnRoutes } from './routes.ts'

/** Whatever an application may answer to. TRACE would show a script the cookies that it must not see. */
export const ALLOWED = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

export function createListener(context: GatewayContext, ownRoutes: OwnRoutes): RequestListener {
  const home = createHome(context)
  const { callbackPaths } = context.providers

  function answer(request: GatewayRequest, incoming: IncomingMessage, response: ServerResponse): MaybePromise<void> {
    if (isOwnPath(request.path, callbackPaths)) return answerOwn(request, incoming, response)
    if (request.method === 'TRACE')
      return reply(
        request,
        response,
        errorAnswer(context, request, 'method_not_allowed', { headers: { allow: ALLOWED } }),
      )
    return andThen(admit(context, request), admission => answerVisit(request, admission, incoming, response))
  }

  function answerOwn(request: GatewayRequest, incoming: IncomingMessage, response: ServerResponse): MaybePromise<void> {
    if (request.headers.expect) sayContinue(response)
    const answer = ownRoutes.answer(request, incoming)
    return answer instanceof Promise
      ? answer.then(answer => sendOwn(request, response, answer))
      : sendOwn(request, response, answer)
  }

  function sendOwn(request: GatewayRequest, response: ServerResponse, answer: OwnAnswer): MaybePromise<void> {
    if (context.lifecycle.closing) response.shouldKeepAlive = false
    if ('body' in answer) return reply(request, response, answer)
    response.writeHead(answer.status, answer.headers)
    response.end()
  }

  function answerVisit(
    request: GatewayRequest,
    admission: Admission,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): MaybePromise<void> {
    const answer = denialResponse(context, request, admission)
    if (answer) return reply(request, response, answer)
    const upstream = context.upstreams.for(request.path)
    return upstream
      ? forward(context, upstream, request, admission, incoming, response)
      : home(request, admission, response)
  }

  function answerWhole(request: GatewayRequest, incoming: IncomingMessage, response: ServerResponse): void {
    try {
      const answered = answer(request, incoming, response)
      if (answered instanceof Promise) answered.catch(error => answerFailure(context, request, response, error))
    } catch (error) {
      answerFailure(context, request, response, error)
    }
  }

  function handle(incoming: IncomingMessage, response: ServerResponse): void {
    context.store.beginTurn?.()
    const observed = beginRequest(context, incoming)
    if (wasReset(incoming.socket)) {
      drop(context, observed, response)
      return
    }
    if (context.lifecycle.closing) response.shouldKeepAlive = false
    const request = readGatewayRequest(incoming, observed)
    context.observation.begun?.(observed, incoming.headers)
    if (request) answerWhole(request, incoming, response)
    else refuseUnreadable(context, observed, response)
    if (isOver(response)) context.observation.ended(observed, response.statusCode, incoming.socket)
    else seeToEnd(context, observed, response)
  }

  return (incoming, response) => {
    try {
      handle(incoming, response)
    } catch (error) {
      // What is thrown from here ends the process.
      context.report('request_failed', { ...errorFields(error), method: incoming.method ?? '', path: '' })
      response.destroy()
    }
  }
}

/** Nobody is there any more: nothing is asked of the provider, the store or the application. */
function drop(context: GatewayContext, observed: ObservedRequest, response: ServerResponse): void {
  observed.outcome = 'refused'
  context.observation.ended(observed, CLIENT_LEFT)
  response.req.socket.destroy()
}

/** Answered at once, and there is nothing of it left that the client could be slow to take or to send. */
function isOver(response: ServerResponse): boolean {
  return response.writableEnded && response.socket?.writableLength === 0 && !bringsBody(response.req)
}

function seeToEnd(context: GatewayContext, observed: ObservedRequest, response: ServerResponse): void {
  const { socket } = response.req
  context.slowClients.watch(observed, response)
  response.on('close', () => {
    const status = response.headersSent ? response.statusCode : CLIENT_LEFT
    context.observation.ended(observed, status, socket)
  })
}

function answerFailure(
  context: GatewayContext,
  request: GatewayRequest,
  response: ServerResponse,
  error: unknown,
): void {
  // Nobody is left to be told, and nothing of ours failed, if the connection is gone.
  if (response.headersSent || response.destroyed || response.req.socket.destroyed) response.destroy()
  else reply(request, response, failureAnswer(context, request, error)).catch(() => response.destroy())
}

function refuseUnreadable(context: GatewayContext, observed: ObservedRequest, response: ServerResponse): void {
  observed.outcome = 'refused'
  const { requestId } = observed
  send(response, unreadableAnswer(context, response.req, requestId), requestId).catch(() => response.destroy())
}

function reply({ observed }: GatewayRequest, response: ServerResponse, answer: Response): Promise<void> {
  return send(response, answer, observed.requestId)
}
