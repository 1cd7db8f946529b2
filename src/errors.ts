// Every error code of Menshen: those that operators see, with their sentence, and those that the login page explains to users.

import { systemCodeOf } from './util/system-code.ts'

/** One thing that is wrong. */
export interface Problem {
  /** The setting that it is about, by its name in the environment. */
  readonly setting?: string
  /** The settings that the message names, where it is not `setting` alone. */
  readonly namedSettings?: readonly string[]
  /** Where it is in the configuration, for example `rules.0.path`. */
  readonly path?: string
  /**
   * The whole sentence. It names settings as the environment does; in errors of createMenshen it begins with the names of the
   * options.
   */
  readonly message: string
  /** A value that would be accepted. */
  readonly example?: string
}

/**
 * Thrown when something outside failed, not when something is absent. Decide by `code` and `problems`; the message is for people.
 */
export class MenshenError extends Error {
  readonly code: ErrorCode
  /** What is wrong, one by one. The message has a line for each. */
  declare readonly problems: readonly Problem[]
  /** The message in languages other than the log's, if there are translations. */
  declare readonly phrase?: object

  constructor(code: ErrorCode, what: string | readonly Problem[], cause?: unknown, phrase?: object) {
    const problems = typeof what === 'string' ? [{ message: what }] : what
    super(problems.map(({ message }) => message).join('\n'), cause === undefined ? undefined : { cause })
    this.name = 'MenshenError'
    this.code = code
    // Not enumerable: a log or a terminal that shows the error has the message already.
    Object.defineProperty(this, 'problems', { value: problems })
    if (phrase) Object.defineProperty(this, 'phrase', { value: phrase })
  }
}

/** Throws with everything that is wrong, if anything is. */
export function refuseIf(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new MenshenError('bad_settings', problems)
}

/** For the log. The cause contributes only its code, because the rest can contain outside input. */
export function errorFields(error: unknown): { error: ErrorCode; detail: string; code?: string } | { err: unknown } {
  if (!(error instanceof MenshenError)) return { err: error }
  const code = systemCodeOf(error.cause)
  return { error: error.code, detail: error.message, ...(code !== undefined && { code }) }
}

export type ErrorCode = keyof typeof ERRORS

/** What operators find as `error` in the log. */
export const ERRORS = {
  bad_settings: 'one or more settings are invalid or missing',
  cannot_start: 'something required for startup is unavailable: a port, a folder, a file',
  provider_unreachable: 'the provider sent no complete response: no connection, a broken connection, or a timeout',
  provider_refused: 'the provider rejected the code or the token: it is invalid or expired',
  provider_busy: 'more concurrent calls to the provider than PROVIDER_PARALLEL_CALLS allows',
  provider_answer:
    "the provider's response cannot be used: an unexpected status, a rejected client, a firewall's page, missing fields",
  provider_unavailable: "a session's access token has expired, and the provider cannot be reached to refresh it",
  store_unavailable: 'the store could not be read or written',
  assertion_missing:
    'a request reached an application without an assertion: it bypassed the gateway, or came from a visitor',
  assertion_invalid: 'an assertion is forged, expired, or for another application',
  no_session: 'the application called updateData for a request without a session',
  hook_timeout: 'an application hook, onSignIn or onSignOut, timed out',
  keys_unavailable: "an application could not fetch the gateway's keys",
} as const

/** The codes of `/login?error=<code>` that have their own sentences: `error.<code>.message` and `.remedy`. */
export const LOGIN_ERRORS = [
  'missing_code',
  'invalid_state',
  'token_error',
  'userinfo_error',
  'callback_error',
  'access_denied',
  'invalid_request',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
  'server_error',
  'temporarily_unavailable',
  'unmet_authentication_requirements',
] as const

export type LoginError = (typeof LOGIN_ERRORS)[number]

export function isLoginError(code: string): code is LoginError {
  return LOGIN_ERRORS.some(known => known === code)
}
