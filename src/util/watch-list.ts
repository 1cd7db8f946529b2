// Checks everything that is open for longer than a moment: one timer for all, instead of one for each.

export interface WatchItem {
  /** Its index in the list; set by the list. */
  index: number
}

interface WatchList<Item extends WatchItem> {
  readonly items: readonly Item[]
  add(item: Item): void
  /** Does nothing if it is not in the list. */
  remove(item: Item): void
  stop(): void
}

/** `look` may remove its item. */
export function createWatchList<Item extends WatchItem>(
  intervalMs: number,
  check: (item: Item) => void,
): WatchList<Item> {
  // A Set would leave old tables behind that keep deleted items in memory.
  const items: Item[] = []
  let timer: NodeJS.Timeout | undefined

  function checkAll(): void {
    // From the end: a removed item is replaced by one that was already looked at.
    for (let index = items.length - 1; index >= 0; index--) {
      const item = items[index]
      if (item) check(item)
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
      item.index = items.length
      items.push(item)
      timer ??= setInterval(checkAll, intervalMs).unref()
    },
    /** The last item moves to its index. */
    remove(item) {
      if (items[item.index] !== item) return
      const last = items.pop()
      if (last === undefined || last === item) return
      items[item.index] = last
      last.index = item.index
    },
    stop,
  }
}
