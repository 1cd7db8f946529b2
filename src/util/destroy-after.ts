// A deadline for a socket or a stream that is about to end.

import type { Duplex } from 'node:stream'

/** The timer goes with the socket if that is closed before. */
export function destroyAfter(socket: Duplex, ms: number): void {
  if (socket.destroyed) return
  const deadline = setTimeout(() => socket.destroy(), ms)
  socket.once('close', () => clearTimeout(deadline))
}
