// Machines: an access token of the provider in place of a session, where a rule says so, and nowhere else.

import assert from 'node:assert/strict'
import { createHmac, hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { decodeJwt, exportSPKI, importJWK, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { WebSocket } from 'ws'
import { type Config, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { cookieOf, createClient } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { signText } from '../kit/oidc/oidc-keys.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { type OidcSetUpOptions, openGateway, setUpOidc } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { openWire, raw, request } from '../proxy/raw.ts'

const AT = { typ: 'at+jwt' }
const invalidAt = (url: string) =>
  `Bearer error="invalid_token", resource_metadata="${url}/.well-known/oauth-protected-resource/api"`
const CONFIG: Config = {
  roles: [
    { role: 'robot', groups: ['robots'] },
    { role: 'developer', username: ['admin'] },
  ],
  rules: [
    { path: '/api', roles: ['robot'], users: ['zhangsan'], bearer: true },
    { path: '/api/closed', roles: ['*'] },
    { path: '/other', roles: ['*'], bearer: true, audience: ['https://other.example'] },
    { path: '/public', public: true },
  ],
}
/** A stream that stays open. */
const answerWithStream: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: 1\n\n')
}
const ROBOT = { sub: 'robot-1', client_id: 'robot', scope: 'read', groups: ['robots', '/fleet/a'] }

/** A gateway whose rules accept access tokens; `bring` sends one to `/api/items` unless it is told where. */
async function setUpTokenRules(t: TestContext, options: OidcSetUpOptions = {}) {
  const scene = await setUpOidc(t, { config: CONFIG, ...options })
  const bring = (token: string, path = '/api/items', headers: Record<string, string> = {}) =>
    scene.bring(token, path, headers)
  return { ...scene, bring }
}

test('a signed access token is accepted, and the application receives identity headers as for a user', async t => {
  const { provider, upstream, bring, lines } = await setUpTokenRules(t)
  const token = await provider.sign(ROBOT, AT)
  const answer = await bring(token)
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.setCookies, [])
  const { headers } = upstream.last()
  assert.equal(headers['x-forwarded-user'], 'robot-1')
  assert.equal(headers['x-forwarded-role'], 'robot')
  assert.equal(headers['x-forwarded-groups'], 'robots,/fleet/a')
  assert.equal(headers.authorization, undefined, 'the token was for us')
  const { sub, role, groups } = decodeJwt(String(headers['x-menshen-assertion']))
  assert.deepEqual({ sub, role, groups }, { sub: 'robot-1', role: 'robot', groups: ['robots', '/fleet/a'] })
  assert.equal(provider.callsTo('/introspect').length, 0)
  assert.ok(!JSON.stringify(lines).includes(token))
  for (const typ of ['application/at+jwt', 'AT+JWT', undefined]) {
    const header = typ === undefined ? {} : { typ }
    assert.equal((await bring(await provider.sign(ROBOT, header))).status, 200, String(typ))
  }
})

test('two users whose ids are numbers with 19 digits are not taken for one', async t => {
  const provider = { fields: { username: ['employee'] } }
  const scene = await setUpTokenRules(t, { config: { provider, rules: [{ path: '/', roles: ['*'], bearer: true }] } })
  const { issuer, clientId, privateKey, jwk } = scene.provider
  const exp = Math.floor(scene.now() / 1000) + 600
  const claims = JSON.stringify({ iss: issuer, aud: clientId, exp, client_id: 'robot', sub: 7, employee: 7 })
  for (const id of ['1234567890123456781', '1234567890123456782']) {
    const token = await signText({ kid: 'k1', alg: 'RS256', privateKey, jwk }, claims.replaceAll(':7', `:${id}`))
    assert.equal((await scene.bring(token)).status, 200)
    const { headers } = scene.upstream.last()
    assert.equal(headers['x-forwarded-user'], id)
    assert.equal(decodeJwt(String(headers['x-menshen-assertion'])).sub, id)
  }
})

test('anything but an access token for this audience is refused with 401, and the reason is only in the log', async t => {
  const scene = await setUpTokenRules(t)
  const { provider, upstream, bring, lines } = scene
  const { sign, issuer, clientId, jwk } = provider
  const seconds = Math.floor(scene.now() / 1000)
  const claims = { iss: issuer, aud: clientId, iat: seconds, exp: seconds + 600, ...ROBOT }
  const pem = await exportSPKI((await importJWK(jwk, 'RS256')) as CryptoKey)
  const secret = new TextEncoder().encode(pem)
  const elsewhere = await startOidcServer(t)
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const unsigned = `${encoded({ alg: 'HS256', typ: 'at+jwt', kid: 'k1' })}.${encoded(claims)}`
  const stripped = (await sign(ROBOT, AT)).split('.')
  const tokens: Record<string, string> = {
    'an ID token by its nonce': await sign({ ...ROBOT, nonce: 'n' }),
    'an ID token by its at_hash': await sign({ ...ROBOT, at_hash: 'h' }),
    'an ID token by its type': await sign({ sub: 'robot-1', groups: ['robots'] }, { typ: 'JWT' }),
    'an ID token that calls itself so': await sign({ ...ROBOT, typ: 'ID' }),
    'a refresh token': await sign({ ...ROBOT, typ: 'Refresh' }),
    'a logout token': await sign({ ...ROBOT, events: {} }, { typ: 'logout+jwt' }),
    'a logout token without type': await sign({ ...ROBOT, events: {} }),
    'another type': await sign(ROBOT, { typ: 'dpop+jwt' }),
    'no type at all': await sign(ROBOT, { typ: '' }),
    'one bound to a key': await sign({ ...ROBOT, cnf: { jkt: 'x' } }, AT),
    'another audience': await sign({ ...ROBOT, aud: 'somebody-else' }, AT),
    'no audience': await sign({ ...ROBOT, aud: undefined } as unknown as JWTPayload, AT),
    expired: await sign({ ...ROBOT, exp: seconds - 61 }, AT),
    'one that never ends': await sign({ ...ROBOT, exp: undefined } as unknown as JWTPayload, AT),
    'one of the future': await sign({ ...ROBOT, nbf: seconds + 120 }, AT),
    'without sub': await sign({ ...ROBOT, sub: '' }, AT),
    'another issuer in words': await sign({ ...ROBOT, iss: 'https://evil.example' }, AT),
    'another issuer': await elsewhere.sign({ ...ROBOT, aud: clientId }, AT),
    'another key': await elsewhere.sign({ ...ROBOT, aud: clientId, iss: issuer }, AT),
    'alg none': new UnsecuredJWT(claims).encode(),
    'the public key as a secret': await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'k1', ...AT })
      .sign(secret),
    'a HMAC by hand': `${unsigned}.${createHmac('sha256', pem).update(unsigned).digest('base64url')}`,
    'without signature': `${stripped[0]}.${stripped[1]}.`,
    'other claims': `${stripped[0]}.${encoded({ ...claims, groups: ['robots', 'x'] })}.${stripped[2]}`,
    'a made-up one': 'CANARY-made-up',
    'half a JWT': 'e30.e30',
  }
  for (const [name, token] of Object.entries(tokens)) {
    const answer = await bring(token)
    assert.equal(answer.status, 401, name)
    assert.equal(answer.headers['www-authenticate'], invalidAt(scene.url), name)
    assert.deepEqual(answer.setCookies, [])
    assert.equal(answer.json<{ error: string }>().error, 'unauthenticated')
    assert.ok(!answer.text.includes(token))
  }
  for (const odd of [
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer "a"',
    'bearer a,b',
    `Bearer ${tokens.expired}, Bearer x`,
  ]) {
    const answer = await createClient(scene.url).get('/api', { headers: { authorization: odd } })
    assert.equal(answer.status, 401, odd)
  }
  assert.equal(upstream.received.length, 0)
  assert.ok(lines.some(({ event, fields }) => event === 'token_refused' && 'reason' in fields))
  for (const token of Object.values(tokens)) assert.ok(!JSON.stringify(lines).includes(token))
})

test('a token type listed in accessTokenTypes is accepted, but never for an ID token', async t => {
  const { provider, bring } = await setUpTokenRules(t, {
    config: { ...CONFIG, provider: { accessTokenTypes: ['JWT'] } },
  })
  assert.equal((await bring(await provider.sign(ROBOT, { typ: 'JWT' }))).status, 200)
  const idToken = { sub: 'robot-1', groups: ['robots'], azp: provider.clientId }
  assert.equal((await bring(await provider.sign(idToken, { typ: 'JWT' }))).status, 401)
})

test('a valid token that the rule does not admit gets 403 insufficient_scope', async t => {
  const { provider, upstream, bring } = await setUpTokenRules(t)
  const answer = await bring(await provider.sign({ ...ROBOT, groups: [] }, AT))
  assert.equal(answer.status, 403)
  assert.equal(answer.headers['www-authenticate'], 'Bearer error="insufficient_scope"')
  assert.deepEqual(answer.setCookies, [])
  assert.equal((await bring(await provider.sign({ sub: 's', preferred_username: 'zhangsan' }, AT))).status, 200)
  assert.equal(upstream.received.length, 1)
})

test('a token is ignored without a bearer rule, and never opens the console or the account page', async t => {
  const { provider, upstream, bring } = await setUpTokenRules(t)
  const admin = await provider.sign({ sub: 'a', preferred_username: 'admin', groups: ['robots'] }, AT)
  for (const path of [
    '/',
    '/api/closed',
    '/api/Closed',
    '/api/closed;x',
    '/api//closed',
    '/_menshen/me',
    '/_menshen/console',
    '/_menshen/account',
  ]) {
    const answer = await bring(admin, path)
    assert.notEqual(answer.status, 200, path)
    if (answer.status === 401) assert.equal(answer.headers['www-authenticate'], 'Bearer', path)
  }
  assert.equal((await bring(admin, '/_menshen/sign-out-everywhere')).status, 405)
  assert.equal(upstream.received.length, 0)
  assert.equal((await bring('whatever', '/public')).status, 200)
  assert.equal(upstream.last().headers.authorization, 'Bearer whatever', 'as before, it is the application’s own')
  assert.equal(upstream.last().headers['x-forwarded-user'], undefined)

  const off = await setUpTokenRules(t, { config: {} })
  assert.equal((await off.bring(await off.provider.sign(ROBOT, AT))).headers['www-authenticate'], 'Bearer')
  assert.deepEqual(off.provider.calls, [])
})

test('the accepted audience is that of the rule, else BEARER_AUDIENCE, else the client ID and the base URL', async t => {
  const { provider, bring, baseUrl } = await setUpTokenRules(t)
  const sign = (aud: string | string[]) => provider.sign({ ...ROBOT, aud }, AT)
  assert.equal((await bring(await sign(baseUrl))).status, 200)
  assert.equal((await bring(await sign(['x', provider.clientId]))).status, 200)
  assert.equal((await bring(await sign('https://other.example'))).status, 401)
  assert.equal((await bring(await sign('https://other.example'), '/other')).status, 200)
  assert.equal((await bring(await sign(baseUrl), '/other')).status, 401)
  const set = await setUpTokenRules(t, { env: { BEARER_AUDIENCE: 'https://api.example, second' } })
  for (const [aud, status] of [
    ['https://api.example', 200],
    ['second', 200],
    [set.provider.clientId, 401],
    [set.baseUrl, 401],
  ] as const)
    assert.equal((await set.bring(await set.provider.sign({ ...ROBOT, aud }, AT))).status, status, aud)
})

test('an opaque token is introspected at the provider, and acceptance and refusal are cached briefly', async t => {
  const scene = await setUpTokenRules(t)
  const { provider, upstream, bring } = scene
  const seconds = Math.floor(scene.now() / 1000)
  const answers: Record<string, object> = {
    good: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', exp: seconds + 600 },
    soon: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', exp: seconds + 10 },
    late: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', exp: seconds },
    early: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', nbf: seconds + 60 },
    other: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', aud: 'other' },
    refresh: {
      active: true,
      client_id: provider.clientId,
      sub: 'u-7',
      username: 'zhangsan',
      token_type: 'refresh_token',
    },
    bound: { active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan', cnf: { jkt: 'x' } },
    nobody: { active: true, client_id: provider.clientId },
    foreign: {
      active: true,
      client_id: provider.clientId,
      sub: 'u-7',
      username: 'zhangsan',
      iss: 'https://evil.example',
    },
  }
  provider.introspect = token => answers[token] ?? { active: false }
  const asked = () => provider.callsTo('/introspect').map(({ form }) => form.get('token'))
  const all = await Promise.all([bring('good'), bring('good'), bring('good')])
  assert.deepEqual(
    all.map(({ status }) => status),
    [200, 200, 200],
  )
  assert.equal(upstream.last().headers['x-forwarded-user'], 'zhangsan')
  assert.deepEqual(asked(), ['good'], 'once for all of them')
  assert.match(provider.callsTo('/introspect')[0]?.authorization ?? '', /^Basic /)
  for (const token of ['late', 'early', 'other', 'refresh', 'bound', 'nobody', 'foreign', 'unknown']) {
    for (let n = 0; n < 2; n++) {
      const answer = await bring(token)
      assert.equal(answer.status, 401, token)
      assert.equal(answer.headers['www-authenticate'], invalidAt(scene.url), token)
    }
    assert.equal(asked().filter(one => one === token).length, 1, `a refusal of ${token} is kept too`)
  }
  assert.equal((await bring('soon')).status, 200)
  scene.passSeconds(11)
  assert.equal((await bring('soon')).status, 401, 'its end counts more than what was kept')
  assert.equal((await bring('good')).status, 200)
  assert.equal(asked().filter(one => one === 'good').length, 1)
  answers.good = { active: false }
  scene.passSeconds(30)
  assert.equal((await bring('good')).status, 401, 'revoked: known within half a minute')
})

test('a revoked token is refused within half a minute, also if the clock was set back after it was accepted', async t => {
  const scene = await setUpTokenRules(t)
  const { provider, bring } = scene
  let active = true
  provider.introspect = () => ({ active, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  assert.equal((await bring('opaque')).status, 200)
  active = false
  scene.passSeconds(-3600)
  scene.passSeconds(30)
  assert.equal((await bring('opaque')).status, 401)
})

test('while introspection is unavailable a token gets 503, and it is accepted once the provider is back', async t => {
  const scene = await setUpTokenRules(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const { provider, bring } = scene
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  provider.isAway = true
  const away = await bring('good')
  assert.equal(away.status, 503)
  assert.equal(away.headers['retry-after'], '5')
  const grpc = { 'content-type': 'application/grpc' }
  const call = await bring('good', '/api/items', grpc)
  assert.deepEqual([call.status, call.headers['grpc-status']], [200, '14'])
  for (const [check, more] of [
    ['/_menshen/check', { 'x-original-uri': '/api' }],
    ['/_menshen/forward', { 'x-forwarded-uri': '/api' }],
    ['/_menshen/authz/api', {}],
  ] as const)
    assert.equal((await bring('good', check, { ...grpc, ...more })).status, 503, 'forward-auth takes 200 for yes')
  provider.isAway = false
  provider.introspect = () => ({ hello: 1 })
  scene.passSeconds(2)
  assert.equal((await bring('good')).status, 503)
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  assert.equal((await bring('good')).status, 200)
})

test('made-up tokens are rate-limited before the provider is asked, and a known valid token is still accepted', async t => {
  const env = { RATE_LIMIT_PER_MINUTE: '5', TRUSTED_PROXIES: '127.0.0.1' }
  const scene = await setUpTokenRules(t, { env })
  const { provider, bring, lines } = scene
  provider.introspect = token =>
    token.startsWith('good')
      ? { active: true, client_id: provider.clientId, sub: token, username: 'zhangsan' }
      : { active: false }
  const from = (address: string) => ({ 'x-forwarded-for': address })
  for (let n = 0; n < 12; n++) assert.equal((await bring(`good-${n}`, '/api', from('192.0.2.1'))).status, 200)
  const made = await Promise.all(Array.from({ length: 40 }, (_, n) => bring(`made-up-${n}`, '/api', from('192.0.2.1'))))
  const asked = () => provider.callsTo('/introspect').filter(({ form }) => form.get('token')?.startsWith('made'))
  assert.equal(asked().length, 5)
  assert.deepEqual(
    [401, 429].map(status => made.filter(answer => answer.status === status).length),
    [5, 35],
  )
  assert.ok(lines.some(({ event }) => event === 'rate_limited'))
  assert.equal((await bring('made-up-0', '/api', from('192.0.2.1'))).status, 429, 'one that is known counts too')
  assert.equal((await bring('a b', '/api', from('192.0.2.1'))).status, 429, 'and one that cannot be read')
  assert.equal((await bring('good-new', '/api', from('192.0.2.1'))).status, 429)
  assert.equal((await bring('good-elsewhere', '/api', from('198.51.100.1'))).status, 200)
  scene.passSeconds(31)
  assert.equal((await bring('good-1', '/api', from('192.0.2.1'))).status, 200, 'who was valid is asked about anew')
  assert.equal(asked().length, 5)
})

test('a valid token is never rate-limited, even if 200 of its requests wait for one introspection', async t => {
  const scene = await setUpTokenRules(t, { env: { RATE_LIMIT_PER_MINUTE: '5' } })
  const { provider, bring } = scene
  provider.introspect = async token => {
    for (let n = 0; n < 200; n++) await nextTurn()
    return token.startsWith('good')
      ? { active: true, client_id: provider.clientId, sub: token, username: 'zhangsan' }
      : { active: false }
  }
  const many = async (token: string) => {
    const answers = await Promise.all(Array.from({ length: 200 }, () => bring(token)))
    return [...new Set(answers.map(({ status }) => status))]
  }
  assert.deepEqual(await many('good'), [200], 'the very first requests of it too')
  for (let n = 0; n < 3; n++) {
    scene.passSeconds(31)
    assert.deepEqual(await many('good'), [200], 'each time that it is asked about anew')
  }
  assert.equal(provider.callsTo('/introspect').length, 4)
  scene.passSeconds(31)
  provider.isAway = true
  assert.deepEqual(await many('good'), [503])
  provider.isAway = false
  scene.passSeconds(31)
  assert.deepEqual(await many('good'), [200], 'the provider was away for a moment')
  assert.equal((await bring('good-2')).status, 200, 'nothing of what its network may do is used up')
  assert.deepEqual((await many('made-up')).toSorted(), [401, 429])
})

test('a token that is rate-limited in one network is still introspected for a concurrent request from another', async t => {
  const env = { RATE_LIMIT_PER_MINUTE: '1', TRUSTED_PROXIES: '127.0.0.1' }
  const { provider, bring } = await setUpTokenRules(t, { env })
  provider.introspect = token =>
    token === 'good'
      ? { active: true, client_id: provider.clientId, sub: 's', username: 'zhangsan' }
      : { active: false }
  const from = (address: string) => ({ 'x-forwarded-for': address })
  assert.equal((await bring('made-up', '/api', from('192.0.2.1'))).status, 401)
  const [limited, other] = await Promise.all([
    bring('good', '/api', from('192.0.2.1')),
    bring('good', '/api', from('198.51.100.1')),
  ])
  assert.equal(other.status, 200)
  assert.ok([200, 429].includes(limited.status))
})

test('one network uses at most a quarter of the introspection slots, so a token from elsewhere does not wait', async t => {
  const env = { PROVIDER_PARALLEL_CALLS: '4', TRUSTED_PROXIES: '127.0.0.1' }
  const { provider, bring } = await setUpTokenRules(t, { env })
  const held = Promise.withResolvers<void>()
  provider.introspect = async token => {
    if (token.startsWith('made')) await held.promise
    return token.startsWith('made')
      ? { active: false }
      : { active: true, client_id: provider.clientId, sub: 's', username: 'zhangsan' }
  }
  const made = Array.from({ length: 8 }, (_, n) => bring(`made-up-${n}`, '/api', { 'x-forwarded-for': '192.0.2.1' }))
  while (provider.callsTo('/introspect').length === 0) await nextTurn()
  assert.equal((await bring('good', '/api', { 'x-forwarded-for': '198.51.100.1' })).status, 200)
  assert.equal(provider.callsTo('/introspect').length, 2)
  held.resolve()
  for (const { status } of await Promise.all(made)) assert.equal(status, 401)
})

test('a session takes precedence over a token, which is then forwarded to the application', async t => {
  const scene = await setUpTokenRules(t)
  const { provider, upstream } = scene
  const user = await scene.user()
  const robot = await provider.sign(ROBOT, AT)
  for (const token of [robot, 'whatever']) {
    assert.equal((await user.get('/api', { headers: { authorization: `Bearer ${token}` } })).status, 200)
    const { headers } = upstream.last()
    assert.equal(headers['x-forwarded-user'], 'zhangsan')
    assert.equal(headers.authorization, `Bearer ${token}`)
  }
  provider.user = { sub: 'sub-2', preferred_username: 'lisi' }
  const other = await scene.user()
  const refused = await other.get('/api', { headers: { authorization: `Bearer ${robot}` } })
  assert.equal(refused.status, 403, 'the user is not admitted, whatever else is brought')
  const stale = { cookie: `menshen_session=${'x'.repeat(43)}`, authorization: `Bearer ${robot}` }
  assert.equal((await createClient(scene.url).get('/api', { headers: stale })).status, 200)
  assert.equal(upstream.last().headers['x-forwarded-user'], 'robot-1')
})

test('with FORWARD_ACCESS_TOKEN the application receives the token in exactly one Authorization header', async t => {
  const { provider, upstream, bring } = await setUpTokenRules(t, { env: { FORWARD_ACCESS_TOKEN: 'true' } })
  const token = await provider.sign(ROBOT, AT)
  assert.equal((await bring(token)).status, 200)
  assert.deepEqual(
    upstream.last().lines.filter(([name]) => name === 'authorization'),
    [['authorization', `Bearer ${token}`]],
  )
})

test('forward-auth accepts a token that the proxy passes on and returns the identity headers', async t => {
  const { url, provider, bring } = await setUpTokenRules(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const token = await provider.sign(ROBOT, AT)
  const ask = (token: string, uri: string) => bring(token, '/_menshen/check', { 'x-original-uri': uri })
  const good = await ask(token, '/api/items')
  assert.equal(good.status, 200)
  assert.equal(good.headers['x-forwarded-user'], 'robot-1')
  assert.equal(good.headers['x-forwarded-groups'], 'robots,/fleet/a')
  assert.deepEqual(good.setCookies, [])
  const closed = await ask(token, '/api/closed')
  assert.deepEqual([closed.status, closed.headers['www-authenticate']], [401, 'Bearer'])
  const bad = await ask('made-up', '/api')
  assert.deepEqual([bad.status, bad.headers['www-authenticate']], [401, invalidAt(url)])
  const weak = await ask(await provider.sign({ ...ROBOT, groups: [] }, AT), '/api')
  assert.deepEqual([weak.status, weak.headers['www-authenticate']], [403, 'Bearer error="insufficient_scope"'])
  const forward = await bring(token, '/_menshen/forward', { 'x-forwarded-uri': '/api' })
  assert.equal(forward.status, 200)
  const refused = await bring('made-up', '/_menshen/forward', { 'x-forwarded-uri': '/api' })
  assert.deepEqual([refused.status, refused.headers['www-authenticate']], [401, invalidAt(url)])
})

test('an open stream with an opaque token survives an introspection outage and ends once the token is inactive', async t => {
  const { provider, ...scene } = await setUpTokenRules(t, { answer: answerWithStream })
  const rejections: unknown[] = []
  const onRejection = (reason: unknown) => void rejections.push(reason)
  process.on('unhandledRejection', onRejection)
  t.after(() => process.off('unhandledRejection', onRejection))
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /api/events HTTP/1.1', 'authorization: Bearer opaque'))
  await wire.sees('data: 1')
  provider.isAway = true
  scene.passSeconds(31)
  await until(() => scene.lines.some(({ event }) => event === 'streams_unchecked'))
  // Node reports a rejection without a handler before the next turn.
  await nextTurn()
  assert.deepEqual(rejections, [])
  assert.ok(!wire.socket.destroyed)
  provider.isAway = false
  provider.introspect = () => ({ active: false })
  scene.passSeconds(31)
  await wire.rest()
})

test('an open stream of a machine ends when a reload gives the machine another role', async t => {
  const provider = await startOidcServer(t)
  const upstream = await startUpstream(t, answerWithStream)
  const port = await freePort()
  const settings = readSettings({
    ...provider.settings,
    STORE: 'memory:',
    UPSTREAM: upstream.url,
    PORT: String(port),
    BASE_URL: `http://127.0.0.1:${port}`,
  })
  const core = await createCore({ settings, config: CONFIG, log: createTestLog().log, now: Date.now })
  provider.now = Date.now
  const server = createServer(core.listener).listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await core.close()
  })
  const token = await provider.sign(ROBOT, AT)
  const wire = await openWire(settings.BASE_URL)
  wire.socket.write(request('GET /api/events HTTP/1.1', `authorization: Bearer ${token}`))
  await wire.sees('data: 1')
  await core.prepare(settings, { ...CONFIG, roles: [{ role: 'machine', groups: ['robots'] }] })(undefined)
  await wire.rest()
})

test('a WebSocket is accepted with a token and closes when the token expires', async t => {
  const scene = await setUpTokenRules(t)
  const { provider, upstream, url } = scene
  upstream.server.on('upgrade', (received, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n')
    const accept = received.headers['sec-websocket-key'] ?? ''
    socket.write(
      `sec-websocket-accept: ${acceptFor(accept)}\r\nx-user: ${received.headers['x-forwarded-user']}\r\n\r\n`,
    )
    socket.on('error', () => {})
  })
  const token = await provider.sign(ROBOT, AT)
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/live`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const told = new Promise(resolve => socket.once('upgrade', ({ headers }) => resolve(headers['x-user'])))
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  assert.equal(await told, 'robot-1')
  const closed = new Promise(resolve => socket.once('close', resolve))
  scene.passSeconds(700)
  await closed

  const upgrade = ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: eA==']
  const ask = (given: string, path: string) =>
    raw(url, request(`GET ${path} HTTP/1.1`, `authorization: Bearer ${given}`, ...upgrade))
  assert.match(
    await ask('made-up', '/api'),
    /^HTTP\/1\.1 401 .*\r\nwww-authenticate: Bearer error="invalid_token", resource_metadata="[^"]+"\r\n/s,
  )
  assert.match(await ask(token, '/api'), /^HTTP\/1\.1 401 /)
  const weak = await provider.sign({ ...ROBOT, groups: [] }, AT)
  assert.match(
    await ask(weak, '/api'),
    /^HTTP\/1\.1 403 .*\r\nwww-authenticate: Bearer error="insufficient_scope"\r\n/s,
  )
  assert.match(
    await ask(await provider.sign(ROBOT, AT), '/api/closed'),
    /^HTTP\/1\.1 401 .*www-authenticate: Bearer\r\n/s,
  )
})

test('made-up tokens and tickets share a rate limit, and valid tokens and sessions are not limited', async t => {
  const scene = await setUpTokenRules(t, { env: { RATE_LIMIT_PER_MINUTE: '3' } })
  const { provider, bring } = scene
  const user = await scene.user()
  for (let n = 0; n < 3; n++) assert.equal((await bring(`made-up-${n}`)).status, 401)
  const limited = await bring('made-up-3')
  assert.deepEqual([limited.status, limited.headers['retry-after']], [429, '60'])
  assert.equal((await bring(await provider.sign(ROBOT, AT))).status, 200)
  assert.equal((await user.get('/api')).status, 200)
  assert.equal(
    (await createClient(scene.url).get('/', { headers: { cookie: `menshen_session=${'x'.repeat(43)}` } })).status,
    429,
  )
})

test('with several providers the issuer verifies its tokens, and opaque tokens go only to the main provider', async t => {
  const [staff, partners] = [await startOidcServer(t), await startOidcServer(t)]
  const upstream = await startUpstream(t)
  const config: Config = {
    ...CONFIG,
    providers: { staff: staff.config, partners: partners.config },
    rules: [{ path: '/api', roles: ['robot'], users: ['zhangsan', 'partners:p-1'], bearer: true }],
  }
  const gateway = await openGateway(t, { UPSTREAM: upstream.url }, { config })
  const bring = (token: string) =>
    createClient(gateway.url).get('/api', { headers: { authorization: `Bearer ${token}` } })
  assert.equal((await bring(await staff.sign(ROBOT, AT))).status, 200)
  assert.equal((await bring(await partners.sign(ROBOT, AT))).status, 403, 'its groups are not those of the main one')
  assert.equal((await bring(await partners.sign({ sub: 'p-1' }, AT))).status, 200)
  assert.equal(upstream.last().headers['x-forwarded-user'], 'partners:p-1')
  assert.equal((await bring(await partners.sign({ sub: 'p-1', aud: staff.clientId }, AT))).status, 401)
  assert.equal(
    (await bring(await partners.sign({ sub: 'p-1', iss: staff.issuer, aud: staff.clientId }, AT))).status,
    401,
  )
  staff.introspect = () => ({ active: true, client_id: staff.clientId, sub: 'u', username: 'zhangsan' })
  assert.equal((await bring('opaque')).status, 200)
  assert.equal(partners.callsTo('/introspect').length, 0)
  partners.isAway = true
  assert.equal((await bring(await staff.sign({ ...ROBOT, jti: '2' }, AT))).status, 200, 'whatever becomes of the other')
  assert.ok(!cookieOf(createClient(gateway.url)))
})

test('a bearer rule is a startup error if tokens of the provider cannot be verified', async t => {
  const rules: Config['rules'] = [
    { path: '/a', public: true },
    { path: '/api', roles: ['*'], bearer: true },
  ]
  const env = { AUTH_URL: 'https://idp.example.com', CLIENT_ID: 'a', CLIENT_SECRET: 'b' }
  await assert.rejects(openGateway(t, env, { config: { rules } }), {
    message:
      'rules.1 has bearer, but tokens of the provider idaas cannot be verified; expected issuer and jwksUrl, or introspectionUrl.',
  })
  const provider = { introspectionUrl: 'https://idp.example.com/introspect' }
  await openGateway(t, env, { config: { rules, provider } })
  await openGateway(
    t,
    { ...env, ISSUER: 'https://idp.example.com', JWKS_URL: 'https://idp.example.com/keys' },
    { config: { rules } },
  )
})

function acceptFor(key: string): string {
  return hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')
}

test('a key is never sent to the provider, whether or not the rule also accepts keys', async t => {
  const { provider, bring } = await setUpTokenRules(t, {
    config: {
      rules: [
        { path: '/both', roles: ['*'], bearer: true, keys: true },
        { path: '/', roles: ['*'], bearer: true },
      ],
    },
  })
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7', username: 'zhangsan' })
  for (const path of ['/both', '/other']) assert.equal((await bring(`mk_${'a'.repeat(43)}`, path)).status, 401)
  assert.equal((await bring('mk_short', '/both')).status, 401)
  assert.equal(provider.callsTo('/introspect').length, 0)
  assert.equal((await bring('opaque', '/both')).status, 200)
  assert.equal(provider.callsTo('/introspect').length, 1)
})
