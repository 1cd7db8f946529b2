// What is open for longer than a moment is looked at now and then: one timer for all, instead of one for each.

export interface Watched {
  /** Where it is in the list; the list's own. */
  place: number
}

interface WatchList<Item extends Watched> {
  readonly items: readonly Item[]
  add(item: Item): void
  /** Does nothing if it is not there. */
  remove(item: Item): void
  stop(): void
}

/** `look` may take its item out of the list. */
export function createWatchList<Item extends Watched>(everyMs: number, look: (item: Item) => void): WatchList<Item> {
  // A Set would leave behind old tables that keep what it has forgotten in memory.
  const items: Item[] = []
  let timer: NodeJS.Timeout | undefined

  function lookAtAll(): void {
    // From the end: what is taken out meanwhile makes room for one that was looked at already.
    for (let place = items.length - 1; place >= 0; place--) {
      const item = items[place]
      if (item) look(item)
    }
    if (items.length === 0) stop()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    items,
    add(item) {
      item.place = items.length
      items.push(item)
      timer ??= setInterval(lookAtAll, everyMs).unref()
    },
    /** The last one takes its place. */
    remove(item) {
      if (items[item.place] !== item) return
      const last = items.pop()
      if (last === undefined || last === item) return
      items[item.place] = last
      last.place = item.place
    },
    stop,
  }
}
