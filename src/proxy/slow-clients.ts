// Cuts off clients that neither take what they asked for nor send what they announced. It looks at connections, so that
// no kind of answer can be forgotten, and counts how often nothing had moved, so that a request costs no timer.

import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { type Socket, SocketAddress } from 'node:net'
import { endianness } from 'node:os'
import { isTrusted, plainAddress } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { Report } from '../events.ts'
import { type ObservedRequest, observedFields } from '../observe/observed-request.ts'
import { createWatchList, type Watched } from '../util/watch-list.ts'

export interface SlowClients {
  /** The connection of this answer is watched from now on. */
  watch(observed: ObservedRequest, response: ServerResponse): void
  /** The same for a connection that has become a socket of another kind. */
  watchSocket(observed: ObservedRequest, socket: Socket): void
  stop(): void
}

interface ClientConnection extends Watched {
  readonly socket: Socket
  /** The newest that was not over at once; only its request can still be on its way. */
  response: ServerResponse | undefined
  /** Of the newest request, as long as it is under way. */
  observed: ObservedRequest | undefined
  delivered: number
  /** What the kernel held at the last look, if it was asked. */
  queued: number | undefined
  received: number
  /** How many looks in a row found the same bytes waiting for the client to take them. */
  unread: number
  /** How many found us waiting for more of a body. */
  unsent: number
  /** How many found a body still coming that nobody needs any more. */
  unwanted: number
}

/** So many looks make up the deadline. */
const LOOKS = 30
/** Where reading comes in steps that say nothing about the one who reads, the deadline is this many times longer. */
const UNSEEN_READING = 10

interface SlowClientsOptions {
  readonly settings: Pick<Settings, 'CLIENT_TIMEOUT_MS' | 'TRUSTED_PROXIES'>
  readonly report: Report
}

export function createSlowClients({ settings, report }: SlowClientsOptions): SlowClients {
  const connections = new WeakMap<Socket, ClientConnection>()
  const watched = createWatchList<ClientConnection>(Math.ceil(settings.CLIENT_TIMEOUT_MS / LOOKS), look)

  let reading: Promise<SendQueueOf> | undefined

  function look(connection: ClientConnection): void {
    if (seemsUnread(connection)) void lookCloser(connection)
    lookAtReading(connection)
    const { unsent, unwanted } = connection
    if (unsent >= LOOKS) cutOff(connection, 'sends_nothing')
    else if (unwanted >= LOOKS) cutOff(connection, 'sends_for_too_long')
  }

  async function lookCloser(connection: ClientConnection): Promise<void> {
    const queueOf = await sendQueues()
    const { socket, queued: before } = connection
    const queued = queueOf(socket)
    const hasRead = queued !== undefined && before !== undefined && queued < before
    connection.queued = queued
    connection.unread = hasRead ? 0 : connection.unread + 1
    if (connection.unread >= patienceWith(connection)) cutOff(connection, 'reads_nothing')
  }

  /** Read once for all who seem to read nothing. */
  function sendQueues(): Promise<SendQueueOf> {
    reading ??= readSendQueues().finally(() => {
      reading = undefined
    })
    return reading
  }

  /** A proxy reads only when its own kernel has passed a good part of megabytes on, and has deadlines of its own. */
  function patienceWith({ socket, queued }: ClientConnection): number {
    const isProxy = isTrusted(settings.TRUSTED_PROXIES, socket.remoteAddress ?? '')
    return queued === undefined || isProxy ? LOOKS * UNSEEN_READING : LOOKS
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
      received: 0,
      unread: 0,
      unsent: 0,
      unwanted: 0,
      place: 0,
    }
    connections.set(socket, fresh)
    watched.add(fresh)
    socket.once('close', () => {
      watched.remove(fresh)
      // Small collections keep a closed socket; all that it leads to would be copied, and stay until the next large one.
      fresh.response = fresh.observed = undefined
    })
    return fresh
  }

  function watch(observed: ObservedRequest, socket: Socket, response: ServerResponse | undefined): void {
    const connection = connections.get(socket) ?? add(socket)
    connection.response = response
    connection.observed = observed
  }

  return {
    watch: (observed, response) => watch(observed, response.req.socket, response),
    watchSocket: (observed, socket) => watch(observed, socket, undefined),
    stop: () => watched.stop(),
  }
}

/** A stream that has nothing to say is not idle: only bytes that wait to be taken count. */
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

function lookAtReading(connection: ClientConnection): void {
  const { socket, response } = connection
  if (!response) return
  const { req: request } = response
  if (request.complete) {
    connection.unsent = connection.unwanted = 0
    // A kept connection must not keep its last request in memory.
    if (response.writableFinished) connection.response = connection.observed = undefined
    return
  }
  const received = socket.bytesRead
  // What has come and was not taken waits for us, or for the application.
  const isWaiting = request.readableLength === 0 && received === connection.received
  connection.unsent = isWaiting ? connection.unsent + 1 : 0
  connection.unwanted = response.writableEnded ? connection.unwanted + 1 : 0
  connection.received = received
}

// How much the kernel still holds of what was written to a connection. It takes megabytes at once and asks for more only when
// a good part of them is gone: nothing else shows whether a slow client reads at all.

/** The bytes that the other side has not taken yet. `undefined` where nobody knows: not on Linux, or not on TCP. */
export type SendQueueOf = (socket: Socket) => number | undefined

interface Row {
  /** As the kernel writes it. */
  readonly peer: string
  readonly queued: number
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
/** Number, local address and port, peer's address and port, state, bytes that wait to be sent or confirmed. */
const ROW = /^ *\d+: [\dA-F]+:([\dA-F]{4}) ([\dA-F]+):([\dA-F]{4}) [\dA-F]{2} ([\dA-F]{8}):/gm

/** All connections of this machine as they are now. */
export async function readSendQueues(): Promise<SendQueueOf> {
  const tables = await Promise.all(TABLES.map(table => readFile(table, 'latin1').catch(() => '')))
  const rows = new Map<string, Row[]>()
  for (const [, localPort = '', peer = '', peerPort = '', queued = ''] of tables.join('').matchAll(ROW)) {
    const ports = `${localPort} ${peerPort}`
    const row = { peer, queued: Number.parseInt(queued, 16) }
    const same = rows.get(ports)
    if (same) same.push(row)
    else rows.set(ports, [row])
  }
  return ({ localPort, remotePort, remoteAddress }) => {
    if (localPort === undefined || remotePort === undefined || remoteAddress === undefined) return undefined
    const candidates = rows.get(`${portOf(localPort)} ${portOf(remotePort)}`)
    const [address] = remoteAddress.split('%')
    return candidates?.find(({ peer }) => addressOf(peer) === address)?.queued
  }
}

function portOf(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}

/** The kernel writes an address as numbers of 32 bits in the order of this machine. */
function addressOf(peer: string): string {
  const bytes = Buffer.from(peer, 'hex')
  if (endianness() === 'LE') bytes.swap32()
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(n * 2).toString(16))
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address
}
