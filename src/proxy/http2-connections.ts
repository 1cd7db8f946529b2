// The connections to an application that speaks HTTP/2, each of which serves many exchanges at once. undici's own HTTP/2 sends no
// trailers, and does not distinguish an answer without a body from one with an empty body; gRPC needs both.
//
// An exchange whose client leaves is reset, and applications close a connection on which too many streams are reset (rapid
// reset, CVE-2023-44487): users share connections, so one user must not reach that limit for others. Known limits: Jetty 50 a
// second, Netty and Undertow 200 in 30 seconds, Envoy 500 in all, nghttp2 (Node, Apache) 1,000 at once. Therefore
// - a connection that has sent 20 resets is retired: it gets no new exchanges, and is closed after its last one;
// - a retired connection sends at most 10 more each second, and is closed as soon as no other exchange needs it;
// - an owner with many recent resets has connections that no other owner uses (a `Lane`).
//
// Bytes of request bodies that the application has not read occupy the window of the whole connection (often 64 KB), so one body
// that is not read would block all others. Therefore
// - a connection with little window left gets no further bodies: they open another connection, unless that is impossible;
// - an owner whose bodies fill a window for a second has connections that no other owner uses.
// A further connection is opened only if requests in progress fill each of the others, so their number is bounded, too.
//
//   opening ──▶ open ──▶ retired ──▶ closed
//
// | state   | begins with                                                                | new exchanges    |
// |---------|----------------------------------------------------------------------------|------------------|
// | opening | a socket                                                                   | wait in the lane |
// | open    | SETTINGS of the application, or a second without them                      | up to its limits |
// | retired | GOAWAY, 20 resets, a minute without exchanges, `disableKeepAlive`, a closed socket | none             |
// | closed  | the end of its last exchange, or of all that were not abandoned            | none             |

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders as Http2Headers,
} from 'node:http2'
import type { Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import { type Dispatcher, errors } from 'undici'
import { atMost } from '../util/recent.ts'
import {
  type Http2Connection,
  type Http2Deadlines,
  Http2Exchange,
  type UpstreamHttp2Request,
} from './http2-exchange.ts'

export interface Http2Pool {
  /** Calls the handler as undici does. */
  dispatch(request: UpstreamHttp2Request, handler: Dispatcher.DispatchHandler): void
  /** Takes over a connection that was opened for another purpose, and turned out to speak HTTP/2. */
  adopt(socket: Socket): void
  /** From now on, a connection is closed after its last exchange. */
  disableKeepAlive(): void
  destroy(): void
}

export interface Http2PoolOptions {
  readonly origin: string
  readonly maxHeaderSize: number
  readonly deadlines: Http2Deadlines
  /** Opens a connection that speaks HTTP/2, within a deadline. */
  dial(done: (error: Error | null, socket: Socket | null) => void): void
}

/** The limit of most servers, used if this one does not announce its own. */
const DEFAULT_STREAMS = 100
/** How long the application has to announce its limit, which is in its first frame. */
const SETTINGS_MS = 1000
/** A connection without exchanges is closed after this time, because a dead one would not be noticed. */
const IDLE_MS = 60_000
const PING_INTERVAL_MS = 20_000
const PING_MS = 10_000
const MAX_HEADER_PAIRS = 1000
/** An answer that its client does not read may occupy this much memory. */
const STREAM_WINDOW = 128 * 1024
const CONNECTION_WINDOW = 4 * 1024 * 1024
/** We refuse an answer whose head is larger than the limit, up to this many times the limit; beyond that, nghttp2 does. */
const HEAD_LIMIT_FACTOR = 4
/** The most bytes of request bodies that are kept until their answers begin, so that they can be sent again. */
const MAX_TOTAL_BUFFERED_BYTES = 16 * 1024 * 1024

/** A connection with less window gets no further bodies. It is the size of the largest frame, and a quarter of the smallest window. */
const MIN_WINDOW = 16 * 1024
/** A body that makes no progress for this time is not read, or blocked by one that is not. */
const STUCK_MS = 1000

/** Resets after which a connection is retired. */
const RETIRE_AFTER_RESETS = 20
const DEFERRED_RESET_INTERVAL_MS = 100
/** An owner with this many strikes, each within a minute of the one before, has its own connections. A reset is one strike. */
const OWN_LANE_AFTER_RESETS = 10
const STRIKES_FORGOTTEN_MS = 60_000
const MAX_OWNERS_WITH_STRIKES = 10_000
/** How many owners have their own connections. Any other owners with many strikes share theirs. */
const MAX_OWN_LANES = 16

const EVERYONE = 'everyone'
const OFFENDERS = 'offenders'

export function createHttp2Pool(options: Http2PoolOptions): Http2Pool {
  /** Keyed by owner, or by one of the two above. */
  const lanes = new Map<string, Lane>()
  const connections = new Set<PooledConnection>()
  const strikes = new LRUCache<string, number>({ ...atMost(MAX_OWNERS_WITH_STRIKES), ttl: STRIKES_FORGOTTEN_MS })
  const pool: Pool = {
    ...options,
    connections,
    keepsIdle: true,
    leave(lane) {
      if (lane.isEmpty) lanes.delete(lane.name)
    },
    isolate: owner => void strikes.set(owner, OWN_LANE_AFTER_RESETS),
  }
  const exchangeOptions = {
    ...options,
    bodyBudget: { left: MAX_TOTAL_BUFFERED_BYTES },
    again: start,
    onReset: (owner: string) => void strikes.set(owner, (strikes.get(owner) ?? 0) + 1),
  }

  function laneNameOf(exchange: Http2Exchange): string {
    if (strikes.size === 0) return EVERYONE
    const { owner } = exchange
    if ((strikes.get(owner) ?? 0) < OWN_LANE_AFTER_RESETS) return EVERYONE
    return lanes.has(owner) || lanes.size < MAX_OWN_LANES ? owner : OFFENDERS
  }

  function lane(name: string): Lane {
    const known = lanes.get(name)
    if (known) return known
    const opened = new Lane(name, pool)
    lanes.set(name, opened)
    return opened
  }

  function start(exchange: Http2Exchange): void {
    if (!exchange.isOver) lane(laneNameOf(exchange)).start(exchange)
  }

  return {
    dispatch(request, handler) {
      const exchange = new Http2Exchange(exchangeOptions, request, handler)
      exchange.begin()
      start(exchange)
    },
    adopt: socket => lane(EVERYONE).add(socket),
    disableKeepAlive() {
      pool.keepsIdle = false
      for (const connection of connections) connection.closeIfIdle()
    },
    destroy() {
      pool.keepsIdle = false
      for (const { waiting } of lanes.values())
        for (const exchange of waiting.splice(0)) exchange.end(new errors.ClientDestroyedError())
      for (const connection of connections) connection.destroy()
    },
  }
}

/** What lanes and connections share. */
interface Pool extends Http2PoolOptions {
  /** All open connections. */
  readonly connections: Set<PooledConnection>
  keepsIdle: boolean
  /** Called when a lane may be empty. */
  leave(lane: Lane): void
  /** From now on, the owner has connections that no other owner uses. */
  isolate(owner: string): void
}

/** Connections for the same owners. */
class Lane {
  readonly name: string
  /** Exchanges that wait for the connection that is being opened. */
  readonly waiting: Http2Exchange[] = []
  readonly #pool: Pool
  /** The connections that get new exchanges. */
  readonly #usable = new Set<PooledConnection>()
  #opening = 0

  constructor(name: string, pool: Pool) {
    this.name = name
    this.#pool = pool
  }

  get isEmpty(): boolean {
    return this.#opening === 0 && this.#usable.size === 0 && this.waiting.length === 0
  }

  start(exchange: Http2Exchange): void {
    if (exchange.isOver) return
    for (const connection of this.#usable)
      if (connection.hasRoom && !exchange.refusedBy.includes(connection))
        if (!exchange.hasBody || connection.takesBody()) return void connection.start(exchange)
    this.waiting.push(exchange)
    if (this.#opening === 0) this.#dial()
  }

  add(socket: Socket): void {
    this.#opening++
    const connection = new PooledConnection(this.#pool, socket, {
      onReady: () => {
        this.#usable.add(connection)
        this.#opened()
      },
      onUnready: error => this.#opened(error),
      onRetired: () => {
        this.#usable.delete(connection)
        this.#pool.leave(this)
      },
    })
  }

  #dial(): void {
    this.#opening++
    this.#pool.dial((error, socket) => {
      this.#opening--
      if (socket) this.add(socket)
      else this.#flush(error ?? new errors.SocketError('no connection'))
    })
  }

  #opened(error?: Error): void {
    this.#opening--
    this.#flush(error)
  }

  #flush(error?: Error): void {
    for (const exchange of this.waiting.splice(0)) {
      if (!error) this.start(exchange)
      else if (!this.#startWithoutWindow(exchange)) exchange.end(error)
    }
    this.#pool.leave(this)
  }

  /** No connection can be opened, but the application may still read from one that has little window left. */
  #startWithoutWindow(exchange: Http2Exchange): boolean {
    for (const connection of this.#usable)
      if (connection.hasRoom && !exchange.refusedBy.includes(connection)) {
        connection.start(exchange)
        return true
      }
    return false
  }
}

interface ConnectionEvents {
  onReady(): void
  /** It was closed before it was ready. */
  onUnready(error: Error): void
  onRetired(): void
}

class PooledConnection implements Http2Connection {
  readonly #pool: Pool
  readonly #events: ConnectionEvents
  readonly #session: ClientHttp2Session
  readonly #idle: NodeJS.Timeout
  readonly #pings: NodeJS.Timeout
  /** See the table at the top. */
  #state: 'opening' | 'open' | 'retired' | 'closed' = 'opening'
  #streams = 0
  /** The exchanges with bodies. */
  readonly #uploads = new Set<Http2Exchange>()
  #judgedAt = 0
  #maxStreams = DEFAULT_STREAMS
  #resets = 0
  /** Streams that wait to be reset, in the order in which their exchanges ended. */
  readonly #abandoned = new Set<ClientHttp2Stream>()
  #laterResets: NodeJS.Timeout | undefined
  /** The last stream that the application processes, after GOAWAY. */
  #lastStream = Number.POSITIVE_INFINITY

  constructor(pool: Pool, socket: Socket, events: ConnectionEvents) {
    this.#pool = pool
    this.#events = events
    const { origin, maxHeaderSize } = pool
    const options = {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW,
        maxHeaderListSize: maxHeaderSize * HEAD_LIMIT_FACTOR,
      },
      maxHeaderListPairs: MAX_HEADER_PAIRS,
      // A client may repeat a header that should occur once. HTTP/1.1 passes that on, too.
      strictSingleValueFields: false,
    }
    const session = connect(origin, options)
    this.#session = session
    pool.connections.add(this)
    this.#idle = setTimeout(() => this.closeIfIdle(), IDLE_MS).unref()
    this.#pings = setInterval(() => this.#streams > 0 && this.#ping(), PING_INTERVAL_MS).unref()
    const silent = setTimeout(() => this.#open(), SETTINGS_MS)
    // The exchanges learn of it from their streams.
    session.on('error', () => {})
    socket.on('error', () => {})
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW))
    session.on('remoteSettings', ({ maxConcurrentStreams = DEFAULT_STREAMS }) => {
      // Some applications announce 0 while they start; nghttp2 holds back streams beyond the limit.
      this.#maxStreams = Math.max(1, maxConcurrentStreams)
      clearTimeout(silent)
      this.#open()
    })
    session.on('goaway', (_code, lastStream) => {
      this.#lastStream = lastStream
      this.retire()
    })
    session.once('close', () => {
      clearTimeout(silent)
      clearTimeout(this.#idle)
      clearInterval(this.#pings)
      clearInterval(this.#laterResets)
      pool.connections.delete(this)
      this.retire()
    })
  }

  /** Node closes a session a moment before it emits the event that retires the connection. */
  get hasRoom(): boolean {
    const { closed, destroyed } = this.#session
    return !closed && !destroyed && this.#streams < this.#maxStreams
  }

  /** Reading the window takes up to a microsecond. */
  takesBody(): boolean {
    const { remoteWindowSize = MIN_WINDOW } = this.#session.state
    if (remoteWindowSize >= MIN_WINDOW) return true
    this.#isolateStuck()
    return false
  }

  start(exchange: Http2Exchange): void {
    const stream = exchange.send(this)
    if (!stream) return
    this.#streams++
    if (exchange.hasBody) this.#uploads.add(exchange)
    // Not `once`: it comes once in any case, and removing a listener from a stream takes a microsecond.
    stream.on('close', () => {
      this.#uploads.delete(exchange)
      this.#onStreamClose(stream)
    })
  }

  request(head: Http2Headers, options: { endStream: boolean; waitForTrailers: boolean }): ClientHttp2Stream {
    return this.#session.request(head, options)
  }

  reset(stream: ClientHttp2Stream, code: number): boolean {
    this.#resets++
    if (this.#resets <= RETIRE_AFTER_RESETS) {
      stream.close(code)
      if (this.#resets === RETIRE_AFTER_RESETS) this.retire()
      return true
    }
    this.#abandoned.add(stream)
    this.#laterResets ??= setInterval(() => this.#resetNext(), DEFERRED_RESET_INTERVAL_MS).unref()
    this.#closeIfAbandoned()
    return false
  }

  isUnprocessed({ id, rstCode }: ClientHttp2Stream): boolean {
    // nghttp2 also uses this code for a stream beyond GOAWAY.
    return id === undefined || rstCode === constants.NGHTTP2_REFUSED_STREAM || id > this.#lastStream
  }

  retire(): void {
    const before = this.#state
    if (before !== 'opening' && before !== 'open') return
    this.#state = 'retired'
    if (before === 'open') this.#events.onRetired()
    else this.#events.onUnready(new errors.SocketError('the application has closed the connection'))
    if (this.#streams === 0) this.#close()
  }

  closeIfIdle(): void {
    if (this.#streams === 0 && this.#state === 'open') this.retire()
  }

  destroy(): void {
    this.#session.destroy()
  }

  /** It is unknown whose bytes are unread, so it applies to each owner of bodies that may fill the window. */
  #isolateStuck(): void {
    const now = performance.now()
    if (now - this.#judgedAt < STUCK_MS) return
    this.#judgedAt = now
    const sent = new Map<string, number>()
    for (const { owner, upload } of this.#uploads)
      if (upload && now - upload.progressAt >= STUCK_MS) sent.set(owner, (sent.get(owner) ?? 0) + upload.sentBytes)
    for (const [owner, bytes] of sent) if (bytes >= MIN_WINDOW) this.#pool.isolate(owner)
  }

  #open(): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#events.onReady()
  }

  #onStreamClose(stream: ClientHttp2Stream): void {
    this.#streams--
    this.#abandoned.delete(stream)
    if (this.#streams > 0) this.#closeIfAbandoned()
    else if (this.#state === 'retired') this.#close()
    else if (this.#pool.keepsIdle) this.#idle.refresh()
    else this.retire()
  }

  #close(): void {
    this.#state = 'closed'
    if (!this.#session.closed) this.#session.close()
  }

  #resetNext(): void {
    for (const stream of this.#abandoned) {
      this.#abandoned.delete(stream)
      if (stream.destroyed || stream.closed) continue
      return void stream.close(constants.NGHTTP2_CANCEL)
    }
    clearInterval(this.#laterResets)
    this.#laterResets = undefined
  }

  /** Closing the connection ends all of its streams without a reset. */
  #closeIfAbandoned(): void {
    if (this.#state !== 'retired' || this.#abandoned.size < this.#streams) return
    this.#state = 'closed'
    this.destroy()
  }

  /** An application that is silent, or its machine, may be dead. */
  #ping(): void {
    const session = this.#session
    const deadline = setTimeout(() => session.destroy(new errors.SocketError('no answer to a PING')), PING_MS).unref()
    const isSent = !session.destroyed && session.ping(() => clearTimeout(deadline))
    if (!isSent) clearTimeout(deadline)
  }
}
