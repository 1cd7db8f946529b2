// The end of a connection whose last bytes wait in the kernel for a slow client, megabytes of them. What the client sends meanwhile,
// such as a WINDOW_UPDATE, has to be read: otherwise the kernel resets the connection, and the client loses the rest.

import type { Socket } from 'node:net'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'
import { readSendQueues } from './send-queues.ts'

interface EndingConnection extends WatchItem {
  readonly socket: Socket
  /** The bytes that its client had not read at the last look. */
  queued: number
  /** When its client was last seen to read. */
  readAt: number
}

const LOOK_EVERY_MS = 500
/** How long the client may take to read more of it, and to close once it has all of it. */
const READS_WITHIN_MS = 1000

const ending = createWatchList<EndingConnection>(LOOK_EVERY_MS, connection => {
  readSendQueues().then(
    queueOf => look(connection, queueOf(connection.socket) ?? 0),
    () => connection.socket.destroy(),
  )
})

/** For a connection that we have ended. */
export function destroyWhenRead(socket: Socket): void {
  if (socket.destroyed) return
  const connection = { socket, queued: Number.POSITIVE_INFINITY, readAt: performance.now(), index: 0 }
  ending.add(connection)
  socket.once('close', () => ending.remove(connection))
}

function look(connection: EndingConnection, queued: number): void {
  const now = performance.now()
  if (queued > 0 && queued < connection.queued) connection.readAt = now
  connection.queued = queued
  if (now - connection.readAt >= READS_WITHIN_MS) connection.socket.destroy()
}
