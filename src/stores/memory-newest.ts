// Which keys of the memory store are the newest.

import type { SinceKey } from './newest.ts'

/** Sorted, the newest last. Nearly all come in their order, and are found by halving. */
export function createSinceOrder() {
  const sorted: SinceKey[] = []

  /** How many come before it. */
  function rankOf(place: SinceKey): number {
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const other = sorted[middle]
      if (other && compare(other, place) < 0) from = middle + 1
      else to = middle
    }
    return from
  }

  return {
    get size() {
      return sorted.length
    },

    add(place: SinceKey): void {
      sorted.splice(rankOf(place), 0, place)
    },

    remove(place: SinceKey): void {
      const rank = rankOf(place)
      if (sorted[rank]?.key === place.key) sorted.splice(rank, 1)
    },

    *newestFirst(before?: SinceKey): Generator<SinceKey> {
      for (let n = (before ? rankOf(before) : sorted.length) - 1; n >= 0; n--) {
        const place = sorted[n]
        if (place) yield place
      }
    },

    clear(): void {
      sorted.length = 0
    },
  }
}

function compare(one: SinceKey, other: SinceKey): number {
  return one.since - other.since || (one.key < other.key ? -1 : one.key > other.key ? 1 : 0)
}
