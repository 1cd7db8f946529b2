// Reads the answer of the token endpoint: unknown JSON in, a token set out, or an error that says what was wrong without
// repeating the answer (it can carry tokens and phone numbers).
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import { type Phrase, phrase, phrasedError, phraseIn } from '../phrases.ts'
import { atPlace, notAccepted } from '../settings/json-place.ts'
import type { Answer } from './calls/bounded-fetch.ts'
import type { ProviderSession } from './oidc/provider-session.ts'
import type { ProviderPlan } from './plan.ts'

export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken?: string
  /** Seconds. */
  readonly expiresIn: number
  /** When the answer arrived. */
  readonly receivedAt: number
  readonly idToken?: string
  /** Of the id_token, once it has been checked. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly providerSession?: ProviderSession
  /** The whole answer, for providers that say in it who the user is. */
  readonly answer?: unknown
}

/** The provider has answered, and said no. Decide by `status` and `said`. */
export class RefusalError extends MenshenError {
  readonly status: number
  /** The error code of its answer, RFC 6749's or an envelope's, if it is one that can be shown. */
  readonly said: string | undefined
  /** The sentence that came with it: to look for a cause, never to be shown. */
  readonly description: string | undefined
  /** What is behind it and what to do, where that is known. */
  readonly remedy: Phrase | undefined

  constructor(code: RefusalCode, sentence: Phrase, status: number, said?: string, more: RefusalDetails = {}) {
    super(code, phraseIn('en', sentence), undefined, sentence)
    this.status = status
    this.said = said
    this.description = more.description
    this.remedy = more.remedy
  }
}

type RefusalCode = 'provider_refused' | 'provider_answer'

interface RefusalDetails {
  readonly description?: string | undefined
  readonly remedy?: Phrase | undefined
}

// Ten years: far beyond any real token, and far from where milliseconds stop being exact.
const LONGEST_LIFETIME = 10 * 365 * 24 * 3600

const lifetime = z
  .union([
    z.int(),
    z
      .string()
      .regex(/^\d{1,10}$/)
      .transform(Number),
  ])
  .pipe(z.int().min(1).max(LONGEST_LIFETIME))

// RFC 6749, appendix A: what a token is made of, and so what can stand in a header.
const token = z.string().regex(/^[\x21-\x7e]+$/)
const bearer = z.string().regex(/^bearer$/i)

// Made once: to make a schema takes longer than to use it.
const tokenAnswer = z.object({
  access_token: token,
  token_type: bearer.nullish(),
  refresh_token: z.union([token, z.literal('')]).nullish(),
  expires_in: lifetime.nullish(),
  id_token: z.unknown(),
})

/** Verdicts on a code or a refresh token; everything else may be different in a moment. */
const VERDICTS = ['invalid_grant', 'invalid_token']

export function readTokenSet(answer: Answer, plan: ProviderPlan, now: number): TokenSet {
  const body = readAccepted(answer, plan.tokenAnswer, [...VERDICTS, ...plan.refreshEnds])
  const { names, lifetimeSeconds, tokenType } = plan.tokenAnswer
  const named = (name: string) => atPlace(body, names[name] ?? name)
  const given = Object.fromEntries(Object.keys(tokenAnswer.shape).map(name => [name, named(name)]))
  const demanded = [
    ...(tokenType === 'required' ? ['token_type'] : []),
    ...(lifetimeSeconds === undefined ? ['expires_in'] : []),
  ]
  const { access_token, refresh_token, expires_in, id_token } = read(given, demanded, plan.kind === 'oidc')
  return {
    accessToken: access_token,
    expiresIn: expires_in ?? lifetimeSeconds ?? 0,
    receivedAt: now,
    ...(refresh_token && plan.refreshes ? { refreshToken: refresh_token } : {}),
    ...(id_token ? { idToken: id_token } : {}),
    answer: body,
  }
}

interface Expected {
  readonly at: string | undefined
  readonly success: ProviderPlan['tokenAnswer']['success']
}

/** The answer proper, once its status and its body have said that it is one: status 200 alone does not. */
export function readAccepted({ status, body }: Answer, { at, success }: Expected, verdicts: readonly string[]): object {
  const codes = errorCodes(body)
  const description = descriptionIn(body)
  const verdict = codes.find(code => verdicts.includes(code))
  if (verdict !== undefined)
    throw new RefusalError('provider_refused', answered(status, verdict), status, verdict, { description })
  const said = errorCodeIn(body)
  const isError = status !== 200 || (!Object.hasOwn(success, 'error') && saysError(body))
  if (isError) throw new RefusalError('provider_answer', answered(status, said), status, said, { description })
  if (body === undefined) throw phrasedError('provider_answer', phrase('answer_not_json'))
  const wrong = notAccepted(body, success)
  if (wrong !== undefined)
    throw new RefusalError('provider_answer', phrase('answer_no_success', { wrong }), status, said)
  const proper = at === undefined ? body : atPlace(body, at)
  if (typeof proper !== 'object' || proper === null || Array.isArray(proper))
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: at ?? phrase('the_whole') }))
  return proper
}

function answered(status: number, error: string | undefined): Phrase {
  return error ? phrase('provider_answered_with', { status, error }) : phrase('provider_answered', { status })
}

/** The error code of an answer, if it is one that can be shown. */
export function errorCodeIn(body: unknown): string | undefined {
  return errorCodes(body).find(code => /^([a-z_]{1,40}|\d{1,10})$/.test(code))
}

/** RFC 6749's `error`, and the codes of envelopes. */
function errorCodes(body: unknown): string[] {
  return ['error', 'errcode', 'code']
    .map(name => atPlace(body, name))
    .filter(found => typeof found === 'string' || typeof found === 'number')
    .map(String)
}

function descriptionIn(body: unknown): string | undefined {
  const found = atPlace(body, 'error_description')
  return typeof found === 'string' ? found.slice(0, 1000) : undefined
}

/** `code` and `errcode` can mean anything, so they are errors only where `success` says what they have to be. */
function saysError(body: unknown): boolean {
  return !Array.isArray(body) && Boolean(atPlace(body, 'error'))
}

function read(given: Record<string, unknown>, demanded: readonly string[], isOidc: boolean) {
  const result = tokenAnswer.safeParse(given)
  const odd = result.error?.issues.map(issue => issue.path.join('.') || 'the whole') ?? []
  const missing = demanded.filter(name => given[name] === undefined || given[name] === null)
  const idToken = typeof given.id_token === 'string' ? given.id_token : undefined
  // Where it is not asked for, an odd one is none.
  const oddIdToken = isOidc && idToken === undefined && (given.id_token ?? undefined) !== undefined ? ['id_token'] : []
  if (/^dpop$/i.test(String(given.token_type))) throw phrasedError('provider_answer', phrase('tokens_bound_to_key'))
  const places = new Set([...odd, ...missing, ...oddIdToken])
  if (!result.success || places.size > 0)
    throw phrasedError('provider_answer', phrase('answer_unusable', { fields: [...places].join(', ') }))
  return { ...result.data, id_token: idToken }
}
