// How long what is under way may still take once somebody wants to end. After that the rest is closed without it.

export interface Patience {
  start(patienceMs: number): void
  /** What is left of it. */
  leftMs(): number
  /** Waits for the work, or until the patience is over. */
  wait(work: Promise<unknown> | unknown): Promise<void>
  stop(): void
}

export function createPatience(): Patience {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let endsAt = Number.POSITIVE_INFINITY
  return {
    start(patienceMs) {
      endsAt = performance.now() + patienceMs
      timer = setTimeout(end, patienceMs)
    },
    leftMs: () => Math.max(0, endsAt - performance.now()),
    async wait(work) {
      // What fails after the patience is over, nobody waits for.
      if (work instanceof Promise) work.catch(() => {})
      await Promise.race([work, over])
    },
    stop: () => clearTimeout(timer),
  }
}
