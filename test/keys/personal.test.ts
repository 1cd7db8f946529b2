// Personal keys: made and revoked on the account page, as good as their owner was last confirmed to be, and ended with them.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import type { Config } from '../../src/index.ts'
import { newKey } from '../../src/util/key-form.ts'
import type { Client, Response } from '../kit/client.ts'
import { createCommandRunner } from '../kit/command-runner.ts'
import { makePersonalKey, PERSONAL_KEYS, personalKeyIn } from '../kit/personal-keys.ts'
import { startRedis } from '../kit/redis-server.ts'
import { openGateway, type SetUpOptions, setUp, setUpOidc } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const commands = createCommandRunner()
const REVOKE = '/_menshen/account/keys/revoke'
const CONFIG: Config = {
  provider: { preset: 'idaas', fields: { groups: ['ou_name'] } },
  roles: [
    { role: 'finance', groups: ['finance'] },
    { role: 'chief', claim: { ou_id: ['chief'] } },
    { role: 'developer', username: ['admin'] },
  ],
  rules: [
    { path: '/api', roles: ['*'], keys: 'personal' },
    { path: '/money', roles: ['finance'], keys: 'personal' },
    { path: '/chief', roles: ['chief'], keys: 'personal' },
    { path: '/machines', roles: ['*'], keys: true },
    { path: '/', roles: ['*'] },
  ],
}

/** A gateway whose users make keys on the account page. */
async function setUpPersonalKeys(t: TestContext, options: SetUpOptions = {}) {
  const scene = await setUp(t, { config: CONFIG, ...options })
  const origin = { headers: { origin: scene.url } }
  const post = (client: Client, path: string, form: Record<string, string>) => client.post(path, form, origin)
  return {
    ...scene,
    post,
    bring: (key: string, path = '/api') => scene.visitor().get(path, { headers: { authorization: `Bearer ${key}` } }),
    make: (client: Client, name?: string, days?: string) => makePersonalKey(client, scene.url, name, days),
    revoke: async (client: Client, n = 0) =>
      post(client, REVOKE, { key: [...(await client.get('/_menshen/account')).text.matchAll(ID)][n]?.[1] ?? '' }),
  }
}

const ID = /name="key" value="([\da-f]{64})"/g

test('a key is shown once, acts as its owner, is listed with its expiry and last use, and is invalid once revoked', async t => {
  const { user, make, bring, revoke, upstream, eventsOf, lines, passSeconds } = await setUpPersonalKeys(t)
  const client = await user('zhangsan', { ou_name: 'finance' })
  const key = await make(client, '笔记本 <b>')
  const page = await client.get('/_menshen/account')
  assert.ok(!page.text.includes(key))
  assert.match(page.text, /笔记本 &lt;b&gt;.*2026-03-31T08:00:00.*尚未使用/s)
  assert.equal((await bring(key)).status, 200)
  const { headers } = upstream.last()
  assert.equal(headers['x-forwarded-user'], 'zhangsan')
  assert.equal(headers['x-forwarded-groups'], 'finance')
  assert.equal(headers.authorization, undefined)
  assert.equal((await bring(key, '/money')).status, 200)
  assert.equal((await bring(key, '/page')).status, 401)
  assert.equal((await bring(key, '/machines')).status, 403, 'only keys of machines count there')
  assert.deepEqual(
    eventsOf('refused').map(({ user, session, key }) => ({ user, session, key })),
    [{ user: 'zhangsan', session: undefined, key: 'personal' }],
  )
  for (let n = 0; n < 3; n++) await bring(key)
  passSeconds(60)
  assert.match((await client.get('/_menshen/account')).text, /最近使用 <time datetime="2026-03-01T08:00:00/)
  // A plain sign-out leaves it.
  await client.post('/logout', '', { headers: { origin: upstream.url } })
  assert.equal((await bring(key)).status, 200)
  const again = await user('zhangsan', { ou_name: 'finance' })
  assert.equal((await revoke(again)).headers.location, '/_menshen/account')
  assert.equal((await bring(key)).status, 401)
  assert.doesNotMatch((await again.get('/_menshen/account')).text, /笔记本/)
  const [created] = eventsOf('key_created')
  assert.equal(created?.user, 'zhangsan')
  assert.equal(created?.name, '笔记本 <b>')
  assert.equal(eventsOf('key_revoked')[0]?.by, 'user')
  assert.doesNotMatch(JSON.stringify(lines), /mk_/)
})

test('a key expires, and an invalid name or lifetime in the form gets 400 with a message', async t => {
  const { user, make, post, bring, passSeconds } = await setUpPersonalKeys(t)
  const client = await user()
  const key = await make(client, 'short', '1')
  for (const [form, sentence] of [
    [{ name: '', days: '30' }, /密钥名称/],
    [{ name: 'x'.repeat(61), days: '30' }, /密钥名称/],
    [{ name: 'a\u202eb', days: '30' }, /密钥名称/],
    [{ name: 'a\nb', days: '30' }, /密钥名称/],
    [{ name: 'ok', days: '0' }, /1 到 366 天/],
    [{ name: 'ok', days: '367' }, /1 到 366 天/],
    [{ name: 'ok', days: '1.5' }, /1 到 366 天/],
    [{ name: 'ok', days: '-1' }, /1 到 366 天/],
    [{ name: 'ok', days: '' }, /1 到 366 天/],
    [{ name: 'short', days: '2' }, /同名/],
  ] as const) {
    const { status, text } = await post(client, PERSONAL_KEYS, form)
    assert.equal(status, 400, JSON.stringify(form))
    assert.match(text, sentence)
    assert.doesNotMatch(text, /mk_[\w-]{43}/)
  }
  assert.equal((await bring(key)).status, 200)
  passSeconds(24 * 3600)
  assert.equal((await bring(key)).status, 401)
})

test('PERSONAL_KEY_MAX_DAYS limits the lifetime of a new key in the form and on the server', async t => {
  const { user, make, post, bring, passSeconds } = await setUpPersonalKeys(t, { env: { PERSONAL_KEY_MAX_DAYS: '7' } })
  const client = await user()
  assert.match((await client.get('/_menshen/account')).text, /name="days"[^>]* max="7" value="7"/)
  const refused = await post(client, PERSONAL_KEYS, { name: 'long', days: '8' })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /1 到 7 天/)
  const key = await make(client, 'week', '7')
  assert.equal((await bring(key)).status, 200)
  passSeconds(7 * 24 * 3600)
  assert.equal((await bring(key)).status, 401)
  const long = await setUpPersonalKeys(t, { env: { PERSONAL_KEY_MAX_DAYS: '1000' } })
  await long.make(await long.user(), 'years', '1000')
})

test('a user can have at most twenty keys, even with parallel requests', async t => {
  const { user, post } = await setUpPersonalKeys(t)
  const client = await user()
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, n) => post(client, PERSONAL_KEYS, { name: `k${n}`, days: '1' })),
  )
  assert.ok(answers.some(({ status, text }) => status === 400 && /最多 20 个/.test(text)))
  const listed = (await client.get('/_menshen/account')).text.match(ID)?.length ?? 0
  assert.ok(listed <= 20 && listed === answers.filter(({ status }) => status === 200).length)
})

test('no other site or user can create or revoke a key', async t => {
  const { user, make, post, bring } = await setUpPersonalKeys(t)
  const client = await user()
  const key = await make(client)
  const id = /value="([\da-f]{64})"/.exec((await client.get('/_menshen/account')).text)?.[1] ?? ''
  const evil = { headers: { origin: 'https://evil.example' } }
  assert.equal((await client.post(PERSONAL_KEYS, { name: 'evil', days: '1' }, evil)).status, 403)
  assert.equal((await client.post(REVOKE, { key: id }, evil)).status, 403)
  const other = await user('lisi')
  assert.ok(!(await other.get('/_menshen/account')).text.includes(id))
  await post(other, REVOKE, { key: id })
  assert.equal((await bring(key)).status, 200)
  // A key is for the application, not for our own pages: it makes no other key.
  assert.equal(
    (
      await client.post(
        PERSONAL_KEYS,
        { name: 'x', days: '1' },
        { headers: { cookie: '', authorization: `Bearer ${key}` } },
      )
    ).status,
    401,
  )
})

test('without a rule for personal keys users cannot create keys', async t => {
  const { user, post } = await setUpPersonalKeys(t, { config: { rules: [{ path: '/', roles: ['*'], keys: true }] } })
  const client = await user()
  assert.doesNotMatch((await client.get('/_menshen/account')).text, /account\/keys/)
  assert.equal((await post(client, PERSONAL_KEYS, { name: 'x', days: '1' })).status, 404)
})

test('a key has the groups and role that the provider returned at the owner’s latest sign-in', async t => {
  const { user, make, bring, upstream } = await setUpPersonalKeys(t)
  const key = await make(await user('zhangsan', { ou_name: 'finance' }))
  assert.equal((await bring(key, '/money')).status, 200)
  await user('zhangsan', { ou_name: '' })
  assert.equal((await bring(key, '/money')).status, 403)
  await user('zhangsan', { ou_name: 'finance', nickname: '新名字' })
  assert.equal((await bring(key, '/money')).status, 200)
  assert.equal(upstream.last().headers['x-forwarded-preferred-username'], encodeURIComponent('新名字'))
  await user('lisi', { ou_name: '' })
  assert.equal((await bring(key, '/money')).status, 200, 'another user is another owner')
})

test('a key keeps the groups of the latest sign-in when the response to an earlier question arrives after it', async t => {
  const { user, make, bring, provider, passSeconds } = await setUpPersonalKeys(t, {
    env: { IDENTITY_REFRESH: 'always' },
  })
  const laptop = await user('zhangsan', { ou_name: 'finance' })
  const key = await make(laptop)
  passSeconds(7200 - 200)
  const calls = provider.callsTo('userinfo').length
  const { promise: until, resolve: answer } = Promise.withResolvers<void>()
  provider.answer('userinfo', { kind: 'held', until }, 'once')
  const page = laptop.get('/')
  await provider.called('userinfo', calls + 1)
  passSeconds(1)
  await user('zhangsan', { ou_name: 'other' })
  assert.equal((await bring(key, '/money')).status, 403)
  answer()
  await page
  assert.equal((await bring(key, '/money')).status, 403)
})

test('users whose names differ only in half of a surrogate pair share neither sessions nor keys', async t => {
  const { user, make, bring, post } = await setUpPersonalKeys(t)
  const [one, other] = [await user('x\ud800', { sub: 's\ud800' }), await user('x\udbff', { sub: 's\udbff' })]
  const key = await make(one, 'key of one')
  assert.doesNotMatch((await other.get('/_menshen/account')).text, /key of one/)
  await post(other, '/_menshen/sign-out-everywhere', {})
  assert.equal((await one.get('/_menshen/me')).status, 200)
  assert.equal((await bring(key)).status, 200)
})

test('a user’s keys are revoked, and their WebSockets close, by a sign-out everywhere or by a developer who ends all sessions', async t => {
  const { user, make, bring, post, eventsOf, url, upstream } = await setUpPersonalKeys(t)
  const sockets = new WebSocketServer({ server: upstream.server })
  t.after(() => sockets.close())
  const client = await user()
  const [first, second] = [await make(client, 'a'), await make(client, 'b')]
  const openSocket = async (key: string) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/x`, { headers: { 'x-menshen-key': key } })
    await once(socket, 'open')
    return socket
  }
  const closed = once(await openSocket(first), 'close')
  const others = await make(await user('lisi'))
  await post(client, '/_menshen/sign-out-everywhere', {})
  for (const key of [first, second]) assert.equal((await bring(key)).status, 401)
  assert.equal((await bring(others)).status, 200)
  assert.equal(eventsOf('key_revoked').at(-1)?.revoked, 2)
  await closed
  const again = await user()
  const third = await make(again)
  assert.equal((await bring(first)).status, 401, 'the next owner record is another one')
  const admin = await user('admin')
  const list = (await admin.get('/_menshen/console/sessions?username=zhangsan')).text
  const session = /name="session" value="([\w-]{43})"/.exec(list)?.[1] ?? ''
  await post(admin, '/_menshen/console/end', { session })
  assert.equal((await bring(third)).status, 200, 'one session is not the user')
  const socket = await openSocket(third)
  const ended = once(socket, 'close')
  const fourth = await user()
  const next = /name="session" value="([\w-]{43})"/.exec(
    (await admin.get('/_menshen/console/sessions?username=zhangsan')).text,
  )
  await post(admin, '/_menshen/console/end', { session: next?.[1] ?? '', all: 'yes' })
  assert.equal((await bring(third)).status, 401)
  assert.equal((await fourth.get('/_menshen/me')).status, 401)
  assert.equal(eventsOf('key_revoked').at(-1)?.byUser, 'admin')
  await ended
})

async function redisOf(t: TestContext): Promise<string> {
  const redis = await startRedis()
  t.after(() => redis.stop())
  return `redis://${redis.host}`
}

for (const store of ['sqlite', 'redis'] as const)
  test(`on ${store} a key created at one instance is valid at another, and is refused there once it is revoked`, async t => {
    const STORE = store === 'sqlite' ? `sqlite:${tempFolder(t)}/menshen.db` : await redisOf(t)
    const { user, make, revoke, bring, provider, upstream, baseUrl } = await setUpPersonalKeys(t, {
      env: { STORE },
      now: Date.now(),
    })
    const env = { ...provider.settings, STORE, UPSTREAM: upstream.url, BASE_URL: baseUrl }
    const other = await openGateway(t, env, { config: CONFIG, now: Date.now() })
    const client = await user()
    const key = await make(client)
    const bringThere = () => other.visitor().get('/api', { headers: { authorization: `Bearer ${key}` } })
    assert.equal((await bring(key)).status, 200)
    for (let n = 0; n < 3; n++) assert.equal((await bringThere()).status, 200)
    await revoke(client)
    assert.equal((await bring(key)).status, 401)
    assert.equal((await bringThere()).status, 401)
    assert.equal((await bring(newKey())).status, 401)
    if (store !== 'sqlite') return
    // By another process: when this one closes a file of the store, it loses its locks.
    const folder = dirname(STORE.slice('sqlite:'.length))
    for (const secret of [key, 'zhangsan', 'laptop'])
      assert.equal(spawnSync('grep', ['-rlaF', secret, folder]).stdout.toString(), '', secret)
    const next = await make(client, 'next')
    assert.equal((await bring(next)).status, 200)
    const ended = await commands.run(env, { cwd: tempFolder(t), args: ['sessions', 'end', '--user', 'zhangsan'] })
    assert.equal(ended.output, 'Ended 1 session of zhangsan.\nRevoked 1 personal key of zhangsan.')
    assert.equal((await bring(next)).status, 401)
  })

test('no key that is created during a sign-out everywhere stays valid', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const { user, post, bring } = await setUpPersonalKeys(t, { env: { STORE }, now: Date.now() })
  const admin = await user('admin')
  for (const username of ['ann', 'bob', 'eve', 'dan']) {
    const [thief, owner] = [await user(username), await user(username)]
    const list = (await admin.get(`/_menshen/console/sessions?username=${username}`)).text
    const session = /name="session" value="([\w-]{43})"/.exec(list)?.[1] ?? ''
    const make = (name: string) => post(thief, PERSONAL_KEYS, { name, days: '366' })
    // The end may overtake all of the others.
    const first = await make('first')
    assert.match(first.text, /mk_[\w-]{43}/)
    const made = ['a', 'b', 'c', 'd', 'e', 'f'].map(make)
    const ended =
      username < 'c'
        ? post(owner, '/_menshen/sign-out-everywhere', {})
        : post(admin, '/_menshen/console/end', { session, all: 'yes' })
    made.push(...['g', 'h', 'i', 'j', 'k', 'l'].map(make))
    const answers = await Promise.all(made)
    await ended
    for (const { text } of [first, ...answers]) {
      const key = /mk_[\w-]{43}/.exec(text)?.[0]
      if (key) assert.equal((await bring(key)).status, 401)
    }
    assert.equal(await keysShownTo(await user(username)), 0)
  }
})

async function keysShownTo(client: Client): Promise<number> {
  return (await client.get('/_menshen/account')).text.match(ID)?.length ?? 0
}

test('a script of the application cannot create keys or end sessions, as both require a form that the user submitted', async t => {
  const scene = await setUp(t, { config: { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] } })
  const user = await scene.user()
  const origin = scene.baseUrl
  const byScript = { origin, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
  const submitted = {
    origin,
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  }
  const byUser = { ...submitted, 'sec-fetch-user': '?1' }
  const form = { name: 'laptop', days: '30' }
  for (const headers of [byScript, submitted, { ...byUser, 'sec-fetch-mode': 'no-cors' }])
    for (const path of [PERSONAL_KEYS, REVOKE, '/_menshen/account/end', '/_menshen/sign-out-everywhere'])
      assert.equal((await user.post(path, form, { headers })).status, 403, path)
  const made = await user.post('/_menshen/account/keys', form, { headers: byUser })
  assert.equal(made.status, 200)
  assert.match(made.text, /mk_/)
})

const BY_USER = {
  accept: 'text/html',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-user': '?1',
}
const SIGN_IN_LINK = /href="(\/_menshen\/step-up\?[^"]+)"/

/** The button of the page that asks to sign in again. */
function signInLink({ status, text }: Response): string {
  assert.equal(status, 401)
  assert.doesNotMatch(text, /mk_[\w-]{43}/)
  return (SIGN_IN_LINK.exec(text)?.[1] ?? assert.fail('no link')).replaceAll('&amp;', '&')
}

test('creating a key requires a sign-in within ten minutes, and signing in again returns to the filled-in form', async t => {
  const { user, make, post, bring, provider, passSeconds, eventsOf } = await setUpPersonalKeys(t)
  const client = await user()
  passSeconds(600)
  await make(client, 'in time')
  passSeconds(1)
  const form = { name: '笔记本 & "x"', days: '7' }
  const asked = await post(client, PERSONAL_KEYS, form)
  assert.match(asked.text, /请重新登录/)
  assert.equal(asked.headers['www-authenticate'], 'Bearer error="insufficient_user_authentication", max_age="600"')
  const away = await client.get(signInLink(asked), { headers: BY_USER })
  assert.equal(away.status, 302)
  const state = new URL(String(away.headers.location)).searchParams.get('state')
  const back = await client.get(`/callback?code=${provider.codeFor({ username: 'zhangsan' })}&state=${state}`)
  const page = await client.get(String(back.headers.location), { headers: BY_USER })
  assert.ok(page.url.includes('/_menshen/account?'))
  assert.match(page.text, /name="name" value="笔记本 &amp; &quot;x&quot;"[\s\S]*name="days"[^>]* value="7"/)
  assert.equal(eventsOf('key_created').length, 1, 'nothing is created by coming back')
  assert.equal((await bring(personalKeyIn((await post(client, PERSONAL_KEYS, form)).text))).status, 200)
  // A sign-in that is recent is not repeated.
  assert.match(
    String((await client.get(signInLink(asked), { headers: BY_USER })).headers.location),
    /^\/_menshen\/account\?/,
  )
})

test('revoking a key and ending sessions need no recent sign-in', async t => {
  const { user, make, post, revoke, bring, passSeconds } = await setUpPersonalKeys(t)
  const client = await user()
  const key = await make(client)
  passSeconds(3000)
  assert.equal((await revoke(client)).status, 303)
  assert.equal((await bring(key)).status, 401)
  assert.equal((await post(client, '/_menshen/account/end', { others: '1' })).status, 303)
})

async function oidcStage(t: TestContext) {
  const config: Config = { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] }
  const { provider, client, ...gateway } = await setUpOidc(t, { config })
  const follow = async (answer: Response): Promise<Response> => {
    let last = answer
    for (let n = 0; n < 6 && last.headers.location; n++) last = await client.follow(last, { headers: BY_USER })
    return last
  }
  const headers = { ...BY_USER, 'sec-fetch-site': 'same-origin', origin: gateway.baseUrl }
  return {
    provider,
    gateway,
    follow,
    seconds: () => Math.floor(gateway.now() / 1000),
    signIn: async () => follow(await client.post('/login')),
    create: (name = 'laptop') => client.post(PERSONAL_KEYS, { name, days: '30' }, { headers }),
    get: (path: string) => client.get(path, { headers: BY_USER }),
  }
}

test('with OpenID Connect creating a key requires a recent auth_time, and the provider is asked for a new sign-in', async t => {
  const { provider, gateway, follow, seconds, signIn, create, get } = await oidcStage(t)
  provider.idClaims = { auth_time: seconds() - 500 }
  await signIn()
  assert.equal((await create('one')).status, 200)
  gateway.passSeconds(200)
  // A script signs in again: the provider remembers the user, and does not ask.
  await signIn()
  const away = await get(signInLink(await create('two')))
  const { searchParams } = new URL(String(away.headers.location))
  assert.deepEqual([searchParams.get('prompt'), searchParams.get('max_age')], ['login', '600'])
  // A provider that does not ask: no key, and no second try by itself.
  assert.equal((await follow(away)).url, `${gateway.url}/_menshen/account?name=two&days=30`)
  const failed = await create('two')
  assert.equal(failed.status, 403)
  assert.match(failed.text, /需要进一步验证身份/)
  await signIn()
  const again = await get(signInLink(await create('two')))
  provider.idClaims = { auth_time: seconds() }
  assert.equal((await follow(again)).status, 200)
  assert.equal((await create('two')).status, 200)
})

test('without auth_time creating a key requires a new sign-in at the provider, which is recent for ten minutes', async t => {
  const { gateway, follow, signIn, create, get } = await oidcStage(t)
  await signIn()
  const away = await get(signInLink(await create('one')))
  assert.equal(new URL(String(away.headers.location)).searchParams.get('prompt'), 'login')
  assert.equal((await follow(away)).status, 200)
  assert.equal((await create('one')).status, 200)
  gateway.passSeconds(601)
  signInLink(await create('two'))
})
