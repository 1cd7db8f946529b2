// Forward-auth: what a proxy in front is told, and whom we believe about the request that it asks for.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import type { Rule } from '../../src/index.ts'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { CLIENT_ID } from '../kit/strict-provider.ts'
import { openWire, raw, request, statusOf } from '../proxy/raw.ts'

const RULES: Rule[] = [
  { path: '/internal', roles: ['developer'] },
  { path: '/public', public: true },
  { path: '/forms', methods: ['POST'], roles: ['developer'] },
]
const NAMES = ['user', 'email', 'preferred-username', 'role', 'groups'].map(name => `x-forwarded-${name}`)
const IDENTITY = [...NAMES, 'x-menshen-assertion']
const TRUSTED = { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules: RULES } }
const AUDIENCE = { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED', claim: 'aud' }
const HTML = { accept: 'text/html', 'sec-fetch-dest': 'document' }

/** How each kind of proxy says what was asked for. */
const nginx = (uri: string, method = 'GET') => ({ 'x-original-uri': uri, 'x-original-method': method })
const caddy = (uri: string, method = 'GET') => ({ 'x-forwarded-uri': uri, 'x-forwarded-method': method })

type Row = [uri: string, method: string, visitor: number, common: number, developer: number]
const ROWS: Row[] = [
  ['/', 'GET', 401, 200, 200],
  ['/a?b=c', 'GET', 401, 200, 200],
  ['/internal/x', 'GET', 401, 403, 200],
  ['/public', 'GET', 200, 200, 200],
  ['/forms', 'GET', 401, 200, 200],
  ['/forms', 'HEAD', 401, 200, 200],
  ['/forms', 'POST', 401, 403, 200],
  ['/%69nternal', 'GET', 401, 403, 200],
  ['/x/../internal', 'GET', 400, 400, 400],
  ['/x/%2e%2e/internal', 'GET', 400, 400, 400],
  ['//internal', 'GET', 400, 400, 400],
  ['/internal;x', 'GET', 401, 403, 200],
  ['/internal%2Fx', 'GET', 401, 403, 200],
  ['/x%2Fy;z//', 'GET', 401, 200, 200],
  ['http://evil.example/public', 'GET', 400, 400, 400],
]

test('an identity header replaces a response header of the same name', async t => {
  const name = 'x-content-type-options'
  const scene = await setUp(t, { env: { ...TRUSTED.env, IDENTITY_USER: name } })
  const user = await scene.user('lisi')
  // Node writes the first head of a second; the others are prepared.
  for (let n = 0; n < 3; n++) {
    const { headers } = await user.get('/_menshen/check', { headers: nginx('/') })
    assert.equal(headers[name], 'lisi')
  }
  const visitor = await scene.visitor().get('/_menshen/check', { headers: nginx('/') })
  assert.equal(visitor.headers[name], '')
})

test('/_menshen/check answers nginx with 200, 401 or 403, all identity headers and an empty body', async t => {
  const scene = await setUp(t, TRUSTED)
  const people = [scene.visitor(), await scene.user(), await scene.user('admin')]
  for (const [uri, method, ...expected] of ROWS) {
    const answers = await Promise.all(
      people.map(who =>
        who.get('/_menshen/check', { headers: { ...nginx(uri, method), 'sec-fetch-dest': 'document' } }),
      ),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      expected,
      `${method} ${uri}`,
    )
    for (const { status, headers, text } of answers)
      if (status !== 400) {
        assert.equal(text, '')
        assert.equal(headers['cache-control'], 'no-store')
        for (const name of IDENTITY) assert.equal(typeof headers[name], 'string', `${name} of ${method} ${uri}`)
      }
  }
  assert.equal(scene.upstream.received.length, 0)
})

test('/_menshen/forward returns the response for the browser to Caddy and Traefik', async t => {
  const scene = await setUp(t, TRUSTED)
  const people = [scene.visitor(), await scene.user(), await scene.user('admin')]
  for (const [uri, method, ...expected] of ROWS) {
    const statuses = []
    for (const who of people)
      statuses.push((await who.get('/_menshen/forward', { headers: { ...HTML, ...caddy(uri, method) } })).status)
    const canFollow = method === 'GET' || method === 'HEAD'
    const forBrowsers = expected.map(status => (status === 401 && canFollow ? 302 : status))
    assert.deepEqual(statuses, forBrowsers, `${method} ${uri}`)
  }
  const [visitor, common] = [scene.visitor(), await scene.user()]
  const script = { accept: 'application/json' }
  assert.equal((await visitor.get('/_menshen/forward', { headers: { ...script, ...caddy('/') } })).status, 401)
  const refused = await common.get('/_menshen/forward', { headers: { ...script, ...caddy('/internal') } })
  assert.equal(refused.json<{ error: string }>().error, 'refused')
  const page = await common.get('/_menshen/forward', { headers: { ...HTML, ...caddy('/internal') } })
  assert.match(page.text, /没有访问权限/)
})

test('a sign-in that starts with an auth check returns to the requested page', async t => {
  const scene = await setUp(t, TRUSTED)
  const visitor = scene.visitor()
  const away = await visitor.get('/_menshen/forward', {
    headers: { ...HTML, ...caddy('/reports/%E4%B8%AD?a=1&b=%2F') },
  })
  assert.equal(away.headers.location, '/login')
  const back = await visitor.get(`/callback?code=${scene.provider.codeFor()}&state=abc_idp`)
  assert.equal(back.headers.location, '/reports/%E4%B8%AD?a=1&b=%2F')
})

test('every identity header is always present, and empty if it has no value', async t => {
  const scene = await setUp(t, TRUSTED)
  const nameless = await scene.user('lisi', { email: '', nickname: '' })
  for (const [path, headers] of [
    ['/_menshen/check', nginx('/public')],
    ['/_menshen/forward', caddy('/public')],
  ] as const) {
    const known = await nameless.get(path, { headers })
    assert.deepEqual(
      NAMES.map(name => known.headers[name]),
      ['lisi', '', '', 'common', ''],
    )
    assert.match(String(known.headers['x-menshen-assertion']), /^eyJ/)
    const unknown = await scene.visitor().get(path, { headers })
    assert.equal(unknown.status, 200)
    assert.deepEqual(
      IDENTITY.map(name => unknown.headers[name]),
      IDENTITY.map(() => ''),
    )
  }
})

test('with IDENTITY_ASSERTION=none a forged assertion header becomes an empty one for proxy and application', async t => {
  const scene = await setUp(t, { ...TRUSTED, env: { ...TRUSTED.env, IDENTITY_ASSERTION: 'none' } })
  const user = await scene.user('lisi')
  const forged = { 'x-menshen-assertion': 'forged' }
  const { headers } = await user.get('/_menshen/check', { headers: { ...nginx('/public'), ...forged } })
  assert.deepEqual([headers['x-forwarded-user'], headers['x-menshen-assertion']], ['lisi', ''])
  await user.get('/', { headers: forged })
  const told = scene.upstream.last().headers
  assert.deepEqual([told['x-forwarded-user'], told['x-menshen-assertion']], ['lisi', ''])
})

test('only a trusted proxy can name the requested path; other clients get 400, and the log gives the reason', async t => {
  for (const trusted of ['', '10.0.0.0/8']) {
    const scene = await setUp(t, { env: { TRUSTED_PROXIES: trusted }, config: { rules: RULES } })
    const admin = await scene.user('admin')
    for (const headers of [nginx('/public'), nginx('/'), { 'x-original-uri': '' }])
      assert.equal((await admin.get('/_menshen/check', { headers })).status, 400)
    for (const headers of [caddy('/public'), caddy('/'), {}])
      assert.equal((await admin.get('/_menshen/forward', { headers })).status, 400)
    const reasons = scene.lines.filter(({ event }) => event === 'check_refused')
    assert.equal(reasons.length, 6)
    assert.match(JSON.stringify(reasons[0]), /TRUSTED_PROXIES/)
    assert.match(JSON.stringify(reasons[0]), /127\.0\.0\.1/)
    // Without a word about another request, it is about the session alone.
    assert.equal((await admin.get('/_menshen/check')).status, 200)
    assert.equal((await scene.visitor().get('/_menshen/check')).status, 401)
  }
})

test('an auth check that names its path in the header of another product gets 400 instead of skipping the rules', async t => {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1' }, config: { rules: RULES } })
  const user = await scene.user()
  for (const header of [{ 'x-original-url': 'http://app.test/admin' }, { 'x-forwarded-uri': '/admin' }]) {
    assert.equal((await user.get('/_menshen/check', { headers: header })).status, 400)
    assert.equal((await user.get('/_menshen/check', { headers: { ...header, ...nginx('/') } })).status, 200)
  }
  const reasons = scene.lines.filter(({ event }) => event === 'check_refused').map(({ fields }) => fields.reason)
  assert.deepEqual(reasons, [
    'x-original-uri is missing; the proxy sends x-original-url',
    'x-original-uri is missing; the proxy sends x-forwarded-uri',
  ])
})

test('only trusted proxies receive identity headers; a script on a page gets the status alone', async t => {
  for (const trusted of ['', '10.0.0.0/8']) {
    const scene = await setUp(t, { env: { TRUSTED_PROXIES: trusted }, config: { rules: RULES } })
    const [visitor, user] = [scene.visitor(), await scene.user('lisi', { nickname: '李四' })]
    const script = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' }
    const answers = [
      [200, await user.get('/_menshen/check', { headers: script })],
      [401, await visitor.get('/_menshen/check', { headers: script })],
      [400, await user.get('/_menshen/check', { headers: { ...script, ...nginx('/') } })],
      [400, await user.get('/_menshen/forward', { headers: { ...script, ...caddy('/') } })],
      [400, await user.get('/_menshen/forward', { headers: script })],
    ] as const
    for (const [status, { headers, status: seen }] of answers) {
      assert.equal(seen, status)
      for (const name of IDENTITY) assert.ok(!(name in headers), name)
      assert.doesNotMatch(JSON.stringify(headers), /eyJ|lisi|common/)
    }
  }
})

test('no forward-auth response contains the access token, so a script cannot read it through the proxy', async t => {
  const scene = await setUp(t, { ...TRUSTED, env: { ...TRUSTED.env, FORWARD_ACCESS_TOKEN: 'true' } })
  const user = await scene.user()
  await user.get('/')
  assert.match(String(scene.upstream.last().headers.authorization), /^Bearer at-CANARY-/, 'the gateway sends it')
  const script = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' }
  for (const [path, headers] of [
    ['/_menshen/check', nginx('/')],
    ['/_menshen/forward', caddy('/')],
    ['/_menshen/authz/', {}],
  ] as const)
    for (const more of [{}, script]) {
      const answer = await user.get(path, { headers: { ...headers, ...more } })
      assert.equal(answer.status, 200, path)
      assert.doesNotMatch(JSON.stringify(answer), /CANARY/, path)
    }
})

test('FORWARD_ACCESS_TOKEN with forward-auth but without UPSTREAM is a startup error', async t => {
  const env = { ...TRUSTED.env, FORWARD_ACCESS_TOKEN: 'true' }
  await assert.rejects(
    setUp(t, { env, application: false }),
    /FORWARD_ACCESS_TOKEN.* is "true" without UPSTREAM.*expected/i,
  )
  await setUp(t, { env: { FORWARD_ACCESS_TOKEN: 'true' }, application: false })
})

test('the audience of a forward-auth assertion is CLIENT_ID, or ASSERTION_AUDIENCE if set', async t => {
  for (const [env, audience] of [
    [{}, CLIENT_ID],
    [{ ASSERTION_AUDIENCE: 'wiki' }, 'wiki'],
  ] as const) {
    const scene = await setUp(t, { ...TRUSTED, env: { ...TRUSTED.env, ...env } })
    const user = await scene.user()
    const keys = createLocalJWKSet((await user.get('/_menshen/jwks.json')).json<JSONWebKeySet>())
    for (const [path, headers] of [
      ['/_menshen/check', nginx('/')],
      ['/_menshen/forward', caddy('/')],
    ] as const) {
      const { headers: told } = await user.get(path, { headers })
      const assertion = String(told['x-menshen-assertion'])
      const expected = { issuer: scene.baseUrl, currentDate: new Date(scene.now()) }
      assert.equal((await jwtVerify(assertion, keys, { ...expected, audience })).payload.username, 'zhangsan')
      await assert.rejects(jwtVerify(assertion, keys, { ...expected, audience: scene.upstream.url }), AUDIENCE)
    }
  }
})

test('an auth check with a duplicate path or method header gets 400', async t => {
  const scene = await setUp(t, TRUSTED)
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  for (const [path, name] of [
    ['/_menshen/check', 'x-original'],
    ['/_menshen/forward', 'x-forwarded'],
  ]) {
    const twice = [`${name}-uri: /public`, `${name}-uri: /internal`]
    assert.equal(statusOf(await raw(scene.url, request(`GET ${path} HTTP/1.1`, cookie, ...twice))), 400)
    const methods = [`${name}-uri: /forms`, `${name}-method: GET`, `${name}-method: POST`]
    assert.equal(statusOf(await raw(scene.url, request(`GET ${path} HTTP/1.1`, cookie, ...methods))), 400)
  }
})

test('a refresh during an auth check returns the renewed session cookie', async t => {
  for (const [path, headers] of [
    ['/_menshen/check', nginx('/')],
    ['/_menshen/forward', caddy('/')],
  ] as const) {
    const scene = await setUp(t, TRUSTED)
    const user = await scene.user()
    scene.passSeconds(7200 - 200)
    const answer = await user.get(path, { headers })
    assert.equal(answer.status, 200)
    assert.match(answer.setCookies[0] ?? '', /^menshen_session=.*Max-Age=7200/)
    assert.equal(scene.provider.callsTo('refresh').length, 1)
  }
})

test('a browser that does not keep the cookie gets an explanation instead of a redirect loop', async t => {
  const scene = await setUp(t)
  const wire = await openWire(scene.url)
  const ask = (target: string, ...headers: string[]) =>
    wire.socket.write(`${[`GET ${target} HTTP/1.1`, 'host: other.example', ...headers].join('\r\n')}\r\n\r\n`)
  ask(`/callback?code=${scene.provider.codeFor()}&state=abc_idp`, 'sec-fetch-site: cross-site')
  await wire.sees('location: /\r\n')
  ask('/', 'accept: text/html', 'sec-fetch-site: cross-site', 'sec-fetch-dest: document', 'connection: close')
  const page = Buffer.from(await wire.rest(), 'latin1').toString()
  assert.match(page, /浏览器没有保存登录状态/)
  assert.match(page, /您访问的是 <code>other\.example<\/code>/)
  assert.ok(scene.lines.some(({ event }) => event === 'cookie_lost'))
})
