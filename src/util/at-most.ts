// The bound of a cache that is usually nearly empty. With `max`, lru-cache takes the memory of all entries at once, and every
// start waits for it.

/** Options of an LRUCache. */
export function atMost(entries: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 }
}
