// The other end of a connection, and its address, by which requests are counted.

export interface Peer {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean
}

/** Node keeps an address once it was read; after a reset there is none to read any more. */
export function rememberAddress({ remoteAddress: _ }: Peer): void {}

/**
 * Whether a connection was reset before the address of its other end was read: nobody waits for an answer, and the request
 * could not be counted. A Unix socket is no such connection: it has no address at either end.
 */
export function wasReset(socket: Peer): boolean {
  if (socket.remoteAddress !== undefined) return false
  return socket.destroyed === true || socket.localAddress !== undefined
}
