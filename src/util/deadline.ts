// A deadline for whatever a store waits for: a server or a disk that hangs must not hang us.

export async function inTime<Result>(work: Promise<Result>, ms: number): Promise<Result> {
  const late = Promise.withResolvers<never>()
  const reject = () => late.reject(new Error(`No answer within ${ms} ms.`))
  // Not before the sockets were looked at: if it was this process that was busy, the answer may be there.
  const timer = setTimeout(() => setImmediate(reject), ms)
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
