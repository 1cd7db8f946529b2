// A bounded cache of recent results for the path of every request, in two generations. A hit in the younger one is a single
// lookup and moves nothing. lru-cache moves every entry that is found to the end of a list: 0.4 to 1 µs for each of the three
// lookups of a signed-in check, which takes 26. Elsewhere use lru-cache with `atMost`.

export interface RecentCache<Value> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
}

/** Holds at most `most` results, and always the half that was used last. */
export function createRecent<Value>(maxEntries: number): RecentCache<Value> {
  let younger = new Map<string, Value>()
  let older = new Map<string, Value>()

  function set(key: string, value: Value): void {
    if (younger.size >= maxEntries / 2) {
      older = younger
      younger = new Map()
    }
    younger.set(key, value)
  }

  function getOlder(key: string): Value | undefined {
    const value = older.get(key)
    if (value !== undefined) set(key, value)
    return value
  }

  return { set, get: key => younger.get(key) ?? getOlder(key) }
}

/** A function of one text that remembers its recent results. */
export function memoize<Value>(maxEntries: number, compute: (key: string) => Value): (key: string) => Value {
  const recent = createRecent<Value>(maxEntries)
  return key => {
    const known = recent.get(key)
    if (known !== undefined) return known
    const value = compute(key)
    recent.set(key, value)
    return value
  }
}

/**
 * Options of an LRUCache for at most this many entries. With `max`, lru-cache allocates the memory of all of them up front, and
 * every start waits for it; most of our caches are nearly empty.
 */
export function atMost(entries: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 }
}
