// A value that is there already, or will be. Nearly every signed-in request finds all that it needs at hand, and should
// not wait for turns of the event loop to learn it. Where all of them pass, both cases are written out: making a function for
// each request would take longer than what it does.

export type MaybePromise<T> = T | Promise<T>

export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
