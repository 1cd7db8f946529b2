// A value that is loaded when it is needed, kept until it expires, and loaded once for all callers that ask during the load.

export interface CachedValue<T> {
  /** The value while it is fresh, otherwise the result of a load. */
  get(): Promise<T>
  /** Loads the value now, or joins the load in flight. */
  reload(): Promise<T>
  /** The last loaded value, however old; `undefined` before the first load has succeeded. */
  latest(): T | undefined
  isFresh(): boolean
  /** The failure of the last load, for `retryMs`. */
  recentFailure(): Failure | undefined
  /** Makes the next `get` load. With a value: only if that is the one in the cache. */
  invalidate(value?: T): void
}

export interface CachedValueOptions<T> {
  readonly load: () => Promise<T>
  /** How long a value is fresh, counted from the beginning of its load. */
  readonly freshMs: number | ((value: T) => number)
  readonly now: () => number
  /** After a failed load, `get` does not load again for this time. The default is 0: the next `get` loads. */
  readonly retryMs?: number
  /** `get` returns an expired value immediately and reloads in the background. */
  readonly staleWhileReloading?: boolean
}

interface Failure {
  readonly error: unknown
}

export function createCachedValue<T>(options: CachedValueOptions<T>): CachedValue<T> {
  const { load, freshMs, now, retryMs = 0, staleWhileReloading = false } = options
  let cached: { readonly value: T; readonly since: number } | undefined
  let failure: (Failure & { readonly at: number }) | undefined
  let loading: Promise<T> | undefined

  /** Also if the clock was set back: a time in the future is not recent. */
  function isWithin(ms: number, since: number): boolean {
    return Math.abs(now() - since) < ms
  }

  function isFresh(): boolean {
    if (!cached) return false
    return isWithin(typeof freshMs === 'number' ? freshMs : freshMs(cached.value), cached.since)
  }

  function recentFailure(): Failure | undefined {
    return failure && isWithin(retryMs, failure.at) ? failure : undefined
  }

  function reload(): Promise<T> {
    loading ??= start()
    return loading
  }

  /** A load that was forgotten while it was in flight changes nothing. */
  function start(): Promise<T> {
    const since = now()
    const started = load().then(
      value => {
        if (loading === started) [cached, failure, loading] = [{ value, since }, undefined, undefined]
        return value
      },
      (error: unknown) => {
        if (loading === started) [failure, loading] = [{ error, at: now() }, undefined]
        throw error
      },
    )
    return started
  }

  return {
    reload,
    isFresh,
    recentFailure,
    latest: () => cached?.value,

    async get() {
      if (cached && isFresh()) return cached.value
      const failed = recentFailure()
      if (cached && staleWhileReloading) {
        if (!failed) reload().catch(() => {})
        return cached.value
      }
      if (failed) throw failed.error
      return reload()
    },

    invalidate(value) {
      if (value !== undefined && value !== cached?.value) return
      cached = undefined
      loading = undefined
    },
  }
}
