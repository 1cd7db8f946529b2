// What is known of one provider, as data: what it has to be sent, and what it answers.

import type { ProviderConfig } from '../../src/config/provider.ts'
import type { ErrorCode } from '../../src/errors.ts'
import type { UserInfo } from '../../src/provider/user.ts'

export type Texts = Record<string, string>

export interface Sent {
  /** `POST host/path`. */
  readonly call: string
  readonly auth?: string
  readonly query?: Texts
  readonly form?: Texts
  readonly json?: Texts
  /** Besides the usual ones. */
  readonly headers?: Texts
}

export interface Reply {
  readonly body: unknown
  readonly status?: number
  readonly type?: string
}

export interface Address {
  readonly at: string
  readonly params: Texts
}

export interface Sheet {
  /** What an operator gives besides the client. */
  readonly config?: ProviderConfig
  /** With OpenID Connect: under what the metadata is found, and what it says. */
  readonly issuer?: string
  readonly metadata?: Record<string, unknown> & { readonly issuer: string; readonly jwks_uri: string }
  /** Of the id_token, besides the usual ones. */
  readonly claims?: Record<string, unknown>
  /** By call. */
  readonly replies: Readonly<Record<string, Reply>>

  readonly state?: 'plain'
  readonly codeNames?: readonly string[]
  readonly authorize: Address
  readonly redeem: readonly Sent[]
  readonly fetchUser: readonly Sent[]
  /** Absent: there is none. */
  readonly refresh?: readonly Sent[]
  readonly signOut?: readonly Sent[]
  /** Absent: the browser stays. */
  readonly signOutUrl?: Address

  readonly tokens: { readonly accessToken: string; readonly refreshToken?: string; readonly expiresIn: number }
  readonly user: Partial<UserInfo>
  readonly groups?: readonly string[]
  /** During which step which answer is which error. */
  readonly errors: readonly (readonly [step: 'redeem' | 'fetchUser' | 'refresh', Reply, ErrorCode])[]
}

export const BASE_URL = 'https://app.example.com'
export const REDIRECT_URI = `${BASE_URL}/callback/scene`
export const LOGIN = `${BASE_URL}/login`
export const CLIENT_ID = 'app-1'
export const CLIENT_SECRET = 'se:cret/1'
export const CODE = 'the-code'
export const STATE = 'r4nd0m_idp'
export const PLAIN_STATE = 'r4nd0m'
export const NONCE = 'the-nonce'
export const VERIFIER = 'v'.repeat(43)
export const CHALLENGE = 'the-challenge'

export const PKCE = { code_challenge: CHALLENGE, code_challenge_method: 'S256' }
/** RFC 6749: the parts of Basic are form-encoded first. */
export const BASIC = `Basic ${CLIENT_ID}:${encodeURIComponent(CLIENT_SECRET)}`
export const POST = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET }
export const CODE_GRANT = { grant_type: 'authorization_code', code: CODE, redirect_uri: REDIRECT_URI }
export const REFRESH_GRANT = { grant_type: 'refresh_token', refresh_token: 'rt-1' }
export const BAD_CODE: Reply = { status: 400, body: { error: 'invalid_grant', error_description: 'expired' } }
export const BAD_CLIENT: Reply = { status: 401, body: { error: 'invalid_client', error_description: 'no' } }
export const BAD_TOKEN: Reply = { status: 401, body: { error: 'invalid_token' } }

/** What every authorization address has. */
export const ASKED = { response_type: 'code', client_id: CLIENT_ID, redirect_uri: REDIRECT_URI, state: STATE }
export const TOKENS = { access_token: 'at-1', token_type: 'bearer', expires_in: 7200, refresh_token: 'rt-1' }
export const HELD = { accessToken: 'at-1', refreshToken: 'rt-1', expiresIn: 7200 }
