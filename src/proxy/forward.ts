// Forwards an admitted request to the application behind it.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Report } from '../events.ts'
import { callerOf, type Identification, ownerOf, type ProxyRequest, type UpstreamFailure } from '../http/caller.ts'
import { type ObservedRequest, requestFields } from '../observe/observed-request.ts'
import { Http2Request, Http2Response } from '../server/http2-messages.ts'
import { isFullySent, type SlowClients } from '../server/slow-clients.ts'
import type { AnswerSender } from '../server/unread-answers.ts'
import { mayBePartOfPage } from '../util/fetch-metadata.ts'
import { GRPC_STATUS, isGrpcCall } from '../util/grpc.ts'
import type { HeaderList } from '../util/header-list.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { endGrpc } from './grpc-end.ts'
import { type RelayOptions, startRelay, UpstreamBusy } from './relay.ts'
import type { RequestHeaders, RequestTrailers } from './request-headers.ts'
import type { ResponseHeaders } from './response-headers.ts'
import { headersForDocument, takesSessionScript } from './session-script.ts'
import { pathForUpstream } from './stripped-prefix.ts'
import type { ExchangedTokenFor, Upstream } from './upstreams.ts'

/** Sends a request to an application. A promise only if sending has to wait; it does not wait for the answer. */
export type Forward = (
  upstream: Upstream,
  request: ProxyRequest,
  identification: Identification,
  response: ServerResponse,
) => MaybePromise<void>

export interface ForwardOptions {
  readonly requestHeaders: RequestHeaders
  readonly requestTrailers: RequestTrailers
  readonly exchangedToken: ExchangedTokenFor
  readonly responseHeaders: ResponseHeaders
  watch(request: ProxyRequest, identification: Identification, close: () => void): () => void
  readonly slowClients: Pick<SlowClients, 'watch'>
  /** Once the process is about to end, every answer closes its connection. */
  readonly lifecycle: { readonly closing: boolean }
  readonly report: Report
  /** The head of the application's answer has arrived; with 0 there is none. */
  answered(observed: ObservedRequest, status: number): void
  /** Answers in place of an application that failed. The response is destroyed if a part of the answer was sent. */
  answerFailure(
    failure: UpstreamFailure,
    request: ProxyRequest,
    identification: Identification,
    response: ServerResponse,
  ): void
}

export function createForward(options: ForwardOptions): Forward {
  const forward = (
    upstream: Upstream,
    request: ProxyRequest,
    identification: Identification,
    response: ServerResponse,
    exchanged?: string,
  ) => {
    const headers = options.requestHeaders(upstream, response.req, request, identification, exchanged)
    return andThen(headers, headers =>
      startRelay(new ForwardedRequest(options, upstream, request, identification, headers, response)),
    )
  }
  return (upstream, request, identification, response) => {
    if (upstream.tokenExchange === undefined) return forward(upstream, request, identification, response)
    return andThen(options.exchangedToken(upstream, upstream.tokenExchange, request, identification), exchanged =>
      exchanged === 'failed'
        ? options.answerFailure('no_token', request, identification, response)
        : forward(upstream, request, identification, response, exchanged.token),
    )
  }
}

/** The methods whose bodies servers read. With any other method many servers leave the body on the connection. */
const EXPECTS_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * One request while the application answers it. A class, because this is made for every request: a literal would create a
 * function for each method, and one with a getter also a hidden class that keeps the whole request in memory until the next
 * full collection.
 */
class ForwardedRequest implements RelayOptions, AnswerSender {
  readonly upstream: Upstream
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly incoming: IncomingMessage
  readonly hasBody: boolean
  readonly isBodyUnusual: boolean
  readonly expectsContinue: boolean
  readonly takesScript: boolean
  readonly isGrpc: boolean
  readonly response: ServerResponse
  readonly #options: ForwardOptions
  readonly #request: ProxyRequest
  readonly #identification: Identification
  #body: AsyncIterableIterator<Buffer> | null = null
  /** The client waits until it is asked for its body, and has not been asked yet. */
  #awaitsContinue: boolean
  /** Ends the watch over a long request. */
  #forget: (() => void) | undefined

  constructor(
    options: ForwardOptions,
    upstream: Upstream,
    request: ProxyRequest,
    identification: Identification,
    headers: string[],
    response: ServerResponse,
  ) {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers
    const hasBody = length !== undefined || coding !== undefined
    this.upstream = upstream
    this.method = request.method
    this.path = pathForUpstream(upstream, request.path) + request.search
    this.takesScript = takesSessionScript(upstream, request, identification)
    this.headers = this.takesScript ? headersForDocument(headers) : headers
    this.incoming = response.req
    this.hasBody = hasBody
    this.isBodyUnusual = hasBody && length !== '0' && !EXPECTS_BODY.has(request.method)
    this.expectsContinue =
      hasBody && length !== '0' && request.headers.expect !== undefined && response.req.httpVersion !== '1.0'
    this.#awaitsContinue = this.expectsContinue
    this.isGrpc = isGrpcCall(request)
    // The body may break off after the application has stopped reading it. Streams of HTTP/2 have such a listener.
    if (hasBody && !(response.req instanceof Http2Request)) response.req.on('error', () => {})
    this.response = response
    this.#options = options
    this.#request = request
    this.#identification = identification
    request.observed.upstream = upstream.destination.origin
    if (response instanceof Http2Response) response.sender = this
    if (hasBody) this.#watchClient()
  }

  /** Needed only for long requests, and while slots are short. */
  get owner(): string {
    return ownerOf(this.#request, this.#identification)
  }

  onUnread(): void {
    const fields = requestFields(this.#request, callerOf(this.#identification))
    this.#options.report('client_cut_off', { ...fields, reason: 'too_much_unread' })
  }

  /** Created on demand, because HTTP/2 reads the stream itself. */
  get body(): AsyncIterableIterator<Buffer> | null {
    if (this.hasBody) this.#body ??= this.incoming.iterator({ destroyOnReturn: false })
    return this.#body
  }

  onStart(): void {
    const { observed } = this.#request
    observed.askedAt = performance.now()
    observed.trace?.asked(this.headers)
  }

  trailers(): Record<string, string[]> {
    return this.#options.requestTrailers(this.upstream, this.incoming)
  }

  onContinue(): void {
    this.#awaitsContinue = false
    if (!this.response.headersSent && !this.response.destroyed) sendContinue(this.response)
  }

  onAnswer(status: number, isEndless: boolean): void {
    if (isEndless) this.onEndless()
    this.#options.answered(this.#request.observed, status)
  }

  onEndless(): void {
    this.#request.observed.isStream = true
  }

  onLasting(): void {
    if (this.#forget) return
    this.#watchClient()
    const close = () =>
      this.isGrpc
        ? endGrpc(this.response, GRPC_STATUS.unauthenticated, 'the session or the permission has ended')
        : void this.response.destroy()
    this.#forget = this.#options.watch(this.#request, this.#identification, close)
  }

  answerHeaders(received: IncomingHttpHeaders): HeaderList {
    const { cookies } = this.#identification
    if (this.#options.lifecycle.closing) this.response.shouldKeepAlive = false
    this.#closeWithoutBody()
    return this.#options.responseHeaders(received, {
      upstream: this.upstream,
      path: this.#request.path,
      requestId: this.#request.observed.requestId,
      signedIn: callerOf(this.#identification) !== undefined,
      cookies,
      cookiesCanWait: cookies.length > 0 && mayBePartOfPage(this.#request),
    })
  }

  /** A client that was not asked for its body may send it or leave it out, so it is unknown where the next request begins. */
  #closeWithoutBody(): void {
    if (this.#awaitsContinue) this.response.shouldKeepAlive = false
  }

  onDone(error?: Error): void {
    this.#forget?.()
    this.#closeWithoutBody()
    if (this.hasBody) discardRest(this.incoming, this.#body)
    if (error) this.#fail(error)
    if (!isFullySent(this.response) || !this.incoming.complete) this.#watchClient()
  }

  /** Most clients have read all of their answer after a moment; watching each costs 2 % if each opens a new connection. */
  #watchClient(): void {
    this.#options.slowClients.watch(this.#request.observed, this.response)
  }

  #fail(error: Error): void {
    const { report, answerFailure } = this.#options
    const { method, path, observed } = this.#request
    const reason = codeOf(error)
    const isBusy = error instanceof UpstreamBusy
    report(isBusy ? 'upstream_busy' : failureEvent(reason), {
      ...requestFields(this.#request, callerOf(this.#identification)),
      reason,
      method,
      path,
      upstream: observed.upstream,
    })
    const failure = isBusy ? 'busy' : TIMEOUT_CODES.has(reason) ? 'timeout' : 'unreachable'
    answerFailure(failure, this.#request, this.#identification, this.response)
  }
}

/**
 * Asks for the body. Not while an earlier answer of the same connection is still on its way, because Node would write the interim
 * answer between the head and the body of that answer.
 */
export function sendContinue(response: ServerResponse): void {
  if (response.socket) response.writeContinue()
}

/** Discards the rest of a body after the application has answered early. Nothing is discarded while it can still read the body. */
function discardRest(incoming: IncomingMessage, body: AsyncIterator<Buffer> | null): void {
  if (!body?.return) return void incoming.resume()
  body.return().then(
    () => incoming.resume(),
    () => {},
  )
}

/** The event for an application that gave no usable answer; `reason` is undici's code, or Node's. */
export function failureEvent(reason: unknown): 'upstream_head_too_large' | 'upstream_failed' {
  const isTooLarge = reason === 'UND_ERR_HEADERS_OVERFLOW' || reason === 'HPE_HEADER_OVERFLOW'
  return isTooLarge ? 'upstream_head_too_large' : 'upstream_failed'
}

const TIMEOUT_CODES = new Set([
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ETIMEDOUT',
])

function codeOf(error: Error & { code?: unknown }): string {
  return String(error.code ?? error)
}
