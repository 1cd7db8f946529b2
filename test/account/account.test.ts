// The account page, from outside: one's own devices and sign-ins, and nobody else's; what ends there is one's own.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Client } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const ACCOUNT = '/_menshen/account'
const END = '/_menshen/account/end'
const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1'

interface Device {
  username?: string
  sub?: string
  userAgent?: string
  address?: string
}

async function openAccount(t: TestContext, more = {}) {
  const menshen = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1', ...more }, application: false })
  const { provider } = menshen
  const origin = { headers: { origin: menshen.url } }
  return {
    menshen,
    origin,
    async signIn({ username = 'zhangsan', sub, userAgent = WINDOWS, address = '192.0.2.1' }: Device = {}) {
      const client = menshen.visitor()
      const code = provider.codeFor({ username, ...(sub && { sub }) })
      const headers = { 'user-agent': userAgent, 'x-forwarded-for': address }
      await client.get(`/callback?code=${code}&state=abc_idp`, { headers })
      menshen.passSeconds(1)
      return client
    },
    end: (client: Client, form: Record<string, string>) => client.post(END, form, origin),
    ended(): Record<string, unknown>[] {
      return menshen.lines.filter(({ event }) => event === 'session_ended').map(({ fields }) => ({ ...fields }))
    },
  }
}

const isIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200
const inside = (clients: Client[]) => Promise.all(clients.map(isIn))

/** Of the page: its devices and its sign-ins. */
async function listsOf(client: Client): Promise<{ devices: string[]; signIns: string[]; text: string }> {
  const { status, text } = await client.get(ACCOUNT)
  assert.equal(status, 200)
  const [devices = [], signIns = []] = [...text.matchAll(/<ul class="entries">(.*?)<\/ul>/gs)].map(([, list = '']) =>
    [...list.matchAll(/<li>(.*?)<\/li>/gs)].map(([, entry = '']) => entry),
  )
  return { devices, signIns, text }
}

function keyOf(html = ''): string {
  return /name="session" value="([\w-]{43})"/.exec(html)?.[1] ?? assert.fail('no session')
}

test('the account page lists only devices of the user, marks the current one and has a sign-out button for the others', async t => {
  const { signIn } = await openAccount(t)
  await signIn({ userAgent: IPHONE, address: '192.0.2.2' })
  // The same name is not the same person.
  await signIn({ sub: 'sub-another' })
  await signIn({ username: 'lisi' })
  const { devices, text } = await listsOf(await signIn())
  assert.equal(devices.length, 2)
  assert.match(devices[0] ?? '', /Chrome · Windows.*当前设备.*192\.0\.2\.1.*登录于.*2026-03-01T08:00:03.*最近活动/s)
  assert.doesNotMatch(devices[0] ?? '', /<button/)
  assert.match(devices[1] ?? '', /Safari · iPhone.*192\.0\.2\.2.*2026-03-01T08:00:00.*<button [^>]*>下线</s)
  assert.match(text, /name="others"[^>]*>下线其他所有设备/)
  assert.equal(text.match(/当前设备/g)?.length, 1)
})

test('a user signs out one other device, then all others, and stays signed in', async t => {
  const { signIn, end, ended } = await openAccount(t)
  const others = [await signIn(), await signIn(), await signIn()]
  const [me, lisi] = [await signIn(), await signIn({ username: 'lisi' })]
  const [, newest] = (await listsOf(me)).devices
  const done = await end(me, { session: keyOf(newest) })
  assert.deepEqual([done.status, done.headers.location], [303, ACCOUNT])
  assert.match((await me.follow(done)).text, /role="status"><p>已下线 1 台其他设备。/)
  assert.doesNotMatch((await listsOf(me)).text, /role="status"/, 'it is said once')
  assert.deepEqual(await inside([...others, me, lisi]), [true, true, false, true, true])
  assert.match((await me.follow(await end(me, { others: 'yes' }))).text, /已下线 2 台其他设备。/)
  assert.deepEqual(await inside([...others, me, lisi]), [false, false, false, true, true])
  assert.equal((await listsOf(me)).devices.length, 1)
  const told = ended().map(({ by, user, sub, ended, session }) => ({ by, user, sub, ended, session }))
  const mine = { by: 'user', user: 'zhangsan', sub: 'sub-zhangsan' }
  assert.deepEqual(told, [
    { ...mine, ended: 1, session: keyOf(newest).slice(0, 10) },
    { ...mine, ended: 2, session: undefined },
  ])
})

test('the session id of another user ends nothing and gets the same response as an unknown id', async t => {
  const { signIn, end, ended } = await openAccount(t)
  const [victim, namesake, me, admin] = [
    await signIn({ username: 'lisi' }),
    await signIn({ sub: 'sub-another' }),
    await signIn(),
    await signIn({ username: 'admin' }),
  ]
  const console = (await admin.get('/_menshen/console/sessions')).text
  const keys = [...console.matchAll(/name="session" value="([\w-]{43})"/g)].map(([, key = '']) => key)
  assert.equal(keys.length, 4)
  const answers = new Set<string>()
  for (const session of [...keys, 'A'.repeat(43), '', 'x', '../x', `${keys[0]}\u0000`, 'lease'.repeat(2000)]) {
    const { status, headers, text, setCookies } = await end(me, { session })
    answers.add(JSON.stringify([status, headers.location, text, setCookies]))
  }
  assert.equal(answers.size, 1)
  assert.deepEqual(await inside([victim, namesake, me, admin]), [true, true, true, true])
  await end(me, { others: 'yes', session: keys[0] ?? '' })
  assert.deepEqual(await inside([victim, namesake, me, admin]), [true, true, true, true])
  assert.deepEqual(ended(), [])
})

test('devices can be signed out only by POST, from our own origin and by a signed-in user', async t => {
  const { menshen, signIn } = await openAccount(t)
  const [other, me] = [await signIn(), await signIn()]
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { referer: 'https://evil.example/x' },
  ])
    assert.equal((await me.post(END, { others: 'yes' }, { headers })).status, 403, JSON.stringify(headers))
  assert.equal((await me.get(`${END}?others=yes`)).status, 405)
  assert.equal((await menshen.visitor().post(END, { others: 'yes' })).status, 401)
  assert.deepEqual(await inside([other, me]), [true, true])
})

test('the account page lists recent sign-ins of the user with time, device and address, and marks new devices', async t => {
  const { signIn } = await openAccount(t)
  await signIn()
  await signIn({ sub: 'sub-another', address: '198.51.100.9' })
  await signIn({ username: 'lisi', address: '198.51.100.8' })
  await signIn({ userAgent: WINDOWS.replace('128', '129') })
  await signIn({ userAgent: IPHONE })
  await signIn({ userAgent: IPHONE })
  const me = await signIn({ address: '203.0.113.5' })
  await until(async () => (await listsOf(me)).signIns.length === 5)
  const { signIns, text } = await listsOf(me)
  const seen = signIns.map(entry => [
    /datetime="2026-03-01T08:00:0(\d)/.exec(entry)?.[1],
    /<p class="small">(.*?)<\/p>/.exec(entry)?.[1],
    entry.includes('新设备'),
  ])
  assert.deepEqual(seen, [
    ['6', 'Chrome · Windows · 203.0.113.5', true],
    ['5', 'Safari · iPhone · 192.0.2.1', false],
    ['4', 'Safari · iPhone · 192.0.2.1', true],
    ['3', 'Chrome · Windows · 192.0.2.1', false],
    ['0', 'Chrome · Windows · 192.0.2.1', false],
  ])
  assert.match(text, /如果不是您本人/)
  assert.doesNotMatch(text, /198\.51\.100/)
})

test('the account page has sections for profile, devices, activity and sign-out, and relative times with exact ones as title', async t => {
  const { menshen, signIn } = await openAccount(t)
  await signIn({ userAgent: IPHONE })
  menshen.passSeconds(3600)
  const { text, devices } = await listsOf(await signIn())
  for (const id of ['profile', 'devices', 'activity', 'sign-out'])
    assert.match(text, new RegExp(`<section[^>]* aria-labelledby="${id}">\\s*<h2 id="${id}">`))
  assert.match(
    devices[1] ?? '',
    /登录于 <time datetime="2026-03-01T08:00:00\.000Z" title="[^"]*2026[^"]*" class="relative">1 小时前<\/time>/,
  )
})

test('irreversible actions on the account page ask first, without scripts, and name the affected devices and keys', async t => {
  const menshen = await setUp(t, {
    env: { TRUSTED_PROXIES: '127.0.0.1' },
    config: { rules: [{ path: '/api', roles: ['*'], keys: 'personal' }] },
    application: false,
  })
  const origin = { headers: { origin: menshen.url } }
  const phone = menshen.visitor()
  const code = menshen.provider.codeFor({ username: 'zhangsan' })
  await phone.get(`/callback?code=${code}&state=abc_idp`, {
    headers: { 'user-agent': IPHONE, 'x-forwarded-for': '192.0.2.7' },
  })
  const me = await menshen.user()
  assert.equal((await me.post('/_menshen/account/keys', { name: 'nightly <b>', days: '3' }, origin)).status, 200)
  const { text } = await me.get(ACCOUNT)
  const questions = [...text.matchAll(/<details class="menu confirm">(.*?)<\/details>/gs)].map(([, all = '']) => all)
  const forms = questions.map(question => ({
    action: /<form method="post" action="([^"]+)"/.exec(question)?.[1],
    isOthers: question.includes('name="others"'),
    phone: question.includes('Safari · iPhone'),
    key: question.includes('nightly &lt;b&gt;'),
  }))
  assert.deepEqual(forms, [
    { action: END, isOthers: false, phone: true, key: false },
    { action: END, isOthers: true, phone: true, key: false },
    { action: '/_menshen/account/keys/revoke', isOthers: false, phone: false, key: true },
    { action: '/_menshen/sign-out-everywhere', isOthers: false, phone: true, key: true },
  ])
  // No form that ends something is outside of a question.
  const outside = text.replaceAll(/<details class="menu confirm">.*?<\/details>/gs, '')
  assert.doesNotMatch(outside, /action="[^"]*(?:account\/end|revoke|everywhere)"/)
  for (const question of questions) assert.match(question, /^<summary class="button [^"]+"/)
})

test('every other device and every sign-in has a “this wasn’t me” link to advice and to signing out everywhere', async t => {
  const { signIn } = await openAccount(t, { SUPPORT_CONTACT: 'it@example.com' })
  await signIn({ userAgent: IPHONE })
  const me = await signIn()
  await until(async () => (await listsOf(me)).signIns.length === 2)
  const { devices, signIns, text } = await listsOf(me)
  const leads = (entry = '') => entry.includes('<a href="#not-me"')
  assert.deepEqual([...devices, ...signIns].map(leads), [false, true, true, true])
  const advice = text.slice(text.indexOf('id="not-me"'))
  assert.match(advice, /退出所有设备.*修改密码.*管理员.*it@example\.com.*action="\/_menshen\/sign-out-everywhere"/s)
})

test('有效期至 shows the end of the session, or the end of its tokens if they cannot be refreshed', async t => {
  const scene = await setUp(t, { env: { SESSION_MAX_HOURS: '12' }, provider: { expiresIn: 7200 }, application: false })
  const user = await scene.user()
  for (const path of [ACCOUNT, '/']) {
    const { text } = await user.get(path)
    assert.match(text, /<dt>有效期至<\/dt><dd><time datetime="2026-03-01T20:00/)
    assert.match(text, /<dt>闲置到期时间<\/dt><dd><time datetime="2026-03-01T10:00/)
  }
  const alone = await setUp(t, { provider: { expiresIn: 7200, refreshTokens: false }, application: false })
  const { text } = await (await alone.user()).get(ACCOUNT)
  assert.match(text, /<dt>有效期至<\/dt><dd><time datetime="2026-03-01T10:00/)
})

test('the account page contains no ticket, no token of the provider, and no markup from a hostile browser name or address', async t => {
  const { signIn, menshen } = await openAccount(t)
  await signIn({ userAgent: '<script>alert(1)</script>' })
  const me = await signIn({ userAgent: '"><img src=x onerror=alert(1)>', address: '<b>' })
  await until(async () => (await listsOf(me)).signIns.length === 2)
  const { text } = await listsOf(me)
  assert.doesNotMatch(text, /alert|<b>|onerror/)
  assert.ok(!text.includes(me.cookies.get('menshen_session') ?? assert.fail()))
  const tokens = menshen.provider.livingTokens
  assert.equal(tokens.length, 4, 'an access token and a refresh token of each sign-in')
  for (const token of tokens) assert.ok(!text.includes(token))
})

test('the home page links to the account page and does not list devices', async t => {
  const { signIn } = await openAccount(t)
  const { text } = await (await signIn()).get('/')
  assert.match(text, /<a class="button quiet" href="\/_menshen\/account">/)
  assert.doesNotMatch(text, /当前设备/)
})

test('while the store is unavailable, the account page and the console show a signed-in user an alert', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const { signIn } = await openAccount(t, { STORE: `redis://${redis.host}` })
  const admin = await signIn({ username: 'admin' })
  await listsOf(admin)
  redis.pause()
  t.after(() => redis.resume())
  const [account, list] = await Promise.all([admin.get(ACCOUNT), admin.get('/_menshen/console/sessions')])
  assert.equal(account.status, 200)
  assert.match(account.text, /role="alert"><p>暂时无法读取您的设备和登录记录.*<dd>admin<\/dd>.*当前设备/s)
  assert.equal(list.status, 503)
  assert.match(list.text, /<nav .*role="alert"><p>暂时无法读取存储/s)
})
