// Whether a slow client still reads the last bytes that it was sent: megabytes of them may wait in the kernel.

import type { Socket } from 'node:net'
import { createWatchList, type WatchItem } from '../util/watch-list.ts'
import { readSendQueues } from './send-queues.ts'

export interface ReadProgress {
  /** The bytes that it had not read at the last look. */
  unread: number
  /** When it was last seen to read. */
  readAt: number
}

/** How often to look. */
export const POLL_INTERVAL_MS = 500
/** How long the client may take to read more, and to close once it has all of it. */
const READ_TIMEOUT_MS = 1000

export function newReadProgress(): ReadProgress {
  return { unread: Number.POSITIVE_INFINITY, readAt: performance.now() }
}

export function isReading({ readAt }: ReadProgress): boolean {
  return performance.now() - readAt < READ_TIMEOUT_MS
}

export function noteUnread(client: ReadProgress, unread: number): void {
  if (unread > 0 && unread < client.unread) client.readAt = performance.now()
  client.unread = unread
}

interface EndingConnection extends ReadProgress, WatchItem {
  readonly socket: Socket
  isNew: boolean
}

const ending = createWatchList<EndingConnection>(POLL_INTERVAL_MS, connection => {
  // Nearly all clients close at once, and reading the queues costs time.
  if (connection.isNew) connection.isNew = false
  else void checkEnding(connection)
})

/**
 * For a connection that we have ended. Until its client has all of it, what it sends meanwhile, such as a WINDOW_UPDATE, has to be
 * read: otherwise the kernel resets the connection, and the client loses the rest.
 */
export function destroyWhenRead(socket: Socket): void {
  if (socket.destroyed) return
  const connection = { ...newReadProgress(), socket, isNew: true, index: 0 }
  ending.add(connection)
  socket.once('close', () => ending.remove(connection))
}

async function checkEnding(connection: EndingConnection): Promise<void> {
  const { socket } = connection
  const queueOf = await readSendQueues().catch(() => undefined)
  noteUnread(connection, queueOf?.(socket) ?? 0)
  if (!isReading(connection)) socket.destroy()
}
