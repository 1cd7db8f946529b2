// Whichever way somebody comes in without a session: the same limits, a challenge with every 401, and answers that a
// script can read.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Rule } from '../../src/index.ts'
import { cookieOf, type Response, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { raw, request, statusOf } from '../proxy/raw.ts'

const RULES: Rule[] = [{ path: '/internal', roles: ['developer'] }]
const SCRIPT = { accept: 'application/json' }
const PAGE = { accept: 'text/html' }
const TRUSTED = { TRUSTED_PROXIES: '127.0.0.1' }
const ticket = (n: number) => `menshen_session=${String(n).padStart(43, 'x')}`

/** Each asks with this cookie, and gives the status. */
const WAYS: Record<string, (scene: Scene, cookie: string) => Promise<number>> = {
  'a page': async (scene, cookie) => (await scene.visitor().get('/page', { headers: { cookie } })).status,
  me: async (scene, cookie) => (await scene.visitor().get('/_menshen/me', { headers: { cookie } })).status,
  account: async (scene, cookie) => (await scene.visitor().get('/_menshen/account', { headers: { cookie } })).status,
  console: async (scene, cookie) => (await scene.visitor().get('/_menshen/console', { headers: { cookie } })).status,
  'ending a session': async (scene, cookie) =>
    (await scene.visitor().post('/_menshen/console/end', '', { headers: { cookie } })).status,
  'sign-out everywhere': async (scene, cookie) =>
    (await scene.visitor().post('/_menshen/sign-out-everywhere', '', { headers: { cookie } })).status,
  check: async (scene, cookie) => (await scene.visitor().get('/_menshen/check', { headers: { cookie } })).status,
  forward: async (scene, cookie) =>
    (await scene.visitor().get('/_menshen/forward', { headers: { cookie, 'x-forwarded-uri': '/page' } })).status,
  'an upgrade': async (scene, cookie) => {
    const upgrade = [
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: eA==',
    ]
    return statusOf(await raw(scene.url, request('GET /socket HTTP/1.1', `cookie: ${cookie}`, ...upgrade)))
  },
}

for (const [name, ask] of Object.entries(WAYS))
  test(`unknown session tickets are rate-limited, and signed-in users are not (${name})`, async t => {
    const scene = await setUp(t, { env: { ...TRUSTED, RATE_LIMIT_PER_MINUTE: '3' }, config: { rules: RULES } })
    const user = await scene.user('admin')
    for (let n = 0; n < 3; n++) assert.notEqual(await ask(scene, ticket(n)), 429)
    assert.equal(await ask(scene, ticket(3)), 429)
    assert.notEqual(await ask(scene, ''), 429, 'without a ticket')
    assert.equal((await user.get('/page')).status, 200)
    assert.equal((await scene.visitor().get('/login', { headers: { cookie: ticket(4) } })).status, 200)
  })

test('unknown session tickets share one rate limit across all endpoints', async t => {
  const ways = Object.values(WAYS)
  const env = { ...TRUSTED, RATE_LIMIT_PER_MINUTE: String(ways.length) }
  const scene = await setUp(t, { env })
  for (const [n, ask] of ways.entries()) assert.notEqual(await ask(scene, ticket(n)), 429)
  for (const [n, ask] of ways.entries()) assert.equal(await ask(scene, ticket(n)), 429)
})

test('every 401 sends WWW-Authenticate: Cookie, so that no browser prompts for a password', async t => {
  const scene = await setUp(t, { env: TRUSTED })
  const visitor = scene.visitor()
  const answers = [
    await visitor.get('/page', { headers: SCRIPT }),
    await visitor.post('/page'),
    await visitor.get('/_menshen/me'),
    await visitor.get('/_menshen/check'),
    await visitor.get('/_menshen/forward', { headers: { ...SCRIPT, 'x-forwarded-uri': '/page' } }),
    await visitor.post('/_menshen/sign-out-everywhere'),
  ]
  const upgrade = ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: eA==']
  const socket = await raw(scene.url, request('GET /socket HTTP/1.1', ...upgrade))
  assert.match(socket, /^HTTP\/1\.1 401 .*\r\nwww-authenticate: Cookie realm="menshen"\r\n/s)
  for (const { status, headers, url } of answers) {
    assert.equal(status, 401, url)
    assert.equal(headers['www-authenticate'], 'Cookie realm="menshen"', url)
  }
})

test('a client with a bearer token gets 401 in JSON with WWW-Authenticate: Bearer, not a login page', async t => {
  const scene = await setUp(t, { env: TRUSTED })
  for (const authorization of ['Bearer abc', 'bearer abc', 'BEARER', 'Bearer'])
    for (const accept of ['*/*', 'text/html', '']) {
      const headers = { authorization, ...(accept && { accept }) }
      for (const [path, more] of [
        ['/api', {}],
        ['/_menshen/me', {}],
        ['/_menshen/console', {}],
        ['/_menshen/forward', { 'x-forwarded-uri': '/api' }],
      ] as const) {
        const answer = await scene.visitor().get(path, { headers: { ...headers, ...more } })
        assert.equal(answer.status, 401, path)
        assert.equal(answer.headers['www-authenticate'], 'Bearer', path)
        assert.equal(answer.json<{ error: string }>().error, 'unauthenticated', path)
        assert.deepEqual(answer.setCookies, [])
      }
    }
  const check = await scene.visitor().get('/_menshen/check', { headers: { authorization: 'Bearer abc' } })
  assert.equal(check.headers['www-authenticate'], 'Bearer')
  assert.equal(scene.upstream.received.length, 0)
  const other = await scene.visitor().get('/api', { headers: { authorization: 'Basic YTpi' } })
  assert.equal(other.status, 401, 'a program with a password cannot use a login page either')
  const user = await scene.user()
  assert.equal((await user.get('/api', { headers: { authorization: 'Bearer abc' } })).status, 200)
})

test('errors are returned as JSON to scripts and as a page to browsers', async t => {
  const scene = await setUp(t, { env: { RATE_LIMIT_PER_MINUTE: '3' }, config: { rules: RULES } })
  const user = await scene.user()
  const foreign = { origin: 'http://evil.example' }
  const questions: [status: number, error: string, ask: (headers: Record<string, string>) => Promise<Response>][] = [
    [403, 'refused', headers => user.get('/internal', { headers })],
    [403, 'refused', headers => user.get('/_menshen/console', { headers })],
    [403, 'foreign', headers => user.post('/login', '', { headers: { ...headers, ...foreign } })],
    [
      403,
      'foreign',
      headers => user.post('/_menshen/sign-out-everywhere', '', { headers: { ...headers, ...foreign } }),
    ],
    [404, 'not_found', headers => user.get('/_menshen/nothing', { headers })],
    [405, 'method_not_allowed', headers => user.post('/_menshen/me', '', { headers })],
    [413, 'too_large', headers => user.post('/login', 'x'.repeat(20_000), { headers })],
  ]
  for (let n = 0; n < 4; n++) {
    await scene.visitor().post('/login')
    await scene.visitor().get('/page', { headers: { cookie: ticket(n) } })
  }
  questions.push(
    [429, 'too_many', headers => scene.visitor().post('/login', '', { headers })],
    [429, 'too_many', headers => scene.visitor().get('/callback', { headers })],
    [429, 'too_many', headers => scene.visitor().post('/page', '', { headers: { ...headers, cookie: ticket(9) } })],
  )
  const me = await scene.visitor().get('/_menshen/me', { headers: { ...SCRIPT, cookie: ticket(9) } })
  assert.equal(me.status, 429)
  for (const [status, error, ask] of questions) {
    const script = await ask(SCRIPT)
    assert.equal(script.status, status, script.url)
    assert.equal(script.json<{ error: string }>().error, error, script.url)
    assert.match(script.json<{ message: string }>().message, /[\u4e00-\u9fff]{4}/)
    const page = await ask(PAGE)
    assert.equal(page.status, status, page.url)
    assert.match(page.text, /<html lang="zh-CN"/, page.url)
    if (status === 429) assert.equal(script.headers['retry-after'], '60')
  }
})

test('50 untrusted forward-auth requests are logged only 10 times', async t => {
  const scene = await setUp(t)
  for (let n = 0; n < 50; n++)
    assert.equal((await scene.visitor().get('/_menshen/forward', { headers: { 'x-forwarded-uri': '/' } })).status, 400)
  assert.equal(scene.lines.filter(({ event }) => event === 'check_refused').length, 10)
})

test('after switching accounts, the user returns to the refused page, and never to another origin', async t => {
  const scene = await setUp(t, { config: { rules: RULES } })
  const user = await scene.user()
  const page = await user.get('/internal/a?b=1&c=2', { headers: PAGE })
  const [, wanted = ''] = /name="return" value="([^"]*)"/.exec(page.text) ?? []
  assert.equal(wanted, '/internal/a?b=1&amp;c=2')
  const leave = (to: string) => user.post('/logout', { return: to }, { headers: { origin: scene.baseUrl } })
  assert.equal((await leave('/internal/a?b=1&c=2')).headers.location, '/login')
  const back = await signIn(user, scene.provider, { username: 'admin' })
  assert.equal(back.headers.location, '/internal/a?b=1&c=2')
  for (const elsewhere of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    '/login',
  ]) {
    await leave(elsewhere)
    assert.equal((await signIn(user, scene.provider)).headers.location, '/', elsewhere)
  }
  const foreign = { headers: { origin: 'http://evil.example' } }
  assert.deepEqual((await user.post('/logout', { return: '/internal' }, foreign)).setCookies, [])
})

test('after the session has ended, a button on our own pages leads to the login page', async t => {
  const scene = await setUp(t)
  const own = { origin: scene.baseUrl, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' }
  for (const path of ['/_menshen/sign-out-everywhere', '/_menshen/console/end']) {
    const ask = (headers: Record<string, string>) => scene.visitor().post(path, '', { headers })
    for (const headers of [
      { ...own, 'sec-fetch-dest': 'document' },
      // The application's service worker passes it on.
      { ...own, 'sec-fetch-dest': 'empty' },
      { ...PAGE, origin: scene.baseUrl },
    ]) {
      const answer = await ask(headers)
      assert.deepEqual([answer.status, answer.headers.location], [303, '/login'], path)
    }
    for (const headers of [
      {},
      SCRIPT,
      { ...own, 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' },
      { ...PAGE, origin: 'http://evil.example' },
    ])
      assert.equal((await ask(headers)).status, 401, path)
  }
})

test('while the application is unreachable, the 502 page says “您已登录” to users but not to visitors', async t => {
  const env = { UPSTREAM: `http://127.0.0.1:${await freePort()}` }
  const scene = await setUp(t, { env, config: { rules: [{ path: '/open', public: true }] } })
  const user = await scene.user()
  const answers = [await user.get('/open', { headers: PAGE }), await scene.visitor().get('/open', { headers: PAGE })]
  assert.deepEqual(
    answers.map(({ status, text }) => [status, text.includes('您已登录')]),
    [
      [502, true],
      [502, false],
    ],
  )
})

test('the 403 page shows the user and the role, and has a button to sign in with another account', async t => {
  const scene = await setUp(t, { config: { rules: RULES }, env: TRUSTED })
  const user = await scene.user('zhangsan', { nickname: '<b>张三</b>' })
  for (const page of [
    await user.get('/internal', { headers: PAGE }),
    await user.get('/_menshen/console', { headers: PAGE }),
    await user.get('/_menshen/forward', { headers: { ...PAGE, 'x-forwarded-uri': '/internal' } }),
  ]) {
    assert.equal(page.status, 403)
    assert.match(page.text, /&lt;b&gt;张三&lt;\/b&gt; <code>zhangsan<\/code>/)
    assert.match(page.text, /普通用户 <code>common<\/code>/)
    assert.match(page.text, /<form method="post" action="\/logout"><button[^>]*>使用其他账号登录/)
    assert.equal(page.headers['cache-control'], 'no-store')
  }
  const out = await user.post('/logout', '', { headers: { origin: scene.baseUrl } })
  assert.deepEqual([out.status, out.headers.location], [303, '/login'])
  assert.doesNotMatch(cookieOf(user), /menshen_session/)
})
