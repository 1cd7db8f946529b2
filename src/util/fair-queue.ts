// A fair queue for slots: one line per owner, and the owners are served in turn. An owner with a thousand requests delays only
// itself.

export interface FairQueue<Item> {
  add(item: Item, owner: string): void
  remove(item: Item, owner: string): void
  /** Takes the next item whose owner may have a slot now. */
  take(mayHave: (owner: string) => boolean): Item | undefined
  /** The last item of the owner with the most items, if that is more than `owner` would have. */
  lastOfBusiest(owner: string): Item | undefined
  readonly items: Iterable<Item>
  readonly size: number
}

export function createFairQueue<Item>(): FairQueue<Item> {
  /** In the order of the owners' turns. */
  const byOwner = new Map<string, Set<Item>>()
  let size = 0

  function remove(item: Item, owner: string): void {
    const own = byOwner.get(owner)
    if (!own?.delete(item)) return
    size--
    if (own.size === 0) byOwner.delete(owner)
  }

  return {
    add(item, owner) {
      const own = byOwner.get(owner)
      if (own) own.add(item)
      else byOwner.set(owner, new Set([item]))
      size++
    },
    remove,
    take(mayHave) {
      for (const [owner, own] of byOwner) {
        if (!mayHave(owner)) continue
        const [first] = own
        // This owner is the last one now.
        byOwner.delete(owner)
        byOwner.set(owner, own)
        if (first !== undefined) remove(first, owner)
        return first
      }
      return undefined
    },
    lastOfBusiest(owner) {
      let largest: Set<Item> | undefined
      const most = (byOwner.get(owner)?.size ?? 0) + 1
      for (const own of byOwner.values()) if (own.size > (largest?.size ?? most)) largest = own
      return largest && [...largest].at(-1)
    },
    get items() {
      return [...byOwner.values()].flatMap(own => [...own])
    },
    get size() {
      return size
    },
  }
}
