// What the OpenID provider of the tests is asked, and what every right relying party sends: the rules that the tests of the
// OpenID Foundation check at each of them.
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

/** `token` redeems a code and `refresh` refreshes, though both are POST /token. */
export type OidcEndpoint =
  | 'discovery'
  | 'keys'
  | 'authorize'
  | 'token'
  | 'refresh'
  | 'userinfo'
  | 'end_session'
  | 'revoke'
  | 'unknown'

export interface OidcCall {
  readonly endpoint: OidcEndpoint
  readonly url: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly form: URLSearchParams
}

const ENDPOINTS: Record<string, OidcEndpoint> = {
  'GET /.well-known/openid-configuration': 'discovery',
  'GET /keys': 'keys',
  'GET /authorize': 'authorize',
  'POST /token': 'token',
  'GET /userinfo': 'userinfo',
  'GET /end-session': 'end_session',
  'POST /revoke': 'revoke',
}

export async function readOidcCall(request: IncomingMessage): Promise<OidcCall> {
  const { method = '', headers, url = '' } = request
  const { pathname, searchParams: query } = new URL(`http://provider${url}`)
  const form = new URLSearchParams(await text(request))
  const place = ENDPOINTS[`${method} ${pathname}`] ?? 'unknown'
  const endpoint = place === 'token' && form.get('grant_type') === 'refresh_token' ? 'refresh' : place
  return { endpoint, url, query, headers, form }
}

/** What the provider knows of its client, and has given out. */
export interface Given {
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  readonly returnUri: string
  /** By code: what the authorization request asked for. */
  readonly codes: ReadonlyMap<string, { readonly challenge: string; readonly used: boolean }>
  readonly accessTokens: ReadonlySet<string>
  readonly refreshTokens: ReadonlySet<string>
  readonly idTokens: ReadonlySet<string>
}

/** What is wrong with a call, in words; nothing if nothing is. */
export function complaintsOf(call: OidcCall, given: Given): string[] {
  const rules = [...RULES.all, ...(RULES[call.endpoint] ?? [])]
  return rules.filter(([, holds]) => !holds(call, given)).map(([rule]) => `${call.endpoint}: ${rule}`)
}

type RuleOfCall = readonly [rule: string, holds: (call: OidcCall, given: Given) => boolean]

const isBasic: RuleOfCall = [
  'the client proves itself by HTTP Basic, and by nothing else',
  ({ headers, form }, { clientId, clientSecret }) =>
    headers.authorization === `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` &&
    !form.has('client_secret'),
]
const isForm: RuleOfCall = [
  'a form, and nothing in the query',
  ({ headers, query }) => headers['content-type'] === FORM && query.size === 0,
]
const FORM = 'application/x-www-form-urlencoded;charset=UTF-8'

const RULES: Partial<Record<OidcEndpoint | 'all', readonly RuleOfCall[]>> & { all: readonly RuleOfCall[] } = {
  all: [
    ['no parameter twice', ({ query, form }) => isOnce(query) && isOnce(form)],
    [
      'no token, secret or verifier in the address',
      ({ endpoint, url }, { idTokens }) =>
        !url.includes('CANARY') && (endpoint === 'end_session' || ![...idTokens].some(token => url.includes(token))),
    ],
  ],
  unknown: [['there is such an address', () => false]],
  authorize: [
    ['response_type is code', ({ query }) => query.get('response_type') === 'code'],
    ['openid is in the scope', ({ query }) => query.get('scope')?.split(' ').includes('openid') === true],
    ['the right client', ({ query }, { clientId }) => query.get('client_id') === clientId],
    ['the exact redirect_uri', ({ query }, { redirectUri }) => query.get('redirect_uri') === redirectUri],
    ['a state', ({ query }) => (query.get('state') ?? '').length >= 32],
    ['a nonce', ({ query }) => (query.get('nonce') ?? '').length >= 32],
    ['a nonce of its own', ({ query }) => query.get('nonce') !== query.get('state')],
    ['PKCE S256', ({ query }) => query.get('code_challenge_method') === 'S256' && query.get('code_challenge') !== ''],
  ],
  token: [
    isBasic,
    isForm,
    ['grant_type', ({ form }) => form.get('grant_type') === 'authorization_code'],
    ['a code that was given, once', ({ form }, { codes }) => codes.get(form.get('code') ?? '')?.used === false],
    ['the exact redirect_uri again', ({ form }, { redirectUri }) => form.get('redirect_uri') === redirectUri],
    [
      'the verifier of the challenge',
      ({ form }, { codes }) => codes.get(form.get('code') ?? '')?.challenge === s256(form.get('code_verifier') ?? ''),
    ],
  ],
  refresh: [
    isBasic,
    isForm,
    ['a refresh token that was given', ({ form }, held) => held.refreshTokens.has(form.get('refresh_token') ?? '')],
  ],
  userinfo: [
    ['nothing in the query', ({ query }) => query.size === 0],
    [
      'an access token that was given, in the header',
      ({ headers }, { accessTokens }) => accessTokens.has(/^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? ''),
    ],
  ],
  end_session: [
    ['the id_token as a hint', ({ query }, { idTokens }) => idTokens.has(query.get('id_token_hint') ?? '')],
    ['the right client', ({ query }, { clientId }) => query.get('client_id') === clientId],
    [
      'the exact address to return to',
      ({ query }, { returnUri }) => query.get('post_logout_redirect_uri') === returnUri,
    ],
    ['a state', ({ query }) => (query.get('state') ?? '').length >= 32],
  ],
  revoke: [
    isBasic,
    isForm,
    ['a token that was given', ({ form }, held) => held.refreshTokens.has(form.get('token') ?? '')],
  ],
}

function isOnce(params: URLSearchParams): boolean {
  return new Set(params.keys()).size === params.size
}

function s256(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
