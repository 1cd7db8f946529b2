// The sheet of a provider with OpenID Connect: the standard, and in a few words where it differs.
import {
  type Address,
  BAD_CLIENT,
  BAD_CODE,
  BAD_TOKEN,
  BASIC,
  CLIENT_ID,
  CODE_GRANT,
  LOGIN,
  NONCE,
  PKCE,
  POST,
  REDIRECT_URI,
  REFRESH_GRANT,
  type Reply,
  type Sent,
  type Sheet,
  STATE,
  type Texts,
  VERIFIER,
} from '../sheet.ts'

export interface OidcFacts extends Partial<Pick<Sheet, 'config' | 'claims' | 'groups' | 'errors' | 'user'>> {
  /** Where the metadata is. */
  readonly issuer: string
  /** What it calls itself there, if it is written otherwise. */
  readonly calledIssuer?: string
  readonly scope: string
  readonly authorizeParams?: Texts
  readonly clientAuths?: readonly string[]
  readonly auth?: 'basic' | 'post'
  readonly as?: 'form' | 'query'
  readonly authorization: string
  readonly token: string
  readonly userInfo: string
  readonly endSession?: string
  readonly revocation?: string
  readonly tokenAnswer?: Record<string, unknown>
  readonly refreshParams?: Texts
  readonly said: Record<string, unknown>
}

const SUB = 'u-1'
/** What most of them say of somebody, and what we make of it. */
export const PERSON = { name: '李四', email: 'lisi@example.com', email_verified: true }
export const KNOWN = { nickname: '李四', email: 'lisi@example.com' }

export function oidcSheet(facts: OidcFacts): Sheet {
  const { issuer, auth = 'basic', as = 'form', user = {} } = facts
  const host = /^https:\/\/[^/]+/.exec(issuer)?.[0] ?? ''
  const at = (path: string) => (path.startsWith('/') ? host + path : path)
  const call = (method: string, path: string) => `${method} ${at(path).slice('https://'.length)}`
  const grant = (params: Texts): Sent => ({
    call: call('POST', facts.token),
    ...(auth === 'basic' ? { auth: BASIC } : {}),
    [as]: { ...params, ...(auth === 'post' ? POST : {}) },
  })
  const tokens = {
    access_token: 'at-1',
    token_type: 'Bearer',
    expires_in: 300,
    refresh_token: 'rt-1',
    id_token: '@id_token',
  }
  const replies: Record<string, Reply> = {
    [call('POST', facts.token)]: { body: { ...tokens, ...facts.tokenAnswer } },
    [call('GET', facts.userInfo)]: { body: { sub: SUB, ...facts.said } },
  }
  if (facts.revocation) replies[call('POST', facts.revocation)] = { body: {} }
  const signOutUrl: Address | undefined = facts.endSession
    ? {
        at: at(facts.endSession),
        params: { post_logout_redirect_uri: LOGIN, client_id: CLIENT_ID, state: STATE, id_token_hint: '@id_token' },
      }
    : undefined
  const revoked: Sent[] = facts.revocation
    ? [
        {
          call: call('POST', facts.revocation),
          ...(auth === 'basic' ? { auth: BASIC } : {}),
          form: { token: 'rt-1', ...(auth === 'post' ? POST : {}) },
        },
      ]
    : []
  return {
    // At most it is off, because it could end more than one session.
    config: { revoke: 'always', ...facts.config },
    issuer,
    metadata: {
      issuer: facts.calledIssuer ?? issuer,
      authorization_endpoint: at(facts.authorization),
      token_endpoint: at(facts.token),
      userinfo_endpoint: at(facts.userInfo),
      jwks_uri: `${host}/keys`,
      end_session_endpoint: facts.endSession && at(facts.endSession),
      revocation_endpoint: facts.revocation && at(facts.revocation),
      token_endpoint_auth_methods_supported: facts.clientAuths ?? ['client_secret_basic', 'client_secret_post'],
      id_token_signing_alg_values_supported: ['RS256'],
    },
    claims: { sub: SUB, ...facts.claims },
    replies,
    authorize: {
      at: at(facts.authorization),
      params: {
        response_type: 'code',
        scope: facts.scope,
        client_id: CLIENT_ID,
        redirect_uri: REDIRECT_URI,
        state: STATE,
        nonce: NONCE,
        ...PKCE,
        ...facts.authorizeParams,
      },
    },
    redeem: [grant({ ...CODE_GRANT, code_verifier: VERIFIER })],
    fetchUser: [{ call: call('GET', facts.userInfo), auth: 'Bearer at-1' }],
    refresh: [grant({ ...REFRESH_GRANT, ...facts.refreshParams })],
    signOut: revoked,
    ...(signOutUrl ? { signOutUrl } : {}),
    tokens: { accessToken: 'at-1', refreshToken: 'rt-1', expiresIn: 300 },
    user: { sub: SUB, ...user },
    groups: facts.groups ?? [],
    errors: [
      ['redeem', BAD_CODE, 'provider_refused'],
      ['redeem', BAD_CLIENT, 'provider_answer'],
      ['refresh', BAD_CODE, 'provider_refused'],
      ['refresh', { status: 503, body: 'busy', type: 'text/plain' }, 'provider_answer'],
      ['fetchUser', BAD_TOKEN, 'provider_answer'],
      ...(facts.errors ?? []),
    ],
  }
}
