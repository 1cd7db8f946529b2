// Sessions that a new sign-in of the same browser replaces, where AUTO_SIGN_IN may have redirected several tabs to the provider at
// the same time: another tab may be loading its page with the ticket of the first one, so that session ends ten seconds later.

export interface ReplacedSessions {
  /** Ends a session in ten seconds, or when this process stops. `end` must not reject. */
  endLater(end: () => Promise<unknown>): void
  /** Ends those that are left. */
  settle(): Promise<void>
}

/** Tabs that were redirected to the provider at the same time are back within this time, and have requested their pages. */
export const OTHER_TABS_MS = 10_000

export function createReplacedSessions(): ReplacedSessions {
  const waiting = new Map<NodeJS.Timeout, () => Promise<unknown>>()
  const ending = new Set<Promise<unknown>>()

  function endNow(timer: NodeJS.Timeout, end: () => Promise<unknown>): void {
    clearTimeout(timer)
    waiting.delete(timer)
    const ended = end().finally(() => ending.delete(ended))
    ending.add(ended)
  }

  return {
    endLater(end) {
      const timer = setTimeout(() => endNow(timer, end), OTHER_TABS_MS).unref()
      waiting.set(timer, end)
    },
    async settle() {
      for (const [timer, end] of [...waiting]) endNow(timer, end)
      await Promise.all(ending)
    },
  }
}
