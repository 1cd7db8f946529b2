// Who the application is told is there: the truth, whatever a client claims.

import assert from 'node:assert/strict'
import test from 'node:test'
import { createLocalJWKSet, createRemoteJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { readSettings } from '../../src/index.ts'
import { cookieOf, createClient } from '../kit/client.ts'
import { openGateway, type Scene, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { forgedLines, raw, request, SPELLINGS } from './raw.ts'

const NAMES = [
  'X-Forwarded-User',
  'X-Forwarded-Email',
  'X-Forwarded-Preferred-Username',
  'X-Forwarded-Role',
  'X-Forwarded-Groups',
  'X-Menshen-Assertion',
]
// More spellings of all names are too many header lines for one request.
const FORGED = forgedLines(NAMES, SPELLINGS.slice(0, 8))

test('the application receives the user, e-mail address, name and role in the identity headers', async t => {
  const scene = await setUp(t)
  const user = await scene.user('zhangsan')
  await user.get('/')
  const { headers } = scene.upstream.last()
  assert.equal(headers['x-forwarded-user'], 'zhangsan')
  assert.equal(headers['x-forwarded-email'], 'zhangsan@example.com')
  assert.equal(decodeURIComponent(String(headers['x-forwarded-preferred-username'])), '张三')
  assert.equal(headers['x-forwarded-role'], 'common')
  assert.equal(headers['x-forwarded-groups'], undefined)
  await (await scene.user('admin')).get('/')
  assert.equal(scene.upstream.last().headers['x-forwarded-role'], 'developer')
})

test('a group named like a role gives no role, and a comma in a group name is encoded', async t => {
  const fields = { groups: ['ou_name'] }
  const env = { TRUSTED_PROXIES: '127.0.0.1' }
  const scene = await setUp(t, { env, config: { provider: { preset: 'idaas', fields } } })
  for (const [ou_name, groups] of [
    ['developer', 'developer'],
    ['a,developer', 'a%2Cdeveloper'],
    ['a%2Cb', 'a%252Cb'],
  ] as const) {
    const user = await scene.user('zhangsan', { ou_name })
    const forged = { 'x-forwarded-role': 'developer', 'x-forwarded-groups': 'admins' }
    await user.get('/', { headers: forged })
    const asked = (path: string, headers = {}) => user.get(path, { headers: { ...forged, ...headers } })
    const answers = [
      scene.upstream.last(),
      await asked('/_menshen/check', { 'x-original-uri': '/' }),
      await asked('/_menshen/forward', { 'x-forwarded-uri': '/' }),
      await asked('/_menshen/authz/'),
    ]
    for (const { headers } of answers)
      assert.deepEqual([headers['x-forwarded-role'], headers['x-forwarded-groups']], ['common', groups])
  }
})

test('the role and group headers can be renamed, and no two identity headers can share a name', async t => {
  const scene = await setUp(t, { env: { IDENTITY_ROLE: 'X-Role', IDENTITY_GROUPS: 'X-Groups' } })
  await (await scene.user('admin', { ou_name: '' })).get('/', { headers: { 'x-role': 'a', x_groups: 'b' } })
  const { headers } = scene.upstream.last()
  assert.deepEqual([headers['x-role'], headers['x-groups'], headers.x_groups], ['developer', undefined, undefined])
  assert.throws(
    () => readSettings({ IDENTITY_ROLE: 'x-forwarded-groups' }),
    /IDENTITY_ROLE.*IDENTITY_GROUPS.* share a name/,
  )
})

test('identity headers that a client sends never reach the application', async t => {
  const scene = await setUp(t, { config: { rules: [{ path: '/public', public: true }] } })
  const user = await scene.user()
  const signedIn = `cookie: ${cookieOf(user)}`
  const named = `connection: close, ${NAMES.join(', ')}, ${NAMES.join(', ').replaceAll('-', '_').toLowerCase()}`
  for (const [line, ...more] of [
    ['GET / HTTP/1.1', signedIn],
    ['GET / HTTP/1.1', signedIn, named],
    ['OPTIONS / HTTP/1.1', signedIn],
    ['GET /public HTTP/1.1', signedIn],
    ['GET /public HTTP/1.1'],
    ['GET /public HTTP/1.1', named],
    ['OPTIONS /public HTTP/1.1'],
  ] as const) {
    scene.upstream.received.length = 0
    await raw(scene.url, request(line, ...more, ...FORGED))
    assertTruth(scene, more[0] === signedIn, [line, ...more].join('; '))
  }
})

test('identity headers that a client sends with an upgrade do not reach the application', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const upgrade = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: abc']
  scene.upstream.server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await raw(
    scene.url,
    `${['GET / HTTP/1.1', 'host: a', `cookie: ${cookieOf(user)}`, ...upgrade, ...FORGED].join('\r\n')}\r\n\r\n`,
  )
  assertTruth(scene, true, 'upgrade')
})

function assertTruth({ upstream }: Scene, isSignedIn: boolean, what: string): void {
  const { lines } = upstream.last()
  assert.deepEqual(
    lines.filter(([, value]) => value === 'forged'),
    [],
    what,
  )
  for (const name of NAMES) {
    const values = lines.filter(([given]) => given === name.toLowerCase())
    assert.equal(values.length, isSignedIn && name !== 'X-Forwarded-Groups' ? 1 : 0, `${name}: ${what}`)
  }
}

test('renamed identity headers are protected from forgery too', async t => {
  const scene = await setUp(t, { env: { IDENTITY_USER: 'X-Remote-User' } })
  const user = await scene.user()
  await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`, 'x_remote_user: forged', ...FORGED))
  const { lines } = scene.upstream.last()
  assert.deepEqual(
    lines.filter(([name]) => name.includes('remote')),
    [['x-remote-user', 'zhangsan']],
  )
})

test('any user name is encoded reversibly in the identity headers and cannot inject other headers', async t => {
  const scene = await setUp(t)
  for (const username of ['张 三', 'a\r\nx-forwarded-groups: developer', '%61dmin', 'a,b', '\ud800', 'ÿ']) {
    const user = await scene.user(username, { nickname: username })
    assert.equal((await user.get('/')).status, 200)
    const { headers } = scene.upstream.last()
    assert.equal(decodeURIComponent(String(headers['x-forwarded-user'])), username.toWellFormed())
    assert.equal(decodeURIComponent(String(headers['x-forwarded-preferred-username'])), username.toWellFormed())
    assert.equal(headers['x-forwarded-role'], 'common')
    assert.equal(headers['x-forwarded-groups'], undefined)
  }
})

test('the assertion names the user and can be verified with the published keys', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  await user.get('/')
  const keys = createRemoteJWKSet(new URL(`${scene.url}/_menshen/jwks.json`))
  const assertion = String(scene.upstream.last().headers['x-menshen-assertion'])
  const { payload, protectedHeader } = await jwtVerify(assertion, keys, {
    issuer: scene.baseUrl,
    audience: scene.upstream.url,
    algorithms: ['ES256'],
    currentDate: new Date(scene.now()),
  })
  assert.equal(protectedHeader.alg, 'ES256')
  const { sub, username, role, iat = 0, exp = 0 } = payload
  assert.deepEqual({ sub, username, role }, { sub: 'sub-zhangsan', username: 'zhangsan', role: 'common' })
  assert.ok(exp - iat <= 300)
  assert.doesNotMatch(JSON.stringify(payload), /CANARY/)
  const published = await user.get('/_menshen/jwks.json')
  assert.doesNotMatch(published.text, /"d"/)
})

test('signing keys rotate, and each assertion verifies with keys fetched up to two days earlier or later', async t => {
  const scene = await setUp(t)
  const admin = await scene.user()
  const published = async () => createLocalJWKSet((await admin.get('/_menshen/jwks.json')).json<JSONWebKeySet>())
  const ids = new Set<string>()
  const day = 24 * 3600
  let before = await published()
  let earlier: { readonly assertion: string; readonly currentDate: Date } | undefined
  for (let days = 0; days <= 70; days += 2) {
    scene.passSeconds(2 * day)
    const user = await scene.user()
    await user.get('/')
    const assertion = String(scene.upstream.last().headers['x-menshen-assertion'])
    const at = { currentDate: new Date(scene.now()) }
    const after = await published()
    for (const keys of [before, after]) ids.add((await jwtVerify(assertion, keys, at)).protectedHeader.kid ?? '')
    if (earlier) await jwtVerify(earlier.assertion, after, { currentDate: earlier.currentDate })
    earlier = { assertion, ...at }
    before = after
  }
  assert.ok(ids.size >= 3, `${ids.size} keys in 70 days`)
})

test('a restart keeps the signing keys, and a new client secret replaces them without ending sessions', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const scene = await setUp(t, { env: { STORE } })
  const user = await scene.user()
  const keysOf = async ({ url }: { url: string }): Promise<JSONWebKeySet> =>
    createClient(url)
      .get('/_menshen/jwks.json')
      .then(answer => answer.json())
  const env = { ...scene.provider.settings, UPSTREAM: scene.upstream.url, STORE }
  const again = await openGateway(t, env)
  const before = await keysOf(scene)
  assert.deepEqual(await keysOf(again), before)

  const other = await openGateway(t, { ...env, CLIENT_SECRET: 'another' })
  const page = await createClient(other.url).get('/', { headers: { cookie: cookieOf(user) } })
  assert.equal(page.status, 200)
  const assertion = String(scene.upstream.last().headers['x-menshen-assertion'])
  const { protectedHeader } = await jwtVerify(assertion, createLocalJWKSet(await keysOf(other)), {
    currentDate: new Date(other.now()),
  })
  // Whoever kept the keys of before must not take this one for one of them.
  assert.ok(!before.keys.some(({ kid }) => kid === protectedHeader.kid))
})

test('the access token is forwarded to the application only with FORWARD_ACCESS_TOKEN', async t => {
  const off = await setUp(t)
  await (await off.user()).get('/', { headers: { authorization: 'Basic abc' } })
  assert.equal(off.upstream.last().headers.authorization, 'Basic abc')
  assert.doesNotMatch(JSON.stringify(off.upstream.last()), /CANARY/)

  const on = await setUp(t, {
    env: { FORWARD_ACCESS_TOKEN: 'true' },
    config: { rules: [{ path: '/public', public: true }] },
  })
  const user = await on.user()
  const forged = { authorization: 'Bearer forged' }
  await user.get('/', { headers: forged })
  assert.match(String(on.upstream.last().headers.authorization), /^Bearer at-CANARY-/)
  assert.equal(on.upstream.last().lines.filter(([name]) => name === 'authorization').length, 1)
  await on.visitor().get('/public', { headers: forged })
  assert.equal(on.upstream.last().headers.authorization, undefined)
})
