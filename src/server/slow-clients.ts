// Cuts off clients that do not read their answer, or do not send the body that they announced. It checks connections, so that
// it covers every kind of answer, and counts checks without progress, so that a request costs no timer. With HTTP/2 each stream
// is checked: one that its client does not read is cut off, and the others of its connection go on.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isTrusted, plainAddress } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { Report } from '../events.ts'
import { type ObservedRequest, observedFields } from '../observe/observed-request.ts'
import { isGrpcCall } from '../util/grpc.ts'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'
import { Http2Response } from './http2-messages.ts'
import { readSendQueues, type SendQueueLookup } from './send-queues.ts'

export interface SlowClients {
  /** Watches the connection of this answer from now on. */
  watch(observed: ObservedRequest, response: ServerResponse): void
  /** Watches a connection that was upgraded. */
  watchSocket(observed: ObservedRequest, socket: Socket): void
  stop(): void
}

/** Whether nothing is left of an answer that its client could be slow to take. */
export function isFullySent(response: ServerResponse): boolean {
  if (response instanceof Http2Response) return response.isOver
  // Without a socket it has finished, or waits for an earlier answer of the same connection.
  return response.writableFinished || (response.writableEnded && response.socket?.writableLength === 0)
}

interface ClientConnection extends WatchItem {
  readonly socket: Socket
  /** The newest that did not end immediately; only the body of its request can still be on its way. */
  response: ServerResponse | undefined
  /** The newest request, while it is in progress. */
  observed: ObservedRequest | undefined
  delivered: number
  /** What the kernel held at the last check, if it was asked. */
  queued: number | undefined
  /** Whether a check waits for the kernel's table: until it is read, further checks would count the same bytes again. */
  isReading: boolean
  received: number
  /** How many checks in a row found the same bytes waiting for the client to read them. */
  unread: number
  /** How many found us waiting for more of the body. */
  unsent: number
  /** How many found the body still coming after the request was answered. */
  unwanted: number
}

/** A stream of HTTP/2. */
interface ClientStream extends WatchItem {
  readonly response: Http2Response
  readonly observed: ObservedRequest
  delivered: number
  queued: number | undefined
  isReading: boolean
  /** How much more the client may send before we have read it; changes with everything that arrives. */
  window: number
  unread: number
  unsent: number
}

/** The number of checks until the deadline. */
const MAX_CHECKS = 30
/** Where the client's reading cannot be seen, the deadline is this many times longer. */
const UNOBSERVABLE_FACTOR = 10

interface SlowClientsOptions {
  readonly settings: Pick<Settings, 'CLIENT_TIMEOUT_MS' | 'TRUSTED_PROXIES'>
  readonly report: Report
}

export function createSlowClients({ settings, report }: SlowClientsOptions): SlowClients {
  const connections = new WeakMap<Socket, ClientConnection>()
  const watched = createWatchList<ClientConnection>(Math.ceil(settings.CLIENT_TIMEOUT_MS / MAX_CHECKS), checkConnection)

  const streams = createWatchList<ClientStream>(Math.ceil(settings.CLIENT_TIMEOUT_MS / MAX_CHECKS), checkStream)

  function checkStream(stream: ClientStream): void {
    const { response } = stream
    const pending = response.writableLength
    const delivered = response.bytesWritten - pending
    if (pending === 0 || delivered !== stream.delivered) {
      stream.unread = 0
      stream.queued = undefined
    } else void checkWindow(stream)
    stream.delivered = delivered
    if (lacksBody(stream)) cutOffStream(stream, 'sends_nothing')
  }

  /**
   * Data may wait because other streams use the connection as well, or because the client reads nothing of this stream. Nothing
   * shows which it is while the connection flows.
   */
  async function checkWindow(stream: ClientStream): Promise<void> {
    const queueOf = await sendQueues(stream)
    if (!queueOf) return
    const { socket } = stream.response
    const { queued: before } = stream
    const queued = queueOf(socket)
    const flows = queued !== undefined && before !== undefined && queued < before
    stream.queued = queued
    stream.unread += flows ? 1 / UNOBSERVABLE_FACTOR : 1
    if (stream.unread >= checksAllowed({ socket, queued })) cutOffStream(stream, 'reads_nothing')
  }

  function cutOffStream({ response, observed }: ClientStream, reason: string): void {
    if (response.destroyed) return
    const { user } = observed
    report('client_cut_off', { ...observedFields(observed), ...(user === undefined ? {} : { user }), reason })
    response.destroy()
  }

  function watchStream(observed: ObservedRequest, response: Http2Response): void {
    if (response.isWatched || response.destroyed) return
    response.isWatched = true
    const stream = {
      response,
      observed,
      delivered: 0,
      queued: undefined,
      isReading: false,
      window: 0,
      unread: 0,
      unsent: 0,
      index: 0,
    }
    streams.add(stream)
    response.once('close', () => streams.remove(stream))
  }

  function checkConnection(connection: ClientConnection): void {
    if (seemsUnread(connection)) void checkSendQueue(connection)
    checkUpload(connection)
    const { unsent, unwanted } = connection
    if (unsent >= MAX_CHECKS) cutOff(connection, 'sends_nothing')
    else if (unwanted >= MAX_CHECKS) cutOff(connection, 'sends_for_too_long')
  }

  async function checkSendQueue(connection: ClientConnection): Promise<void> {
    const queueOf = await sendQueues(connection)
    if (!queueOf) return
    const { socket, queued: before } = connection
    const queued = queueOf(socket)
    const hasRead = queued !== undefined && before !== undefined && queued < before
    connection.queued = queued
    connection.unread = hasRead ? 0 : connection.unread + 1
    if (connection.unread >= checksAllowed(connection)) cutOff(connection, 'reads_nothing')
  }

  /** `undefined` if `item` waits for it already. */
  async function sendQueues(item: { isReading: boolean }): Promise<SendQueueLookup | undefined> {
    if (item.isReading) return undefined
    item.isReading = true
    try {
      return await readSendQueues()
    } finally {
      item.isReading = false
    }
  }

  /** A proxy reads only after its kernel has passed megabytes on, and has its own deadlines. */
  function checksAllowed({ socket, queued }: Pick<ClientConnection, 'socket' | 'queued'>): number {
    const isProxy = isTrusted(settings.TRUSTED_PROXIES, socket.remoteAddress ?? '')
    return queued === undefined || isProxy ? MAX_CHECKS * UNOBSERVABLE_FACTOR : MAX_CHECKS
  }

  function cutOff({ socket, observed }: ClientConnection, reason: string): void {
    if (socket.destroyed) return
    const { user } = observed ?? {}
    const who = observed ? observedFields(observed) : { address: plainAddress(socket.remoteAddress ?? '') }
    report('client_cut_off', { ...who, ...(user === undefined ? {} : { user }), reason })
    socket.destroy()
  }

  function add(socket: Socket): ClientConnection {
    const fresh = {
      socket,
      response: undefined,
      observed: undefined,
      delivered: 0,
      queued: undefined,
      isReading: false,
      received: 0,
      unread: 0,
      unsent: 0,
      unwanted: 0,
      index: 0,
    }
    connections.set(socket, fresh)
    watched.add(fresh)
    onceClosed(socket, () => {
      watched.remove(fresh)
      // Minor collections keep a closed socket: everything that it refers to would stay until the next major one.
      fresh.response = fresh.observed = undefined
    })
    return fresh
  }

  function watch(observed: ObservedRequest, socket: Socket, response: ServerResponse | undefined): void {
    if (socket.destroyed) return
    const connection = connections.get(socket) ?? add(socket)
    connection.response = response
    connection.observed = observed
  }

  return {
    watch: (observed, response) =>
      response instanceof Http2Response
        ? watchStream(observed, response)
        : watch(observed, response.req.socket, response),
    watchSocket: (observed, socket) => watch(observed, socket, undefined),
    stop() {
      watched.stop()
      streams.stop()
    },
  }
}

const CLOSE_LISTENERS = new WeakMap<Socket, (() => void)[]>()

/** One listener for all instances of the process, because Node warns of more than ten. */
function onceClosed(socket: Socket, listener: () => void): void {
  const listeners = CLOSE_LISTENERS.get(socket)
  if (listeners) return void listeners.push(listener)
  const own = [listener]
  CLOSE_LISTENERS.set(socket, own)
  socket.once('close', () => {
    for (const listen of own) listen()
    own.length = 0
  })
}

/** Not for gRPC, whose calls may be silent like a WebSocket. */
function lacksBody(stream: ClientStream): boolean {
  const { req: request } = stream.response
  if (request.complete || isGrpcCall(request)) return false
  const { localWindowSize: window = 0 } = request.stream.state
  const isWaiting = request.readableLength === 0 && window === stream.window
  stream.unsent = isWaiting ? stream.unsent + 1 : 0
  stream.window = window
  return stream.unsent >= MAX_CHECKS
}

/** A stream without data is not unread: only bytes that wait to be read matter. */
function seemsUnread(connection: ClientConnection): boolean {
  const { socket } = connection
  const pending = socket.writableLength
  const delivered = pending > 0 ? socket.bytesWritten - pending : 0
  const isStill = pending > 0 && delivered === connection.delivered
  connection.delivered = delivered
  if (!isStill) {
    connection.unread = 0
    connection.queued = undefined
  }
  return isStill
}

function checkUpload(connection: ClientConnection): void {
  const { socket, response } = connection
  if (!response) return
  const { req: request } = response
  if (request.complete) {
    connection.unsent = connection.unwanted = 0
    // An idle connection must not keep its last request in memory.
    if (response.writableFinished) connection.response = connection.observed = undefined
    return
  }
  const received = socket.bytesRead
  // Bytes that have arrived and were not read wait for us, or for the application.
  const isWaiting = request.readableLength === 0 && received === connection.received
  connection.unsent = isWaiting ? connection.unsent + 1 : 0
  connection.unwanted = response.writableEnded ? connection.unwanted + 1 : 0
  connection.received = received
}
