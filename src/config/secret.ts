// A value that must not be shown: printing it, turning it into JSON or logging it gives `[hidden]`.
import { inspect } from 'node:util'

const HIDDEN = '[hidden]'

/** An address without its password. */
export function hidePassword(text: string): string {
  return text.replace(/(\/\/[^/@:]*):.*@/, `$1:${HIDDEN}@`)
}

export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return HIDDEN
  }

  toJSON(): string {
    return HIDDEN
  }

  [inspect.custom](): string {
    return HIDDEN
  }
}
