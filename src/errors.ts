// Every error code of Menshen: those that operators see, with their sentence, and those that the login page explains to users.

import { systemCodeOf } from './util/system-code.ts'

/** One thing that is wrong. */
export interface Problem {
  /** The setting that it is about, by its name in the environment. */
  readonly setting?: string
  /** Where it is in the configuration, for example `rules.0.path`. */
  readonly path?: string
  /** The whole sentence. */
  readonly message: string
  /** A value that would be accepted. */
  readonly example?: string
}

/** A problem whose sentence may name settings. */
export interface ProblemDraft extends Omit<Problem, 'message'> {
  readonly message: string | Sentence
}

let draftsIn: (error: MenshenError) => readonly ProblemDraft[]

/** Broken, not absent: thrown when something outside failed. Decide by `code` and `problems`; the message is for people. */
export class MenshenError extends Error {
  readonly code: ErrorCode
  /** What is wrong, one by one. The message has a line for each. */
  declare readonly problems: readonly Problem[]
  /** The same sentence for people who read another language than the log's, where there is one. */
  declare readonly phrase?: object
  readonly #drafts: readonly ProblemDraft[]

  static {
    draftsIn = error => error.#drafts
  }

  constructor(code: ErrorCode, what: string | Sentence | readonly ProblemDraft[], cause?: unknown, phrase?: object) {
    const drafts = isList(what) ? what : [{ message: what }]
    const problems = drafts.map(draft => ({ ...draft, message: textOf(draft.message) }))
    super(problems.map(({ message }) => message).join('\n'), cause === undefined ? undefined : { cause })
    this.name = 'MenshenError'
    this.code = code
    this.#drafts = drafts
    // Not enumerable: a log or a terminal that shows the error has the message already.
    Object.defineProperty(this, 'problems', { value: problems })
    if (phrase) Object.defineProperty(this, 'phrase', { value: phrase })
  }
}

/** To be told again as part of another error. */
export function draftsOf(error: MenshenError): readonly ProblemDraft[] {
  return draftsIn(error)
}

/** Refuses with everything that is wrong, if anything is. */
export function refuseIf(problems: readonly ProblemDraft[]): void {
  if (problems.length > 0) throw new MenshenError('bad_settings', problems)
}

/** For the log. Of the cause only its code: the rest can carry what came from outside. */
export function errorFields(error: unknown): { error: ErrorCode; detail: string; code?: string } | { err: unknown } {
  if (!(error instanceof MenshenError)) return { err: error }
  const code = systemCodeOf(error.cause)
  return { error: error.code, detail: error.message, ...(code !== undefined && { code }) }
}

// Sentences that name settings. The environment calls a setting PORT, an option of the library calls it port: the name becomes
// text only when it is known who reads it.

export interface Sentence {
  readonly parts: readonly (string | SettingName)[]
}

/** With a value, an assignment: `PKCE=S256`. */
export interface SettingName {
  readonly setting: string
  readonly value?: string | undefined
}

export type NameSetting = (name: SettingName) => string

type SentencePart = string | number | SettingName | Sentence

export function setting(name: string, value?: string): SettingName {
  return { setting: name, value }
}

/** A template tag: sentence`${setting('PORT')} is "${text}".` */
export function sentence(texts: TemplateStringsArray, ...values: readonly SentencePart[]): Sentence {
  return { parts: texts.flatMap((text, n) => [text, ...(n < values.length ? partsOf(values[n] ?? '') : [])]) }
}

export function joined(parts: readonly SentencePart[], separator: string): Sentence {
  return { parts: parts.flatMap((part, n) => [...(n > 0 ? [separator] : []), ...partsOf(part)]) }
}

/** Settings have their names of the environment, unless `nameOf` says otherwise. */
export function textOf(given: string | Sentence, nameOf: NameSetting = environmentName): string {
  if (typeof given === 'string') return given
  return given.parts.map(part => (typeof part === 'string' ? part : nameOf(part))).join('')
}

/** The same error for readers who know settings by other names. */
export function withSettingNames(error: MenshenError, nameOf: NameSetting): MenshenError {
  const drafts = draftsOf(error).map(draft => ({ ...draft, message: textOf(draft.message, nameOf) }))
  return new MenshenError(error.code, drafts, error.cause)
}

function environmentName({ setting, value }: SettingName): string {
  return value === undefined ? setting : `${setting}=${value}`
}

function partsOf(part: SentencePart): readonly (string | SettingName)[] {
  if (typeof part !== 'object') return [String(part)]
  return 'parts' in part ? part.parts : [part]
}

/** `Array.isArray` does not narrow a readonly list. */
function isList(what: string | Sentence | readonly ProblemDraft[]): what is readonly ProblemDraft[] {
  return Array.isArray(what)
}

export type ErrorCode = keyof typeof ERRORS

/** What operators find as `error` in the log. */
export const ERRORS = {
  bad_settings: 'one or more settings are wrong or missing',
  cannot_start: 'something that the start needs is not available: a port, a folder, a file',
  provider_unreachable: 'the provider gave no whole answer: no connection, a broken one, or the deadline passed',
  provider_refused: 'the provider refused the code or the token: it is not valid (any more)',
  provider_busy: 'more calls to the provider at once than PROVIDER_PARALLEL_CALLS allows',
  provider_answer:
    'the provider answered something that cannot be used: another status, a refusal of the client, a page of a firewall, missing fields',
  provider_unavailable: 'the access token of a session has expired, and the provider cannot be asked for another now',
  store_unavailable: 'the store could not be read or written',
  assertion_missing:
    'a request came to an application without an assertion: not through the gateway, or from a visitor',
  assertion_invalid: 'an assertion is forged, too old, or for another application',
  hook_timeout: 'a function of the application, onSignIn or onSignOut, was not done in time',
  keys_unavailable: 'an application could not fetch the keys of the gateway',
} as const

/** The codes of `/login?error=<code>` that have a sentence of their own: `error.<code>.message` and `.remedy`. */
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
