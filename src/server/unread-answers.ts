// An HTTP/2 client that opens no window, or does not read its connection, gets no byte of its answers, and each of them waits in
// memory until slow-clients.ts cuts it off. One connection has at most 128 streams, and an application's answer pauses once 64 KB
// of it and the chunk after them wait: 16 MB for a connection. What waits for all connections of one network is bounded here, so
// that users who share an address do not lose their answers because of one connection or one user: beyond the limit of our own
// responses the connection that holds the most loses the oldest, and beyond that of applications' answers, the owner who holds the
// most.

import type { Socket } from 'node:net'
import { network, plainAddress } from '../config/networks.ts'

/** The request that an application's answer is for. */
export interface AnswerSender {
  /** Whose request it is. */
  readonly owner: string
  /** Called when its answer is cut off, because too much of what its owner asked for is unread. */
  onUnread(): void
}

/** The parts of an HTTP/2 answer that are used here. */
export interface UnreadAnswer {
  readonly socket: Socket
  readonly destroyed: boolean
  readonly writableLength: number
  readonly writableEnded: boolean
  readonly writableNeedDrain: boolean
  /** For an application's answer. */
  readonly sender: AnswerSender | undefined
  /** Nothing more of it is sent, and nothing of it is kept. */
  refuse(): void
  once(event: 'close', listener: () => void): unknown
}

/** The answers of one connection. */
export interface UnreadAnswers {
  /** Whether a body of our own may be sent; false if this client leaves too much unread. */
  admits(response: UnreadAnswer, bytes: number): boolean
  /** Called when a part of an application's answer begins to wait, was taken, or is discarded. */
  update(response: UnreadAnswer): void
}

export interface UnreadAnswerLimits {
  /** `leave` is called when the connection has closed. */
  join(socket: Socket): { readonly unread: UnreadAnswers; leave(): void }
}

/** The answers of our own that wait for one connection, and for all connections of one network. */
const MAX_OWN_BYTES_PER_CONNECTION = 1024 * 1024
const MAX_OWN_BYTES_PER_NETWORK = 16 * 1024 * 1024
/** What a browser that reads may leave of ours for a moment. */
const MAX_OWN_BYTES_PER_READER = 128 * 1024
/** The answers of applications that wait for all connections of one network. */
const MAX_FORWARDED_BYTES_PER_NETWORK = 64 * 1024 * 1024
/** The memory of a stream, in addition to its body. */
const BYTES_PER_STREAM = 8 * 1024
/** What has arrived from the application and is not written yet, while an answer pauses. */
const BYTES_PER_PAUSED = 128 * 1024

interface Network {
  connections: number
  readonly own: Set<UnreadAnswer>
  /** Responses of applications, with the bytes that wait for each; the oldest first. */
  readonly forwarded: Map<UnreadAnswer, number>
  /** The sum of `forwarded`. */
  bytes: number
}

export function createUnreadAnswers(): UnreadAnswerLimits {
  const networks = new Map<string, Network>()

  return {
    join(socket) {
      const name = network(plainAddress(socket.remoteAddress ?? ''))
      const joined = networks.get(name) ?? { connections: 0, own: new Set(), forwarded: new Map(), bytes: 0 }
      networks.set(name, joined)
      joined.connections++
      return {
        unread: {
          admits: (response, bytes) => admitsOwn(joined, response, bytes),
          update: response => update(joined, response),
        },
        leave() {
          joined.connections--
          if (joined.connections === 0) networks.delete(name)
        },
      }
    },
  }
}

function admitsOwn({ own }: Network, response: UnreadAnswer, bytes: number): boolean {
  let ofNetwork = bytes + BYTES_PER_STREAM
  let ofConnection = ofNetwork
  for (const other of own) {
    const size = bytesOfOwn(other)
    ofNetwork += size
    if (other.socket === response.socket) ofConnection += size
  }
  if (ofConnection > MAX_OWN_BYTES_PER_CONNECTION) return false
  if (ofNetwork > MAX_OWN_BYTES_PER_NETWORK) makeRoom(own, ofNetwork - MAX_OWN_BYTES_PER_NETWORK)
  own.add(response)
  response.once('close', () => own.delete(response))
  return true
}

function bytesOfOwn({ writableLength }: UnreadAnswer): number {
  return writableLength + BYTES_PER_STREAM
}

function heaviestOf<Holder>(held: ReadonlyMap<Holder, number>): Holder | undefined {
  let heaviest: Holder | undefined
  for (const [holder, bytes] of held) if (heaviest === undefined || bytes > (held.get(heaviest) ?? 0)) heaviest = holder
  return heaviest
}

/** If many connections hold little each, the oldest of all make room: a client that reads has newer ones. */
function makeRoom(own: Set<UnreadAnswer>, bytes: number): void {
  const byConnection = new Map<Socket, number>()
  for (const other of own) byConnection.set(other.socket, (byConnection.get(other.socket) ?? 0) + bytesOfOwn(other))
  const heaviest = heaviestOf(byConnection)
  const isHeavy = heaviest !== undefined && (byConnection.get(heaviest) ?? 0) > MAX_OWN_BYTES_PER_READER
  let left = bytes
  for (const other of own) {
    if (isHeavy && other.socket !== heaviest) continue
    left -= bytesOfOwn(other)
    own.delete(other)
    other.refuse()
    if (left <= 0) return
  }
}

function update(joined: Network, response: UnreadAnswer): void {
  const { forwarded } = joined
  const before = forwarded.get(response) ?? 0
  const after = bytesHeldFor(response)
  joined.bytes += after - before
  if (after > 0) forwarded.set(response, after)
  else forwarded.delete(response)
  if (after > before && joined.bytes > MAX_FORWARDED_BYTES_PER_NETWORK) cutOffHeaviest(joined)
}

function bytesHeldFor({ destroyed, writableLength, writableEnded, writableNeedDrain }: UnreadAnswer): number {
  if (destroyed || writableLength === 0) return 0
  return writableLength + BYTES_PER_STREAM + (writableNeedDrain && !writableEnded ? BYTES_PER_PAUSED : 0)
}

function cutOffHeaviest(joined: Network): void {
  const byOwner = new Map<string, number>()
  for (const [{ sender }, bytes] of joined.forwarded) {
    const owner = sender?.owner ?? ''
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + bytes)
  }
  const heaviest = heaviestOf(byOwner)
  for (const response of joined.forwarded.keys()) {
    if (joined.bytes <= MAX_FORWARDED_BYTES_PER_NETWORK) return
    const { sender } = response
    if ((sender?.owner ?? '') !== heaviest) continue
    sender?.onUnread()
    response.refuse()
    update(joined, response)
  }
}
