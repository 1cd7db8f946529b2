// Forwards an admitted request to the application behind it.
//
// Each request is one `Exchange`, which goes through these states. From each of the first four it goes straight to `over` if the
// application fails, there is no room, or the client leaves.
//
//   queued ──▶ asked ──▶ answered ──▶ sending ──▶ over ──▶ left
//
// | state    | begins with                                             | connection to the application            |
// |----------|---------------------------------------------------------|------------------------------------------|
// | queued   | the request                                             | none                                     |
// | asked    | a slot; the request may be sent again while it is asked | taken                                    |
// | answered | the head of the answer                                  | in use                                   |
// | sending  | the first part of a body that came in several           | in use                                   |
// | over     | all that the client gets                                | an aborted exchange uses it for a moment |
// | left     | the end of the exchange with the application            | given back, and the slot with it         |

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Report } from '../events.ts'
import { callerOf, type Identification, ownerOf, type ProxyRequest, type UpstreamFailure } from '../http/caller.ts'
import { type ObservedRequest, requestFields } from '../observe/observed-request.ts'
import { Http2Request, Http2Response } from '../server/http2-messages.ts'
import { hasTakenAll, type SlowClients } from '../server/slow-clients.ts'
import type { AnswerSender } from '../server/unread-answers.ts'
import { mayBePartOfPage } from '../util/fetch-metadata.ts'
import { GRPC_STATUS, isGrpc } from '../util/grpc.ts'
import type { HeaderList } from '../util/header-list.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { SlotHolder } from './capacity.ts'
import { ProtocolChange, type UpstreamConnection } from './connections.ts'
import { endGrpc } from './grpc-end.ts'
import type { RequestHeaders, RequestTrailers } from './request-headers.ts'
import { keptTrailers, type ResponseHeaders } from './response-headers.ts'
import { headersForDocument, headersOfLonger, sessionScriptFor, takesSessionScript } from './session-script.ts'
import { pathForUpstream } from './stripped-prefix.ts'
import { withChanges } from './upstream-headers.ts'
import type { ExchangedTokenFor, Upstream } from './upstreams.ts'

/** Sends a request to an application. A promise only until the request has left: the answer comes when it comes. */
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
  /** The head of the application's answer is here; with 0 there is none. */
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
      relay(new ForwardedRequest(options, upstream, request, identification, headers, response)),
    )
  }
  return (upstream, request, identification, response) => {
    if (upstream.exchange === undefined) return forward(upstream, request, identification, response)
    return andThen(options.exchangedToken(upstream, upstream.exchange, request, identification), exchanged =>
      exchanged === 'failed'
        ? options.answerFailure('no_token', request, identification, response)
        : forward(upstream, request, identification, response, exchanged.token),
    )
  }
}

/** The methods whose body servers read. With any other many do not, and leave the body on the connection. */
const EXPECTS_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * One request while the application answers it. A class, because this is made for every request: a literal would create a
 * function for each method, and one with a getter also a hidden class that keeps the whole request in memory until the next
 * full collection.
 */
class ForwardedRequest implements ExchangeOptions, AnswerSender {
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
  /** The client waits until it is asked for its body, and was not asked yet. */
  #awaitsContinue: boolean
  /** Ends the watch over a request that lasts. */
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
    this.isGrpc = isGrpc(request.headers)
    // The application may have stopped reading the body when it breaks off. Streams of HTTP/2 have such a listener.
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

  /** Made when it is asked for: an exchange by HTTP/2 reads the stream itself. */
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

  /** A client that was not asked for its body may send it or leave it out: where the next request begins is unknown. */
  #closeWithoutBody(): void {
    if (this.#awaitsContinue) this.response.shouldKeepAlive = false
  }

  onDone(error?: Error): void {
    this.#forget?.()
    this.#closeWithoutBody()
    if (this.hasBody) discardRest(this.incoming, this.#body)
    if (error) this.#fail(error)
    if (!hasTakenAll(this.response) || !this.incoming.complete) this.#watchClient()
  }

  /** Most clients have taken all of their answer after a moment: to watch each costs 2 % where each opens a new connection. */
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
    const failure = isBusy ? 'busy' : TOO_SLOW.has(reason) ? 'timeout' : 'unreachable'
    answerFailure(failure, this.#request, this.#identification, this.response)
  }
}

/**
 * Asks for the body. Not while an earlier answer of the same connection is still on its way: Node would put the words
 * between the head and the body of that answer.
 */
export function sendContinue(response: ServerResponse): void {
  if (response.socket) response.writeContinue()
}

/** An application that answered early has left the rest of the body. Nothing is discarded while it can still read it. */
function discardRest(incoming: IncomingMessage, body: AsyncIterator<Buffer> | null): void {
  if (!body?.return) return void incoming.resume()
  body.return().then(
    () => incoming.resume(),
    () => {},
  )
}

/** The event for an application without an answer that can be used; `reason` is undici's code, or Node's. */
export function failureEvent(reason: unknown): 'upstream_head_too_large' | 'upstream_failed' {
  const isTooLarge = reason === 'UND_ERR_HEADERS_OVERFLOW' || reason === 'HPE_HEADER_OVERFLOW'
  return isTooLarge ? 'upstream_head_too_large' : 'upstream_failed'
}

const TOO_SLOW = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'])

function codeOf(error: Error & { code?: unknown }): string {
  return String(error.code ?? error)
}

// One request to an application and its answer, streamed both ways at the speed of the slower side.

export interface ExchangeOptions {
  readonly upstream: Upstream
  /** Whose share of the capacity it uses. */
  readonly owner: string
  readonly method: string
  readonly path: string
  readonly headers: string[]
  readonly incoming: IncomingMessage
  readonly hasBody: boolean
  /** For HTTP/1.1. */
  readonly body: AsyncIterable<Buffer> | null
  /** An application may leave this body unread, and take it for the next request on the connection. */
  readonly isBodyUnusual: boolean
  /** The client waits until it is asked for the body. */
  readonly expectsContinue: boolean
  /** A document gets session.js. */
  readonly takesScript: boolean
  /** A call may be silent for as long as it is open. */
  readonly isGrpc: boolean
  readonly response: ServerResponse
  /** The application is about to be asked. */
  onStart(): void
  /** Those of the request that the application gets, when the body has ended. Only HTTP/2 sends them. */
  trailers(): Record<string, string[]>
  /** The client may send its body now. */
  onContinue(): void
  /** The head of its answer is here; the status is 0 if there will be none. */
  onAnswer(status: number, isEndless: boolean): void
  /** It will not end on its own. */
  onEndless(): void
  /** It has been open for more than a moment, in which its caller may sign out. Called several times. */
  onLasting(): void
  /** The headers for the browser. */
  answerHeaders(headers: IncomingHttpHeaders): HeaderList
  /** Called once. With an error the answer is missing or incomplete; without one it is complete, or the client has left. */
  onDone(error?: Error): void
}

/** There was no room for an exchange; `code` says where. */
export class UpstreamBusy extends Error {
  readonly code: Parameters<SlotHolder['reject']>[0]

  constructor(code: UpstreamBusy['code']) {
    super('no room')
    this.code = code
  }
}

const STALE = new Set<unknown>(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR'])

export function relay(options: ExchangeOptions): void {
  const { response, upstream } = options
  const exchange = new Exchange(options)
  response.on('close', () => exchange.clientHasLeft())
  // The client may have left while its session was loaded.
  if (response.destroyed) exchange.clientHasLeft()
  else upstream.capacity.enter(exchange)
}

/** One object for each request, which is also undici's handler. */
class Exchange implements SlotHolder, Dispatcher.DispatchHandler {
  index = 0
  stage: SlotHolder['stage'] = 'outside'
  isEndless = false
  readonly #options: ExchangeOptions
  /** See the table at the top. */
  #state: 'queued' | 'asked' | 'answered' | 'sending' | 'over' | 'left' = 'queued'
  #connection: UpstreamConnection | undefined
  #controller: Dispatcher.DispatchController | undefined
  #owner: string | undefined
  /** It is sent again at most once for each of two reasons. */
  #mayRepeat = true
  #maySwitch = true
  /** How many checks in a row found it waiting for its client, or for more of an answer that has begun. */
  #slowChecks = 0
  /** The rest of the body whose last part ends the answer; not a number if its length is unknown or trailers may follow. */
  #bodyLeft = Number.NaN
  #suffix: Buffer | undefined

  constructor(options: ExchangeOptions) {
    this.#options = options
  }

  get #isOver(): boolean {
    return this.#state === 'over' || this.#state === 'left'
  }

  start(): void {
    this.#state = 'asked'
    this.#connection = this.#take()
    this.#options.onStart()
    this.#dispatch(this.#connection)
  }

  #take(): UpstreamConnection {
    const { upstream, expectsContinue } = this.#options
    const { connections } = upstream
    return expectsContinue ? connections.takeExpecting(() => this.#options.onContinue()) : connections.take()
  }

  #dispatch(connection: UpstreamConnection): void {
    if (connection.isHttp2) return void this.#dispatchByHttp2(connection)
    const { method, path, headers, body, upstream, isBodyUnusual } = this.#options
    const request = { method, path, headers, body, servername: upstream.servername, reset: isBodyUnusual }
    connection.dispatch(request as Dispatcher.DispatchOptions, this)
  }

  #dispatchByHttp2(connection: UpstreamConnection): void {
    const { method, path, headers, hasBody, isGrpc, incoming } = this.#options
    const source = hasBody ? sourceOf(incoming) : null
    const exchange = { method, path, headers, source, isGrpc, owner: () => this.owner }
    const request = isGrpc ? exchange : { ...exchange, trailers: () => this.#options.trailers() }
    connection.dispatch(request as unknown as Dispatcher.DispatchOptions, this)
  }

  reject(reason: UpstreamBusy['code']): void {
    this.#fail(new UpstreamBusy(reason))
  }

  cutOff(): void {
    this.#breakOff('the server shuts down')
  }

  #breakOff(message: string): void {
    const { response, isGrpc } = this.#options
    if (isGrpc) endGrpc(response, GRPC_STATUS.unavailable, message)
    else response.destroy()
  }

  get owner(): string {
    this.#owner ??= this.#options.owner
    return this.#owner
  }

  waitsForClient(): boolean {
    const { incoming, response } = this.#options
    return response.headersSent ? response.writableNeedDrain : !incoming.complete && incoming.readableLength === 0
  }

  isSlow(): boolean {
    if (!this.#isOver) this.#options.onLasting()
    const { incoming, response, isGrpc } = this.#options
    const waitsForBody = !incoming.complete && incoming.readableLength === 0
    this.#slowChecks = response.headersSent || waitsForBody || isGrpc ? this.#slowChecks + 1 : 0
    if (isGrpc && this.#slowChecks > 1 && (response.headersSent || !incoming.complete)) {
      this.isEndless = true
      this.#options.onEndless()
    }
    return this.#slowChecks > 1
  }

  /** A client that has left ends the request to the application too, or leaves the queue. */
  clientHasLeft(): void {
    if (this.#state === 'queued') this.#finish()
    else if (!this.#isOver) this.#controller?.abort(new Error('the browser has gone'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isOver || this.#options.response.destroyed) controller.abort(new Error('the browser has gone'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    received: IncomingHttpHeaders,
    statusMessage?: string,
  ): void {
    const { response, upstream, takesScript } = this.#options
    if (status < 200) {
      inform(response, status, received)
      return
    }
    this.#state = 'answered'
    this.isEndless = isEventStream(received)
    this.#options.onAnswer(status, this.isEndless)
    if (this.isEndless && !this.#becomeStream()) return
    // Both sides speak HTTP/2, which has trailers after a body of a known length, too.
    const takesTrailers = this.#connection?.isHttp2 === true && response instanceof Http2Response
    if (takesTrailers) response.takesTrailers = true
    else this.#bodyLeft = Number(received['content-length'])
    const given = withChanges(upstream.responseChanges, received)
    const canFollow = takesTrailers || hasTrailers(response, status, received)
    const headers = canFollow ? given : { ...given, trailer: undefined }
    if (takesScript) this.#suffix = sessionScriptFor(status, given)
    const sent = this.#suffix ? headersOfLonger(headers, this.#suffix.length) : headers
    response.writeHead(status, plainReason(statusMessage), this.#options.answerHeaders(sent))
    // The reader of an event stream waits for the head, even if there is no event yet. A page has arrived by then.
    process.nextTick(flush, response)
  }

  /** False if there is no room for it. */
  #becomeStream(): boolean {
    this.#options.onLasting()
    this.#options.upstream.capacity.becomeStream(this)
    return !this.#isOver
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#options
    if (this.#isOver) return
    this.#bodyLeft -= chunk.length
    if (this.#bodyLeft === 0) {
      // Together with the end; a page that came in one chunk goes together with its head, too.
      const last = this.#suffix ? Buffer.concat([chunk, this.#suffix]) : chunk
      response.end(last)
      return
    }
    this.#state = 'sending'
    if (!response.write(chunk)) {
      controller.pause()
      response.once('drain', () => controller.resume())
    }
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    const { response } = this.#options
    if (!this.#isOver && !response.writableEnded) {
      response.addTrailers(keptTrailers(trailers))
      response.end(this.#suffix)
    }
    this.#finish()
    this.#leave()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#maySendAgain(error)) process.nextTick(() => this.#sendAgain(error))
    else {
      this.#fail(error)
      this.#leave()
    }
  }

  #maySendAgain(error: Error & { code?: unknown }): boolean {
    const { method, hasBody, response } = this.#options
    if (this.#isOver || response.destroyed) return false
    // Nothing was sent: the application is asked by the other protocol.
    if (error instanceof ProtocolChange) return this.#maySwitch
    // The application may have closed an idle connection just now: a request that changes nothing is sent again.
    const isHarmless = (method === 'GET' || method === 'HEAD') && !hasBody
    return this.#mayRepeat && isHarmless && STALE.has(error.code) && !response.headersSent
  }

  #sendAgain(error: Error): void {
    if (this.#isOver) return void this.#leave()
    if (error instanceof ProtocolChange) {
      this.#maySwitch = false
      if (this.#connection) this.#options.upstream.connections.giveBack(this.#connection)
      this.#connection = this.#take()
    } else this.#mayRepeat = false
    if (this.#connection) this.#dispatch(this.#connection)
  }

  #fail(error: Error): void {
    if (this.#isOver) return
    const { response } = this.#options
    const hasLeft = response.destroyed
    if (response.headersSent) this.#breakOff(error.message)
    this.#finish(hasLeft ? undefined : error)
    this.#controller?.abort(error)
  }

  #finish(error?: Error): void {
    if (this.#isOver) return
    const before = this.#state
    this.#state = 'over'
    if (error && (before === 'queued' || before === 'asked')) this.#options.onAnswer(0, false)
    this.#options.onDone(error)
    if (before === 'queued') this.#leave()
  }

  /** Only when the connection is free: an aborted exchange may still use it for a moment. */
  #leave(): void {
    const { capacity, connections } = this.#options.upstream
    this.#state = 'left'
    if (this.#connection) connections.giveBack(this.#connection)
    this.#connection = undefined
    capacity.leave(this)
  }
}

/** The body as a stream, for HTTP/2. */
function sourceOf(incoming: IncomingMessage | Http2Request): Readable {
  return incoming instanceof Http2Request ? incoming.stream : incoming
}

function isEventStream({ 'content-type': type }: IncomingHttpHeaders): boolean {
  return type !== undefined && /^text\/event-stream\b/i.test(type)
}

function flush(response: ServerResponse): void {
  // Not with flushHeaders: that writes UTF-8, and bytes above 0x7f in the head would be encoded twice.
  if (!response.writableEnded && !response.destroyed) response.write('', 'latin1')
}

/** Passes on interim answers except `100`. Browsers use only the links of `103`. */
function inform(response: ServerResponse, status: number, { link }: IncomingHttpHeaders): void {
  // While an earlier answer of the same connection is still on its way, Node would write it between that answer's head and body.
  if (response.req.httpVersion === '1.0' || !response.socket || response.headersSent) return
  // The oldest supported Node does not have it: there the hints of an application get lost.
  response.writeInformation?.(status, link ? { link } : {})
}

/** Node refuses to announce trailers where none can follow: without a body, or after one of a known length. */
function hasTrailers({ req }: ServerResponse, status: number, received: IncomingHttpHeaders): boolean {
  if (received.trailer === undefined) return true
  const hasBody = req.method !== 'HEAD' && status !== 204 && status !== 304
  return hasBody && received['content-length'] === undefined && req.httpVersion !== '1.0'
}

/** Some applications use an encoding that Node refuses to send. Clients need not read the reason phrase. */
function plainReason(reason = ''): string {
  return /^[\x20-\x7e]*$/.test(reason) ? reason : ''
}
