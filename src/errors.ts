// Every error code of Menshen with its sentence: those that the login page shows to users, and those that operators see.

/** Broken, not absent: thrown when something outside failed. Decide by `code`; the message is for people. */
export class MenshenError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'MenshenError'
    this.code = code
  }
}

export type ErrorCode = keyof typeof ERRORS

/** What operators find as `code` in the log. */
export const ERRORS = {
  bad_settings: 'one or more settings are wrong or missing',
  cannot_start: 'something that the start needs is not available: a port, a folder, a file',
  store_unavailable: 'the store could not be read or written',
} as const
