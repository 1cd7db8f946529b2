// The console's list of sessions, from outside: who, where from, page by page, and a question before anything ends.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Config } from '../../src/index.ts'
import { type Client, signIn } from '../kit/client.ts'
import { createDevice, nextChallenge } from '../kit/device.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const LIST = '/_menshen/console/sessions'
const ASK = '/_menshen/console/sessions/end'
const END = '/_menshen/console/end'
const WECHAT =
  'Mozilla/5.0 (Linux; Android 13; wv) AppleWebKit/537.36 Chrome/116 Mobile MicroMessenger/8.0.49 WeChat/arm64'

async function openConsole(t: TestContext, env = {}, config: Config = {}) {
  const menshen = await setUp(t, { env, config, application: false })
  const { provider } = menshen
  async function user(username: string, headers: Record<string, string> = {}): Promise<Client> {
    const client = menshen.visitor()
    await client.get(`/callback?code=${provider.codeFor({ username })}&state=abc_idp`, { headers })
    menshen.passSeconds(1)
    return client
  }
  const origin = { headers: { origin: menshen.url } }
  return { menshen, provider, user, origin }
}

function rowsOf(html: string): string[] {
  return [...html.matchAll(/<tr role="row"><th scope="row".*?<\/tr>/gs)].map(([row]) => row)
}

function keyOf(html: string): string {
  return /name="session" value="([\w-]{43})"/.exec(html)?.[1] ?? assert.fail('no session')
}

const isIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200

test('each session says who, in which role, on what device, from where, since and until when', async t => {
  const { user } = await openConsole(t, { TRUSTED_PROXIES: '127.0.0.1' })
  await user('lisi', { 'user-agent': WECHAT, 'x-forwarded-for': '192.0.2.7' })
  const admin = await user('admin')
  const [own = '', theirs = '', ...more] = rowsOf((await admin.get(LIST)).text)
  assert.deepEqual(more, [])
  assert.match(own, /<code>admin<\/code>.*当前会话.*开发者.*未知设备/s)
  assert.match(theirs, /<code>lisi<\/code>.*普通用户.*微信 · Android.*192\.0\.2\.7/s)
  assert.deepEqual(
    theirs.match(/datetime="[^"]+"/g),
    ['08:00:00', '08:00:00', '10:00:00'].map(time => `datetime="2026-03-01T${time}.000Z"`),
  )
})

test('a session that is bound to its device says so in the list and on its page; one that is only offered to be does not', async t => {
  const env = { BASE_URL: 'https://app.example.com', DEVICE_BOUND_SESSIONS: 'on', TRUSTED_PROXIES: '127.0.0.1' }
  const { user, menshen, provider } = await openConsole(t, env)
  const lisi = menshen.visitor()
  const signedIn = await signIn(lisi, provider, { username: 'lisi' })
  menshen.passSeconds(1)
  const admin = await user('admin')
  const rows = async () => rowsOf((await admin.get(LIST)).text)
  for (const row of await rows()) assert.doesNotMatch(row, /已绑定设备/)
  const device = await createDevice()
  const registered = await device.register(lisi, signedIn)
  const [own = '', theirs = ''] = await rows()
  assert.doesNotMatch(own, /已绑定设备/)
  assert.match(theirs, /<code>lisi<\/code>.*<span class="tag">已绑定设备<\/span>/s)
  const page = `/_menshen/console/session?key=${keyOf(theirs)}`
  assert.match((await admin.get(page)).text, /<dt>设备<\/dt><dd>.*<span class="tag">已绑定设备<\/span>/)
  const { challenge, id } = nextChallenge(registered)
  assert.equal((await device.refresh(lisi, id, challenge)).status, 200)
  assert.match((await admin.get(page)).text, /已绑定设备/, 'also after the next proof')
})

test('the page of a session lists the personal keys of its user, without the keys', async t => {
  const rules = [{ path: '/', roles: ['*'], keys: 'personal' as const }]
  const { user, menshen, origin } = await openConsole(t, {}, { rules })
  const lisi = await user('lisi')
  const admin = await user('admin')
  const { text } = await admin.get(`${LIST}?username=lisi`)
  const page = `/_menshen/console/session?key=${keyOf(text)}`
  assert.doesNotMatch((await admin.get(page)).text, /个人密钥/)
  const made = await lisi.post('/_menshen/account/keys', { name: '笔记本 <b>', days: '30' }, origin)
  const [, key = ''] = /<code>(mk_[\w-]{43})<\/code>/.exec(made.text) ?? []
  const listed = (await admin.get(page)).text
  assert.match(listed, /<dt>个人密钥<\/dt><dd>笔记本 &lt;b&gt;.*2026-03-31T08:00:0.*尚未使用/s)
  assert.ok(key.length > 0 && !listed.includes(key))
  await menshen.visitor().get('/', { headers: { authorization: `Bearer ${key}` } })
  await until(async () => /最近使用/.test((await admin.get(page)).text))
  assert.doesNotMatch(
    (await admin.get(`/_menshen/console/session?key=${keyOf((await admin.get(LIST)).text)}`)).text,
    /个人密钥/,
  )
})

test('the sessions of one user stand together, with times relative to now and one menu each', async t => {
  const { user, menshen } = await openConsole(t)
  await user('lisi', { 'user-agent': WECHAT })
  await user('wangwu')
  await user('lisi', { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.0.0' })
  menshen.passSeconds(180)
  const admin = await user('admin')
  const { text } = await admin.get(LIST)
  const groups = [...text.matchAll(/<tbody role="rowgroup">(.*?)<\/tbody>/gs)].map(([, group = '']) => rowsOf(group))
  const users = groups.map(rows => rows.map(row => /<code>([^<]*)/.exec(row)?.[1]))
  assert.deepEqual(users, [['admin'], ['lisi', 'lisi'], ['wangwu']])
  const [, [newest = '', oldest = ''] = []] = groups
  assert.match(newest, /<time datetime="2026-03-01T08:00:02[^>]*title="2026年3月1日[^>]*>3 分钟前<\/time>/)
  assert.match(newest, />1 小时后<\/time>/)
  assert.match(groups[0]?.[0] ?? '', />刚刚<\/time>/)
  assert.match(oldest, /class="repeated"/)
  assert.doesNotMatch(newest, /class="repeated"/)
  for (const row of groups.flat()) {
    assert.equal(row.match(/<details class="menu"/g)?.length, 1)
    assert.match(row, /<svg class="icon"/)
    assert.match(row, /<summary aria-label="操作：\w+"/)
    assert.match(row, /<button type="submit" name="all" value="yes"[^>]*>结束该用户的全部会话<\/button>/)
  }
})

test('the newest come first, fifty on a page, counted; a name finds its own', async t => {
  const { user } = await openConsole(t)
  for (let n = 0; n < 59; n++) await user(`user-${n}`)
  const admin = await user('admin')
  const first = (await admin.get(LIST)).text
  assert.match(first, /共有 60 个会话/)
  const next = /<a href="([^"]*)">下一页/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? assert.fail()
  assert.match(next, /^\/_menshen\/console\/sessions\?after=/)
  const second = (await admin.get(next)).text
  assert.doesNotMatch(second, /下一页/)
  assert.match(second, /<a href="\/_menshen\/console\/sessions">回到第一页/)
  const names = [...rowsOf(first), ...rowsOf(second)].map(row => /<code>([^<]*)/.exec(row)?.[1])
  assert.deepEqual(names, ['admin', ...Array.from({ length: 59 }, (_, n) => `user-${58 - n}`)])
  assert.equal(rowsOf(first).length, 50)

  const found = (await admin.get(`${LIST}?username=+user-7+`)).text
  assert.deepEqual(
    rowsOf(found).map(row => /<code>([^<]*)/.exec(row)?.[1]),
    ['user-7'],
  )
  for (const after of ['x', '%00', '1:', `${'9'.repeat(5000)}`, '%F0%9F%92%A9', '1:%27%22%3E%3Cscript%3E'])
    for (const query of [`after=${after}`, `username=user-7&after=${after}`])
      assert.equal((await admin.get(`${LIST}?${query}`)).status, 200, query)
})

test('a question comes first, then the end, then a notice that says it once', async t => {
  const { user, origin } = await openConsole(t)
  const [one, other] = [await user('lisi'), await user('lisi')]
  const admin = await user('admin')
  const session = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  for (const [all, question] of [
    ['', '要结束 lisi 的这个会话吗？'],
    ['&all=yes', '要结束 lisi 的全部会话吗？'],
  ] as const) {
    const asked = await admin.get(`${ASK}?session=${session}${all}`)
    assert.equal(asked.status, 200)
    assert.match(asked.text, new RegExp(`<h1>${question}</h1>`))
    assert.match(asked.text, new RegExp(`<form method="post" action="${END}"`))
    assert.equal(keyOf(asked.text), session)
    assert.equal(asked.text.includes('name="all"'), all !== '')
  }
  assert.deepEqual([await isIn(one), await isIn(other)], [true, true], 'a question ends nothing')

  const done = await admin.post(END, { session }, origin)
  assert.deepEqual([done.status, done.headers.location], [303, LIST])
  assert.match((await admin.follow(done)).text, /role="status"><p>已结束 lisi 的 1 个会话。/)
  assert.doesNotMatch((await admin.get(LIST)).text, /role="status"/)
  assert.deepEqual([await isIn(one), await isIn(other)], [true, false], 'the newest was listed first')

  const again = await admin.get(`${ASK}?session=${session}`)
  assert.deepEqual([again.status, again.headers.location], [302, LIST])
  assert.match((await admin.follow(again)).text, /该会话已结束/)
  const rest = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  await admin.follow(await admin.post(END, { session: rest, all: 'yes' }, origin))
  assert.ok(!(await isIn(one)))
  const own = keyOf((await admin.get(`${LIST}?username=admin`)).text)
  assert.match((await admin.get(`${ASK}?session=${own}`)).text, /这是您自己正在使用的会话/)
})

test('only a developer is asked, whatever the key; a key that is none leads back to the list', async t => {
  const { user } = await openConsole(t)
  const [common, admin] = [await user('lisi'), await user('admin')]
  const session = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  assert.equal((await common.get(`${ASK}?session=${session}`)).status, 403)
  for (const key of ['', 'x', '..%2F', 'a'.repeat(43), '%00'.repeat(43), `${session}x`])
    assert.equal((await admin.get(`${ASK}?session=${key}`)).headers.location, LIST, key)
})

test('a notice is made of a cookie that anybody may have written: it is text, or nothing', async t => {
  const { user } = await openConsole(t)
  const admin = await user('admin')
  const session = `menshen_session=${admin.cookies.get('menshen_session')}`
  const shown = async (said: string) => {
    const headers = { cookie: `${session}; menshen_ended=${said}` }
    const { status, text } = await admin.get(LIST, { headers })
    assert.equal(status, 200)
    return /role="status"><p>(.*?)<\/p>/.exec(text)?.[1]
  }
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  assert.equal(await shown(encoded({ ended: 2, user: '<img src=x>' })), '已结束 &lt;img src=x&gt; 的 2 个会话。')
  for (const said of ['x', '%', encoded(null), encoded({ ended: '2' }), encoded({ ended: -1 }), encoded([])])
    assert.equal(await shown(said), undefined, said)
})

test('hostile names of browsers are text', async t => {
  const { user, provider, menshen } = await openConsole(t)
  for (const agent of ['<script>alert(1)</script>', '"onmouseover=alert(1) x="', `Chrome/1 ${'x'.repeat(3000)}`])
    await user('lisi', { 'user-agent': agent })
  const admin = menshen.visitor()
  await signIn(admin, provider, { username: 'admin' })
  const page = await admin.get(LIST)
  assert.equal(rowsOf(page.text).length, 4)
  assert.doesNotMatch(page.text, /alert|xxxx/)
})

test('one session has a page of its own: its fields, and what happened to it alone, also after its end', async t => {
  const { user, origin } = await openConsole(t)
  const lisi = await user('lisi', { 'user-agent': WECHAT })
  await user('lisi')
  const admin = await user('admin')
  await lisi.get('/_menshen/console')
  const rows = rowsOf((await admin.get(`${LIST}?username=lisi`)).text)
  const row = rows.find(row => row.includes('微信')) ?? assert.fail()
  const path = /<a href="([^"]+)"/.exec(row)?.[1] ?? assert.fail()
  const happened = async () => rowsOf((await admin.get(path)).text).map(row => /<strong>(.*?)<\/strong>/.exec(row)?.[1])
  await until(async () => (await happened()).length === 2)
  const { text } = await admin.get(path)
  assert.match(text, /<code>lisi<\/code>.*普通用户.*微信 · Android.*MicroMessenger.*127\.0\.0\.1.*2026-03-01T10:00/s)
  assert.equal(keyOf(text), keyOf(row))
  const before = await happened()

  await admin.post(END, { session: keyOf(row) }, origin)
  await until(async () => (await happened()).length === 3)
  assert.deepEqual((await happened()).slice(1), before)
  assert.match((await admin.get(path)).text, /该会话已结束/)

  assert.equal((await lisi.get(path)).status, 302)
  assert.equal((await (await user('zhangsan')).get(path)).status, 403)
  for (const key of ['', 'x', 'A'.repeat(43), `${keyOf(row)}x`, '%00'])
    assert.equal((await admin.get(`/_menshen/console/session?key=${key}`)).status, 404, key)
})
