// Forwards an admitted request to the application behind it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Admission, identified } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { andThen, type MaybePromise } from '../http/maybe-promise.ts'
import { busyAnswer, errorAnswer } from '../http/page-answers.ts'
import { mayBePartOfPage, type Visit } from '../http/request.ts'
import { sayContinue, send } from '../http/send.ts'
import { whoAsks } from '../http/who-asks.ts'
import { ownerOf } from './capacity/owner.ts'
import { relay, TurnedAway } from './exchange.ts'
import { watchCaller } from './open-streams.ts'
import { responseHeaders } from './response-headers.ts'
import type { Upstream } from './upstreams.ts'

/** A promise only of the request's own beginning: the answer comes when it comes. */
export function forward(
  context: GatewayContext,
  upstream: Upstream,
  visit: Visit,
  admission: Admission,
  request: IncomingMessage,
  response: ServerResponse,
): MaybePromise<void> {
  visit.observed.upstream = upstream.destination.origin
  const headers = context.requestHeaders(upstream, request, visit, admission)
  return andThen(headers, headers => begin(context, upstream, visit, admission, headers, response))
}

function begin(
  context: GatewayContext,
  upstream: Upstream,
  visit: Visit,
  admission: Admission,
  headers: string[],
  response: ServerResponse,
): void {
  const { req: request } = response
  const { cookies } = admission
  const { 'content-length': length, 'transfer-encoding': coding, expect } = visit.headers
  const hasBody = length !== undefined || coding !== undefined
  const body = hasBody ? request.iterator({ destroyOnReturn: false }) : null
  const { observed } = visit
  let isAnswered = false
  let forget: (() => void) | undefined
  relay({
    upstream,
    // Asked for only by what lasts.
    get owner() {
      return ownerOf(context, visit, admission.loaded)
    },
    method: visit.method,
    path: visit.path + visit.search,
    headers,
    request,
    body,
    response,
    onStart() {
      observed.askedAt = performance.now()
      observed.trace?.asked(headers)
      if (expect && request.httpVersion !== '1.0') sayContinue(response)
    },
    onAnswer(status, isEndless) {
      isAnswered = true
      if (isEndless) observed.isStream = true
      context.observation.answered(observed, status)
    },
    onLasting() {
      forget = watchCaller(context, visit, admission, () => response.destroy())
    },
    answerHeaders(received) {
      if (context.lifecycle.closing) response.shouldKeepAlive = false
      const cookiesCanWait = mayBePartOfPage(visit)
      return responseHeaders(context, received, {
        requestId: observed.requestId,
        signedIn: identified(admission) !== undefined,
        cookies,
        cookiesCanWait,
      })
    },
    onDone(error) {
      forget?.()
      if (body) throwRestAway(request, body)
      if (error && !isAnswered) context.observation.answered(observed, 0)
      if (error) answerError(context, visit, admission, response, error)
    },
  })
}

/** An application that answered early has left the rest: while it can still ask for it, nothing is thrown away. */
function throwRestAway(request: IncomingMessage, body: AsyncIterator<Buffer>): void {
  body.return?.().then(
    () => request.resume(),
    () => {},
  )
}

const TOO_SLOW = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

function answerError(
  context: GatewayContext,
  visit: Visit,
  admission: Admission,
  response: ServerResponse,
  error: Error,
): void {
  const { method, path } = visit
  const reason = codeOf(error)
  const isBusy = error instanceof TurnedAway
  const facts = { ...whoAsks(context, visit, identified(admission)), reason, method, path }
  context.report(isBusy ? 'upstream_busy' : 'upstream_failed', facts)
  visit.observed.outcome = 'error'
  // Nothing can be added to an answer that broke off.
  if (response.destroyed) return
  const answer = isBusy
    ? busyAnswer(context, visit)
    : errorAnswer(context, visit, TOO_SLOW.has(reason) ? 'gateway_timeout' : 'bad_gateway', {
        isUser: admission.loaded !== undefined,
      })
  send(response, answer, visit.observed.requestId).catch(() => response.destroy())
}

function codeOf(error: Error & { code?: unknown }): string {
  return String(error.code ?? error)
}
