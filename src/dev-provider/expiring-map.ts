// A map that forgets: entries live equally long after they were last set, and the oldest give way when it is full.

interface ExpiringMap<V> {
  get(key: string, now: number): V | undefined
  set(key: string, value: V, now: number): void
  delete(key: string): void
  /** The living values, the most recently set last. */
  values(now: number): readonly V[]
}

export function createExpiringMap<V>(bounds: { lifetimeMs: number; limit: number }): ExpiringMap<V> {
  const entries = new Map<string, { readonly value: V; readonly expiresAt: number }>()

  // The map is in the order of expiry, so what is to go is always at its front.
  function sweep(now: number) {
    for (const [key, { expiresAt }] of entries) {
      if (expiresAt > now && entries.size <= bounds.limit) return
      entries.delete(key)
    }
  }

  return {
    get(key, now) {
      sweep(now)
      return entries.get(key)?.value
    },
    set(key, value, now) {
      entries.delete(key)
      entries.set(key, { value, expiresAt: now + bounds.lifetimeMs })
      sweep(now)
    },
    delete(key) {
      entries.delete(key)
    },
    values(now) {
      sweep(now)
      return Array.from(entries.values(), entry => entry.value)
    },
  }
}
