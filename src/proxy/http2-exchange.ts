// One exchange with an application over HTTP/2, from its dispatch to its end. It calls its handler as undici does.
//
//   queued ──▶ expecting ──▶ sent ──▶ answered ──▶ over
//     ▲        (the client    │
//     │         waits for     │ the application has provably not processed it: GOAWAY with a lower
//     └──────── 100-continue) ┘ last stream, or REFUSED_STREAM. Another connection sends it again.
//
// The body of the request has its own states, because it is read only as fast as the application takes it:
//
//   unread ──▶ awaited ──▶ ended       awaited: the client has to send more
//                 ▲│                   blocked: the application has to take more, or the exchange is queued again
//                 │▼
//              blocked

import type { IncomingHttpHeaders } from 'node:http'
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders as Http2Headers } from 'node:http2'
import type { Readable } from 'node:stream'
import { type Dispatcher, errors } from 'undici'
import { isGrpc } from '../util/grpc.ts'

/** The parts of a connection that an exchange uses. */
export interface Http2Connection {
  request(head: Http2Headers, options: { endStream: boolean; waitForTrailers: boolean }): ClientHttp2Stream
  /** False if the stream is reset later: until then the application may go on with it. */
  reset(stream: ClientHttp2Stream, code: number): boolean
  /** Whether the application cannot have processed this stream. */
  isUnprocessed(stream: ClientHttp2Stream): boolean
  /** It gets no new exchanges. */
  retire(): void
}

export interface Http2Deadlines {
  /** Until an answer begins; not for gRPC, whose calls may be silent for as long as they are open. */
  readonly headersMs: number
  /** Between two parts of an answer; 0 for none. Not for the answers of gRPC. */
  readonly idleMs: number
}

/** What is sent to the application. */
export interface UpstreamHttp2Request {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** The body; `null` without one. */
  readonly source: Readable | null
  readonly isGrpc?: boolean
  /** Whose request it is. */
  owner(): string
  /** The trailers of the request, when its body has ended; absent if none can come. */
  trailers?(): Readonly<Record<string, string[]>>
  /** Present if the client waits until it is asked for the body. */
  onContinue?(): void
}

export interface Http2ExchangeOptions {
  readonly origin: string
  readonly maxHeaderSize: number
  readonly deadlines: Http2Deadlines
  /** The bytes of all bodies that may be sent again. */
  readonly bodyBudget: ByteBudget
  /** Sends it on another connection. */
  again(exchange: Http2Exchange): void
  /** A stream of this owner was reset. */
  onReset(owner: string): void
}

/** How long the application has to ask for a body. */
const CONTINUE_MS = 1000
const MAX_RETRIES = 3
/** Node's codes for a connection that takes no new streams. */
const UNSENT_ERROR_CODES = new Set<unknown>([
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_OUT_OF_STREAMS',
])

export class Http2Exchange {
  /** Connections that have refused it. */
  readonly refusedBy: Http2Connection[] = []
  readonly #options: Http2ExchangeOptions
  readonly #request: UpstreamHttp2Request
  readonly #handler: Dispatcher.DispatchHandler
  readonly #body: RepeatableBody | undefined
  #state: 'queued' | 'expecting' | 'sent' | 'answered' | 'over' = 'queued'
  #connection: Http2Connection | undefined
  #stream: ClientHttp2Stream | undefined
  /** The bytes that are left of the answer; NaN if its length is unknown. */
  #bytesLeft = Number.NaN
  #trailers: IncomingHttpHeaders = {}
  #timer: NodeJS.Timeout | undefined
  #continueTimer: NodeJS.Timeout | undefined

  constructor(options: Http2ExchangeOptions, request: UpstreamHttp2Request, handler: Dispatcher.DispatchHandler) {
    this.#options = options
    this.#request = request
    this.#handler = handler
    if (request.source)
      this.#body = new RepeatableBody(request.source, options.bodyBudget, () => this.#timer?.refresh())
  }

  get isOver(): boolean {
    return this.#state === 'over'
  }

  get owner(): string {
    return this.#request.owner()
  }

  get hasBody(): boolean {
    return this.#body !== undefined
  }

  /** How far its body is; `undefined` without one. */
  get upload(): UploadProgress | undefined {
    return this.#body
  }

  // What a handler may do with the exchange, which is undici's controller, too.

  /** If the reset has to wait, the exchange lasts until it is sent, because it still occupies the application. */
  abort(reason: Error): void {
    if (this.isOver) return
    const isReset = this.#release(constants.NGHTTP2_CANCEL)
    const done = () => this.#handler.onResponseError?.(this.#controller, reason)
    if (isReset) done()
    else this.#stream?.once('close', done)
  }

  pause(): void {
    this.#stream?.pause()
  }

  resume(): void {
    this.#timer?.refresh()
    this.#stream?.resume()
  }

  get #controller(): Dispatcher.DispatchController {
    return this as unknown as Dispatcher.DispatchController
  }

  begin(): void {
    this.#handler.onRequestStart?.(this.#controller, undefined)
  }

  /** `undefined` if it could not be sent. */
  send(connection: Http2Connection): ClientHttp2Stream | undefined {
    const { trailers, onContinue } = this.#request
    const body = this.#body
    const expects = onContinue !== undefined && body?.isUnread === true
    try {
      const head = headOf(this.#request, this.#options.origin, expects) as unknown as Http2Headers
      const options = { endStream: !body, waitForTrailers: body !== undefined && trailers !== undefined }
      const stream = connection.request(head, options)
      this.#connection = connection
      this.#stream = stream
      this.#state = expects ? 'expecting' : 'sent'
      this.#listen(stream)
      if (body && trailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers()))
      // Nothing of the body is read before the head is on its way.
      if (stream.pending) stream.once('ready', () => this.#sendBody(stream))
      else this.#sendBody(stream)
      if (!this.#request.isGrpc) this.#startTimer(this.#options.deadlines.headersMs)
      return stream
    } catch (error) {
      const isUnsent = UNSENT_ERROR_CODES.has((error as { code?: unknown }).code)
      if (isUnsent) connection.retire()
      if (!isUnsent || !this.#repeat(connection)) this.end(error as Error)
      return undefined
    }
  }

  /** Ends it with an error, unless it is over. */
  end(error: Error): void {
    if (this.isOver) return
    this.#release(constants.NGHTTP2_CANCEL)
    this.#handler.onResponseError?.(this.#controller, error)
  }

  #sendBody(stream: ClientHttp2Stream): void {
    if (this.isOver || stream !== this.#stream) return
    if (this.#state === 'expecting') this.#continueTimer = setTimeout(() => this.#proceed(), CONTINUE_MS)
    else this.#body?.sendTo(stream)
  }

  /** The application wants the body, or was silent for too long. */
  #proceed(): void {
    clearTimeout(this.#continueTimer)
    const stream = this.#stream
    if (this.#state !== 'expecting' || !stream) return
    this.#state = 'sent'
    this.#request.onContinue?.()
    this.#body?.sendTo(stream)
  }

  #listen(stream: ClientHttp2Stream): void {
    const { onContinue, isGrpc } = this.#request
    if (onContinue) stream.on('continue', () => this.#proceed())
    // Browsers use interim answers; gRPC has none.
    if (!isGrpc) this.#listenToHints(stream)
    stream.on('response', (headers, flags, rawHeaders) => this.#onResponse(stream, headers, flags, rawHeaders))
    stream.on('trailers', headers => {
      this.#trailers = headers
    })
    stream.on('error', error => this.#onFailure(stream, error))
    // Creating an error object costs more than all else here.
    stream.on('close', () => this.isOver || this.#onFailure(stream, new errors.SocketError('the stream was closed')))
  }

  #listenToHints(stream: ClientHttp2Stream): void {
    stream.on('headers', (headers: Http2Headers & { ':status'?: number }) => {
      const { ':status': status = 0 } = headers
      if (status > 100 && !this.isOver) this.#handler.onResponseStart?.(this.#controller, status, plainHeaders(headers))
    })
  }

  #onResponse(
    stream: ClientHttp2Stream,
    headers: Http2Headers & { ':status'?: number | undefined },
    flags: number,
    rawHeaders: readonly string[],
  ): void {
    if (this.isOver || stream !== this.#stream) return
    const { ':status': status = 502 } = headers
    this.#state = 'answered'
    this.#body?.dropBuffered()
    this.#stopTimers()
    if (sizeOf(rawHeaders) > this.#options.maxHeaderSize) return void this.end(new errors.HeadersOverflowError())
    const received = plainHeaders(headers)
    const { idleMs } = this.#options.deadlines
    if (idleMs > 0 && !(this.#request.isGrpc && isGrpc(received))) this.#startTimer(idleMs)
    if (mayHaveBody(this.#request.method, status)) this.#bytesLeft = Number(received['content-length'])
    try {
      this.#handler.onResponseStart?.(this.#controller, status, received)
    } catch (error) {
      return void this.end(error as Error)
    }
    // In the same turn, because what gRPC calls trailers-only must be passed on as such.
    if (flags & constants.NGHTTP2_FLAG_END_STREAM) this.#complete()
    stream.on('data', (chunk: Buffer) => {
      if (this.isOver) return
      this.#timer?.refresh()
      this.#bytesLeft -= chunk.length
      this.#handler.onResponseData?.(this.#controller, chunk)
    })
    stream.on('end', () => this.#complete())
  }

  #complete(): void {
    if (this.isOver) return
    if (this.#bytesLeft > 0) return void this.end(new errors.SocketError('the answer is shorter than it said'))
    const isUnread = this.#stream?.writableEnded === false
    this.#release(isUnread ? constants.NGHTTP2_NO_ERROR : undefined)
    this.#handler.onResponseEnd?.(this.#controller, this.#trailers)
  }

  /** Nothing more happens to the exchange. With a code its stream is reset; returns false if that has to wait. */
  #release(code?: number): boolean {
    this.#state = 'over'
    this.#stopTimers()
    this.#body?.release()
    const stream = this.#stream
    if (!stream) return true
    // The rest is discarded, and an application that has answered does not need more of the body.
    stream.resume()
    if (code === undefined || stream.destroyed || stream.closed) return true
    this.#options.onReset(this.owner)
    return this.#connection?.reset(stream, code) ?? true
  }

  #onFailure(stream: ClientHttp2Stream, error: Error): void {
    if (this.isOver || stream !== this.#stream) return
    const connection = this.#connection
    const mayRepeat = this.#state !== 'answered' && connection?.isUnprocessed(stream) === true
    if (!mayRepeat || !this.#repeat(connection)) this.end(error)
  }

  /** False if it was repeated too often, or its body cannot be sent again. */
  #repeat(connection: Http2Connection): boolean {
    if (this.refusedBy.length >= MAX_RETRIES || this.#body?.isRepeatable === false) return false
    this.#stopTimers()
    this.refusedBy.push(connection)
    this.#state = 'queued'
    this.#stream = undefined
    this.#body?.hold()
    this.#options.again(this)
    return true
  }

  /** A timer that was cleared would start again with `refresh`. */
  #stopTimers(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#continueTimer)
    this.#timer = this.#continueTimer = undefined
  }

  #startTimer(ms: number): void {
    this.#timer = setTimeout(() => this.#onDeadline(), ms)
  }

  /** The application's deadline does not pass while the exchange waits for its client. */
  #onDeadline(): void {
    const isAnswered = this.#state === 'answered'
    const waitsForClient = isAnswered
      ? this.#stream?.isPaused()
      : this.#state === 'expecting' || this.#body?.waitsForClient
    if (waitsForClient) this.#timer?.refresh()
    else this.end(isAnswered ? new errors.BodyTimeoutError() : new errors.HeadersTimeoutError())
  }
}

/** A budget that several bodies share. */
export interface ByteBudget {
  left: number
}

const MAX_BUFFERED_BYTES = 256 * 1024
/** A client may send its body byte by byte: each part takes this much memory in addition to its bytes. */
const CHUNK_OVERHEAD_BYTES = 256

export interface UploadProgress {
  readonly sentBytes: number
  /** When a part of it was last sent, or the application was ready for more. */
  readonly progressAt: number
}

/** The body of a request. Its first part is kept until the application answers, so that it can be sent again. */
class RepeatableBody implements UploadProgress {
  sentBytes = 0
  progressAt = performance.now()
  readonly #source: Readable
  readonly #budget: ByteBudget
  readonly #onProgress: () => void
  readonly #onData = (chunk: Buffer) => this.#pass(chunk)
  readonly #onEnd = () => this.#finish()
  #state: 'unread' | 'awaited' | 'blocked' | 'ended' = 'unread'
  /** `undefined` once it cannot be sent again. */
  #kept: Buffer[] | undefined = []
  #keptBytes = 0
  /** The stream that it is sent to. */
  #stream: ClientHttp2Stream | undefined

  constructor(source: Readable, budget: ByteBudget, onProgress: () => void) {
    this.#source = source
    this.#budget = budget
    this.#onProgress = onProgress
  }

  get isUnread(): boolean {
    return this.#state === 'unread'
  }

  /** Whether the client has to send more of it. */
  get waitsForClient(): boolean {
    return this.#state === 'awaited'
  }

  get isRepeatable(): boolean {
    return this.#kept !== undefined
  }

  /** With events, because an iterator of the body costs as much as the rest of a gRPC call. */
  sendTo(stream: ClientHttp2Stream): void {
    this.#stream = stream
    for (const chunk of this.#kept ?? []) stream.write(chunk)
    if (this.#state === 'ended') return void stream.end()
    stream.on('drain', () => stream === this.#stream && this.#read())
    if (this.isUnread) this.#source.on('data', this.#onData).on('end', this.#onEnd)
    if (stream.writableNeedDrain) this.#block()
    else this.#read()
  }

  /** Reads nothing until it is sent again. */
  hold(): void {
    this.#stream = undefined
    if (this.#state === 'awaited') this.#block()
  }

  dropBuffered(): void {
    this.#kept = undefined
    this.#budget.left += this.#keptBytes
    this.#keptBytes = 0
  }

  release(): void {
    this.dropBuffered()
    this.#stream = undefined
    if (!this.isUnread && !this.#source.readableEnded) this.#source.off('data', this.#onData).off('end', this.#onEnd)
  }

  #read(): void {
    if (this.#state === 'ended') return
    this.#state = 'awaited'
    this.#progress()
    this.#source.resume()
  }

  #block(): void {
    this.#state = 'blocked'
    this.#source.pause()
  }

  #pass(chunk: Buffer): void {
    this.#progress()
    this.sentBytes += chunk.length
    this.#keep(chunk)
    const stream = this.#stream
    if (stream && !stream.destroyed && !stream.closed && !stream.write(chunk)) this.#block()
  }

  #finish(): void {
    // If its client resets a stream, Node ends the body as if it were complete. The exchange is aborted in a moment.
    if ('aborted' in this.#source && this.#source.aborted) return
    this.#state = 'ended'
    this.#progress()
    const stream = this.#stream
    if (stream && !stream.destroyed && !stream.closed) stream.end()
  }

  #progress(): void {
    this.progressAt = performance.now()
    this.#onProgress()
  }

  #keep(chunk: Buffer): void {
    if (!this.#kept) return
    const bytes = chunk.length + CHUNK_OVERHEAD_BYTES
    if (this.#keptBytes + bytes > MAX_BUFFERED_BYTES || bytes > this.#budget.left) return void this.dropBuffered()
    this.#kept.push(chunk)
    this.#keptBytes += bytes
    this.#budget.left -= bytes
  }
}

/** Whether a content-length is that of a body that follows. */
function mayHaveBody(method: string, status: number): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304
}

function headOf({ method, path, headers }: UpstreamHttp2Request, origin: string, expects: boolean): string[] {
  const scheme = origin.startsWith('https:') ? 'https' : 'http'
  const head = [':method', method, ':scheme', scheme, ':path', path]
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    head.push(name === 'host' ? ':authority' : name, headers[i + 1] as string)
  }
  if (expects) head.push('expect', '100-continue')
  return head
}

function plainHeaders(received: Http2Headers): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {}
  for (const name in received) if (!name.startsWith(':')) headers[name] = received[name] as string
  return headers
}

function sizeOf(rawHeaders: readonly string[]): number {
  let size = 0
  for (const text of rawHeaders) size += text.length + 2
  return size
}
