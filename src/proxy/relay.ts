// One request to an application and its answer, streamed both ways at the speed of the slower side.
//
// Each is one `Relay`, which goes through these states. From each of the first four it goes straight to `done` if the application
// fails, there is no room, or the client leaves.
//
//   queued ──▶ asked ──▶ answered ──▶ sending ──▶ done ──▶ released
//
// | state    | begins with                                             | connection to the application         |
// |----------|---------------------------------------------------------|---------------------------------------|
// | queued   | the request                                             | none                                  |
// | asked    | a slot; the request may be sent again while it is asked | taken                                 |
// | answered | the head of the answer                                  | in use                                |
// | sending  | the first part of a body that came in several           | in use                                |
// | done     | all that the client gets                                | an aborted relay uses it for a moment |
// | released | the end of the traffic with the application             | given back, and the slot with it      |

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Http2Request, Http2Response } from '../server/http2-messages.ts'
import { GRPC_STATUS } from '../util/grpc.ts'
import type { HeaderList } from '../util/header-list.ts'
import type { SlotHolder } from './capacity.ts'
import { ProtocolChange, type UpstreamConnection } from './connections.ts'
import { endGrpc } from './grpc-end.ts'
import { keptTrailers } from './response-headers.ts'
import { headersOfLonger, sessionScriptFor } from './session-script.ts'
import { withChanges } from './upstream-headers.ts'
import type { Upstream } from './upstreams.ts'

export interface RelayOptions {
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
  /** An application may leave this body unread, and treat it as the next request on the connection. */
  readonly isBodyUnusual: boolean
  /** The client waits until it is asked for the body. */
  readonly expectsContinue: boolean
  /** If the answer is a document, it gets session.js. */
  readonly takesScript: boolean
  /** A call may be silent for as long as it is open. */
  readonly isGrpc: boolean
  readonly response: ServerResponse
  /** Called before the application is sent the request. */
  onStart(): void
  /** The request trailers that the application gets, after the body. Only HTTP/2 sends them. */
  trailers(): Record<string, string[]>
  /** The client may send its body now. */
  onContinue(): void
  /** The head of its answer has arrived; the status is 0 if there will be none. */
  onAnswer(status: number, isEndless: boolean): void
  /** It will not end on its own. */
  onEndless(): void
  /** It stays open for more than a moment, during which its caller may sign out. Called several times. */
  onLasting(): void
  /** The headers for the browser. */
  answerHeaders(headers: IncomingHttpHeaders): HeaderList
  /** Called once. With an error the answer is missing or incomplete; without one it is complete, or the client has left. */
  onDone(error?: Error): void
}

/** There was no room for a request; `code` says where. */
export class UpstreamBusy extends Error {
  readonly code: Parameters<SlotHolder['reject']>[0]

  constructor(code: UpstreamBusy['code']) {
    super('no room')
    this.code = code
  }
}

/** They are written whether or not the client reads, so an application that never stops sending them would fill the memory. */
const MAX_INTERIM_BYTES = 65_536
const INTERIM_HEAD_BYTES = 64
const STALE_CONNECTION_CODES = new Set<unknown>(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR'])

export function startRelay(options: RelayOptions): void {
  const { response, upstream } = options
  const relay = new Relay(options)
  response.on('close', () => relay.clientHasLeft())
  // The client may have left while its session was loaded.
  if (response.destroyed) relay.clientHasLeft()
  else upstream.capacity.enter(relay)
}

/** One object for each request, which is also undici's handler. */
class Relay implements SlotHolder, Dispatcher.DispatchHandler {
  index = 0
  stage: SlotHolder['stage'] = 'outside'
  isEndless = false
  readonly #options: RelayOptions
  /** See the table at the top. */
  #state: 'queued' | 'asked' | 'answered' | 'sending' | 'done' | 'released' = 'queued'
  #connection: UpstreamConnection | undefined
  #controller: Dispatcher.DispatchController | undefined
  #owner: string | undefined
  /** The request is sent again at most once for each of two reasons. */
  #mayRepeat = true
  #maySwitch = true
  /** How many checks in a row found it waiting for its client, or for more of an answer that has begun. */
  #slowChecks = 0
  /** The bytes that are left of a body whose last part ends the answer; NaN if its length is unknown or trailers may follow. */
  #bodyLeft = Number.NaN
  /** What the client may still get of interim answers. */
  #interimBytesLeft = MAX_INTERIM_BYTES
  #suffix: Buffer | undefined

  constructor(options: RelayOptions) {
    this.#options = options
  }

  get #isDone(): boolean {
    return this.#state === 'done' || this.#state === 'released'
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
    const call = { method, path, headers, source, isGrpc, owner: () => this.owner }
    const request = isGrpc ? call : { ...call, trailers: () => this.#options.trailers() }
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

  checkSlow(): ReturnType<SlotHolder['checkSlow']> {
    if (!this.#isDone) this.#options.onLasting()
    const { incoming, response, isGrpc } = this.#options
    const waitsForBody = !incoming.complete && incoming.readableLength === 0
    const isSlow = response.headersSent || waitsForBody
    // HTTP/1.1 has only gRPC-Web, whose calls keep their slot until their answer begins.
    const isSilentCall = isGrpc && this.#connection?.isHttp2 === true
    this.#slowChecks = isSlow || isSilentCall ? this.#slowChecks + 1 : 0
    if (isGrpc && this.#slowChecks > 1 && (response.headersSent || !incoming.complete)) {
      this.isEndless = true
      this.#options.onEndless()
    }
    if (this.#slowChecks <= 1) return undefined
    return isSlow ? 'client' : 'unanswered_call'
  }

  /** A client that has left ends the request to the application too, or leaves the queue. */
  clientHasLeft(): void {
    if (this.#state === 'queued') this.#finish()
    else if (!this.#isDone) this.#controller?.abort(new Error('the browser has gone'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isDone || this.#options.response.destroyed) controller.abort(new Error('the browser has gone'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    received: IncomingHttpHeaders,
    statusMessage?: string,
  ): void {
    const { response, upstream, takesScript } = this.#options
    if (status < 200) {
      this.#interimBytesLeft -= INTERIM_HEAD_BYTES + String(received.link ?? '').length
      if (this.#interimBytesLeft > 0) inform(response, status, received)
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

  /** False if there is no room for it, or the server shuts down. */
  #becomeStream(): boolean {
    const { response, upstream } = this.#options
    this.#options.onLasting()
    upstream.capacity.becomeStream(this)
    return !this.#isDone && !response.destroyed && !response.headersSent
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#options
    if (this.#isDone) return
    this.#bodyLeft -= chunk.length
    if (this.#bodyLeft === 0) {
      // Together with the end; a page that came in one chunk is sent together with its head, too.
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
    if (!this.#isDone && !response.writableEnded) {
      response.addTrailers(keptTrailers(trailers))
      response.end(this.#suffix)
    }
    this.#finish()
    this.#release()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#maySendAgain(error)) process.nextTick(() => this.#sendAgain(error))
    else {
      this.#fail(error)
      this.#release()
    }
  }

  #maySendAgain(error: Error & { code?: unknown }): boolean {
    const { method, hasBody, response } = this.#options
    if (this.#isDone || response.destroyed) return false
    // Nothing was sent: the request is repeated with the other protocol.
    if (error instanceof ProtocolChange) return this.#maySwitch
    // The application may have closed an idle connection just now: a request that changes nothing is sent again.
    const isHarmless = (method === 'GET' || method === 'HEAD') && !hasBody
    return this.#mayRepeat && isHarmless && STALE_CONNECTION_CODES.has(error.code) && !response.headersSent
  }

  #sendAgain(error: Error): void {
    if (this.#isDone) return void this.#release()
    if (error instanceof ProtocolChange) {
      this.#maySwitch = false
      if (this.#connection) this.#options.upstream.connections.release(this.#connection)
      this.#connection = this.#take()
    } else this.#mayRepeat = false
    if (this.#connection) this.#dispatch(this.#connection)
  }

  #fail(error: Error): void {
    if (this.#isDone) return
    const { response } = this.#options
    const hasLeft = response.destroyed
    if (response.headersSent) this.#breakOff(error.message)
    this.#finish(hasLeft ? undefined : error)
    this.#controller?.abort(error)
  }

  #finish(error?: Error): void {
    if (this.#isDone) return
    const before = this.#state
    this.#state = 'done'
    if (error && (before === 'queued' || before === 'asked')) this.#options.onAnswer(0, false)
    this.#options.onDone(error)
    if (before === 'queued') this.#release()
  }

  /** Only when the connection is free: an aborted relay may still use it for a moment. */
  #release(): void {
    const { capacity, connections } = this.#options.upstream
    this.#state = 'released'
    if (this.#connection) connections.release(this.#connection)
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
  // The oldest supported Node does not have it, so that an application's hints get lost there.
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
