// Asks once for all who ask within a moment, however many they are.

export interface Fresh<T> {
  /** What failed is asked for again by the next. */
  get(): Promise<T>
  /** The next is told anew. */
  forget(): void
}

export function createFresh<T>(ask: () => Promise<T>, freshMs: number, now: () => number): Fresh<T> {
  let latest: { readonly answer: Promise<T>; readonly at: number } | undefined

  async function forgetFailure(answer: Promise<T>): Promise<void> {
    try {
      await answer
    } catch {
      if (latest?.answer === answer) latest = undefined
    }
  }

  return {
    get() {
      // A clock may be set back: what is from the future is not fresh for all the time until then.
      if (latest && Math.abs(now() - latest.at) < freshMs) return latest.answer
      latest = { answer: ask(), at: now() }
      void forgetFailure(latest.answer)
      return latest.answer
    },
    forget() {
      latest = undefined
    },
  }
}
