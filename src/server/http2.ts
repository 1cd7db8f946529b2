// The connections that negotiated HTTP/2: their limits, their requests, and how they end. The requests go to the same listener
// as those of HTTP/1.1.
//
// nghttp2, which is part of Node, ends a connection that sends too many CONTINUATION frames, resets more streams than a
// browser does, or does not read the answers to its PING and SETTINGS frames. What it lets pass is counted here.

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { isTrusted, type Networks } from '../config/networks.ts'
import { destroyAfter } from '../util/deadline.ts'
import { FIRST_REQUEST_MS } from './closing.ts'
import { BadHead, Http2Response, readHttp2Request } from './http2-messages.ts'
import { destroyWhenRead } from './last-bytes.ts'
import { createUnreadAnswers, type UnreadAnswers } from './unread-answers.ts'

export interface Http2Server {
  /** Takes over a connection. */
  accept(socket: TLSSocket): void
  /** Clients send their next requests elsewhere. Those on their way are answered; a connection ends with the last of them. */
  announceEnd(): void
  /** Idle connections end; others end with their last answer. */
  endConnections(): void
}

export interface Http2ServerOptions {
  readonly listener: RequestListener
  /** How long a connection may wait for its next request. */
  readonly keepAliveTimeoutMs: number
  /** How long it may take to send its first one. */
  readonly headersTimeoutMs: number
  readonly maxHeaderKb: number
  /** They send the requests of many clients, and have their own limits. */
  readonly trustedProxies?: Networks | undefined
}

/** Concurrent requests on one connection. A browser sends more of them only as others end. */
const MAX_CONCURRENT_STREAMS = 128
/** With more headers a stream is reset. A browser may send each cookie as a header. */
const MAX_HEADER_LIST_PAIRS = 1000
/** A head larger than its limit gets an answer up to this many times the limit. Beyond that, its stream is reset. */
const HEAD_LIMIT_FACTOR = 4
/** How much of a body may be on its way before it is read. Each stream may occupy this much memory. */
const STREAM_WINDOW = 128 * 1024
/** For all streams together; nothing of it waits in memory. */
const CONNECTION_WINDOW = 1024 * 1024
/** In megabytes, for what nghttp2 itself keeps of one connection. */
const MAX_SESSION_MEMORY_MB = 4
/** How long the client of a connection that is ended for its excess has to read why. */
const EXCESS_CLOSE_MS = 1000
const LAST_STREAM_ID = 2 ** 31 - 1

/** Frames and resets that no request needs: how many at once, and how many each second. */
const EXCESS_BURST = 1000
const EXCESS_RATE = 100

export function createHttp2Server(serverOptions: Http2ServerOptions): Http2Server {
  const maxHeaderBytes = serverOptions.maxHeaderKb * 1024
  const options = {
    settings: {
      maxConcurrentStreams: MAX_CONCURRENT_STREAMS,
      maxHeaderListSize: maxHeaderBytes * HEAD_LIMIT_FACTOR,
      initialWindowSize: STREAM_WINDOW,
      enablePush: false,
      enableConnectProtocol: false,
    },
    maxHeaderListPairs: MAX_HEADER_LIST_PAIRS,
    maxSessionMemory: MAX_SESSION_MEMORY_MB,
    // An application may repeat a header that should occur once. HTTP/1.1 passes that on, too.
    strictSingleValueFields: false,
  }
  const connections = new Set<Http2Connection>()
  const unread = createUnreadAnswers()
  let isClosing = false

  return {
    accept(socket) {
      // Node's session no longer listens once it has ended, and an error without a listener ends the process.
      socket.on('error', () => {})
      const session = performServerHandshake(socket, options)
      const isProxy = isTrusted(serverOptions.trustedProxies, socket.remoteAddress ?? '')
      const joined = isProxy ? undefined : unread.join(socket)
      const connection = new Http2Connection(session, socket, serverOptions, joined?.unread)
      connections.add(connection)
      if (isClosing) connection.endAfterFirstRequest()
      session.once('close', () => {
        connections.delete(connection)
        joined?.leave()
        // If the client has not confirmed our SETTINGS, Node keeps the session for as long as any reference leads from it to its
        // handle. Our listeners would be one: through the socket, and the stack of the error that has ended both.
        session.removeAllListeners()
        session.on('error', ignore)
      })
    },
    announceEnd() {
      isClosing = true
      for (const connection of connections) connection.endAfterRequests()
    },
    endConnections() {
      for (const connection of connections) if (!connection.isStarting) connection.end()
    },
  }
}

class Http2Connection {
  readonly #session: ServerHttp2Session
  readonly #socket: TLSSocket
  readonly #listener: RequestListener
  readonly #maxHeaderBytes: number
  readonly #unread: UnreadAnswers | undefined
  readonly #idle: NodeJS.Timeout
  /** One function for all streams. */
  readonly #closed: (this: ServerHttp2Stream) => void
  #streams = 0
  #isUnused = true
  #isClosing = false
  #isEnding = false
  /** Set until the first request if the handshake has ended while the server closes. */
  #starting: NodeJS.Timeout | undefined
  #excess = 0
  #excessAt = 0

  constructor(
    session: ServerHttp2Session,
    socket: TLSSocket,
    { listener, maxHeaderKb, keepAliveTimeoutMs, headersTimeoutMs }: Http2ServerOptions,
    unread: UnreadAnswers | undefined,
  ) {
    this.#unread = unread
    this.#session = session
    this.#socket = socket
    this.#listener = listener
    this.#maxHeaderBytes = maxHeaderKb * 1024
    this.#idle = setTimeout(() => this.#streams === 0 && this.end(), keepAliveTimeoutMs).unref()
    const first = setTimeout(() => this.#isUnused && this.end(), headersTimeoutMs).unref()
    const connection = this
    this.#closed = function (this: ServerHttp2Stream) {
      connection.#onStreamClose(this)
    }
    session.on('stream', (stream, headers, _flags, rawHeaders) => this.#onStream(stream, headers, rawHeaders))
    session.on('ping', () => this.#noteExcess())
    session.on('remoteSettings', () => this.#noteExcess())
    session.on('error', () => {})
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW))
    session.once('close', () => {
      clearTimeout(this.#idle)
      clearTimeout(first)
    })
  }

  get isStarting(): boolean {
    return this.#starting !== undefined
  }

  endAfterFirstRequest(): void {
    this.#isClosing = true
    this.#starting = setTimeout(() => this.end(), FIRST_REQUEST_MS)
    this.#session.once('close', () => clearTimeout(this.#starting))
  }

  endAfterRequests(): void {
    this.#isClosing = true
    if (this.#streams > 0) this.#announceEnd()
  }

  /** Only while there is a request: without one, Node reads nothing more after this frame. */
  #announceEnd(): void {
    if (!this.#session.destroyed) this.#session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID)
  }

  end(): void {
    const session = this.#session
    if (!session.destroyed && !session.closed) session.close()
    if (this.#streams > 0 || this.#isEnding) return
    this.#isEnding = true
    // A client that does not read or close would keep it open.
    destroyWhenRead(this.#socket)
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    // First, because an error without a listener ends the process.
    stream.on('error', ignore)
    // It was reset as soon as it was opened: nothing is asked of the provider, the store or the application.
    if (stream.destroyed) return void this.#noteExcess()
    this.#streams++
    this.#isUnused = false
    if (this.#isClosing && this.#streams === 1) this.#announceEnd()
    clearTimeout(this.#starting)
    this.#starting = undefined
    stream.on('close', this.#closed)
    try {
      const request = readHttp2Request(stream, this.#socket, headers, rawHeaders, this.#maxHeaderBytes)
      const response = new Http2Response(request, this.#unread)
      // They have the members that the gateway uses.
      this.#listener(request as unknown as IncomingMessage, response as unknown as ServerResponse)
    } catch (error) {
      if (error instanceof BadHead && !stream.closed) stream.respond({ ':status': error.status }, { endStream: true })
      else stream.destroy(error as Error)
    }
  }

  #onStreamClose(stream: ServerHttp2Stream): void {
    this.#streams--
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.#noteExcess()
    if (this.#streams > 0) return
    if (this.#isClosing || this.#session.closed) this.end()
    else this.#idle.refresh()
  }

  /** A leaky bucket. */
  #noteExcess(): void {
    const now = performance.now()
    const leaked = ((now - this.#excessAt) / 1000) * EXCESS_RATE
    this.#excess = Math.max(0, this.#excess - leaked) + 1
    this.#excessAt = now
    if (this.#excess <= EXCESS_BURST || this.#session.destroyed) return
    this.#session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    destroyAfter(this.#socket, EXCESS_CLOSE_MS)
  }
}

function ignore(): void {}
