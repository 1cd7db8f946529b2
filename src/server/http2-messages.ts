// A stream of HTTP/2 as the request and the response that node:http gives, so that one pipeline serves both protocols. Node's own
// classes for that create eleven listeners and a second stream for each request; these have only what the gateway uses.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import {
  constants,
  type IncomingHttpHeaders as Http2Headers,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { REQUEST_ID } from '../observe/observed-request.ts'
import type { HeaderList } from '../util/header-list.ts'
import { METHODS } from '../util/node-http.ts'
import type { AnswerSender, UnreadAnswer, UnreadAnswers } from './unread-answers.ts'

/** Header fields of one request. */
export const MAX_HEADERS = 200

const NONE: readonly string[] = []

export class Http2Request {
  readonly method: string
  readonly url: string
  /** Node's own object: it has the pseudo-headers of HTTP/2, too. No code iterates over it. */
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, once they have arrived. */
  rawTrailers = NONE
  readonly socket: TLSSocket
  readonly stream: ServerHttp2Stream
  /** All headers together are larger than MAX_HEADER_KB, or there are more than MAX_HEADERS. */
  readonly isHeadTooLarge: boolean
  readonly #rawReceived: readonly string[]
  #rawHeaders: readonly string[] | undefined

  constructor(stream: ServerHttp2Stream, socket: TLSSocket, head: RequestHead) {
    this.stream = stream
    this.socket = socket
    this.method = head.method
    this.url = head.path
    this.headers = head.headers
    this.#rawReceived = head.rawReceived
    this.isHeadTooLarge = head.isTooLarge
    if (!stream.endAfterHeaders)
      stream.on('trailers', (_trailers, _flags, rawTrailers: readonly string[]) => {
        this.rawTrailers = rawTrailers
      })
  }

  /** Names and values in turn, as HTTP/1.1 would have sent them: with Host, and with one Cookie. */
  get rawHeaders(): readonly string[] {
    this.#rawHeaders ??= rawHeadersOf(this.#rawReceived, this.headers.host ?? '')
    return this.#rawHeaders
  }

  get httpVersion(): '2.0' {
    return '2.0'
  }

  get httpVersionMajor(): 2 {
    return 2
  }

  /** No more of the body can come. */
  get complete(): boolean {
    const { stream } = this
    return stream.endAfterHeaders || stream.readableEnded || stream.destroyed
  }

  get destroyed(): boolean {
    return this.stream.destroyed
  }

  get readableLength(): number {
    return this.stream.readableLength
  }

  get readableDidRead(): boolean {
    return this.stream.readableDidRead
  }

  iterator(options?: { destroyOnReturn?: boolean }): AsyncIterableIterator<Buffer> {
    return new WholeBody(this.stream, options)
  }

  resume(): this {
    this.stream.resume()
    return this
  }

  on(event: string, listener: (...args: unknown[]) => void): this {
    this.stream.on(event, listener)
    return this
  }

  once(event: string, listener: (...args: unknown[]) => void): this {
    this.stream.once(event, listener)
    return this
  }

  destroy(): this {
    this.stream.destroy(ABORTED)
    return this
  }
}

/** If its client resets a stream, Node ends the body as if it were complete. Here the body fails, once the client has left. */
class WholeBody implements AsyncIterableIterator<Buffer> {
  readonly #stream: ServerHttp2Stream
  readonly #chunks: AsyncIterator<Buffer>

  constructor(stream: ServerHttp2Stream, options?: { destroyOnReturn?: boolean }) {
    this.#stream = stream
    this.#chunks = stream.iterator(options)
  }

  async next(): Promise<IteratorResult<Buffer>> {
    const stream = this.#stream
    const read = await this.#chunks.next()
    if (!read.done || !stream.aborted) return read
    if (!stream.destroyed) await new Promise<void>(resolve => stream.once('close', resolve))
    throw ABORTED
  }

  async return(): Promise<IteratorResult<Buffer>> {
    return this.#chunks.return?.() ?? { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

/** Valid only for a connection of HTTP/1.1: in HTTP/2 they make an answer malformed. */
const CONNECTION_HEADERS = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings', 'te'],
])

const NULL_BODY_STATUSES = new Set([204, 205, 304])

const ABORTED = new Error('the answer was broken off')

const NEVER_INDEXED: readonly string[] = [REQUEST_ID]

/**
 * Both sides of a connection remember headers, and refer to them by number. An id occurs only once, and would displace others
 * there, which are then sent in full again.
 */
function markNeverIndexed(head: HeaderList): void {
  const marked = head as HeaderList & Record<symbol, readonly string[]>
  marked[sensitiveHeaders] = NEVER_INDEXED
}

export class Http2Response implements UnreadAnswer {
  readonly req: Http2Request
  statusCode = 200
  headersSent = false
  writableEnded = false
  /** Only a connection of HTTP/1.1 is closed with an answer. */
  shouldKeepAlive = true
  /** Bytes of the body. */
  bytesWritten = 0
  /** Set by slow-clients.ts. */
  isWatched = false
  /** Its client has left too much unread. */
  isRefused = false
  /** Trailers may follow a body of a known length. Set before the head; without a length they always may. */
  takesTrailers = false
  /** For an application's answer; set by forward.ts. */
  sender: AnswerSender | undefined
  readonly #stream: ServerHttp2Stream
  /** The head, until it is sent: together with the end, if there is no body. */
  #head: HeaderList | undefined
  #hasLength = false
  #isWithoutBody = false
  #trailers: Record<string, string[]> | undefined
  #isWaitingForTrailers = false
  #isDestroyed = false
  readonly #unread: UnreadAnswers | undefined
  #updateUnread: (() => void) | undefined

  constructor(request: Http2Request, unread?: UnreadAnswers) {
    this.req = request
    this.#stream = request.stream
    this.#unread = unread
  }

  /** Whether a body of our own may be sent. If its client reads nothing and keeps asking, the stream is reset instead. */
  admits(bytes: number): boolean {
    if (this.destroyed) return false
    if (!this.#unread || this.#unread.admits(this, bytes)) return true
    this.refuse()
    return false
  }

  /** Nothing more of it is sent, and nothing of it is kept. */
  refuse(): void {
    this.isRefused = this.#isDestroyed = true
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    // Even the reset waits for a connection that is not read.
    if (this.writableLength > 0) this.#stream.destroy()
  }

  get socket(): TLSSocket {
    return this.req.socket
  }

  get destroyed(): boolean {
    return this.#isDestroyed || this.#stream.destroyed
  }

  /** The answer is complete, and nothing is left that its client could be slow to read or to send: a head needs no window. */
  get isOver(): boolean {
    return this.writableEnded && this.bytesWritten === 0 && !this.#isWaitingForTrailers && this.req.complete
  }

  get writableFinished(): boolean {
    return this.#stream.writableFinished
  }

  get writableLength(): number {
    return this.#stream.writableLength
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain
  }

  /** The reason phrase of HTTP/1.1 has no counterpart. Throws if the status has none either. */
  writeHead(status: number, ...rest: readonly (string | HeaderList | OutgoingHttpHeaders)[]): this {
    if (status < 200 || status > 599) throw new RangeError(`HTTP/2 has no status ${status}`)
    const headers = rest.at(-1)
    const head: HeaderList = [':status', String(status)]
    markNeverIndexed(head)
    const add = (name: string, value: string | string[]) => {
      if (CONNECTION_HEADERS.has(name)) return
      if (name === 'content-length') this.#hasLength = true
      head.push(name, value)
    }
    if (Array.isArray(headers)) {
      for (let i = 0; i < headers.length; i += 2) add(headers[i] as string, headers[i + 1] as string | string[])
    } else if (typeof headers === 'object') {
      for (const name in headers) {
        const value = headers[name]
        if (value !== undefined) add(name, typeof value === 'number' ? String(value) : (value as string | string[]))
      }
    }
    this.statusCode = status
    this.headersSent = true
    this.#isWithoutBody = NULL_BODY_STATUSES.has(status) || this.req.method === 'HEAD'
    this.#head = head
    return this
  }

  /** Writes only the head if there is no body to write. */
  write(chunk: string | Uint8Array, encoding: BufferEncoding = 'utf8'): boolean {
    if (!this.headersSent) this.writeHead(this.statusCode)
    if (this.#head) this.#sendHead(this.#isWithoutBody)
    if (chunk.length === 0 || this.#isWithoutBody || !this.#isWritable()) return true
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk
    this.bytesWritten += bytes.length
    const unread = this.#unreadOfApplication()
    const isTaken = this.#stream.write(bytes, unread)
    unread?.()
    return isTaken
  }

  /** Returns the function to call when the waiting part of an application's answer has changed. */
  #unreadOfApplication(): (() => void) | undefined {
    const unread = this.#unread
    if (!unread || !this.sender) return undefined
    if (!this.#updateUnread) {
      this.#updateUnread = () => unread.update(this)
      this.#stream.on('close', this.#updateUnread)
    }
    return this.#updateUnread
  }

  flushHeaders(): void {
    this.write('')
  }

  end(chunk?: string | Uint8Array | null, encoding: BufferEncoding = 'utf8'): this {
    if (this.writableEnded) return this
    this.writableEnded = true
    if (!this.headersSent) this.writeHead(this.statusCode)
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk
    const hasBody = bytes !== undefined && bytes !== null && bytes.length > 0
    if (this.#head) this.#sendHead(this.#isWithoutBody || (!hasBody && !this.#trailers))
    if (!this.#isWithoutBody && this.#isWritable()) {
      if (hasBody) this.bytesWritten += bytes.length
      this.#stream.end(hasBody ? bytes : undefined)
      if (hasBody || this.#updateUnread) this.#unreadOfApplication()?.()
    }
    this.#refuseRest()
    return this
  }

  addTrailers(trailers: readonly (readonly [name: string, value: string])[]): void {
    for (const [name, value] of trailers) {
      if (CONNECTION_HEADERS.has(name)) continue
      this.#trailers ??= Object.create(null) as Record<string, string[]>
      const values = this.#trailers[name]
      if (values) values.push(value)
      else this.#trailers[name] = [value]
    }
  }

  writeContinue(): void {
    this.writeInformation(100)
  }

  writeInformation(status: number, headers: Readonly<Record<string, string | string[]>> = {}): void {
    if (!this.headersSent && this.#isWritable()) this.#stream.additionalHeaders({ ...headers, ':status': status })
  }

  /** The client learns that the answer is incomplete. Other streams of its connection go on. */
  destroy(): this {
    this.#isDestroyed = true
    this.#stream.destroy(ABORTED)
    return this
  }

  on(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.on(event, listener)
    return this
  }

  once(event: string, listener: (...args: unknown[]) => void): this {
    // It comes once in any case, and removing a listener from a stream takes a microsecond.
    if (event === 'close') this.#stream.on(event, listener)
    else this.#stream.once(event, listener)
    return this
  }

  prependListener(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.prependListener(event, listener)
    return this
  }

  removeListener(event: string, listener: (...args: unknown[]) => void): this {
    this.#stream.removeListener(event, listener)
    return this
  }

  off(event: string, listener: (...args: unknown[]) => void): this {
    return this.removeListener(event, listener)
  }

  emit(event: string, ...args: unknown[]): boolean {
    return this.#stream.emit(event, ...args)
  }

  listenerCount(event: string): number {
    return this.#stream.listenerCount(event)
  }

  #isWritable(): boolean {
    const stream = this.#stream
    return !stream.destroyed && !stream.closed && !stream.writableEnded
  }

  #sendHead(endStream: boolean): void {
    const head = this.#head
    const stream = this.#stream
    this.#head = undefined
    if (!head || stream.destroyed || stream.closed) return
    const waitForTrailers = !endStream && (!this.#hasLength || this.takesTrailers)
    this.#isWaitingForTrailers = waitForTrailers
    if (waitForTrailers) stream.on('wantTrailers', () => this.#sendTrailers())
    try {
      stream.respond(head as unknown as Parameters<typeof stream.respond>[0], { endStream, waitForTrailers })
    } catch {
      this.destroy()
    }
  }

  #sendTrailers(): void {
    try {
      this.#stream.sendTrailers(this.#trailers ?? {})
      this.#isWaitingForTrailers = false
      if (!this.req.complete) this.#refuseBody()
    } catch {
      this.destroy()
    }
  }

  /** The answer is complete: the client need not send the rest of its body (RFC 9113, 8.1). */
  #refuseRest(): void {
    const stream = this.#stream
    if (this.req.complete || this.#isWaitingForTrailers) return
    if (stream.writableFinished) this.#refuseBody()
    else stream.once('finish', () => this.#refuseBody())
  }

  /** After what Node itself sends in the next turn. */
  #refuseBody(): void {
    setImmediate(() => !this.req.complete && this.#stream.close(constants.NGHTTP2_NO_ERROR))
  }
}

// The head of a request.

interface RequestHead {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawReceived: readonly string[]
  readonly isTooLarge: boolean
}

const KNOWN_METHODS = new Set(METHODS.filter(method => method !== 'CONNECT'))

/** A head that node:http would not have accepted either. */
export class BadHead extends Error {
  readonly status: 400 | 417

  constructor(status: 400 | 417) {
    super('the head of a request is not valid')
    this.status = status
  }
}

/** Node adds this much to each header of HTTP/1.1: a colon, a space and the end of the line. */
const BYTES_PER_HEADER = 4

export function readHttp2Request(
  stream: ServerHttp2Stream,
  socket: TLSSocket,
  received: Http2Headers,
  rawReceived: readonly string[],
  maxHeaderBytes: number,
): Http2Request {
  const { ':method': method = '', ':path': path = '', ':authority': authority, expect } = received
  const { host = authority } = received
  if (!KNOWN_METHODS.has(method) || path === '') throw new BadHead(400)
  // A proxy in front may have used one of them, and an application the other.
  if (host === undefined || host === '' || (authority !== undefined && authority !== host)) throw new BadHead(400)
  if (expect !== undefined && String(expect).toLowerCase() !== '100-continue') throw new BadHead(417)
  let hosts = 0
  let cookies = 0
  let size = method.length + path.length
  for (let i = 0; i < rawReceived.length; i += 2) {
    const name = rawReceived[i] as string
    size += name.length + (rawReceived[i + 1] as string).length + BYTES_PER_HEADER
    if (name === 'host') hosts++
    else if (name === 'cookie') cookies++
  }
  if (hosts > 1) throw new BadHead(400)
  // Node has joined repeated names as in HTTP/1.1.
  received.host = host
  // A body without a length is what HTTP/1.1 sends in chunks.
  if (!stream.endAfterHeaders && received['content-length'] === undefined) received['transfer-encoding'] = 'chunked'
  // Browsers send each cookie as a separate header.
  const isTooLarge = size > maxHeaderBytes || rawReceived.length / 2 - cookies > MAX_HEADERS
  return new Http2Request(stream, socket, { method, path, headers: received, rawReceived, isTooLarge })
}

function rawHeadersOf(rawReceived: readonly string[], host: string): string[] {
  const rawHeaders = ['host', host]
  let cookieIndex = 0
  for (let i = 0; i < rawReceived.length; i += 2) {
    const name = rawReceived[i] as string
    const value = rawReceived[i + 1] as string
    if (name.startsWith(':') || name === 'host') continue
    if (name === 'cookie') {
      // Browsers send each cookie as a separate header, which compresses better (RFC 9113, 8.2.3).
      if (cookieIndex > 0) {
        rawHeaders[cookieIndex] += `; ${value}`
        continue
      }
      cookieIndex = rawHeaders.length + 1
    }
    rawHeaders.push(name, value)
  }
  return rawHeaders
}
