// Work that is done once for all who ask for it at the same time. Work that starts after a call serves that call, and all others that
// wait; work that has started before it does not, because it may have missed what the caller wants to see. If a user signs in a
// hundred times at the same time, that takes a few scans of their sessions, not a hundred scans of a hundred sessions.
//
//   A asks    the work starts
//   B, C ask  both wait for the next work
//   A's work ends and the next starts, for B and C

export interface SerialQueues<T> {
  join(name: string, work: () => Promise<T>): Promise<T>
}

export function createSerialQueues<T>(): SerialQueues<T> {
  const running = new Map<string, Promise<T>>()
  const waiting = new Map<string, Promise<T>>()

  function start(name: string, work: () => Promise<T>): Promise<T> {
    const result = work().finally(() => {
      if (running.get(name) === result) running.delete(name)
    })
    running.set(name, result)
    return result
  }

  async function startAfter(before: Promise<T>, name: string, work: () => Promise<T>): Promise<T> {
    // Its own callers handle its failure.
    await before.catch(() => {})
    waiting.delete(name)
    return start(name, work)
  }

  return {
    join(name, work) {
      const before = running.get(name)
      if (!before) return start(name, work)
      const next = waiting.get(name) ?? startAfter(before, name, work)
      waiting.set(name, next)
      return next
    },
  }
}
