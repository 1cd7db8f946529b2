// A provider that misbehaves in every way there is: the user is told, nobody is half signed in, and we keep serving.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import test, { type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Answer } from '../kit/answers.ts'
import { signIn } from '../kit/client.ts'
import { corpusFiles } from '../kit/corpora.ts'
import { listen } from '../kit/listen.ts'
import { openGateway, setUp } from '../kit/set-up.ts'

/** Short for those who have to wait for it; the others have the default. */
const SHORT = { PROVIDER_TIMEOUT_MS: '800' }
/** Far more than the deadline, far less than for ever. */
const PATIENCE_MS = 20_000
const LIFE_SECONDS = 7200

const TOKENS = {
  access_token: 'at-CANARY-x',
  token_type: 'bearer',
  refresh_token: 'rt-CANARY-x',
  expires_in: LIFE_SECONDS,
  scope: 'read',
  jti: 'j',
}
const USER = {
  sub: 's-1',
  ou_id: 'o-1',
  nickname: '张三',
  phone_number: '86 13800000000',
  ou_name: '研发部',
  email: 'z@example.com',
  username: 'zhangsan',
}
const INFO = { success: true, code: '200', data: USER }

type Stage = 'token' | 'userinfo' | 'refresh'

const bytes = (body: string | Uint8Array): Answer => ({ kind: 'bytes', body })
const json = (body: unknown, status = 200): Answer => ({ kind: 'json', body, status })
const without = <T extends object>(whole: T, name: keyof T) =>
  Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name))

async function openFaulty(t: TestContext, env: Record<string, string> = {}) {
  const gateway = await setUp(t, { env, provider: { expiresIn: LIFE_SECONDS }, application: false })
  const { provider } = gateway

  /** The provider misbehaves at this stage of a sign-in; what the user gets. */
  async function outcome(stage: 'token' | 'userinfo', answer: Answer, name: string) {
    const visitor = gateway.visitor()
    const [tokenCalls, infoCalls] = [provider.callsTo('token').length, provider.callsTo('userinfo').length]
    provider.answer(stage, answer)
    const started = performance.now()
    const { status, headers, setCookies, text } = await signIn(visitor, provider)
    provider.answer(stage, { kind: 'normal' })
    assert.ok(performance.now() - started < PATIENCE_MS, `${name}: within the deadline`)
    assert.equal(status, 302, name)
    assert.equal(text, '')
    assert.equal(provider.callsTo('token').length - tokenCalls, 1, `${name}: the code is exchanged exactly once`)
    assert.ok(provider.callsTo('userinfo').length - infoCalls <= 2, `${name}: user info is asked for twice at most`)
    return { location: headers.location ?? '', setCookies, visitor }
  }

  async function fails(stage: 'token' | 'userinfo', answer: Answer, name: string): Promise<void> {
    const { location, setCookies, visitor } = await outcome(stage, answer, name)
    assert.equal(location, `/login?error=${stage}_error`, name)
    assert.deepEqual(setCookies, [], `${name}: no session`)
    assert.equal((await visitor.get('/')).headers.location, '/login')
  }

  /** The provider misbehaves once at a refresh that is due. */
  async function failsAtRefresh(answer: Answer, name: string): Promise<void> {
    const visitor = gateway.visitor()
    await signIn(visitor, provider)
    const cookie = `menshen_session=${visitor.cookies.get('menshen_session')}`
    gateway.passSeconds(LIFE_SECONDS - 100)
    const calls = provider.callsTo('refresh').length
    provider.answer('refresh', answer, 'once')
    const started = performance.now()
    const { status, headers, setCookies } = await visitor.get('/')
    assert.ok(performance.now() - started < PATIENCE_MS, `${name}: within the deadline`)
    assert.deepEqual([status, headers.location], [302, '/login'], name)
    assert.ok(setCookies.some(given => /^menshen_session=; .*Max-Age=0/.test(given)))
    assert.equal((await visitor.get('/', { headers: { cookie } })).headers.location, '/login', `${name}: it is over`)
    assert.equal(provider.callsTo('refresh').length - calls, 1, `${name}: a refresh token is not spent twice`)
  }

  const failsAt = (stage: Stage, answer: Answer, name: string) =>
    stage === 'refresh' ? failsAtRefresh(answer, name) : fails(stage, answer, name)

  async function stillServes(): Promise<void> {
    const visitor = gateway.visitor()
    assert.equal((await signIn(visitor, provider)).headers.location, '/')
    assert.equal((await visitor.get('/')).status, 200)
  }

  return { provider, gateway, outcome, failsAt, stillServes }
}

const STAGES: Stage[] = ['token', 'userinfo', 'refresh']

const SLOW: Record<string, Answer> = {
  'never answers': { kind: 'hang' },
  'sends a byte each 100 ms': { kind: 'drip' },
}

const BROKEN: Record<string, Answer> = {
  'cuts the connection at once': { kind: 'cut', when: 'at once' },
  'cuts it after the headers': { kind: 'cut', when: 'after headers' },
  'cuts it in the body': { kind: 'cut', when: 'in the body' },
  'sends a body without end': { kind: 'endless' },
  'does not speak HTTP': { kind: 'wire', bytes: 'SSH-2.0-OpenSSH_9.2\r\n' },
  'sends nothing but an end': { kind: 'wire', bytes: '' },
  'sends half a head': { kind: 'wire', bytes: 'HTTP/1.1 200 OK\r\nContent-Le' },
  'sends a head without end': { kind: 'wire', bytes: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(200_000)}` },
  'sends two lengths': { kind: 'wire', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}' },
  'sends a bad chunk': { kind: 'wire', bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n' },
  'sends a status that does not exist': { kind: 'wire', bytes: 'HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}' },
  'switches protocols': { kind: 'wire', bytes: 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' },
  'sends 204': { kind: 'bytes', body: '', status: 204 },
  'sends 304': { kind: 'bytes', body: '', status: 304 },
  'sends nothing': bytes(''),
  'sends a page': { kind: 'bytes', body: '<html>维护中</html>', headers: { 'content-type': 'text/html' } },
  'sends bad gzip': { kind: 'bytes', body: 'not gzip', headers: { 'content-encoding': 'gzip' } },
  'sends a gzip bomb': {
    kind: 'bytes',
    body: gzipSync(Buffer.alloc(20 * 1024 * 1024, ' ')),
    headers: { 'content-encoding': 'gzip' },
  },
  'sends 2 MiB': bytes(JSON.stringify({ ...TOKENS, ...INFO, padding: 'x'.repeat(2 * 1024 * 1024) })),
  'sends deep JSON': bytes('['.repeat(100_000)),
  'sends deep objects': bytes(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`),
  'sends 500 with a good body': json({ ...TOKENS, ...INFO }, 500),
  'sends 201 with a good body': json({ ...TOKENS, ...INFO }, 201),
  'sends 403': json({ error: 'forbidden' }, 403),
  'sends 401 with a challenge': {
    kind: 'json',
    status: 401,
    body: { error: 'invalid_token' },
    headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="description-CANARY"' },
  },
  'sends 401 with a broken challenge': {
    kind: 'bytes',
    status: 401,
    body: '',
    headers: { 'www-authenticate': 'Bearer =,,"\\' },
  },
  'sends 200 with a challenge and no JSON': {
    kind: 'bytes',
    body: '',
    headers: { 'www-authenticate': 'DPoP error="x"' },
  },
  'sends an OAuth error with 200': json({ error: 'invalid_token', error_description: '86 13811111111' }),
  'sends an OAuth error with 400': json({ error: 'invalid_grant' }, 400),
  'sends success=false': json({ success: false, code: '500', message: 'x', data: USER }),
  'sends invalid UTF-8': bytes(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])),
  'sends UTF-16': bytes(Buffer.from(JSON.stringify({ ...TOKENS, ...INFO }), 'utf16le')),
  'sends null': json(null),
  'sends a string': json('bearer'),
  'sends a number': json(7200),
  'sends an array': json([{ ...TOKENS, ...INFO }]),
  'sends an empty object': json({}),
  'sends the answer twice': bytes(JSON.stringify(TOKENS).repeat(2)),
  'sends prototype names': bytes(
    '{"__proto__":{"access_token":"a","token_type":"bearer","expires_in":9,"success":true}}',
  ),
}

for (const stage of STAGES)
  test(`a request to a slow provider at ${stage} is abandoned within the deadline`, async t => {
    const { failsAt, stillServes } = await openFaulty(t, SHORT)
    for (const [name, answer] of Object.entries(SLOW)) await failsAt(stage, answer, `${stage} ${name}`)
    await stillServes()
  })

for (const stage of STAGES)
  test(`an interrupted, oversized or malformed response at ${stage} gives no session`, async t => {
    const { failsAt, stillServes } = await openFaulty(t)
    for (const [name, answer] of Object.entries(BROKEN)) await failsAt(stage, answer, `${stage} ${name}`)
    await stillServes()
  })

for (const stage of STAGES)
  test(`a redirect at ${stage} is not followed`, async t => {
    const { failsAt, stillServes } = await openFaulty(t)
    let trapped = 0
    const trap = createServer((_, response) => {
      trapped += 1
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...TOKENS, ...INFO }))
    })
    const to = `${(await listen(t, trap)).url}/trap`
    for (const status of [301, 302, 303, 307, 308])
      await failsAt(stage, { kind: 'redirect', to, status }, `${stage} ${status}`)
    await failsAt(stage, { kind: 'redirect', to: '/oauth/token' }, `${stage} to itself`)
    assert.equal(trapped, 0)
    await stillServes()
  })

/** Bodies that no session may come from, each at its stage. */
const ODD_TOKENS: Record<string, unknown> = {
  'no access_token': without(TOKENS, 'access_token'),
  'no token_type': without(TOKENS, 'token_type'),
  'no expires_in': without(TOKENS, 'expires_in'),
  'a wrapped answer': { success: true, data: TOKENS },
}
for (const value of [null, '', 1, true, [], ['at'], {}, 'a b', 'a\r\nX: y', 'a\u0000', 'é', '令牌'])
  ODD_TOKENS[`access_token ${JSON.stringify(value)}`] = { ...TOKENS, access_token: value }
for (const value of ['mac', 'bearer ', 'Bearer token', 'N_A', '', null, 1, true, ['bearer'], {}])
  ODD_TOKENS[`token_type ${JSON.stringify(value)}`] = { ...TOKENS, token_type: value }
for (const value of [0, -1, 0.5, 1.5, 2 ** 53, 2 ** 31 * 1000, '', '0', '-1', ' 7200', '7200s', '1e3', '0x10', 'NaN'])
  ODD_TOKENS[`expires_in ${JSON.stringify(value)}`] = { ...TOKENS, expires_in: value }
for (const value of ['Infinity', '99999999999999999999', null, true, [7200], { s: 7200 }, '７２００'])
  ODD_TOKENS[`expires_in ${JSON.stringify(value)}`] = { ...TOKENS, expires_in: value }
for (const value of [1, true, [], {}, 'a b', 'a\nb', '令牌'])
  ODD_TOKENS[`refresh_token ${JSON.stringify(value)}`] = { ...TOKENS, refresh_token: value }

for (const stage of ['token', 'refresh'] as const)
  test(`a response at ${stage} with a missing or invalid field gives no session`, async t => {
    const { failsAt, stillServes } = await openFaulty(t)
    for (const [name, body] of Object.entries(ODD_TOKENS)) await failsAt(stage, json(body), `${stage} ${name}`)
    const huge = JSON.stringify(TOKENS).replace(String(LIFE_SECONDS), '1e300')
    await failsAt(stage, bytes(huge), `${stage} expires_in 1e300`)
    await failsAt(stage, bytes(huge.replace('1e300', '1e999')), `${stage} expires_in 1e999`)
    await failsAt(stage, bytes(huge.replace('1e300', '-0')), `${stage} expires_in -0`)
    await stillServes()
  })

test('user info with a missing or invalid field gives no session', async t => {
  const { failsAt, stillServes } = await openFaulty(t)
  for (const success of [false, 'true', 1, null, {}, []])
    await failsAt('userinfo', json({ ...INFO, success }), `success ${JSON.stringify(success)}`)
  await failsAt('userinfo', json(without(INFO, 'success')), 'no success')
  for (const code of ['500', 500, '', '0', true, {}, ['200']])
    await failsAt('userinfo', json({ ...INFO, code }), `code ${JSON.stringify(code)}`)
  for (const data of [null, [], [USER], 'x', 1, true, {}])
    await failsAt('userinfo', json({ ...INFO, data }), `data ${JSON.stringify(data)}`)
  await failsAt('userinfo', json(without(INFO, 'data')), 'no data')
  for (const name of ['sub', 'username'] as const) {
    await failsAt('userinfo', json({ ...INFO, data: without(USER, name) }), `no ${name}`)
    await failsAt('userinfo', json({ ...INFO, data: { ...USER, [name]: '' } }), `empty ${name}`)
  }
  for (const name of Object.keys(USER))
    for (const value of [1, true, ['admin'], { admin: true }])
      await failsAt('userinfo', json({ ...INFO, data: { ...USER, [name]: value } }), `${name} ${JSON.stringify(value)}`)
  await stillServes()
})

test('known variations of token and user info responses give a session with the right lifetime', async t => {
  const { provider, outcome } = await openFaulty(t)
  const tokenAnswers: [name: string, body: unknown, maxAge: number][] = [
    ['Bearer', { ...TOKENS, token_type: 'Bearer' }, 7200],
    ['BEARER', { ...TOKENS, token_type: 'BEARER' }, 7200],
    ['a lifetime as text', { ...TOKENS, expires_in: '7200' }, 7200],
    ['ten minutes', { ...TOKENS, expires_in: 600 }, 600],
    ['odd fields that nobody needs', { ...TOKENS, scope: ['read'], jti: 7, more: {} }, 7200],
    ['no scope and no jti', without(without(TOKENS, 'scope') as typeof TOKENS, 'jti'), 7200],
    ['no refresh token', without(TOKENS, 'refresh_token'), 7200],
    ['an empty refresh token', { ...TOKENS, refresh_token: '' }, 7200],
    ['a null refresh token', { ...TOKENS, refresh_token: null }, 7200],
  ]
  provider.answer('userinfo', json(INFO))
  const admits = async (stage: 'token' | 'userinfo', answer: Answer, name: string, maxAge = 7200) => {
    const { location, setCookies, visitor } = await outcome(stage, answer, name)
    assert.equal(location, '/', name)
    assert.match(setCookies[0] ?? '', new RegExp(`^menshen_session=[\\w-]{43}; .*Max-Age=${maxAge};`), name)
    const { userInfo } = (await visitor.get('/_menshen/me')).json<{ userInfo: typeof USER }>()
    assert.equal(userInfo.username, 'zhangsan')
    return userInfo
  }
  for (const [name, body, maxAge] of tokenAnswers) await admits('token', json(body), name, maxAge)
  await admits('token', bytes(`\ufeff${JSON.stringify(TOKENS)}`), 'a byte order mark')
  await admits('token', bytes(JSON.stringify(TOKENS)), 'no content type')
  await admits(
    'token',
    { kind: 'bytes', body: gzipSync(JSON.stringify(TOKENS)), headers: { 'content-encoding': 'gzip' } },
    'gzip',
  )
  await admits(
    'token',
    { kind: 'bytes', body: JSON.stringify(TOKENS), headers: { 'content-type': 'text/plain' } },
    'text',
  )
  await admits('token', { kind: 'delay', ms: 100 }, 'slow but in time')

  await admits('userinfo', json({ ...INFO, code: 200 }), 'a code as a number')
  await admits('userinfo', json(without(INFO, 'code')), 'no code')
  await admits('userinfo', bytes(`\ufeff${JSON.stringify(INFO)}`), 'a byte order mark')
  const few = await admits(
    'userinfo',
    json({ ...INFO, data: { sub: 's', username: 'zhangsan', email: null } }),
    'few fields',
  )
  assert.deepEqual(few, {
    ...Object.fromEntries(Object.keys(USER).map(key => [key, ''])),
    sub: 's',
    username: 'zhangsan',
  })
  const proto = JSON.stringify({ ...INFO, data: { ...USER, PROTO: { admin: true } } }).replace('PROTO', '__proto__')
  assert.deepEqual(await admits('userinfo', bytes(proto), 'prototype names'), USER)
})

test('a session with a one-second token ends after a second, even if the browser still sends the cookie', async t => {
  const { provider, gateway } = await openFaulty(t)
  provider.behaviour.expiresIn = 1
  provider.behaviour.refreshTokens = false
  const visitor = gateway.visitor()
  await signIn(visitor, provider)
  const headers = { cookie: `menshen_session=${visitor.cookies.get('menshen_session')}` }
  assert.equal((await visitor.get('/', { headers })).status, 200)
  gateway.passSeconds(1)
  assert.equal((await visitor.get('/', { headers })).headers.location, '/login')
})

test('while the provider is down, sign-ins fail with token_error and signed-in users still get their pages', async t => {
  const { provider, gateway } = await openFaulty(t)
  const user = gateway.visitor()
  await signIn(user, provider)
  const code = provider.codeFor()
  await provider.close()
  const answer = await gateway.visitor().get(`/callback?code=${code}&state=a_idp`)
  assert.equal(answer.headers.location, '/login?error=token_error')
  assert.equal((await user.get('/')).status, 200)
  assert.equal((await gateway.visitor().get('/login')).status, 200)
})

test('a provider with an untrusted certificate receives no request, and the sign-in fails with token_error', async t => {
  const { provider } = await openFaulty(t)
  let asked = 0
  const impostor = createTlsServer({ key: IMPOSTOR_KEY, cert: IMPOSTOR_CERTIFICATE }, (_, response) => {
    asked += 1
    response.end(JSON.stringify(TOKENS))
  })
  const AUTH_URL = `https://localhost:${(await listen(t, impostor)).port}`
  const gateway = await openGateway(t, { ...provider.settings, AUTH_URL })
  const answer = await signIn(gateway.visitor(), provider)
  assert.equal(answer.headers.location, '/login?error=token_error')
  assert.equal(asked, 0)
})

test('50 hanging token exchanges do not block other visitors', async t => {
  const { provider, gateway, stillServes } = await openFaulty(t, { PROVIDER_TIMEOUT_MS: '3000' })
  const release = provider.hold('token')
  const hanging = Array.from({ length: 50 }, () => signIn(gateway.visitor(), provider))
  await provider.called('token', 50)
  assert.equal((await gateway.visitor().get('/login')).status, 200)
  for (const { headers } of await Promise.all(hanging)) assert.equal(headers.location, '/login?error=token_error')
  release()
  await stillServes()
})

for (const stage of STAGES)
  test(`no file of the JSON corpus gives a session at ${stage}`, async t => {
    const { failsAt, stillServes } = await openFaulty(t)
    const own = [
      '{',
      '[1,]',
      '{"a":1}{"a":2}',
      'nul',
      '"\\ud800"',
      '\u0000',
      '-',
      '{"access_token":"a"}',
      '\ufeff',
      '//x',
    ]
    for (const text of own) await failsAt(stage, bytes(text), `${stage} ${JSON.stringify(text)}`)
    for (const { name, bytes: body } of corpusFiles('json')) await failsAt(stage, bytes(body), `${stage} ${name}`)
    await stillServes()
  })

// Signed by itself for localhost; it protects nothing.
const IMPOSTOR_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMsWvJ/ngxlInj1g5
Vswbg7dQO9YpO4CJ9RqNd2PifYyhRANCAAS0lgPa8jblbxPdliVm4csTc+K8Rvoq
rJM+fkr/RmITIOOuWj1HkpPrsKTvnVrnWmRBOMW1ceh5ZmsAxi7h7iMT
-----END PRIVATE KEY-----`
const IMPOSTOR_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUaX+vC4YdQgv4QalGRYrFRuHdNWEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTAyNTIwMloYDzIxMjYxMDIy
MDI1MjAyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAS0lgPa8jblbxPdliVm4csTc+K8RvoqrJM+fkr/RmITIOOuWj1HkpPr
sKTvnVrnWmRBOMW1ceh5ZmsAxi7h7iMTo28wbTAdBgNVHQ4EFgQUtbCqLXwqx/Ih
nuDYz8kqnXfyb6UwHwYDVR0jBBgwFoAUtbCqLXwqx/IhnuDYz8kqnXfyb6UwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhANpiBaTX1/uhkpBImDzLarRkK1d2SotuYL45a+bsrmHEAiAz
TtaViNI07mOQFE6fP6OZHDx5m266MTQYrTMwO5c1Bg==
-----END CERTIFICATE-----`
