// A map whose entries expire a fixed time after they were last set. When it is full, the oldest are dropped.

interface ExpiringMap<V> {
  get(key: string, now: number): V | undefined
  set(key: string, value: V, now: number): void
  delete(key: string): void
  /** The values that have not expired, the most recently set last. */
  values(now: number): readonly V[]
}

export function createExpiringMap<V>(bounds: { lifetimeMs: number; limit: number }): ExpiringMap<V> {
  const entries = new Map<string, { readonly value: V; readonly expiresAt: number }>()

  // The map is in the order of expiry, so the entries to delete are always at its front.
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
