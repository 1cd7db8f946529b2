// A deadline for work that others wait for: a server, a disk or a script that hangs must not hang the caller. And one for a
// socket or a stream that is about to end.

import type { Duplex } from 'node:stream'

/**
 * The result of `work`, or after `ms` that of `late`, which may throw. The default is to reject. The work itself goes on, and
 * its result is ignored.
 */
export function withDeadline<Result, Late = never>(
  work: Promise<Result>,
  ms: number,
  late: () => Late | Promise<Late> = () => throwTimeout(ms),
): Promise<Result | Late> {
  const { promise, resolve, reject } = Promise.withResolvers<Result | Late>()
  let isOver = false
  const end = () => {
    if (!isOver) resolve(Promise.try(late))
  }
  // After the sockets were read: if this process was busy, the answer may have arrived already.
  const timer = setTimeout(() => setImmediate(end), ms)
  const over = () => {
    isOver = true
    clearTimeout(timer)
  }
  work.then(
    result => {
      over()
      resolve(result)
    },
    (error: unknown) => {
      over()
      reject(error)
    },
  )
  return promise
}

function throwTimeout(ms: number): never {
  throw new Error(`No answer within ${ms} ms.`)
}

/** The timer is cleared if the socket closes earlier. */
export function destroyAfter(socket: Duplex, ms: number): void {
  if (socket.destroyed) return
  const deadline = setTimeout(() => socket.destroy(), ms)
  socket.once('close', () => clearTimeout(deadline))
}
