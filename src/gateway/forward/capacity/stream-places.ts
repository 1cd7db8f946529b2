// The places of what lasts: sockets, streams, and answers or bodies that wait for their client. When they are all taken, whoever
// holds most of them gives one back, so that nobody can take them from everybody else.

/** Something that may have a place. */
export interface Lasting {
  /** Whose it is: a user's, or a visitor's address. */
  readonly owner: string
  /** Whether nobody expects it to end by itself. */
  readonly isEndless: boolean
  /** Whether it waits for its client now. */
  waitsForClient(): boolean
}

export interface StreamPlaces<Item extends Lasting> {
  /** False if all are taken. */
  take(item: Item): boolean
  giveBack(item: Item): void
  /** Of whoever holds most, if that is more than the newcomer's owner would have: the one that is missed least. */
  victimFor(newcomer: Item): Item | undefined
}

export function createStreamPlaces<Item extends Lasting>(most: number): StreamPlaces<Item> {
  const byOwner = new Map<string, Set<Item>>()
  let taken = 0

  return {
    take(item) {
      if (taken >= most) return false
      taken++
      const held = byOwner.get(item.owner)
      if (held) held.add(item)
      else byOwner.set(item.owner, new Set([item]))
      return true
    },
    giveBack(item) {
      const held = byOwner.get(item.owner)
      if (!held?.delete(item)) return
      taken--
      if (held.size === 0) byOwner.delete(item.owner)
    },
    victimFor(newcomer) {
      const own = byOwner.get(newcomer.owner)?.size ?? 0
      let largest: Set<Item> | undefined
      for (const held of byOwner.values()) if (held.size > (largest?.size ?? own + 1)) largest = held
      return largest && leastMissed(largest)
    },
  }
}

/** An ordinary answer that flows is never ended. */
function leastMissed<Item extends Lasting>(held: Iterable<Item>): Item | undefined {
  let endless: Item | undefined
  for (const item of held) {
    if (!item.isEndless && item.waitsForClient()) return item
    if (item.isEndless) endless ??= item
  }
  return endless
}
