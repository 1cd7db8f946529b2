// What was worked out lately, so that it need not be again. Bounded, and what is asked for again and again stays in it
// however much else passes through: it is kept in two halves, and of the older one only what is asked for is taken along.

export interface Recent<Value extends object> {
  get(key: string): Value | undefined
  set(key: string, value: Value): void
}

/** Nothing is put in order at a hit, as an LRU cache would: this is for what costs little more than that to work out. */
export function createRecent<Value extends object>(mostPerHalf: number): Recent<Value> {
  let newer = new Map<string, Value>()
  let older = new Map<string, Value>()

  function set(key: string, value: Value): void {
    if (newer.size >= mostPerHalf) {
      older = newer
      newer = new Map()
    }
    newer.set(key, value)
  }

  function getOlder(key: string): Value | undefined {
    const value = older.get(key)
    if (value) set(key, value)
    return value
  }

  return { get: key => newer.get(key) ?? getOlder(key), set }
}
