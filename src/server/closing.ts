// The connections of a server that closes: idle ones end, those that are still in use or at their start do not, and a deadline ends
// the rest. Unfinished TLS handshakes and unfinished heads of requests get two seconds.

import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { pendingAnswer } from '../util/node-http.ts'
import { isReading, newReadProgress, noteUnread, POLL_INTERVAL_MS, type ReadProgress } from './last-bytes.ts'
import { readSendQueues } from './send-queues.ts'

export interface OpenConnections {
  /** From now on, connections end when they are idle, and those that do not finish their TLS handshake or the head of a request. */
  endIdle(): void
  /** Called when all have ended. */
  stop(): void
  destroyAll(): void
}

/** While the server closes, how long a connection may take from its TLS handshake to its first request. */
export const FIRST_REQUEST_MS = 1000
/** How much longer an unfinished handshake or head may take. */
const UNFINISHED_MS = 2000
const IDLE_CHECK_MS = 50

export function watchConnections(server: Server | HttpServer, isSecure: boolean): OpenConnections {
  /** Node tracks neither unfinished handshakes nor HTTP/2. */
  const accepted = new Set<Socket>()
  /** By the address of the client. */
  const handshaking = new Map<string, Socket>()
  const ready = new Map<Socket, ReadyConnection>()
  let idleTimer: NodeJS.Timeout | undefined
  let queueTimer: NodeJS.Timeout | undefined
  let unfinished: NodeJS.Timeout | undefined

  server.on('connection', (socket: Socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
    if (!isSecure) return
    const client = clientOf(socket)
    handshaking.set(client, socket)
    socket.once('close', () => handshaking.get(client) === socket && handshaking.delete(client))
  })
  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket | TLSSocket) => {
    handshaking.delete(clientOf(socket))
    const protocol = 'alpnProtocol' in socket ? socket.alpnProtocol : undefined
    // Its HTTP/2 session ends it.
    if (protocol === 'h2') return
    // A client connects to send a request, and after a handshake that may take a round trip more.
    ready.set(socket, { client: undefined, startsUntil: isSecure ? performance.now() + FIRST_REQUEST_MS : 0 })
    socket.once('close', () => ready.delete(socket))
  })

  async function checkSendQueues(): Promise<void> {
    if (![...ready.values()].some(({ client }) => client !== undefined)) return
    const queueOf = await readSendQueues().catch(() => undefined)
    for (const [socket, { client }] of ready)
      if (client) noteUnread(client, socket.writableLength + (queueOf?.(socket) ?? 0))
  }

  /** All at once or none: Node does not tell which ones are idle. */
  function closeIdle(): void {
    let isAnyInUse = false
    for (const [socket, connection] of ready) {
      connection.client = socket.writableLength > 0 ? (connection.client ?? newReadProgress()) : undefined
      isAnyInUse ||= isInUse(socket, connection)
    }
    if (!isAnyInUse) server.closeIdleConnections()
  }

  function endUnfinished(): void {
    destroyEach(handshaking)
    for (const [socket, connection] of ready)
      if (!isInUse(socket, connection) && socket.writableLength === 0 && !pendingAnswer(socket)) socket.destroy()
  }

  return {
    endIdle() {
      idleTimer = setInterval(closeIdle, IDLE_CHECK_MS)
      queueTimer = setInterval(() => void checkSendQueues(), POLL_INTERVAL_MS)
      unfinished = setTimeout(endUnfinished, UNFINISHED_MS)
    },
    stop() {
      clearInterval(idleTimer)
      clearInterval(queueTimer)
      clearTimeout(unfinished)
    },
    destroyAll: () => destroyEach(accepted),
  }
}

interface ReadyConnection {
  /** Its client, while the end of an answer waits for it. */
  client: ReadProgress | undefined
  /** Until when it may send its first request. */
  readonly startsUntil: number
}

/** Node takes an answer for sent once all of it was written, although its end may wait here for a client that reads slowly. */
function isInUse(socket: Socket, { client, startsUntil }: ReadyConnection): boolean {
  return client ? isReading(client) : socket.bytesRead === 0 && performance.now() < startsUntil
}

function destroyEach(sockets: { values(): Iterable<Socket> }): void {
  for (const socket of sockets.values()) socket.destroy()
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
