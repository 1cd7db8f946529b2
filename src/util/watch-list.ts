// Checks open connections and streams at intervals, with one timer for all of them.

export interface Watched {
  /** Its index in the list, set by the list. */
  place: number
}

interface WatchList<Item extends Watched> {
  readonly items: readonly Item[]
  add(item: Item): void
  /** Does nothing if it is not there. */
  remove(item: Item): void
  stop(): void
}

/** `look` may remove its item from the list. */
export function createWatchList<Item extends Watched>(everyMs: number, look: (item: Item) => void): WatchList<Item> {
  // Not a Set: its old tables keep removed items in memory.
  const items: Item[] = []
  let timer: NodeJS.Timeout | undefined

  function lookAtAll(): void {
    // From the end: an item that is removed during the loop is replaced by one that was checked already.
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
    /** The last item moves to its index. */
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
