// better-auth with its OAuth provider, inside the test's own process. It is a library without pages: the two that a user
// sees are ours, and hand what was filled in to its interface.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { npmPackages } from './cached-folder.ts'
import { createCallLog } from './call-log.ts'

const VERSION = '1.7.5'
const PACKAGES = [`better-auth@${VERSION}`, `@better-auth/oauth-provider@${VERSION}`, '@better-fetch/fetch@1.3.2']

/** What we use of it: its types come with the packages, which are not there when ours are checked. */
interface BetterAuth {
  handler(request: Request): Promise<Response>
  readonly api: {
    signUpEmail(call: { body: object; asResponse: true }): Promise<Response>
    adminCreateOAuthClient(call: { headers: Headers; body: object }): Promise<unknown>
  }
}
type Tables = Record<string, Record<string, unknown>[]>
interface Modules {
  betterAuth(options: object): BetterAuth
  memoryAdapter(tables: Tables): unknown
  jwt(options: object): unknown
  oauthProvider(options: object): unknown
}

export const CLIENT = { id: 'gw-basic', secret: 'basic-secret' }
export const CAROL = { username: 'carol@example.test', password: 'carol-password' }
export const TOKEN_SECONDS = 60

const BASE = '/api/auth'
const SCOPES = ['openid', 'profile', 'email', 'offline_access', 'groups']
const TABLES = ['user', 'session', 'account', 'verification', 'jwks', 'rateLimit', 'oauthClient', 'oauthRefreshToken']
const MORE_TABLES = ['oauthAccessToken', 'oauthConsent', 'oauthResource', 'oauthClientResource', 'oauthClientAssertion']

/** `undefined` if its packages cannot be installed. */
export async function startBetterAuth(gateway: string) {
  const load = await npmPackages(`better-auth-${VERSION}`, PACKAGES)
  if (!load) return undefined
  const calls = createCallLog()
  const server = createServer((request, response) => {
    calls.note(request)
    return answer(auth, origin, request, response).catch(error => response.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const tables: Tables = Object.fromEntries([...TABLES, ...MORE_TABLES].map(name => [name, []]))
  const auth = create(
    {
      ...load('better-auth'),
      ...load('better-auth/plugins'),
      ...load('better-auth/adapters/memory'),
      ...load('@better-auth/oauth-provider'),
    },
    tables,
    origin,
    gateway,
  )
  await register(auth, tables, gateway)
  return {
    issuer: origin + BASE,
    calls,
    async close(): Promise<void> {
      server.close()
      server.closeAllConnections()
    },
  }
}

function create(
  { betterAuth, memoryAdapter, jwt, oauthProvider }: Modules,
  tables: Tables,
  origin: string,
  gateway: string,
) {
  return betterAuth({
    baseURL: origin,
    basePath: BASE,
    secret: randomBytes(32).toString('hex'),
    database: memoryAdapter(tables),
    emailAndPassword: { enabled: true },
    disabledPaths: ['/token'],
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    logger: { level: 'error' },
    trustedOrigins: [origin, gateway],
    advanced: { ipAddress: { disableIpTracking: true } },
    plugins: [
      jwt({ disableSettingJwtHeader: true }),
      oauthProvider({
        loginPage: '/login',
        consentPage: '/consent',
        scopes: SCOPES,
        accessTokenExpiresIn: TOKEN_SECONDS,
        silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
        generateClientId: () => CLIENT.id,
        generateClientSecret: () => CLIENT.secret,
        customUserInfoClaims: ({ scopes }: { scopes: string[] }) =>
          scopes.includes('groups') ? { groups: ['staff'] } : {},
      }),
    ],
  })
}

/** One user, who also registers the gateway. */
async function register(auth: BetterAuth, tables: Tables, gateway: string): Promise<void> {
  const user = { name: 'Carol Example', email: CAROL.username, password: CAROL.password }
  const signedUp = await auth.api.signUpEmail({ body: user, asResponse: true })
  const cookie = signedUp.headers
    .getSetCookie()
    .map(given => given.split(';')[0])
    .join('; ')
  const body = {
    client_name: 'Menshen',
    redirect_uris: [`${gateway}/callback`],
    post_logout_redirect_uris: [`${gateway}/login`],
    scope: SCOPES.join(' '),
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    enable_end_session: true,
    require_pkce: true,
    skip_consent: false,
    // It takes loopback addresses over plain http from these alone.
    application_type: 'native',
  }
  await auth.api.adminCreateOAuthClient({ headers: new Headers({ cookie }), body })
  // Its registration takes public https addresses only; what it sends does not mind.
  const backchannelLogoutUri = `${gateway}/_menshen/backchannel-logout`
  for (const row of tables.oauthClient ?? [])
    Object.assign(row, { backchannelLogoutUri, backchannelLogoutSessionRequired: true })
}

async function answer(
  auth: BetterAuth,
  origin: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', origin)
  const body = await buffer(request)
  const isPage = url.pathname === '/login' || url.pathname === '/consent'
  if (isPage && request.method === 'GET')
    return void response.writeHead(200, { 'content-type': 'text/html' }).end(page(url))
  const headers = new Headers(
    Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
  )
  const hasBody = !['GET', 'HEAD'].includes(request.method ?? '')
  const answered = isPage
    ? await submit(auth, url, headers, new URLSearchParams(body.toString()))
    : await auth.handler(new Request(url, { method: request.method ?? 'GET', headers, ...(hasBody && { body }) }))
  response.writeHead(answered.status, [...answered.headers].flat())
  response.end(Buffer.from(await answered.arrayBuffer()))
}

function page({ pathname, search }: URL): string {
  const asked = search.slice(1).replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  const fields = pathname === '/login' ? '<input name="username"><input type="password" name="password">' : ''
  return `<form method="post"><input type="hidden" name="oauth_query" value="${asked}">${fields}<button>Go on</button></form>`
}

/** What was filled in, as the library takes it; its answer says where to go. */
async function submit(
  auth: BetterAuth,
  { origin, pathname }: URL,
  given: Headers,
  form: URLSearchParams,
): Promise<Response> {
  const oauth_query = form.get('oauth_query')
  const [path, json] =
    pathname === '/login'
      ? ['/sign-in/email', { email: form.get('username'), password: form.get('password'), oauth_query }]
      : ['/oauth2/consent', { accept: true, oauth_query }]
  const headers = { 'content-type': 'application/json', origin, cookie: given.get('cookie') ?? '' }
  const answered = await auth.handler(
    new Request(origin + BASE + path, { method: 'POST', headers, body: JSON.stringify(json) }),
  )
  const said: { url?: string; redirect_uri?: string } = await answered.clone().json()
  const location = said.url ?? said.redirect_uri
  if (!location) return answered
  const moved = new Headers({ location })
  for (const cookie of answered.headers.getSetCookie()) moved.append('set-cookie', cookie)
  return new Response(null, { status: 303, headers: moved })
}
