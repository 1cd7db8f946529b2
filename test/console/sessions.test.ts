// The console's list of sessions, from outside: who, where from, page by page, and a question before anything ends.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { findUsers, type UserPage, type UserSessions } from '../../src/console/find-users.ts'
import type { Config } from '../../src/index.ts'
import type { ListedSession } from '../../src/session/listing.ts'
import { type Client, signIn } from '../kit/client.ts'
import { createDevice, nextChallenge } from '../kit/device.ts'
import { makePersonalKey } from '../kit/personal-keys.ts'
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

/** The rows of sessions; those of their users are above them. */
function rowsOf(html: string): string[] {
  return [...html.matchAll(/<tr role="row"><th scope="row".*?<\/tr>/gs)].map(([row]) => row)
}

/** Each user with their sessions. */
function groupsOf(html: string): { head: string; rows: string[] }[] {
  return [...html.matchAll(/<tbody role="rowgroup">(.*?)<\/tbody>/gs)].map(([, group = '']) => ({
    head: /<tr role="row" class="group">.*?<\/tr>/s.exec(group)?.[0] ?? '',
    rows: rowsOf(group),
  }))
}

function usersOf(html: string): (string | undefined)[] {
  return groupsOf(html).map(({ head }) => /<code>([^<]*)/.exec(head)?.[1])
}

function keyOf(html: string): string {
  return /name="session" value="([\w-]{43})"/.exec(html)?.[1] ?? assert.fail('no session')
}

const isIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200

test('the session list shows user, role, device, address, start, last activity and expiry of each session', async t => {
  const { user } = await openConsole(t, { TRUSTED_PROXIES: '127.0.0.1' })
  await user('lisi', { 'user-agent': WECHAT, 'x-forwarded-for': '192.0.2.7' })
  const admin = await user('admin')
  const [own, theirs, ...more] = groupsOf((await admin.get(LIST)).text)
  assert.deepEqual(more, [])
  assert.match(own?.head ?? '', /<code>admin<\/code>.*开发者/s)
  assert.match(own?.rows[0] ?? '', /未知设备.*当前会话/s)
  assert.match(theirs?.head ?? '', /<bdi>张三<\/bdi> <code>lisi<\/code>.*普通用户/s)
  assert.match(theirs?.rows[0] ?? '', /微信 · Android.*192\.0\.2\.7/s)
  assert.deepEqual(
    theirs?.rows[0]?.match(/datetime="[^"]+"/g),
    ['08:00:00', '08:00:00', '10:00:00'].map(time => `datetime="2026-03-01T${time}.000Z"`),
  )
})

test('a device-bound session is marked in the list and on its page, and one without a registered device is not', async t => {
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
  assert.match(theirs, /lisi.*<span class="tag">已绑定设备<\/span>/s)
  const page = `/_menshen/console/session?key=${keyOf(theirs)}`
  assert.match((await admin.get(page)).text, /<dt>设备<\/dt><dd>.*<span class="tag">已绑定设备<\/span>/)
  const { challenge, id } = nextChallenge(registered)
  assert.equal((await device.refresh(lisi, id, challenge)).status, 200)
  assert.match((await admin.get(page)).text, /已绑定设备/, 'also after the next proof')
})

test('the page of a session lists the user’s personal keys by name, without showing the keys', async t => {
  const rules = [{ path: '/', roles: ['*'], keys: 'personal' as const }]
  const { user, menshen } = await openConsole(t, {}, { rules })
  const lisi = await user('lisi')
  const admin = await user('admin')
  const { text } = await admin.get(`${LIST}?username=lisi`)
  const page = `/_menshen/console/session?key=${keyOf(text)}`
  assert.doesNotMatch((await admin.get(page)).text, /个人密钥/)
  const key = await makePersonalKey(lisi, menshen.baseUrl, '笔记本 <b>')
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

test('the session list groups sessions by user, newest first, with relative times', async t => {
  const { user, menshen } = await openConsole(t)
  await user('lisi', { 'user-agent': WECHAT })
  await user('wangwu')
  await user('lisi', { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.0.0' })
  menshen.passSeconds(180)
  const admin = await user('admin')
  const { text } = await admin.get(LIST)
  assert.deepEqual(usersOf(text), ['admin', 'lisi', 'wangwu'])
  const [own, lisi] = groupsOf(text)
  assert.match(lisi?.head ?? '', /2 个会话/)
  assert.match(
    lisi?.head ?? '',
    /<input type="checkbox" name="user" value="[\w-]{43}" form="chosen" aria-label="选择 lisi 的全部会话"/,
  )
  const [newest = '', oldest = ''] = lisi?.rows ?? []
  assert.match(
    newest,
    /Chrome · Windows.*<time datetime="2026-03-01T08:00:02[^>]*title="2026年3月1日[^>]*>3 分钟前<\/time>/s,
  )
  assert.match(newest, />1 小时后<\/time>/)
  assert.match(oldest, /微信 · Android/)
  assert.match(own?.rows[0] ?? '', />刚刚<\/time>/)
  for (const row of rowsOf(text)) {
    assert.equal(row.match(/<details class="menu"/g)?.length, 1)
    assert.match(
      row,
      /<input type="checkbox" name="session" value="[\w-]{43}" form="chosen" aria-label="选择会话：\w+ · /,
    )
    assert.match(row, /<summary aria-label="操作：\w+ · /)
  }
})

test('each user appears on one page only, even if others signed in between; a user with 8 sessions shows 5 and a link to all', async t => {
  const { user } = await openConsole(t)
  await user('lisi')
  for (let n = 0; n < 110; n++) await user(`user-${n}`)
  for (let n = 0; n < 7; n++) await user('lisi')
  const admin = await user('admin')
  const first = (await admin.get(LIST)).text
  const next = /<a href="([^"]*)">下一页/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? assert.fail()
  const second = (await admin.get(next)).text
  const names = [...usersOf(first), ...usersOf(second)]
  assert.deepEqual(names.slice(0, 3), ['admin', 'lisi', 'user-109'])
  assert.equal(new Set(names).size, names.length, 'each user once')
  assert.equal(names.length, 112)
  const lisi = groupsOf(first)[1]
  assert.match(lisi?.head ?? '', /8 个会话.*<a class="small" href="[^"]*\?username=lisi">显示全部会话<\/a>/s)
  assert.equal(lisi?.rows.length, 5)
  assert.equal(rowsOf((await admin.get(`${LIST}?username=lisi`)).text).length, 8)
})

test('the session search finds users by any part of name, display name, address, device or session id, in any case', async t => {
  const { menshen, provider, user } = await openConsole(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const signInFrom = async (who: { username: string; nickname: string }, address: string, agent: string) => {
    const headers = { 'user-agent': agent, 'x-forwarded-for': address }
    await menshen.visitor().get(`/callback?code=${provider.codeFor(who)}&state=abc_idp`, { headers })
    menshen.passSeconds(1)
  }
  const windows = 'Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.0.0'
  await signInFrom({ username: 'Zhang.San', nickname: '欧阳三' }, '192.0.2.7', WECHAT)
  await signInFrom({ username: 'lisi', nickname: 'María López' }, '2001:DB8::7', windows)
  await signInFrom({ username: 'wangwu', nickname: 'zhang.san' }, '198.51.100.7', windows)
  const admin = await user('admin')
  const found = async (text: string) =>
    usersOf((await admin.get(`${LIST}?${new URLSearchParams({ username: text })}`)).text)
  assert.deepEqual(await found('zhang.SAN'), ['wangwu', 'Zhang.San'])
  // A username that is the text itself comes before a display name that is.
  assert.deepEqual(await found('Zhang.San'), ['Zhang.San', 'wangwu'])
  assert.deepEqual(await found('欧阳'), ['Zhang.San'])
  assert.deepEqual(await found('ＭＡＲÍＡ'), ['lisi'])
  assert.deepEqual(await found('192.0.2'), ['Zhang.San'])
  assert.deepEqual(await found('2001:db8'), ['lisi'])
  assert.deepEqual(await found('微信'), ['Zhang.San'])
  assert.deepEqual(await found('chrome · windows'), ['wangwu', 'lisi'])
  const key = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  assert.deepEqual(await found(key.slice(0, 10)), ['lisi'])
  assert.deepEqual(await found('nobody'), [])
  assert.deepEqual(await found('%'), [])
  const hostile = await admin.get(`${LIST}?${new URLSearchParams({ username: '"><script>alert(1)</script>' })}`)
  assert.ok(!hostile.text.includes('<script>alert'))
})

test('a session search reads at most 2000 sessions per page, and the next page continues there', async () => {
  const sessions = Array.from({ length: 5000 }, (_, n) => ({
    key: String(n),
    owner: String(n),
    expiresAt: 0,
    summary: { username: `user-${n}`, nickname: '', userRole: 'common', signedInAt: 5000 - n, seenAt: 0 },
  }))
  let opened = 0
  const listing = {
    async newest({ before = '0', limit }: { before?: string | undefined; limit: number }) {
      opened += limit
      const end = Number(before) + limit
      return { sessions: sessions.slice(Number(before), end), ...(end < sessions.length && { next: String(end) }) }
    },
    list: async () => ({ sessions: [] }),
    listLike: async (session: ListedSession) => ({ sessions: [session] }),
  }
  const matches = ({ summary }: ListedSession) => summary?.username === 'user-4444'
  const pages: (readonly UserSessions[])[] = []
  let after: string | undefined = ''
  while (after !== undefined) {
    opened = 0
    const page: UserPage = await findUsers(listing, { after, matches })
    assert.ok(opened <= 2000, `${opened} were opened`)
    pages.push(page.users)
    after = page.next
  }
  assert.deepEqual(
    pages.map(users => users.map(({ sessions: [session] }) => session?.key)),
    [[], [], ['4444']],
  )
})

test('the session list shows 50 sessions per page, newest first, with the total, and finds a user by name', async t => {
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
  const names = [...usersOf(first), ...usersOf(second)]
  assert.deepEqual(names, ['admin', ...Array.from({ length: 59 }, (_, n) => `user-${58 - n}`)])
  assert.equal(rowsOf(first).length, 50)

  const found = (await admin.get(`${LIST}?username=+user-7+`)).text
  assert.deepEqual(usersOf(found), ['user-7'])
  for (const after of ['x', '%00', '1:', `${'9'.repeat(5000)}`, '%F0%9F%92%A9', '1:%27%22%3E%3Cscript%3E'])
    for (const query of [`after=${after}`, `username=user-7&after=${after}`])
      assert.equal((await admin.get(`${LIST}?${query}`)).status, 200, query)
})

test('ending a session requires a confirmation, and a notice reports it once', async t => {
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

test('selected sessions and all sessions of selected users end together, after a confirmation that names them', async t => {
  const { user, origin } = await openConsole(t)
  const lisi = [await user('lisi'), await user('lisi', { 'user-agent': WECHAT })]
  const [wangwu, zhaoliu] = [await user('wangwu'), await user('zhaoliu')]
  const admin = await user('admin')
  const groups = groupsOf((await admin.get(LIST)).text)
  const keyOfUser = (name: string) =>
    /name="user" value="([\w-]{43})"/.exec(groups.find(({ head }) => head.includes(`>${name}<`))?.head ?? '')?.[1] ?? ''
  const chosen = new URLSearchParams([
    ['user', keyOfUser('lisi')],
    // A session of a user who is chosen as a whole is not named again.
    ['session', keyOfUser('lisi')],
    ['session', keyOfUser('wangwu')],
    ['session', keyOfUser('wangwu')],
    ['session', 'x'],
  ])
  const asked = await admin.get(`${ASK}?${chosen}`)
  assert.match(asked.text, /<h1>要结束所选的 2 项吗？<\/h1>/)
  const named = [...asked.text.matchAll(/<li>(.*?)<\/li>/gs)]
    .map(([, line = '']) => line)
    .filter(line => line.includes('<code>'))
  assert.equal(named.length, 2)
  assert.match(named[0] ?? '', /<bdi>张三<\/bdi> <code>lisi<\/code>.*全部会话和个人密钥/s)
  assert.match(named[1] ?? '', /<code>wangwu<\/code>.*127\.0\.0\.1/s)
  assert.doesNotMatch(asked.text, /您自己正在使用的会话/)
  for (const client of [...lisi, wangwu]) assert.ok(await isIn(client), 'a question ends nothing')

  const fields = [...asked.text.matchAll(/<input type="hidden" name="(user|session)" value="([\w-]{43})">/g)]
  const form = new URLSearchParams(fields.map(([, name = '', value = '']) => [name, value]))
  const foreign = await admin.post(END, String(form), { headers: { origin: 'https://evil.example' } })
  assert.equal(foreign.status, 403)
  const scripted = {
    ...origin.headers,
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
  }
  assert.equal((await admin.post(END, String(form), { headers: scripted })).status, 403)
  assert.equal((await zhaoliu.post(END, String(form), origin)).status, 403)
  for (const client of [...lisi, wangwu]) assert.ok(await isIn(client))

  const done = await admin.post(END, String(form), origin)
  assert.equal(done.status, 303)
  assert.match((await admin.follow(done)).text, /role="status"><p>已结束 2 位用户的 3 个会话。/)
  for (const client of [...lisi, wangwu]) assert.ok(!(await isIn(client)))
  assert.ok((await isIn(zhaoliu)) && (await isIn(admin)))
  const events = `/_menshen/console/audit.jsonl?event=session_ended`
  await until(async () => (await admin.get(events)).text.split('\n').length === 3)
})

test('all sessions and keys of a user end even if the session that stood for the user has ended since the question', async t => {
  const rules = [{ path: '/', roles: ['*'], keys: 'personal' as const }]
  const { user, menshen, origin } = await openConsole(t, {}, { rules })
  const admin = await user('admin')
  const accepted = async (key: string) =>
    (await menshen.visitor().get('/', { headers: { authorization: `Bearer ${key}` } })).status !== 401
  for (const others of [[], ['wangwu']]) {
    const first = await user('lisi')
    const key = await makePersonalKey(first, menshen.baseUrl)
    const newest = await user('lisi')
    const bystanders = await Promise.all(others.map(name => user(name)))
    const keys = await Promise.all(
      ['lisi', ...others].map(async name => ['user', keyOf((await admin.get(`${LIST}?username=${name}`)).text)]),
    )
    const asked = await admin.get(`${ASK}?${new URLSearchParams(keys)}`)
    const fields = [...asked.text.matchAll(/<input type="hidden" name="(\w+)" value="([\w-]+)">/g)]
    const form = new URLSearchParams(fields.map(([, name = '', value = '']) => [name, value]))
    await newest.post('/logout', '', origin)
    assert.ok((await isIn(first)) && (await accepted(key)), 'a sign-out leaves the other session and the key')

    await admin.post(END, String(form), origin)
    for (const client of [first, ...bystanders]) assert.equal(await isIn(client), false)
    assert.equal(await accepted(key), false)
  }
})

test('keys of a user end, with an event that names the user, even if the last session has ended since the question', async t => {
  const rules = [{ path: '/', roles: ['*'], keys: 'personal' as const }]
  const { user, menshen, origin } = await openConsole(t, {}, { rules })
  const lisi = await user('lisi')
  const key = await makePersonalKey(lisi, menshen.baseUrl)
  const admin = await user('admin')
  const session = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  const asked = await admin.get(`${ASK}?session=${session}&all=yes`)
  const owner = /name="owner" value="([\w-]{43})"/.exec(asked.text)?.[1] ?? ''
  await lisi.post('/logout', '', origin)
  await admin.post(END, { session, all: 'yes', owner }, origin)
  assert.equal((await menshen.visitor().get('/', { headers: { authorization: `Bearer ${key}` } })).status, 401)
  const events = `/_menshen/console/audit.jsonl?event=key_revoked&user=lisi`
  await until(async () => (await admin.get(events)).text.includes('"revoked":1'))
})

test('ending over 100 sessions is refused, an empty selection redirects to the list, and one’s own session has a warning', async t => {
  const { user, origin } = await openConsole(t)
  const admin = await user('admin')
  const own = keyOf((await admin.get(LIST)).text)
  const many = Array.from({ length: 101 }, (_, n) => ['session', n === 0 ? own : String(n).padStart(43, 'A')])
  const asked = await admin.get(`${ASK}?${new URLSearchParams(many)}`)
  assert.equal(asked.status, 400)
  assert.match(asked.text, /一次最多结束 100 项/)
  assert.equal((await admin.post(END, String(new URLSearchParams(many)), origin)).headers.location, LIST)
  assert.ok(await isIn(admin))
  const nothing = await admin.get(ASK)
  assert.deepEqual([nothing.status, nothing.headers.location], [302, LIST])
  assert.doesNotMatch((await admin.follow(nothing)).text, /role="status"/)
  const other = keyOf((await (await user('admin')).get(LIST)).text)
  assert.match((await admin.get(`${ASK}?user=${other}`)).text, /您自己正在使用的会话/)
  assert.match((await admin.get(`${ASK}?session=${own}`)).text, /您自己正在使用的会话/)
})

test('only a developer can open the confirmation page (403 otherwise); an invalid session key redirects to the list', async t => {
  const { user } = await openConsole(t)
  const [common, admin] = [await user('lisi'), await user('admin')]
  const session = keyOf((await admin.get(`${LIST}?username=lisi`)).text)
  assert.equal((await common.get(`${ASK}?session=${session}`)).status, 403)
  for (const key of ['', 'x', '..%2F', 'a'.repeat(43), '%00'.repeat(43), `${session}x`])
    assert.equal((await admin.get(`${ASK}?session=${key}`)).headers.location, LIST, key)
})

test('the content of the notice cookie, which anyone can forge, is shown escaped or not at all', async t => {
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

test('a hostile or overlong user agent is not in the session list, and is escaped and shortened on the page of its session', async t => {
  const { user, provider, menshen } = await openConsole(t)
  for (const agent of ['<script>alert(1)</script>', '"onmouseover=alert(1) x="', `Chrome/1 ${'x'.repeat(3000)}`])
    await user('lisi', { 'user-agent': agent })
  const admin = menshen.visitor()
  await signIn(admin, provider, { username: 'admin' })
  const page = await admin.get(LIST)
  assert.equal(rowsOf(page.text).length, 4)
  assert.doesNotMatch(page.text, /alert|xxxx/)
  const paths = rowsOf(page.text).map(row => /<a href="([^"]+)"/.exec(row)?.[1] ?? assert.fail(row))
  const pages = await Promise.all(paths.map(async path => (await admin.get(path)).text))
  const all = pages.join('')
  assert.doesNotMatch(all, /<script>alert|"onmouseover/)
  assert.match(all, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
  assert.match(all, /&quot;onmouseover=alert\(1\) x=&quot;/)
  assert.match(all, /Chrome\/1 x{50}/)
  assert.doesNotMatch(all, /x{500}/)
})

test('the console shows characters that change the direction of a username, so that no user looks like another', async t => {
  const { user } = await openConsole(t)
  // A browser shows this name as admin.
  const name = '\u202enimda'
  const theirs = await user(name)
  const admin = await user('admin')
  await theirs.get('/_menshen/console')
  const list = (await admin.get(LIST)).text
  const group = groupsOf(list).find(({ head }) => head.includes('nimda'))
  const key = keyOf(group?.rows[0] ?? '')
  await until(async () => (await admin.get('/_menshen/console/audit.jsonl?event=refused')).text !== '')
  const paths = [ASK, '/_menshen/console/session'].map(path => `${path}?session=${key}&key=${key}&all=yes`)
  const pages = await Promise.all([...paths, '/_menshen/console/audit'].map(async path => (await admin.get(path)).text))
  for (const page of [list, ...pages]) {
    assert.match(page, /<code>\ufffdnimda<\/code>/)
    assert.doesNotMatch(page, /\u202e/)
  }
  const links = pages.join('').match(/user=%E2%80%AEnimda/g) ?? []
  assert.ok(links.length > 0, 'links still contain the exact name')
})

test('the page of a session shows its fields and only its own events, also after the session has ended', async t => {
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
