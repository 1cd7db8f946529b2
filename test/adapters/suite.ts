// What every adapter has to hold to, whichever framework it is for: one suite of statements, run by the test of each.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { createMenshen, type Menshen, type MenshenOptions } from '../../src/index.ts'
import { createTestMenshen } from '../../src/testing.ts'
import { cookieOf, createClient, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { createTestLog } from '../kit/test-log.ts'

type Auth = Pick<Menshen, 'admit'>
/**
 * Serves the application on the port of 127.0.0.1, and resolves with what ends it. Its routes: `/page`, `/public/page`,
 * `/finance/page` (the user as JSON), `/public/members` (`requireUser()`), `/public/reports` (`requireRole('developer')`),
 * `/public/bare` (`requireUser()`, in front of Menshen or beside it), `/cookies` (sets `theirs=1`, `cache-control: public` and
 * `cdn-cache-control`), `/head` (the same, by whatever in the framework has the last word), `/throws`, and a POST to `/echo`. Its own handler of errors answers 500 with `{ failed: message }`.
 */
export type ServeApplication = (auth: Auth, port: number) => Promise<() => unknown>

export const LIFE = 7200
const PAGE = { accept: 'text/html' }
const JSON_PLEASE = { accept: 'application/json' }
export const THEIRS = { 'set-cookie': 'theirs=1', 'cache-control': 'public', 'cdn-cache-control': 'max-age=60' }
const RULES = [
  { path: '/public', public: true as const },
  { path: '/finance', roles: ['developer'] },
]

export async function openApplication(t: TestContext, serve: ServeApplication, options: MenshenOptions = {}) {
  const provider = await openScriptedProvider(t, { expiresIn: LIFE })
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const { log, lines } = createTestLog()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const now = () => clock.now
  const usual = { ...provider.options, baseUrl: url, rules: RULES, log, now }
  const auth = await createMenshen({ ...usual, ...options } as MenshenOptions)
  t.after(() => auth.close())
  const end = await serve(auth, port)
  t.after(() => end())
  const visitor = () => createClient(url, now)
  const user = async (username: string) => {
    const client = visitor()
    assert.equal((await signIn(client, provider, { username })).headers.location, '/')
    return client
  }
  return { auth, provider, clock, lines, url, port, visitor, user }
}

/** The same without a provider: users are signed in as an application's own tests sign them in. */
async function openTestApplication(t: TestContext, serve: ServeApplication) {
  const { log, lines } = createTestLog()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const auth = await createTestMenshen({ baseUrl: url, rules: RULES, log } as MenshenOptions)
  t.after(() => auth.close())
  const end = await serve(auth, port)
  t.after(() => end())
  const visitor = () => createClient(url)
  const user = async (username: string, more: { role?: string } = {}) => {
    const client = visitor()
    const { cookie } = await auth.signIn({ username, ...more })
    client.keep(cookie)
    return client
  }
  return { auth, lines, visitor, user }
}

/** An application in front of which something else stands than Menshen. */
async function openWith(t: TestContext, serve: ServeApplication, auth: Auth) {
  const port = await freePort()
  const end = await serve(auth, port)
  t.after(() => end())
  return `http://127.0.0.1:${port}`
}

export function adapterSuite(name: string, serve: ServeApplication): void {
  suite(`every adapter: ${name}`, () => {
    test(`Menshen in ${name} serves our pages: sign-in leads back to the requested page, and sign-out ends the session`, async t => {
      const { visitor, provider, clock, url } = await openApplication(t, serve)
      const client = visitor()
      const turned = await client.get('/page?x=1', { headers: PAGE })
      assert.deepEqual([turned.status, turned.headers.location], [302, '/login'])
      const login = await client.follow(turned)
      assert.equal(login.status, 200)
      assert.match(String(login.headers['content-type']), /^text\/html/)
      assert.match(String(login.headers['content-security-policy']), /default-src 'none'/)
      const back = await signIn(client, provider, { username: 'lisi' })
      assert.equal(back.headers.location, '/page?x=1')
      const { user } = (await client.follow(back)).json<{ user: Record<string, unknown> }>()
      assert.deepEqual(Object.keys(user), ['id', 'userInfo', 'userRole', 'groups', 'expiresAt'])
      assert.equal(user.expiresAt, clock.now + LIFE * 1000)
      assert.equal((await client.get('/_menshen/me', { headers: JSON_PLEASE })).status, 200)
      assert.equal((await client.get('/nothing')).status, 404)
      const out = await client.post('/logout', {}, { headers: { origin: url } })
      assert.deepEqual([out.status, out.headers.location], [303, '/login'])
      assert.equal((await client.get('/page', { headers: JSON_PLEASE })).status, 401)
    })

    test(`Menshen in ${name} rejects forged and duplicate session cookies, and redirects visitors of unknown pages to the login page`, async t => {
      const { visitor, user } = await openApplication(t, serve)
      const ticket = (await user('lisi')).cookies.get('menshen_session')
      const cookies = [
        'menshen_session=forged',
        `menshen_session=${ticket}; menshen_session=x`,
        `menshen_session=${ticket}x`,
      ]
      for (const cookie of cookies) {
        assert.equal((await visitor().get('/page', { headers: { ...JSON_PLEASE, cookie } })).status, 401, cookie)
        assert.deepEqual((await visitor().get('/public/page', { headers: { cookie } })).json(), { user: null }, cookie)
      }
      for (const path of ['/nothing', '/PAGE', '/page/'])
        assert.equal((await visitor().get(path, { headers: PAGE })).headers.location, '/login', path)
    })

    test(`Menshen in ${name} applies the rules to every spelling of a path`, async t => {
      const { visitor, user } = await openTestApplication(t, serve)
      const [lisi, admin] = [await user('lisi'), await user('admin')]
      assert.deepEqual((await visitor().get('/public/page')).json(), { user: null })
      assert.equal((await lisi.get('/public/page')).json<Shown>().user?.userInfo.username, 'lisi')
      assert.equal((await admin.get('/finance/page')).json<Shown>().user?.userRole, 'developer')
      const refused = await lisi.get('/finance/page', { headers: PAGE })
      assert.equal(refused.status, 403)
      assert.ok(refused.text.includes(String(refused.headers['x-request-id'])))
      assert.equal((await lisi.get('/finance/page', { headers: JSON_PLEASE })).json<Refusal>().error, 'refused')
      const ways = ['/f%69nance/page', '/FINANCE/page', '/finance/page/', '/public/../finance/page', '//finance/page']
      const odd = [
        'http://evil.example/finance/page',
        '/public/%2e%2e/finance/page',
        '/public/..;/finance/page',
        '/finance\\page',
      ]
      const headers = { ...PAGE, cookie: cookieOf(lisi) }
      for (const way of [...ways, ...odd, '/public%2f..%2ffinance/page', '/./finance/page', '/finance/page%00'])
        assert.ok([400, 403, 404].includes((await visitor().get(way, { headers })).status), way)
    })

    test(`Menshen in ${name} restricts single routes with requireUser and requireRole`, async t => {
      const { visitor, user, lines } = await openTestApplication(t, serve)
      const [lisi, admin] = [await user('lisi'), await user('admin')]
      const turned = await visitor().get('/public/members?y=2', { headers: PAGE })
      assert.equal(turned.headers.location, '/login')
      assert.match(turned.setCookies.join(), /^menshen_return=/)
      assert.equal((await visitor().get('/public/reports', { headers: JSON_PLEASE })).status, 401)
      assert.equal((await lisi.get('/public/members')).status, 200)
      assert.equal((await admin.get('/public/reports')).status, 200)
      const refused = await lisi.get('/public/reports', { headers: PAGE })
      assert.equal(refused.status, 403)
      assert.match(refused.text, /lisi/)
      assert.ok(refused.text.includes(String(refused.headers['x-request-id'])))
      const answer = await lisi.get('/public/reports', { headers: JSON_PLEASE })
      assert.equal(answer.json<Refusal>().requestId, answer.headers['x-request-id'])
      assert.ok(lines.some(({ event }) => event === 'refused'))
    })

    test(`Menshen in ${name} accepts a user of menshen/testing only in the instance that signed them in, until they are signed out`, async t => {
      const [one, two] = [await openTestApplication(t, serve), await openTestApplication(t, serve)]
      const ann = await one.user('ann', { role: 'developer' })
      assert.equal((await ann.get('/finance/page')).json<Shown>().user?.userInfo.username, 'ann')
      const cookie = cookieOf(ann)
      assert.equal((await two.visitor().get('/page', { headers: { ...JSON_PLEASE, cookie } })).status, 401)
      await one.auth.signOut(cookie)
      assert.equal((await one.visitor().get('/page', { headers: { ...JSON_PLEASE, cookie } })).status, 401)
    })

    test(`Menshen in ${name} adds a renewed session cookie to the cookies of the application and makes that response no-store`, async t => {
      const { user, clock, provider } = await openApplication(t, serve)
      const lisi = await user('lisi')
      clock.now += (LIFE - 60) * 1000
      for (const path of ['/cookies', '/head']) {
        const { status, setCookies, headers, text } = await lisi.get(path)
        assert.deepEqual([status, text], [200, 'cookies'], path)
        assert.equal(provider.callsTo('refresh').length, 1)
        assert.equal(setCookies.length, 2, path)
        assert.equal(setCookies.filter(cookie => cookie.startsWith('theirs=1')).length, 1, path)
        assert.equal(setCookies.filter(cookie => cookie.startsWith('menshen_session=')).length, 1, path)
        assert.equal(headers['cache-control'], 'no-store', path)
        assert.equal(headers['cdn-cache-control'], undefined, path)
      }
      clock.now += 3600_000
      for (const path of ['/cookies', '/head']) {
        const { headers, setCookies } = await lisi.get(path)
        assert.deepEqual(setCookies, ['theirs=1'], path)
        assert.equal(headers['cache-control'], 'public', path)
        assert.equal(headers['cdn-cache-control'], 'max-age=60', path)
      }
    })

    test(`Menshen in ${name} leaves errors to the application: its own, ours, and requireUser on an unprotected route`, async t => {
      const { user } = await openApplication(t, serve)
      const lisi = await user('lisi')
      const thrown = await lisi.get('/throws')
      assert.deepEqual([thrown.status, thrown.json()], [500, { failed: 'by the handler' }])
      const { failed } = (await lisi.get('/public/bare')).json<{ failed: string }>()
      assert.match(failed, /^requireUser: Menshen does not protect this route; .* first\.$/)
      const broken = await openWith(t, serve, { admit: () => Promise.reject(new Error('by us')) })
      const answer = await createClient(broken).get('/page')
      assert.deepEqual([answer.status, answer.json()], [500, { failed: 'by us' }])
    })

    test(`Menshen in ${name} answers 503 while the store is unavailable`, async t => {
      const { visitor } = await openApplication(t, serve, { store: `redis://127.0.0.1:${await freePort()}` })
      const headers = { ...PAGE, cookie: `menshen_session=${'A'.repeat(43)}` }
      assert.equal((await visitor().get('/page', { headers })).status, 503)
    })

    test(`Menshen in ${name} refuses POST requests and WebSocket upgrades from other sites`, async t => {
      const { user, lines } = await openTestApplication(t, serve)
      const lisi = await user('lisi')
      const origin = 'https://evil.example'
      assert.equal((await lisi.post('/_menshen/sign-out-everywhere', {}, { headers: { origin } })).status, 403)
      assert.equal((await lisi.get('/page')).status, 200)
      const socket = { origin, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
      assert.equal((await lisi.get('/page', { headers: socket })).status, 403)
      assert.equal(lines.filter(({ event }) => event === 'foreign_origin').length, 2)
    })

    test(`Menshen in ${name} answers HEAD without a body, for our pages and for those of the application`, async t => {
      const { visitor, user } = await openTestApplication(t, serve)
      const login = await visitor().request({ method: 'HEAD', path: '/login' })
      assert.deepEqual([login.status, login.text], [200, ''])
      assert.equal((await visitor().request({ method: 'HEAD', path: '/page' })).status, 302)
      const page = await (await user('lisi')).request({ method: 'HEAD', path: '/page' })
      assert.deepEqual([page.status, page.text], [200, ''])
    })

    test(`Menshen in ${name} leaves request bodies of the application unchanged and reads the forms of our own pages`, async t => {
      const { visitor, url } = await openApplication(t, serve, { stateCheck: 'bound' })
      const body = `{ "odd" :  ${'é'.repeat(50_000)} `
      const headers = { 'content-type': 'text/plain' }
      const client = visitor()
      const form = await client.post('/login', { provider: 'default' }, { headers: { origin: url } })
      assert.equal(form.status, 303)
      assert.equal((await client.post('/login', 'x'.repeat(20_000), { headers: { origin: url } })).status, 413)
      assert.equal((await client.post('/public/echo', body, { headers })).text, body)
    })

    test(`Menshen in ${name} limits requests by the socket’s address, unless trustedProxies of Menshen includes the proxy`, async t => {
      const wrong = '/callback?code=x&state=abc_idp'
      const asked = async (options: MenshenOptions, from: string[]) => {
        const { visitor } = await openApplication(t, serve, { rateLimitPerMinute: 1, ...options })
        const statuses: number[] = []
        for (const address of from)
          statuses.push((await visitor().get(wrong, { headers: { 'x-forwarded-for': address } })).status)
        return statuses
      }
      assert.deepEqual(await asked({}, ['192.0.2.1', '192.0.2.2']), [302, 429])
      const trusted = { trustedProxies: '127.0.0.1' }
      assert.deepEqual(await asked(trusted, ['192.0.2.1', '192.0.2.2', '192.0.2.2']), [302, 302, 429])
    })

    test(`Menshen in ${name} keeps running when a client disconnects in the middle of a form, and logs no failed request`, async t => {
      const { visitor, port, lines } = await openApplication(t, serve, { stateCheck: 'bound' })
      const leaving = connect(port, '127.0.0.1')
      await once(leaving, 'connect')
      const head = `POST /login HTTP/1.1\r\nHost: a\r\nOrigin: http://127.0.0.1:${port}\r\nContent-Length: 100\r\n\r\n`
      leaving.write(`${head}prov`)
      assert.equal((await visitor().get('/public/page')).status, 200)
      leaving.destroy()
      assert.equal((await visitor().get('/public/page')).status, 200)
      assert.ok(!lines.some(({ event }) => event === 'request_failed'))
    })

    test(`Menshen in ${name} streams a response of Menshen as it is produced, and cancels it when the client disconnects`, async t => {
      const cancelled = Promise.withResolvers<void>()
      const body = new ReadableStream({
        start: controller => controller.enqueue(Buffer.from('data: 1\n\n')),
        cancel: () => cancelled.resolve(),
      })
      const answer = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
      const url = await openWith(t, serve, {
        admit: async () => ({ answer, cookies: [], requestId: 'of-this-test', require: () => answer }),
      })
      const leaving = new AbortController()
      const response = await fetch(`${url}/page`, { signal: leaving.signal })
      assert.equal(response.headers.get('content-type'), 'text/event-stream')
      assert.equal(Buffer.from((await response.body?.getReader().read())?.value ?? []).toString(), 'data: 1\n\n')
      leaving.abort()
      await cancelled.promise
    })
  })
}

interface Shown {
  user?: { userInfo: { username: string }; userRole: string }
}

interface Refusal {
  error: string
  requestId: string
}
