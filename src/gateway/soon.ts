// A value that is there already, or will be. Nearly every signed-in request finds all that it needs at hand, and should
// not wait for turns of the event loop to learn it.

export type Soon<T> = T | Promise<T>

export function whenThere<T, R>(value: Soon<T>, next: (value: T) => Soon<R>): Soon<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}
