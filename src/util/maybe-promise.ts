// A value that may be available without waiting. Nearly every signed-in request finds all that it needs in memory, and then must
// not wait for the event loop.

export type MaybePromise<T> = T | Promise<T>

export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** For a failure while the value is awaited. Work that fails before that throws. */
export function orElse<T>(value: MaybePromise<T>, handle: (error: unknown) => MaybePromise<T>): MaybePromise<T> {
  return value instanceof Promise ? value.catch(handle) : value
}
