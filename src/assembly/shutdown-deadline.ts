// The deadline of a shutdown. After it, parts are closed without waiting for unfinished work.

export interface ShutdownDeadline {
  start(timeoutMs: number): void
  /** The remaining time. */
  leftMs(): number
  /** Waits until the work is finished or the deadline has passed. */
  wait(work: Promise<unknown> | unknown): Promise<void>
  stop(): void
}

export function createShutdownDeadline(): ShutdownDeadline {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let endsAt = Number.POSITIVE_INFINITY
  return {
    start(timeoutMs) {
      endsAt = performance.now() + timeoutMs
      timer = setTimeout(end, timeoutMs)
    },
    leftMs: () => Math.max(0, endsAt - performance.now()),
    async wait(work) {
      await Promise.race([work, over])
    },
    stop: () => clearTimeout(timer),
  }
}
