// How sessions end at the gateway by SESSION_IDLE_MINUTES and SESSIONS_PER_USER, and what the browser is told.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { createMenshen, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { type Client, type Response, signIn } from '../kit/client.ts'
import { scrape } from '../kit/scrape.ts'
import { type Scene, setUp, setUpOidc } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'

const IDLE = { SESSION_IDLE_MINUTES: '20' }
const LONG_TOKENS = { expiresIn: 100 * 3600 }
const PAGE = {
  accept: 'text/html',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
}
const SCRIPT = { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin' }
const STREAM = { accept: 'text/event-stream' }
const ENDED = 1500
const isToLogin = ({ status, headers }: Response) => status === 302 && headers.location?.startsWith('/login') === true

const ended = ({ lines }: Pick<Scene, 'lines'>) =>
  lines.filter(({ event }) => event === 'session_ended').map(({ fields }) => fields)

type Asking = [what: string, isActivity: boolean, ask: (client: Client) => Promise<Response>]

const REQUESTS: Asking[] = [
  ['a navigation', true, client => client.get('/', { headers: PAGE })],
  ['a navigation in a frame', true, client => client.get('/', { headers: { 'sec-fetch-mode': 'navigate' } })],
  ['a POST from a script', true, client => client.post('/', {}, { headers: SCRIPT })],
  ['a DELETE', true, client => client.request({ method: 'DELETE', path: '/', headers: SCRIPT })],
  ['a program without Sec-Fetch headers', true, client => client.get('/')],
  ['a HEAD from a program', true, client => client.request({ method: 'HEAD', path: '/' })],
  ['a GET from a script', false, client => client.get('/', { headers: SCRIPT })],
  ['a HEAD from a script', false, client => client.request({ method: 'HEAD', path: '/', headers: SCRIPT })],
  [
    'an image request',
    false,
    client => client.get('/', { headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' } }),
  ],
  [
    'a GET with only Sec-Fetch-Site',
    false,
    client => client.get('/', { headers: { 'sec-fetch-site': 'same-origin' } }),
  ],
  ['an event stream from a browser', false, client => client.get('/', { headers: { ...SCRIPT, ...STREAM } })],
  ['an event stream over plain http', false, client => client.get('/', { headers: STREAM })],
  ['/_menshen/me', false, client => client.get('/_menshen/me')],
  ['/_menshen/me opened as a page', false, client => client.get('/_menshen/me', { headers: PAGE })],
  ['one of our own pages', true, client => client.get('/_menshen/account', { headers: PAGE })],
  ['the button of the idle warning', true, client => client.post('/_menshen/stay', {}, { headers: SCRIPT })],
  ['a /_menshen/check request from a script', false, client => client.get('/_menshen/check', { headers: SCRIPT })],
]

for (const [what, isActivity, ask] of REQUESTS)
  test(`${what} is ${isActivity ? '' : 'not '}treated as activity`, async t => {
    const scene = await setUp(t, { env: IDLE, provider: LONG_TOKENS })
    const client = await scene.user()
    scene.passSeconds(1200)
    assert.equal((await ask(client)).status, 200)
    scene.passSeconds(1200)
    const later = await client.get('/', { headers: SCRIPT })
    assert.equal(later.status, isActivity ? 200 : 401)
  })

for (const [path, uri, method] of [
  ['/_menshen/check', 'x-original-uri', 'x-original-method'],
  ['/_menshen/forward', 'x-forwarded-uri', 'x-forwarded-method'],
] as const)
  for (const [what, isActivity, headers] of [
    ['a GET from a script', false, SCRIPT],
    ['a POST from a script', true, { ...SCRIPT, [method]: 'POST' }],
    ['a page', true, PAGE],
  ] as const)
    test(`${path} for ${what} is ${isActivity ? '' : 'not '}treated as activity`, async t => {
      const scene = await setUp(t, { env: { ...IDLE, TRUSTED_PROXIES: '127.0.0.1' }, provider: LONG_TOKENS })
      const client = await scene.user()
      scene.passSeconds(1200)
      assert.equal((await client.get(path, { headers: { [uri]: '/a', ...headers } })).status, 200)
      scene.passSeconds(1200)
      assert.equal((await client.get('/', { headers: SCRIPT })).status, isActivity ? 200 : 401)
    })

test('a page that only polls is signed out with one event, and the login page explains why once, in Chinese or English', async t => {
  const scene = await setUp(t, { env: IDLE, provider: LONG_TOKENS })
  const client = await scene.user()
  for (let minute = 0; minute < 24; minute++) {
    scene.passSeconds(60)
    assert.equal((await client.get('/poll', { headers: SCRIPT })).status, 200)
  }
  scene.passSeconds(60)
  const refused = await client.get('/poll', { headers: SCRIPT })
  assert.equal(refused.status, 401)
  assert.deepEqual(Object.keys(refused.json<object>()), ['error', 'message', 'login', 'requestId'])
  const [event, ...more] = ended(scene)
  assert.deepEqual([event?.reason, event?.user, event?.ended, more], ['idle', 'zhangsan', 1, []])
  const page = await client.get('/report', { headers: PAGE })
  assert.ok(isToLogin(page))
  assert.deepEqual(
    page.setCookies.filter(cookie => cookie.startsWith('menshen_session')),
    [],
    'the ticket is needed to be told why',
  )
  const login = () => client.get('/login', { headers: { ...PAGE, 'accept-language': 'zh-CN' } })
  await client.request({ method: 'HEAD', path: '/login', headers: PAGE })
  await client.get('/login', { headers: { ...PAGE, 'sec-purpose': 'prefetch' } })
  assert.doesNotMatch((await scene.visitor().get('/login', { headers: PAGE })).text, /长时间没有操作/)
  assert.match((await login()).text, /由于长时间没有操作，您已自动退出登录。/)
  assert.doesNotMatch((await login()).text, /长时间没有操作/)

  const other = await scene.user('lisi')
  scene.passSeconds(ENDED)
  assert.ok(isToLogin(await other.get('/report', { headers: PAGE })))
  await other.post('/_menshen/language', { language: 'en' })
  const inEnglish = () => other.get('/login', { headers: PAGE })
  assert.match((await inEnglish()).text, /You were signed out because you were inactive\./)
  assert.doesNotMatch((await inEnglish()).text, /inactive/)
})

test('a device signed out by SESSIONS_PER_USER sees the reason in English and can sign in again', async t => {
  const scene = await setUp(t, { env: { SESSIONS_PER_USER: '1', PAGE_LANGUAGE: 'en' } })
  const first = await scene.user()
  scene.passSeconds(1)
  const second = await scene.user()
  assert.ok(isToLogin(await first.get('/', { headers: PAGE })))
  assert.equal((await first.get('/', { headers: SCRIPT })).status, 401)
  assert.equal((await second.get('/', { headers: PAGE })).status, 200)
  const page = await first.get('/login', { headers: PAGE })
  assert.match(page.text, /You were signed out here because you signed in on another device\./)
  assert.deepEqual(
    ended(scene).map(({ reason, by, ended }) => [reason, by, ended]),
    [['session_limit', undefined, 1]],
  )
  assert.equal((await signIn(first, scene.provider)).status, 302)
  assert.equal((await first.get('/', { headers: PAGE })).status, 200)
})

test('a new sign-in in the same browser replaces its own session, not the session of another browser', async t => {
  const scene = await setUp(t, { env: { SESSIONS_PER_USER: '2' } })
  const other = await scene.user()
  const client = await scene.user()
  for (let n = 0; n < 3; n++) {
    scene.passSeconds(1)
    await signIn(client, scene.provider)
  }
  assert.equal((await other.get('/', { headers: PAGE })).status, 200)
  assert.equal((await client.get('/', { headers: PAGE })).status, 200)
  assert.deepEqual(ended(scene), [])
})

test('with SESSIONS_PER_USER=1, one of twenty browsers that sign in at once as one user stays signed in', async t => {
  const scene = await setUp(t, { env: { SESSIONS_PER_USER: '1' } })
  const clients = await Promise.all(Array.from({ length: 20 }, () => scene.user()))
  const served = await Promise.all(clients.map(client => client.get('/', { headers: PAGE })))
  assert.equal(served.filter(({ status }) => status === 200).length, 1)
})

test('an open WebSocket does not keep an idle session alive, and closes when the session ends', async t => {
  const scene = await setUpSockets(t, { env: IDLE, provider: LONG_TOKENS })
  const socket = dial(scene, await scene.user())
  await once(socket, 'open')
  scene.passSeconds(1200)
  socket.send('still here')
  await once(socket, 'message')
  const closed = once(socket, 'close')
  scene.passSeconds(300)
  await closed
  assert.deepEqual(
    ended(scene).map(({ reason }) => reason),
    ['idle'],
  )
})

test('/_menshen/me returns when the session ends without activity, and the warning text shortly before', async t => {
  const scene = await setUp(t, { env: IDLE, provider: LONG_TOKENS })
  const client = await scene.user()
  const me = async () => (await client.get('/_menshen/me')).json<{ idleEndsAt?: number; idleWarning?: object }>()
  const end = scene.now() + ENDED * 1000
  assert.deepEqual([(await me()).idleEndsAt, (await me()).idleWarning], [end, undefined])
  scene.passSeconds(ENDED - 60)
  const { idleEndsAt, idleWarning = {} } = await me()
  assert.equal(idleEndsAt, end)
  assert.deepEqual(Object.keys(idleWarning), ['lang', 'title', 'text', 'stay', 'leave'])
  const stayed = await client.post('/_menshen/stay', {}, { headers: SCRIPT })
  assert.equal(stayed.json<{ idleEndsAt: number }>().idleEndsAt, scene.now() + ENDED * 1000)
  assert.equal((await me()).idleWarning, undefined)
})

test('the dialogs of session.js get shades of ACCENT_COLOR for light and dark pages', async t => {
  const scene = await setUp(t, { env: { ...IDLE, ACCENT_COLOR: '#ffd400' }, provider: LONG_TOKENS })
  const client = await scene.user()
  type Said = Record<'idleWarning' | 'ended', { colors?: Record<string, string> } | undefined>
  const colors = async (of: keyof Said) => (await client.get('/_menshen/me')).json<Said>()[of]?.colors
  scene.passSeconds(ENDED - 60)
  const warning = await colors('idleWarning')
  assert.deepEqual(Object.keys(warning ?? {}), ['accent', 'onAccent', 'link'])
  assert.equal(warning?.onAccent, 'light-dark(#000000, #000000)')
  assert.match(String(warning?.accent), /^light-dark\(#[\da-f]{6}, #ffd400\)$/)
  assert.doesNotMatch(String(warning?.accent), /^light-dark\(#ffd400/, 'too bright for a white page')
  scene.passSeconds(60)
  assert.deepEqual(await colors('ended'), warning)
})

test('the account page shows when the session ends without activity', async t => {
  const scene = await setUp(t, { env: IDLE, provider: LONG_TOKENS })
  const client = await scene.user()
  const { text } = await client.get('/_menshen/account')
  const end = new Date(scene.now() + ENDED * 1000).toISOString()
  assert.match(text, new RegExp(`<dt>无操作自动退出时间</dt><dd><time datetime="${end}"`))
  const without = await setUp(t)
  assert.doesNotMatch((await (await without.user()).get('/_menshen/account')).text, /无操作/)
})

test('without SESSION_IDLE_MINUTES, /_menshen/me has no idle fields', async t => {
  const scene = await setUp(t)
  const { text } = await (await scene.user()).get('/_menshen/me')
  assert.doesNotMatch(text, /idle/)
})

test('another site, a visitor or a GET request cannot extend the session through /_menshen/stay', async t => {
  const scene = await setUp(t, { env: IDLE, provider: LONG_TOKENS })
  const client = await scene.user()
  scene.passSeconds(1200)
  for (const headers of [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: 'http://evil.localhost' },
  ])
    assert.equal((await client.post('/_menshen/stay', {}, { headers })).status, 403)
  assert.equal((await client.get('/_menshen/stay')).status, 405)
  assert.equal((await scene.visitor().post('/_menshen/stay', {}, { headers: SCRIPT })).status, 401)
  scene.passSeconds(300)
  assert.equal((await client.get('/', { headers: SCRIPT })).status, 401)
})

test('session() of the library detects activity by the headers and the method of the request', async t => {
  const { provider, url } = await setUp(t, { application: false })
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const { log } = createTestLog()
  const settings = readSettings({ ...provider.settings, STORE: 'memory:', PORT: new URL(url).port, ...IDLE })
  const menshen = await createMenshen({ settings, log, now: () => clock.now })
  t.after(() => menshen.close())
  provider.behaviour.expiresIn = LONG_TOKENS.expiresIn
  const callback = new Request(`${url}/callback?code=${provider.codeFor({})}&state=abc_idp`)
  const cookie = (await menshen.fetch(callback))?.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const session = (headers: Record<string, string>, method = 'GET') =>
    menshen.session(new Request(`${url}/`, { method, headers: { ...headers, cookie } }))
  clock.now += 1200_000
  assert.ok(await session(SCRIPT, 'POST'))
  clock.now += 1200_000
  assert.ok(await session(PAGE))
  clock.now += 1200_000
  assert.ok(await session(SCRIPT))
  clock.now += 300_000
  assert.equal(await session(PAGE), undefined)
})

test('reloads turn SESSION_IDLE_MINUTES and SESSIONS_PER_USER on and off for existing sessions', async t => {
  const { provider, url } = await setUp(t, { application: false, provider: LONG_TOKENS })
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const settingsWith = (more: Record<string, string>) =>
    readSettings({ ...provider.settings, STORE: 'memory:', PORT: new URL(url).port, ...more })
  const core = await createCore({
    settings: settingsWith({}),
    config: {},
    log: createTestLog().log,
    now: () => clock.now,
  })
  t.after(() => core.close())
  const signInAgain = async () => {
    const callback = new Request(`${url}/callback?code=${provider.codeFor({})}&state=abc_idp`)
    const { answer } = await core.admit(callback)
    return answer?.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  }
  const isAlive = async (cookie: string) => (await core.session({ headers: { ...SCRIPT, cookie } })) !== undefined
  const reload = (more: Record<string, string>) => core.prepare(settingsWith(more), {})(undefined)

  const [first, second] = [await signInAgain(), await signInAgain()]
  clock.now += 2 * ENDED * 1000
  await reload({ ...IDLE, SESSIONS_PER_USER: '2' })
  assert.deepEqual([await isAlive(first), await isAlive(second)], [true, true])
  clock.now += 1000
  const third = await signInAgain()
  assert.deepEqual([await isAlive(first), await isAlive(second), await isAlive(third)].filter(Boolean).length, 2)
  await reload({})
  const more = [await signInAgain(), await signInAgain()]
  clock.now += 2 * ENDED * 1000
  for (const cookie of [third, ...more]) assert.equal(await isAlive(cookie), true)
  await reload(IDLE)
  clock.now += ENDED * 1000
  assert.equal(await isAlive(third), false)
})

test('menshen_sessions_ended_total counts sessions that users, developers or limits ended, by reason', async t => {
  const scene = await setUp(t, {
    env: { ...IDLE, SESSIONS_PER_USER: '2', METRICS_FROM: '127.0.0.1' },
    provider: LONG_TOKENS,
  })
  const count = async (reason: string) =>
    (await scrape(scene.url)).value(`menshen_sessions_ended_total{reason="${reason}"}`)
  const one = await scene.user()
  await signIn(one, scene.provider)
  assert.equal(await count('replaced'), 1)
  await scene.user()
  await scene.user()
  assert.equal(await count('session_limit'), 1)
  const client = await scene.user('lisi')
  await scene.user('lisi')
  await client.post('/_menshen/account/end', { others: 'yes' })
  assert.equal(await count('account'), 1)
  await client.post('/logout')
  assert.equal(await count('sign_out'), 1)
  const admin = await scene.user('admin')
  const { text } = await admin.get('/_menshen/console/sessions?username=zhangsan')
  const [, session = ''] = /name="session" value="([^"]+)"/.exec(text) ?? []
  await admin.post('/_menshen/console/end', { session, all: 'yes' })
  assert.equal(await count('console'), 2)
  scene.passSeconds(ENDED)
  await until(async () => (await count('idle')) === 1)
  assert.deepEqual([await count('idle'), await count('other')], [1, 0])
})

test('menshen_sessions_ended_total counts sessions that the API, the provider or a failed refresh ended', async t => {
  const key = newKey()
  const machines = [{ name: 'offboarding', keySha256: keySha256(key), api: ['sessions' as const] }]
  const env = { REFRESH_FAILURE: 'clear', METRICS_FROM: '127.0.0.1' }
  const { url, provider, user, visitor, passSeconds } = await setUpOidc(t, { env, config: { machines } })
  const count = async (reason: string) => (await scrape(url)).value(`menshen_sessions_ended_total{reason="${reason}"}`)
  const api = (path: string, method = 'GET') =>
    visitor().request({ method, path: `/_menshen/api${path}`, headers: { authorization: `Bearer ${key}` } })

  for (let n = 0; n < 2; n++) await user()
  const [first] = (await api('/sessions')).json<{ sessions: { id: string }[] }>().sessions
  assert.equal((await api(`/sessions/${first?.id}`, 'DELETE')).status, 204)
  assert.equal(await count('api'), 1)
  assert.equal((await api('/sessions?user=zhangsan', 'DELETE')).status, 200)
  assert.equal(await count('api'), 2)

  const told = await user()
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const token = await provider.sign({ events, jti: 'jti-1', sub: 'sub-1' }, { typ: 'logout+jwt' })
  assert.equal((await visitor().post('/_menshen/backchannel-logout', { logout_token: token })).status, 200)
  assert.equal(await count('backchannel'), 1)
  assert.equal((await told.get('/_menshen/me')).status, 401)

  const due = await user()
  passSeconds(provider.expiresIn - 60)
  provider.isAway = true
  assert.ok(isToLogin(await due.get('/', { headers: PAGE })))
  assert.equal(await count('refresh_failed'), 1)
  assert.deepEqual([await count('api'), await count('backchannel'), await count('other')], [2, 1, 0])
})

test('the console shows when a session ends without activity, and does not list it afterwards', async t => {
  const scene = await setUp(t, { env: { ...IDLE, PAGE_LANGUAGE: 'en' }, provider: LONG_TOKENS })
  await scene.user('lisi')
  scene.passSeconds(1200)
  const admin = await scene.user('admin')
  const list = await admin.get('/_menshen/console/sessions', { headers: PAGE })
  assert.match(list.text, /lisi/)
  assert.match(list.text, /If idle: <time/)
  const [, key = ''] = /session\?key=([^"]+)"/.exec(list.text) ?? []
  assert.match((await admin.get(`/_menshen/console/session?key=${key}`)).text, /Signed out if idle until/)
  scene.passSeconds(300)
  assert.doesNotMatch((await admin.get('/_menshen/console/sessions', { headers: PAGE })).text, /lisi/)
  await until(() => ended(scene).length === 1)
  const audit = async () => (await admin.get('/_menshen/console/audit?event=session_ended', { headers: PAGE })).text
  await until(async () => /no activity/.test(await audit()))
})

test('the login page explains once that a developer, another device or a failed refresh ended the session', async t => {
  const scene = await setUp(t, { env: { PAGE_LANGUAGE: 'en' } })
  const reasonShown = async (client: Client) =>
    /An administrator signed you out|from another device|couldn’t be renewed/.exec(
      (await client.get('/login', { headers: PAGE })).text,
    )?.[0]

  const admin = await scene.user('admin')
  const ended = await scene.user('lisi')
  const { text } = await admin.get('/_menshen/console/sessions?username=lisi')
  const [, session = ''] = /name="session" value="([^"]+)"/.exec(text) ?? []
  await admin.post('/_menshen/console/end', { session })
  assert.ok(isToLogin(await ended.get('/', { headers: PAGE })))
  assert.deepEqual([await reasonShown(ended), await reasonShown(ended)], ['An administrator signed you out', undefined])

  const [here, there] = [await scene.user('wangwu'), await scene.user('wangwu')]
  await here.post('/_menshen/account/end', { others: 'yes' })
  assert.deepEqual([await reasonShown(there), await reasonShown(there)], ['from another device', undefined])

  const refreshed = await scene.user('zhaoliu')
  scene.provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } })
  scene.passSeconds(7000)
  const page = await refreshed.get('/', { headers: PAGE })
  assert.ok(isToLogin(page))
  assert.equal(refreshed.cookies.get('menshen_session'), undefined)
  assert.deepEqual([await reasonShown(refreshed), await reasonShown(refreshed)], ['couldn’t be renewed', undefined])
  // A reason that was not shown is not that of the next session.
  await signIn(refreshed, scene.provider, { username: 'zhaoliu' })
  scene.passSeconds(7000)
  await refreshed.get('/', { headers: PAGE })
  await signIn(refreshed, scene.provider, { username: 'zhaoliu' })
  await refreshed.post('/logout')
  assert.equal(await reasonShown(refreshed), undefined)
})
