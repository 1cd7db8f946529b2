// An OpenID Connect provider for tests that need one, or several, and do not test the protocol: discovery, keys, sign-in,
// refresh, user info, introspection, sign-out. oidc/strict-oidc-server.ts checks every call.
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { type Client, createClient } from './client.ts'
import { listen } from './listen.ts'
import { takeRs256Pair } from './rsa-keys.ts'

/** The clock of the scenes. */
const NOW = Date.parse('2026-03-01T08:00:00Z')

export interface OidcCall {
  readonly path: string
  readonly form: URLSearchParams
  readonly authorization: string
  readonly headers: IncomingHttpHeaders
}

/** Answers a call in place of everything else, and returns whether it did. */
export type Intercept = (call: OidcCall, response: ServerResponse) => unknown

export type OidcServer = Awaited<ReturnType<typeof startOidcServer>>

export async function startOidcServer(t: TestContext, { metadata = {} }: { metadata?: object } = {}) {
  const { publicKey, privateKey } = takeRs256Pair(t)
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }
  const clientId = `client-${randomUUID()}`
  const calls: OidcCall[] = []
  const codes = new Map<string, { readonly nonce: string; readonly user: JWTPayload }>()
  const tokens = new Map<string, JWTPayload>()
  const issued: { readonly access_token: string; readonly refresh_token: string; readonly id_token: string }[] = []
  const pushed = new Map<string, URLSearchParams>()
  const { url: issuer } = await listen(
    t,
    createServer((request, response) => void answer(request, response)),
  )
  const state = {
    now: () => NOW,
    /** Who signs in. */
    user: { sub: 'sub-1', preferred_username: 'zhangsan' } as JWTPayload,
    /** What stands in the access token, which is a JWT if this is given. */
    accessClaims: undefined as JWTPayload | undefined,
    /** The answer to a question about a token. */
    introspect: (_token: string): object | Promise<object> => ({ active: false }),
    /** What the id_token says besides, such as `auth_time` and `acr`. */
    idClaims: {} as JWTPayload,
    expiresIn: 3600,
    /** What token answers say besides, such as `refresh_expires_in`. */
    tokenFields: {} as object,
    isAway: false,
    /** Whether `iss` comes with the callback. */
    sendsIssuer: true,
    tokenType: 'Bearer',
    /** The answer to a token exchange, besides what it usually has. */
    exchanged: {} as object,
    intercept: undefined as Intercept | undefined,
  }
  const seconds = () => Math.floor(state.now() / 1000)

  function sign(claims: JWTPayload, header: Partial<JWTHeaderParameters> = {}): Promise<string> {
    const all = { iss: issuer, aud: clientId, iat: seconds(), exp: seconds() + 600, ...claims }
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
    return new SignJWT(given).setProtectedHeader({ alg: 'RS256', kid: 'k1', ...header }).sign(privateKey)
  }

  async function issue(user: JWTPayload, nonce: string | undefined) {
    const accessToken = state.accessClaims
      ? await sign({ ...user, ...state.accessClaims }, { typ: 'at+jwt' })
      : `at-CANARY-${randomUUID()}`
    const refreshToken = `rt-CANARY-${randomUUID()}`
    tokens.set(accessToken, user).set(refreshToken, user)
    const id_token = await sign({ sub: user.sub, sid: user.sid, nonce, ...state.idClaims } as JWTPayload, {
      typ: 'JWT',
    })
    issued.push({ access_token: accessToken, refresh_token: refreshToken, id_token })
    return {
      access_token: accessToken,
      refresh_token: refreshToken,
      token_type: state.tokenType,
      expires_in: state.expiresIn,
      ...state.tokenFields,
      id_token,
    }
  }

  /** RFC 8693, and the on-behalf-of flow of Microsoft Entra. */
  function exchange(form: URLSearchParams): [number, object] {
    const user = tokens.get(form.get('subject_token') ?? form.get('assertion') ?? '')
    if (!user) return [400, { error: 'invalid_grant', error_description: 'CANARY' }]
    const access_token = `xt-CANARY-${user.sub}-${form.get('audience') ?? ''}-${randomUUID()}`
    const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token'
    return [200, { access_token, issued_token_type, token_type: 'Bearer', expires_in: 600, ...state.exchanged }]
  }

  async function token(form: URLSearchParams): Promise<[number, object]> {
    if (/:(token-exchange|jwt-bearer)$/.test(form.get('grant_type') ?? '')) return exchange(form)
    const code = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    if (code) return [200, await issue(code.user, code.nonce)]
    const refreshed = tokens.get(form.get('refresh_token') ?? '')
    return refreshed ? [200, await issue(refreshed, undefined)] : [400, { error: 'invalid_grant' }]
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer)
    const { authorization = '' } = request.headers
    const form = new URLSearchParams(await text(request))
    const call = { path: url.pathname, form, authorization, headers: request.headers }
    calls.push(call)
    const send = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (state.isAway) return void response.destroy()
    if (await state.intercept?.(call, response)) return
    if (url.pathname === '/.well-known/openid-configuration') return void send(200, { ...document, ...metadata })
    if (url.pathname === '/jwks') return void send(200, { keys: [jwk] })
    if (url.pathname === '/authorize') {
      const asked = pushed.get(url.searchParams.get('request_uri') ?? '') ?? url.searchParams
      const back = new URL(asked.get('redirect_uri') ?? '')
      const code = `code-CANARY-${randomUUID()}`
      codes.set(code, { nonce: asked.get('nonce') ?? '', user: state.user })
      const answers = { code, state: asked.get('state') ?? '', ...(state.sendsIssuer && { iss: issuer }) }
      for (const [name, value] of Object.entries(answers)) back.searchParams.set(name, value)
      return void response.writeHead(302, { location: back.href }).end()
    }
    if (url.pathname === '/par') {
      const request_uri = `urn:ietf:params:oauth:request_uri:${randomUUID()}`
      pushed.set(request_uri, form)
      return void send(201, { request_uri, expires_in: 60 })
    }
    if (url.pathname === '/token') return void send(...(await token(form)))
    if (url.pathname === '/userinfo') {
      const user = tokens.get(authorization.replace(/^(Bearer|DPoP) /, ''))
      return void (user ? send(200, user) : send(401, { error: 'invalid_token' }))
    }
    if (url.pathname === '/introspect') return void send(200, await state.introspect(form.get('token') ?? ''))
    if (url.pathname === '/revoke') return void send(200, {})
    send(404, {})
  }

  const document = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    introspection_endpoint: `${issuer}/introspect`,
    revocation_endpoint: `${issuer}/revoke`,
    end_session_endpoint: `${issuer}/end`,
    authorization_response_iss_parameter_supported: true,
    id_token_signing_alg_values_supported: ['RS256'],
  }

  const clientSecret = `secret-CANARY-${randomUUID()}`
  const config: ProviderConfig = {
    preset: 'oidc',
    vars: { auth_url: issuer },
    clientId,
    clientSecret,
  }

  return Object.assign(state, {
    issuer,
    clientId,
    /** One of `providers`. */
    config,
    /** The settings that make it the only one. */
    settings: { PROVIDER: 'oidc', AUTH_URL: issuer, CLIENT_ID: clientId, CLIENT_SECRET: clientSecret },
    jwk,
    privateKey,
    sign,
    /** The tokens of every sign-in and refresh. */
    issued,
    calls,
    callsTo: (path: string) => calls.filter(call => call.path === path),
  })
}

/** Where the browser comes back to, after the sign-in at the provider. */
export async function answerOf(client: Client, provider?: string): Promise<string> {
  const started = await client.post('/login', provider ? { provider } : {})
  const back = await client.follow(started)
  const { pathname, search } = new URL(String(back.headers.location))
  return pathname + search
}

/** Signed in through one of the providers. */
export async function signedInAt(url: string, now: () => number, provider?: string): Promise<Client> {
  const client = createClient(url, now)
  const answer = await client.get(await answerOf(client, provider))
  if (answer.headers.location !== '/') throw new Error(`the sign-in led to ${answer.headers.location}`)
  return client
}
