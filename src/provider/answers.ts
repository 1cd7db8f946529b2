// Reads what the provider answers: unknown JSON in, a token set or user info out, or an error that says what was wrong
// without repeating the answer (it can carry tokens and phone numbers).
import { z } from 'zod'
import { MenshenError } from '../errors.ts'
import type { Answer } from './bounded-fetch.ts'

export interface TokenSet {
  readonly accessToken: string
  readonly refreshToken?: string
  /** Seconds. */
  readonly expiresIn: number
  /** When the answer arrived: the token's clock starts here, however long it takes to save it. */
  readonly receivedAt: number
  readonly providerSession?: ProviderSession
}

/** The provider's own session at which the user signed in. Its id means something together with the issuer only. */
export interface ProviderSession {
  readonly issuer: string
  readonly sid: string
}

export interface UserInfo {
  readonly sub: string
  readonly ou_id: string
  readonly nickname: string
  readonly phone_number: string
  readonly ou_name: string
  readonly email: string
  readonly username: string
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

const tokenAnswer = z.object({
  access_token: token,
  token_type: z.string().regex(/^bearer$/i),
  refresh_token: z.union([token, z.literal('')]).nullish(),
  expires_in: lifetime,
})

const withIdToken = z.object({ id_token: z.string() })

const field = z
  .string()
  .nullish()
  .transform(text => text ?? '')

const userInfoAnswer = z.object({
  success: z.literal(true),
  code: z.union([z.literal('200'), z.literal(200)]).nullish(),
  data: z.object({
    sub: z.string().min(1),
    username: z.string().min(1),
    ou_id: field,
    nickname: field,
    phone_number: field,
    ou_name: field,
    email: field,
  }),
})

const errorAnswer = z.object({ error: z.string() })

/** A verdict on the code or the token. Everything else (a firewall, a wrong client, a wrong address) says nothing of it. */
const REFUSALS = new Set(['invalid_grant', 'invalid_token'])
/** What else may be repeated in a log: the codes of RFC 6749, and never a text of the provider. */
const OTHER_CODES = new Set([
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
])

export function readTokenSet(answer: Answer, receivedAt: number): TokenSet {
  const { access_token, refresh_token, expires_in } = read(tokenAnswer, answer)
  return {
    accessToken: access_token,
    expiresIn: expires_in,
    receivedAt,
    ...(refresh_token ? { refreshToken: refresh_token } : {}),
  }
}

/** Not verified yet. */
export function readIdToken({ body }: Answer): string | undefined {
  return withIdToken.safeParse(body).data?.id_token
}

export function readUserInfo(answer: Answer): UserInfo {
  return read(userInfoAnswer, answer).data
}

function read<T>(schema: z.ZodType<T>, { status, body }: Answer): T {
  const error = errorCode(body)
  if (error !== undefined && REFUSALS.has(error))
    throw new MenshenError('provider_refused', `the provider answered ${status} with ${error}`)
  if (error !== undefined && OTHER_CODES.has(error))
    throw new MenshenError('provider_answer', `the provider answered ${status} with ${error}`)
  if (status !== 200) throw new MenshenError('provider_answer', `the provider answered ${status}`)
  if (body === undefined) throw new MenshenError('provider_answer', 'the answer is not JSON')
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const places = result.error.issues.map(issue => issue.path.join('.') || 'the whole')
  throw new MenshenError('provider_answer', `unusable in the answer: ${[...new Set(places)].join(', ')}`)
}

function errorCode(body: unknown): string | undefined {
  return errorAnswer.safeParse(body).data?.error
}
