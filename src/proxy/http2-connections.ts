// The connections to an application that speaks HTTP/2: one serves many exchanges at once. An exchange is dispatched as undici
// does it. undici's own HTTP/2 sends no trailers, and does not tell an answer without a body from one whose body is empty: both
// are what gRPC is made of.

import type { IncomingHttpHeaders } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders as Http2Headers,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type Dispatcher, errors } from 'undici'

export interface Http2Deadlines {
  /** Until an answer begins; not for gRPC, whose calls may be silent for as long as they are open. */
  readonly headersMs: number
  /** Between two parts of an answer; 0 for none. Not for gRPC. */
  readonly idleMs: number
}

export interface Http2Pool {
  /** Calls the handler as undici does. */
  dispatch(request: Http2Exchange, handler: Dispatcher.DispatchHandler): void
  /** Takes over a connection that was opened for something else, and turned out to speak HTTP/2. */
  adopt(socket: Socket): void
  /** From now on a connection is closed with its last exchange. */
  keepNone(): void
  destroy(): void
}

export interface Http2PoolOptions {
  readonly origin: string
  readonly maxHeaderSize: number
  readonly deadlines: Http2Deadlines
  /** Opens a connection that speaks HTTP/2, within a deadline. */
  dial(done: (error: Error | null, socket: Socket | null) => void): void
}

/** What is sent to the application. */
export interface Http2Exchange {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** The body; `null` without one. */
  readonly source: Readable | null
  readonly isGrpc?: boolean
  /** Of the request, when its body has ended; absent if none can come. */
  trailers?(): Readonly<Record<string, string[]>>
  /** Present if the client waits until it is asked for the body. */
  onContinue?(): void
}

/** As many as most servers allow, until this one has said how many. */
const USUAL_STREAMS = 100
/** A connection without exchanges is closed after this time: nobody would notice that it is dead. */
const IDLE_MS = 60_000
const PING_EVERY_MS = 20_000
const PING_MS = 10_000
const MOST_HEADERS = 1000
const STREAM_WINDOW = 256 * 1024
const CONNECTION_WINDOW = 4 * 1024 * 1024
/** How long the application has to ask for a body that waits. */
const CONTINUE_MS = 1000
/** An answer with a larger head is refused by us up to this many times of the limit, and beyond by nghttp2. */
const READ_HEADS = 4

export function createHttp2Pool(options: Http2PoolOptions): Http2Pool {
  const sessions = new Set<PooledSession>()
  /** They wait for the connection that is being opened. */
  let waiting: OpenExchange[] = []
  let isDialing = false
  let keepsIdle = true

  function usable(): PooledSession | undefined {
    for (const session of sessions) if (session.hasRoom) return session
    return undefined
  }

  function add(socket: Socket): PooledSession {
    const session = new PooledSession(options, socket, () => sessions.delete(session))
    sessions.add(session)
    return session
  }

  function dial(): void {
    if (isDialing) return
    isDialing = true
    options.dial((error, socket) => {
      isDialing = false
      const started = waiting
      waiting = []
      if (socket) add(socket)
      for (const exchange of started) {
        if (error) exchange.end(error)
        else start(exchange)
      }
    })
  }

  function start(exchange: OpenExchange): void {
    if (exchange.isOver) return
    const session = usable()
    if (session) return void session.start(exchange, keepsIdle)
    waiting.push(exchange)
    dial()
  }

  return {
    dispatch(request, handler) {
      const exchange = new OpenExchange(options, request, handler, start)
      exchange.begin()
      start(exchange)
    },
    adopt: socket => void add(socket),
    keepNone() {
      keepsIdle = false
      for (const session of sessions) session.closeIfIdle()
    },
    destroy() {
      keepsIdle = false
      for (const exchange of waiting) exchange.end(new errors.ClientDestroyedError())
      for (const session of sessions) session.destroy()
    },
  }
}

class PooledSession {
  readonly #session: ClientHttp2Session
  readonly #forget: () => void
  readonly #idle: NodeJS.Timeout
  readonly #pings: NodeJS.Timeout
  #streams = 0

  constructor({ origin, maxHeaderSize }: Http2PoolOptions, socket: Socket, forget: () => void) {
    this.#forget = forget
    const options = {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: maxHeaderSize * READ_HEADS },
      maxHeaderListPairs: MOST_HEADERS,
      // A client may send a header twice that should come once. HTTP/1.1 passes that on, too.
      strictSingleValueFields: false,
    }
    const session = connect(origin, options)
    this.#session = session
    this.#idle = setTimeout(() => this.closeIfIdle(), IDLE_MS).unref()
    this.#pings = setInterval(() => this.#streams > 0 && this.#ping(), PING_EVERY_MS).unref()
    // The exchanges hear of it by their streams.
    session.on('error', () => {})
    socket.on('error', () => {})
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW))
    session.once('goaway', forget)
    session.once('close', () => {
      forget()
      clearTimeout(this.#idle)
      clearInterval(this.#pings)
    })
  }

  get hasRoom(): boolean {
    const { closed, destroyed, remoteSettings } = this.#session
    return !closed && !destroyed && this.#streams < (remoteSettings?.maxConcurrentStreams ?? USUAL_STREAMS)
  }

  start(exchange: OpenExchange, keepsIdle: boolean): void {
    const stream = exchange.send(this.#session)
    if (!stream) return
    this.#streams++
    // Not once: it comes once in any case, and taking a listener off a stream takes a microsecond.
    stream.on('close', () => {
      this.#streams--
      if (this.#streams > 0) return
      if (keepsIdle) this.#idle.refresh()
      else this.closeIfIdle()
    })
  }

  closeIfIdle(): void {
    if (this.#streams > 0) return
    this.#forget()
    this.#session.close()
  }

  destroy(): void {
    this.#session.destroy()
  }

  /** An application that is silent may be dead, or its machine. */
  #ping(): void {
    const session = this.#session
    const deadline = setTimeout(() => session.destroy(new errors.SocketError('no answer to a PING')), PING_MS).unref()
    const isSent = !session.destroyed && session.ping(() => clearTimeout(deadline))
    if (!isSent) clearTimeout(deadline)
  }
}

const BEFORE_IT_WAS_SENT = new Set<unknown>(['ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION'])

/** One exchange, from its dispatch to its end. */
class OpenExchange {
  isOver = false
  readonly #options: Http2PoolOptions
  readonly #request: Http2Exchange
  readonly #handler: Dispatcher.DispatchHandler
  readonly #again: (exchange: OpenExchange) => void
  #stream: ClientHttp2Stream | undefined
  #wasRepeated = false
  #isAnswered = false
  #isSending = false
  #waitsForClient = false
  #onData: ((chunk: Buffer) => void) | undefined
  #onEnd: () => void = () => {}
  #bytesLeft = Number.NaN
  #trailers: IncomingHttpHeaders = {}
  #timer: NodeJS.Timeout | undefined
  #continueTimer: NodeJS.Timeout | undefined

  constructor(
    options: Http2PoolOptions,
    request: Http2Exchange,
    handler: Dispatcher.DispatchHandler,
    again: (exchange: OpenExchange) => void,
  ) {
    this.#options = options
    this.#request = request
    this.#handler = handler
    this.#again = again
  }

  // What a handler may do with it: it is undici's controller, too.

  abort(reason: Error): void {
    this.end(reason)
  }

  pause(): void {
    this.#stream?.pause()
  }

  resume(): void {
    this.#stream?.resume()
  }

  get #controller(): Dispatcher.DispatchController {
    return this as unknown as Dispatcher.DispatchController
  }

  begin(): void {
    this.#handler.onRequestStart?.(this.#controller, undefined)
  }

  /** `undefined` if it is over. */
  send(session: ClientHttp2Session): ClientHttp2Stream | undefined {
    const { source, trailers } = this.#request
    try {
      const head = headOf(this.#request, this.#options.origin) as unknown as Http2Headers
      const options = { endStream: source === null, waitForTrailers: source !== null && trailers !== undefined }
      const stream = session.request(head, options)
      this.#stream = stream
      this.#listen(stream)
      if (source && trailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers()))
      // Nothing of the body is read before the head is on its way: until then another connection can take its place.
      if (stream.pending) stream.once('ready', () => this.#begin(stream))
      else this.#begin(stream)
      this.#startTimer()
      return stream
    } catch (error) {
      this.end(error as Error)
      return undefined
    }
  }

  #begin(stream: ClientHttp2Stream): void {
    const { source, onContinue } = this.#request
    if (source && onContinue) this.#continueTimer = setTimeout(() => this.#proceed(), CONTINUE_MS)
    else if (source) this.#sendBody(stream, source)
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
    stream.on('error', error => this.#onError(error))
    stream.on('close', () => {
      // An error object costs more than all else here.
      if (stream === this.#stream && !this.isOver)
        this.end(new errors.SocketError('the application has reset the stream'))
    })
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
    if (this.isOver) return
    const { ':status': status = 502 } = headers
    this.#isAnswered = true
    clearTimeout(this.#timer)
    clearTimeout(this.#continueTimer)
    if (sizeOf(rawHeaders) > this.#options.maxHeaderSize) return void this.end(new errors.HeadersOverflowError())
    const { idleMs } = this.#options.deadlines
    if (idleMs > 0 && !this.#request.isGrpc)
      stream.setTimeout(idleMs, () => stream.isPaused() || this.end(new errors.BodyTimeoutError()))
    const received = plainHeaders(headers)
    if (this.#request.method !== 'HEAD') this.#bytesLeft = Number(received['content-length'])
    try {
      this.#handler.onResponseStart?.(this.#controller, status, received)
    } catch (error) {
      return void this.end(error as Error)
    }
    // In the same turn: what gRPC calls trailers-only has to be passed on as such.
    if (flags & constants.NGHTTP2_FLAG_END_STREAM) this.#complete()
    stream.on('data', (chunk: Buffer) => {
      if (this.isOver) return
      this.#bytesLeft -= chunk.length
      this.#handler.onResponseData?.(this.#controller, chunk)
    })
    stream.on('end', () => this.#complete())
  }

  #complete(): void {
    if (this.isOver) return
    if (this.#bytesLeft > 0) return void this.end(new errors.SocketError('the answer is shorter than it said'))
    this.isOver = true
    this.#handler.onResponseEnd?.(this.#controller, this.#trailers)
    this.#release(constants.NGHTTP2_NO_ERROR)
  }

  /** With an error, unless it is over. */
  end(error: Error): void {
    if (this.isOver) return
    this.isOver = true
    this.#release(constants.NGHTTP2_CANCEL)
    this.#handler.onResponseError?.(this.#controller, error)
  }

  #release(code: number): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#continueTimer)
    const { source } = this.#request
    if (source && this.#onData && !source.readableEnded) source.off('data', this.#onData).off('end', this.#onEnd)
    const stream = this.#stream
    if (!stream) return
    // Nobody reads the rest, and an application that has answered does not need more of the body.
    stream.resume()
    if (code !== constants.NGHTTP2_NO_ERROR || !stream.writableEnded) stream.close(code)
  }

  #onError(error: Error & { code?: unknown }): void {
    // The connection has ended just now.
    const mayRepeat = !this.isOver && !this.#isSending && !this.#wasRepeated && BEFORE_IT_WAS_SENT.has(error.code)
    if (!mayRepeat) return void this.end(error)
    clearTimeout(this.#timer)
    this.#wasRepeated = true
    this.#stream = undefined
    this.#again(this)
  }

  #proceed(): void {
    clearTimeout(this.#continueTimer)
    const { source, onContinue } = this.#request
    const stream = this.#stream
    if (!source || !stream || this.#isSending || this.isOver || this.#isAnswered) return
    onContinue?.()
    this.#sendBody(stream, source)
  }

  /** By events: an iterator of the body costs as much as the rest of a gRPC call. */
  #sendBody(stream: ClientHttp2Stream, source: Readable): void {
    this.#isSending = true
    this.#waitsForClient = true
    this.#onData = chunk => {
      this.#timer?.refresh()
      if (stream.destroyed || stream.closed || stream.write(chunk)) return
      this.#waitsForClient = false
      source.pause()
    }
    this.#onEnd = () => {
      this.#waitsForClient = false
      this.#timer?.refresh()
      if (!stream.destroyed && !stream.closed) stream.end()
    }
    stream.on('drain', () => {
      if (this.isOver || source.readableEnded) return
      this.#waitsForClient = true
      this.#timer?.refresh()
      source.resume()
    })
    source.on('data', this.#onData).on('end', this.#onEnd)
  }

  #startTimer(): void {
    const { isGrpc, onContinue } = this.#request
    if (isGrpc) return
    this.#timer = setTimeout(() => {
      if (this.#isAnswered) return
      if (this.#waitsForClient || (onContinue && !this.#isSending)) this.#timer?.refresh()
      else this.end(new errors.HeadersTimeoutError())
    }, this.#options.deadlines.headersMs)
  }
}

function headOf({ method, path, headers, onContinue }: Http2Exchange, origin: string): string[] {
  const scheme = origin.startsWith('https:') ? 'https' : 'http'
  const head = [':method', method, ':scheme', scheme, ':path', path]
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    head.push(name === 'host' ? ':authority' : name, headers[i + 1] as string)
  }
  if (onContinue) head.push('expect', '100-continue')
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
