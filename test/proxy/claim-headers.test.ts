// Claims of identity, address, scheme, host, path and method: under none of their usual names do they reach the application.

import assert from 'node:assert/strict'
import test from 'node:test'
import { readSettings } from '../../src/index.ts'
import { HARMLESS_HEADERS, SPOOFABLE_HEADERS } from '../../src/proxy/request-headers.ts'
import { cookieOf } from '../kit/client.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { raw, request, statusOf } from './raw.ts'

const BELIEVED = [
  ...['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'Proxy', 'X-Forwarded', 'True-Client-IP'],
  ...['CF-Connecting-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'Fastly-Client-IP', 'X-Host', 'Remote-User'],
  ...['X-Remote-User', 'X-Auth-Request-User', 'X-Auth-Request-Email', 'X-Auth-Request-Groups', 'X-Auth-Username'],
  ...['X-Authenticated-User', 'X-Authenticated-Userid', 'X-Authenticated-Groups', 'X-WEBAUTH-USER', 'X-WEBAUTH-ROLE'],
  ...['X-User', 'X-User-Id', 'X-User-Email', 'X-User-Roles', 'X-Username', 'IV-User', 'IV-Groups', 'SM_USER', 'SMUSER'],
  ...['Front-End-Https', 'X-Scheme', 'X-Url-Scheme', 'X-HTTP-Host-Override', 'X-HTTP-Path-Override', 'X-Override-URL'],
  ...['X-Proxy-URL', 'X-Original-URL', 'X-Original-Host', 'X-Rewrite-URL', 'X-Rewrite-Path', 'Forwarded', 'X-Real-IP'],
  ...['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Prefix', 'X-Forwarded-Client-Cert'],
  ...['X-Envoy-External-Address', 'X-AppEngine-User-Email', 'X-MS-CLIENT-PRINCIPAL', 'X-MS-CLIENT-PRINCIPAL-NAME'],
  ...['X-Goog-Authenticated-User-Email', 'X-Goog-IAP-JWT-Assertion', 'X-Amzn-Oidc-Identity', 'X-Amzn-Oidc-Data'],
  ...['Cf-Access-Authenticated-User-Email', 'Tailscale-User-Login', 'X-Pomerium-Claim-Email', 'Remote-Groups'],
  ...['Remote-Addr', 'X-Remote-Addr', 'X-Token-Subject', 'X-authentik-username', 'X-Vouch-User', 'X-Consumer-Username'],
  ...['OIDC_CLAIM_sub', 'OAM_REMOTE_USER', 'Shib-Session-ID', 'Impersonate-User', 'Client-Cert', 'SSL-Client-Verify'],
  ...['X-SSL-Client-S-DN', 'WL-Proxy-Client-IP', 'Proxy-Client-IP', 'HTTP_CLIENT_IP', '$WSRU', '$WSRA', 'Script-Name'],
  ...['X-WX-OPENID', 'X-WX-UNIONID', 'X-ProxiedEntitiesChain', 'X-Ms-Original-Url', 'X-On-Behalf-Of', 'X-Admin-User'],
  ...['Grpc-Metadata-User-Id', 'Grpc-Metadata-X', 'Grpcgateway-Authorization', 'X-Hasura-Role', 'X-Hasura-User-Id'],
  ...['X-Trino-User', 'X-Trino-Role', 'X-Trino-Extra-Credential', 'X-Impersonate-User', 'X-Act-As', 'X-Act-As-User'],
  ...['Teleport-Jwt-Assertion', 'User-Email', 'PHP-Auth-User', 'X-Rest-Username', 'X-Known-Username', 'Client-Address'],
  ...['Real-Method', 'X-Forwarded-Role', 'X-Forwarded-Groups'],
  ...['X-Script-Name', 'X-Accel-Mapping', 'X-Sendfile-Type', 'X-Middleware-Subrequest', 'Client-IP', 'HTTPS'],
]
const SPELLINGS: ((name: string) => string)[] = [
  name => name,
  name => name.toUpperCase().replaceAll('-', '_'),
  name => name.toLowerCase().replaceAll(/[-_]/g, '.'),
  name => name.replaceAll('-', '~'),
  name => name.replace('-', '_'),
]
const LINES_AT_ONCE = 150

/** Needed by ordinary applications: credentials, tokens against forgery, preferences, protocols. */
const ORDINARY = [
  ...[
    'authorization',
    'x-csrf-token',
    'x-xsrf-token',
    'x-csrftoken',
    'x-requested-with',
    'x-requested-by',
    'x-api-key',
  ],
  ...[
    'x-auth-token',
    'x-access-token',
    'x-hasura-admin-secret',
    'grpc-timeout',
    'x-user-agent',
    'x-grpc-web',
    'x-client-version',
    'traceparent',
  ],
  ...[
    'accept',
    'accept-language',
    'content-type',
    'if-none-match',
    'origin',
    'referer',
    'range',
    'x-tenant-id',
    'from',
  ],
  ...[
    'depth',
    'destination',
    'overwrite',
    'x-ms-version',
    'x-amz-date',
    'x-grafana-org-id',
    'x-socket-id',
    'x-inertia',
  ],
  ...['hx-request', 'turbo-frame', 'tus-resumable', 'upload-offset', 'sec-fetch-site', 'x-nextjs-data', 'soapaction'],
]

/** Which of these names reached the application with this value. */
function reached({ upstream }: Scene, value = 'forged'): string[] {
  return upstream.last().lines.flatMap(([name, given]) => (given.includes(value) ? [name] : []))
}

test('spoofable headers do not reach the application, in any spelling, signed in or not, by page, preflight or WebSocket', async t => {
  const scene = await setUp(t, { config: { rules: [{ path: '/public', public: true }] } })
  scene.upstream.server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const socket = ['upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: abc']
  const ways = [
    request('GET / HTTP/1.1', cookie),
    request('GET /public HTTP/1.1'),
    request('OPTIONS /public HTTP/1.1'),
    `${['GET / HTTP/1.1', 'host: a', cookie, 'connection: upgrade', ...socket].join('\r\n')}\r\n\r\n`,
  ]
  const lines = BELIEVED.flatMap(name => SPELLINGS.map(spell => `${spell(name)}: forged`))
  for (const way of ways)
    for (let from = 0; from < lines.length; from += LINES_AT_ONCE) {
      scene.upstream.received.length = 0
      const some = lines.slice(from, from + LINES_AT_ONCE).join('\r\n')
      await raw(scene.url, way.replace('\r\n\r\n', `\r\n${some}\r\n\r\n`))
      assert.equal(scene.upstream.received.length, 1)
      assert.deepEqual(reached(scene), [], way)
    }
})

test('every header in SPOOFABLE_HEADERS is dropped, and similar but harmless headers are forwarded', async t => {
  const scene = await setUp(t)
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const send = async (names: readonly string[]) => {
    const lines = names.map(name => `${name.replace(/^-/, '$').replace('*', 'x')}: forged`)
    assert.equal(statusOf(await raw(scene.url, request('GET / HTTP/1.1', cookie, ...lines))), 200)
    return reached(scene)
  }
  for (const { names, reason } of SPOOFABLE_HEADERS) {
    assert.ok(names.length > 0 && reason.length > 10)
    assert.deepEqual(await send(names), [], reason)
  }
  assert.equal((await send(HARMLESS_HEADERS)).length, HARMLESS_HEADERS.length)
})

test('headers that applications need from browsers are forwarded', async t => {
  const scene = await setUp(t)
  const cookie = `cookie: theme=forged; ${cookieOf(await scene.user())}`
  const lines = ORDINARY.map(name => `${name}: forged`)
  await raw(scene.url, request('GET / HTTP/1.1', cookie, ...lines))
  assert.deepEqual(reached(scene).sort(), [...ORDINARY, 'cookie'].sort())
})

test('DROP_HEADERS adds names and patterns to the dropped headers, and KEEP_HEADERS exempts names and patterns', async t => {
  const env = { DROP_HEADERS: 'X-Company-*, x_api_key', KEEP_HEADERS: 'X-User-Id,x-http-method*, X-Api-Key' }
  const scene = await setUp(t, { env })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const names = [
    ...['x-company-user', 'X_COMPANY_ROLE', 'x-api-key', 'x-user-id', 'X_User_Id', 'x-user-name'],
    ...['x-http-method-override', 'x-http-host-override', 'x-companion'],
  ]
  await raw(scene.url, request('GET / HTTP/1.1', cookie, ...names.map(name => `${name}: forged`)))
  // What is in both is dropped.
  assert.deepEqual(reached(scene), ['x-user-id', 'x_user_id', 'x-http-method-override', 'x-companion'])
})

test('KEEP_HEADERS cannot name hop-by-hop headers or headers that Menshen sets', () => {
  for (const [KEEP_HEADERS, named, more] of [
    ['x-forwarded-user', 'x-forwarded-user'],
    ['X_Forwarded_User', 'x-forwarded-user'],
    ['x-forwarded-*', 'x-forwarded-\\*'],
    ['x-user,x-menshen-assertion', 'x-menshen-assertion'],
    ['x-remote-user', 'x-remote-user', { IDENTITY_USER: 'X-Remote-User' }],
    ['x-forwarded-for', 'x-forwarded-for'],
    ['Connection', 'connection'],
    ['Transfer_Encoding', 'transfer-encoding'],
    ['te', 'te'],
    ['up*', 'up\\*'],
    ['host', 'host'],
    ['expect', 'expect'],
  ] as const)
    assert.throws(() => readSettings({ KEEP_HEADERS, ...more }), {
      code: 'bad_settings',
      message: new RegExp(`^KEEP_HEADERS names ${named}, which Menshen sets itself .*; expected .*\\.$`),
    })
  for (const bad of ['*', 'a b:c', 'x-*-y', 'x-user\u00e9'])
    assert.throws(
      () => readSettings({ DROP_HEADERS: bad }),
      /^MenshenError: DROP_HEADERS is .*; expected names of headers/,
    )
  assert.deepEqual(readSettings({ KEEP_HEADERS: 'x-remote-user' }).KEEP_HEADERS, ['x-remote-user'])
})
