// Two sockets that become one: what comes in on either goes out on the other, until one of them has ended.
import type { Duplex } from 'node:stream'

/** When one side has said its last word, the other has this long to say its own. */
const LAST_WORD_MS = 5000

/** Only somebody who reads a socket learns that it was closed. What a hasty browser has sent is given back. */
export function readEarly(socket: Duplex, head: Buffer): () => Buffer {
  let early = head
  const keep = (chunk: Buffer) => {
    socket.pause()
    early = Buffer.concat([early, chunk])
  }
  const leave = () => void socket.destroy()
  socket.once('data', keep).once('end', leave)
  return () => {
    socket.off('data', keep).off('end', leave)
    return early
  }
}

export function joinSockets(one: Duplex, other: Duplex, oneHead: Buffer, otherHead: Buffer): void {
  if (oneHead.length > 0) other.write(oneHead)
  if (otherHead.length > 0) one.write(otherHead)
  one.pipe(other).pipe(one)
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    here.on('error', () => there.destroy())
    here.on('close', () => there.destroy())
    here.once('end', () => destroyAfter(there, LAST_WORD_MS))
  }
}

/** Nothing of it stays behind if it is closed before. */
export function destroyAfter(socket: Duplex, ms: number): void {
  if (socket.destroyed) return
  const deadline = setTimeout(() => socket.destroy(), ms)
  socket.once('close', () => clearTimeout(deadline))
}
