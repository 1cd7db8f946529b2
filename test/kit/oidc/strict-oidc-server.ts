// A strict OpenID provider: it answers correctly unless a test bends one of its answers, and records every call and what is
// wrong with it. ../oidc-server.ts is the lenient one, of which a test can have several.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { JWTPayload } from 'jose'
import { type Answer, deliver, json, type PlainAnswer, redirect } from '../answers.ts'
import { complaintsOf, type OidcCall, type OidcEndpoint, readOidcCall } from './oidc-calls.ts'
import { leftHalf, newSigningKey, type SigningKey, signWith } from './oidc-keys.ts'

type Json = Record<string, unknown>

/** Each is given the right thing, and gives what is sent in its place. */
export interface Bends {
  discovery?: (right: Json) => unknown
  keys?: (right: { keys: object[] }) => unknown
  /** The way back from the authorization endpoint. */
  callback?: (params: URLSearchParams) => void
  claims?: (right: JWTPayload) => JWTPayload
  /** In place of the signature with the present key. */
  sign?: (claims: JWTPayload) => string | Promise<string>
  token?: (right: Json) => unknown
  refresh?: (right: Json) => unknown
  userinfo?: (right: Json) => unknown
  /** The way back from the end of the session. */
  returned?: (params: URLSearchParams) => void
}

export const OIDC_CLIENT = { id: 'menshen-rp', secret: 'secret-CANARY-oidc' }
export const OIDC_USER = {
  sub: 'sub-248289761001',
  preferred_username: 'zhangsan',
  name: '张三',
  email: 'zhangsan@example.com',
  phone_number: '86 13811111111',
}
/** None of them may stand in a log line of a sign-in that failed. */
export const OIDC_SECRETS = ['CANARY', 'eyJ', ...Object.values(OIDC_USER)]
/** Of somebody who was signed in, the log names who it was, and nothing else of the person. */
export const OIDC_SECRETS_OF_USER = OIDC_SECRETS.filter(
  text => text !== OIDC_USER.sub && text !== OIDC_USER.preferred_username,
)

const FIRST_KEY = await newSigningKey('key-1')

export type StrictOidcServer = Awaited<ReturnType<typeof startStrictOidcServer>>

/** It listens at `host`, a loopback address, and may call itself by a `name` that leads there. */
export interface OidcPlace {
  readonly host?: string
  readonly name?: string
  /** It speaks https with these. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
}

interface OidcClient {
  readonly baseUrl: string
  readonly now: () => number
  readonly callbackPath?: string
}

export async function startStrictOidcServer(t: TestContext, { host = '127.0.0.1', name = host, tls }: OidcPlace = {}) {
  const calls: OidcCall[] = []
  const complaints: string[] = []
  const answers = new Map<OidcEndpoint, Answer>()
  const codes = new Map<string, { nonce: string; challenge: string; used: boolean }>()
  const given = { accessTokens: new Set<string>(), refreshTokens: new Set<string>(), idTokens: new Set<string>() }
  const listener = (request: IncomingMessage, response: ServerResponse) => void take(request, response)
  const server = (tls ? createSecureServer(tls, listener) : createServer(listener)).listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const scheme = tls ? 'https' : 'http'
  const issuer = `${scheme}://${name}:${port}`
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })

  const op = {
    issuer,
    /** The settings that make Menshen use this provider: three, and its name. */
    settings: { PROVIDER: 'oidc', AUTH_URL: issuer, CLIENT_ID: OIDC_CLIENT.id, CLIENT_SECRET: OIDC_CLIENT.secret },
    /** Its client's address and clock: known once the client is there. */
    client: { baseUrl: '', now: Date.now } as OidcClient,
    /** May be changed at any time, like everything here. */
    bend: {} as Bends,
    key: FIRST_KEY as SigningKey,
    published: [FIRST_KEY] as SigningKey[],
    expiresIn: 7200,
    calls,
    /** What its client did wrong. */
    complaints,
    callsTo: (endpoint: OidcEndpoint) => calls.filter(call => call.endpoint === endpoint),
    /** Calls to it get this in place of everything else. */
    answer: (endpoint: OidcEndpoint, answer: Answer) => void answers.set(endpoint, answer),
    sign: (claims: JWTPayload, header?: Record<string, unknown>) => signWith(op.key, claims, header),
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readOidcCall(request)
    calls.push(call)
    complaints.push(...complaintsOf(call, known()))
    const right = await answerTo(call)
    await deliver(answers.get(call.endpoint) ?? { kind: 'normal' }, response, () => right)
  }

  const known = () => ({
    ...given,
    codes,
    clientId: OIDC_CLIENT.id,
    clientSecret: OIDC_CLIENT.secret,
    redirectUri: op.client.baseUrl + (op.client.callbackPath ?? '/callback'),
    returnUri: `${op.client.baseUrl}/login`,
  })

  async function answerTo({ endpoint, query, form }: OidcCall): Promise<PlainAnswer> {
    const { bend } = op
    const same = <T>(right: T): unknown => right
    switch (endpoint) {
      case 'discovery':
        return json((bend.discovery ?? same)(metadata(issuer, `${scheme}://${host}:${port}`)))
      case 'keys':
        return json((bend.keys ?? same)({ keys: op.published.map(({ jwk }) => jwk) }))
      case 'authorize':
        return authorize(query)
      case 'token': {
        const code = codes.get(form.get('code') ?? '')
        if (!code || code.used) return json({ error: 'invalid_grant' }, 400)
        code.used = true
        return json((bend.token ?? same)(await tokens({ nonce: code.nonce })))
      }
      case 'refresh':
        return json((bend.refresh ?? same)(await tokens({})))
      case 'userinfo':
        return json((bend.userinfo ?? same)({ ...OIDC_USER, email_verified: true }))
      case 'end_session':
        return back(query.get('post_logout_redirect_uri'), { state: query.get('state') ?? '' }, bend.returned)
      case 'revoke':
        return json({})
      case 'unknown':
        return json({ error: 'not_found' }, 404)
    }
  }

  function authorize(query: URLSearchParams): PlainAnswer {
    const code = `code-CANARY-${randomUUID()}`
    codes.set(code, { nonce: query.get('nonce') ?? '', challenge: query.get('code_challenge') ?? '', used: false })
    return back(query.get('redirect_uri'), { code, state: query.get('state') ?? '' }, op.bend.callback)
  }

  async function tokens(more: JWTPayload): Promise<Json> {
    const accessToken = `at-CANARY-${randomUUID()}`
    const refreshToken = `rt-CANARY-${randomUUID()}`
    const seconds = Math.floor(op.client.now() / 1000)
    const times = { iat: seconds, exp: seconds + 600, auth_time: seconds }
    const right = { iss: issuer, sub: OIDC_USER.sub, aud: OIDC_CLIENT.id, ...times, at_hash: leftHalf(accessToken) }
    const claims = op.bend.claims?.({ ...right, ...more }) ?? { ...right, ...more }
    const idToken = await (op.bend.sign ?? op.sign)(claims)
    given.accessTokens.add(accessToken)
    given.refreshTokens.add(refreshToken)
    given.idTokens.add(idToken)
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: op.expiresIn,
      refresh_token: refreshToken,
      id_token: idToken,
    }
  }

  return op
}

function back(
  to: string | null,
  params: Record<string, string>,
  bend?: (params: URLSearchParams) => void,
): PlainAnswer {
  const url = new URL(to ?? 'http://127.0.0.1/nowhere')
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  bend?.(url.searchParams)
  return redirect(url.href)
}

/** What a browser goes to is at the address itself: that of the tests knows no names. */
function metadata(issuer: string, forBrowsers: string): Json {
  return {
    issuer,
    authorization_endpoint: `${forBrowsers}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/keys`,
    end_session_endpoint: `${forBrowsers}/end-session`,
    revocation_endpoint: `${issuer}/revoke`,
    scopes_supported: ['openid', 'profile', 'email'],
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
    backchannel_logout_supported: true,
  }
}
