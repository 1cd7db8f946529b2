// A deadline for whatever Redis is asked. The timeouts of node-redis end when a command is written, not when it is
// answered: without this, a server that hangs would hang us.

export const DEADLINE_MS = 2000

export async function inTime<Result>(work: Promise<Result>, ms = DEADLINE_MS): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const reject = () => late.reject(new Error(`No answer within ${ms} ms.`))
  // Not before the sockets were looked at: if it was this process that was busy, the answer may be there.
  const timer = setTimeout(() => setImmediate(reject), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
