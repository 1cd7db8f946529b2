// Forwards an admitted request to the application behind it.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { type Admission, identified } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { andThen, type MaybePromise } from '../http/maybe-promise.ts'
import { busyAnswer, errorAnswer } from '../http/page-answers.ts'
import { mayBePartOfPage, type Visit } from '../http/request.ts'
import { sayContinue, send } from '../http/send.ts'
import { whoAsks } from '../http/who-asks.ts'
import { ownerOf } from './capacity/owner.ts'
import { type ExchangeOptions, relay, TurnedAway } from './exchange.ts'
import { watchCaller } from './open-streams.ts'
import type { HeaderList } from './response-headers.ts'
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
  return andThen(headers, headers =>
    relay(new ForwardedRequest(context, upstream, visit, admission, headers, response)),
  )
}

/** What servers read a body of. Of any other method many do not, and leave it on the connection. */
const EXPECTS_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * What is ours to do about one request while the application answers it. A class, because this is made for every request:
 * a literal would bring a function for each of these, and one with a getter also a hidden class that keeps the whole request
 * in memory until the next full collection.
 */
class ForwardedRequest implements ExchangeOptions {
  readonly upstream: Upstream
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly request: IncomingMessage
  readonly body: AsyncIterableIterator<Buffer> | null
  readonly isBodyUnusual: boolean
  readonly response: ServerResponse
  readonly #context: GatewayContext
  readonly #visit: Visit
  readonly #admission: Admission
  #isAnswered = false
  #forget: (() => void) | undefined

  constructor(
    context: GatewayContext,
    upstream: Upstream,
    visit: Visit,
    admission: Admission,
    headers: string[],
    response: ServerResponse,
  ) {
    const { 'content-length': length, 'transfer-encoding': coding } = visit.headers
    const hasBody = length !== undefined || coding !== undefined
    this.upstream = upstream
    this.method = visit.method
    this.path = visit.path + visit.search
    this.headers = headers
    this.request = response.req
    this.body = hasBody ? response.req.iterator({ destroyOnReturn: false }) : null
    this.isBodyUnusual = hasBody && length !== '0' && !EXPECTS_BODY.has(visit.method)
    // Whoever reads it may have stopped when it breaks off.
    if (hasBody) response.req.on('error', () => {})
    this.response = response
    this.#context = context
    this.#visit = visit
    this.#admission = admission
  }

  /** Asked for only by what lasts, and while slots are short. */
  get owner(): string {
    return ownerOf(this.#context, this.#visit, this.#admission)
  }

  onStart(): void {
    const { observed, headers } = this.#visit
    observed.askedAt = performance.now()
    observed.trace?.asked(this.headers)
    if (headers.expect && this.request.httpVersion !== '1.0') sayContinue(this.response)
  }

  onAnswer(status: number, isEndless: boolean): void {
    const { observed } = this.#visit
    this.#isAnswered = true
    if (isEndless) observed.isStream = true
    this.#context.observation.answered(observed, status)
  }

  onLasting(): void {
    this.#forget = watchCaller(this.#context, this.#visit, this.#admission, () => this.response.destroy())
  }

  answerHeaders(received: IncomingHttpHeaders): HeaderList {
    const context = this.#context
    const { cookies } = this.#admission
    if (context.lifecycle.closing) this.response.shouldKeepAlive = false
    return context.responseHeaders(received, {
      requestId: this.#visit.observed.requestId,
      signedIn: identified(this.#admission) !== undefined,
      cookies,
      cookiesCanWait: cookies.length > 0 && mayBePartOfPage(this.#visit),
    })
  }

  onDone(error?: Error): void {
    this.#forget?.()
    if (this.body) throwRestAway(this.request, this.body)
    if (!error) return
    if (!this.#isAnswered) this.#context.observation.answered(this.#visit.observed, 0)
    answerError(this.#context, this.#visit, this.#admission, this.response, error)
  }
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
  const { upstream } = visit.observed
  const reason = codeOf(error)
  const isBusy = error instanceof TurnedAway
  const facts = { ...whoAsks(context, visit, identified(admission)), reason, method, path, upstream }
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
