// Distinguishes a refusal of the provider from an answer: by its status, its error code and the values that the plan accepts.
// Errors never repeat the answer, which can contain tokens and phone numbers.

import { MenshenError } from '../errors.ts'
import { type Phrase, phrase, phrasedError, phraseIn, phraseOf, quoted } from '../text/text.ts'
import { getPath, notAccepted } from '../util/json-path.ts'
import { causeOf } from './demands.ts'
import type { Metadata } from './discovery.ts'
import type { ProviderAnswer } from './fetch.ts'
import type { ProviderPlan } from './plan.ts'

/** The provider has answered with an error. Decide by `status` and `errorCode`. */
export class RefusalError extends MenshenError {
  declare readonly code: RefusalCode
  readonly status: number
  /** The error code of its answer, RFC 6749's or an envelope's, if it can be shown. */
  readonly errorCode: string | undefined
  /** The description that came with it, which is searched for a cause and never shown. */
  readonly description: string | undefined
  /** The cause, and what to do, if that is known. */
  readonly remedy: Phrase | undefined

  constructor(code: RefusalCode, message: Phrase, status: number, errorCode?: string, more: RefusalDetails = {}) {
    super(code, phraseIn('en', message), undefined, message)
    this.status = status
    this.errorCode = errorCode
    this.description = more.description
    this.remedy = more.remedy
  }
}

type RefusalCode = 'provider_refused' | 'provider_answer'

interface RefusalDetails {
  readonly description?: string | undefined
  readonly remedy?: Phrase | undefined
}

/** Adds the cause to the refusal, if the metadata or the answer points to one. */
export function withCause(refusal: RefusalError, plan: ProviderPlan, known: Metadata): RefusalError {
  const { code, status, errorCode, description } = refusal
  const cause = causeOf(plan, known, { error: errorCode ?? '', description })
  if (!cause) return refusal
  const message = phrase('with_cause', { seen: phraseOf(refusal) ?? quoted(refusal.message), cause: cause.what })
  return new RefusalError(code, message, status, errorCode, { remedy: cause.remedy })
}

interface SuccessFormat {
  readonly at?: string | undefined
  readonly success: ProviderPlan['tokenAnswer']['success']
}

/** The answer without its envelope. Both its status and its body must report success: status 200 is not enough. */
export function readAccepted(
  { status, body }: ProviderAnswer,
  { at, success }: SuccessFormat,
  verdicts: readonly string[],
): object {
  const codes = errorCodes(body)
  const verdict = codes.find(code => verdicts.includes(code))
  if (verdict !== undefined)
    throw new RefusalError('provider_refused', answered(status, verdict), status, verdict, descriptionIn(body))
  const isError = status !== 200 || (!Object.hasOwn(success, 'error') && hasError(body))
  if (isError) {
    const shown = codes.find(canBeShown)
    throw new RefusalError('provider_answer', answered(status, shown), status, shown, descriptionIn(body))
  }
  if (body === undefined) throw phrasedError('provider_answer', phrase('answer_not_json'))
  const wrong = notAccepted(body, success)
  if (wrong !== undefined)
    throw new RefusalError('provider_answer', phrase('answer_no_success', { wrong }), status, codes.find(canBeShown))
  const proper = at === undefined ? body : getPath(body, at)
  if (typeof proper !== 'object' || proper === null || Array.isArray(proper))
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: at ?? phrase('the_whole') }))
  return proper
}

function answered(status: number, error: string | undefined): Phrase {
  return error ? phrase('provider_answered_with', { status, error }) : phrase('provider_answered', { status })
}

/** The error code of an answer, if it can be shown. */
export function errorCodeIn(body: unknown): string | undefined {
  return errorCodes(body).find(canBeShown)
}

function canBeShown(code: string): boolean {
  return /^([a-z_]{1,40}|\d{1,10})$/.test(code)
}

/** RFC 6749's `error`, and the codes of envelopes. */
function errorCodes(body: unknown): string[] {
  const codes: string[] = []
  for (const name of ERROR_CODES) {
    const found = getPath(body, name)
    if (typeof found === 'string' || typeof found === 'number') codes.push(String(found))
  }
  return codes
}

const ERROR_CODES = ['error', 'errcode', 'code']

export function descriptionIn(body: unknown): Pick<RefusalDetails, 'description'> {
  const found = getPath(body, 'error_description')
  return typeof found === 'string' ? { description: found.slice(0, 1000) } : {}
}

/** `code` and `errcode` can mean anything, so they are errors only if `success` lists the values that they must have. */
function hasError(body: unknown): boolean {
  return !Array.isArray(body) && Boolean(getPath(body, 'error'))
}
