// GET and POST /logout: the local session ends first and always; the provider is told, and never stands in the way.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test, { type TestContext } from 'node:test'
import { MenshenError, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../kit/answers.ts'
import { createClient, type Response, signIn } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'

const PATIENCE_MS = 20_000
const CLEARED = 'menshen_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'
/** By which the login page knows that it has something to confirm. */
const CONFIRMED = 'menshen_signed_out=here; Path=/; Max-Age=120; HttpOnly; SameSite=Lax'

async function openSignedIn(t: TestContext, env: Record<string, string> = {}) {
  const gateway = await setUp(t, { env, application: false })
  const { provider, baseUrl } = gateway
  const visitor = gateway.visitor()
  await signIn(visitor, provider)
  const cookie = [...visitor.cookies].map(pair => pair.join('=')).join('; ')
  const lives = async () => (await gateway.visitor().get('/', { headers: { cookie } })).status === 200
  return { provider, gateway, visitor, cookie, lives, baseUrl }
}

/** What a browser says of an address that somebody typed in, and of a link on one of our own pages. */
const NAVIGATION = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const TYPED_IN = { ...NAVIGATION, 'sec-fetch-site': 'none', 'sec-fetch-user': '?1' }
const OWN_LINK = { ...NAVIGATION, 'sec-fetch-site': 'same-origin' }

const isToLogin = ({ status, headers }: Response, expected: number) =>
  assert.deepEqual([status, headers.location], [expected, '/login'])

test('POST /logout ends the session, notifies the provider and redirects to /login with 303', async t => {
  const { visitor, provider, lives } = await openSignedIn(t)
  const answer = await visitor.post('/logout')
  isToLogin(answer, 303)
  assert.deepEqual(answer.setCookies, [CLEARED, CONFIRMED], 'cleared with the attributes that it was set with')
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal(await lives(), false, 'the ticket is dead, whoever kept it')
  assert.equal(provider.callsTo('logout').length, 1)
  isToLogin(await visitor.get('/'), 302)
})

test('GET /logout typed into the address bar ends the session, notifies the provider and redirects with 302', async t => {
  const { visitor, provider, lives } = await openSignedIn(t)
  isToLogin(await visitor.get('/logout', { headers: TYPED_IN }), 302)
  assert.equal(await lives(), false)
  assert.equal(provider.callsTo('logout').length, 1)
})

test('over https, the cleared session cookie is Secure and has the __Host- prefix', async t => {
  const { visitor, lives } = await openSignedIn(t, { BASE_URL: 'https://app.example.com' })
  assert.equal(await lives(), true)
  const { setCookies } = await visitor.post('/logout')
  assert.deepEqual(setCookies, [`__Host-${CLEARED}; Secure`, `__Host-${CONFIRMED}; Secure`])
  assert.equal(await lives(), false)
})

test('requests from our own pages or the address bar sign out without confirmation', async t => {
  for (const headers of [TYPED_IN, OWN_LINK]) {
    const { visitor, lives } = await openSignedIn(t)
    isToLogin(await visitor.get('/logout', { headers }), 302)
    assert.equal(await lives(), false)
  }
  const port = await freePort()
  const own = `http://localhost:${port}`
  const posts = [
    {},
    { origin: own },
    { origin: own, referer: `${own}/x` },
    { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty', origin: own },
    { 'sec-fetch-site': 'none' },
    // A page of the application that sends no referrer posts without an origin, too; the browser still says whose it is.
    { 'sec-fetch-site': 'same-origin', origin: 'null' },
  ]
  for (const headers of posts) {
    const { visitor, gateway, lives } = await openSignedIn(t, { PORT: String(port) })
    isToLogin(await visitor.post('/logout', {}, { headers }), 303)
    assert.equal(await lives(), false, JSON.stringify(headers))
    await gateway.close()
  }
})

/** The page that asks first, and a session that lives. */
function isAsked({ status, text, setCookies }: Response, what: string): void {
  assert.equal(status, 200, what)
  assert.match(text, /lang="zh-CN".*要退出登录吗/s, what)
  assert.match(text, /<form method="post" action="\/logout">/, what)
  assert.deepEqual(setCookies, [], what)
}

test('GET /logout asks first and keeps the session, unless it is a navigation from our own pages or the address bar', async t => {
  const { visitor, provider, lives, baseUrl } = await openSignedIn(t)
  const destinations = ['image', 'iframe', 'frame', 'empty', 'script', 'style', 'object', 'embed', 'audio', 'nonsense']
  const forced = [
    ...destinations.map(dest => ({ ...OWN_LINK, 'sec-fetch-dest': dest })),
    ...destinations.map(dest => ({ ...TYPED_IN, 'sec-fetch-dest': dest })),
    ...['no-cors', 'cors', 'same-origin', 'nonsense'].map(mode => ({ ...OWN_LINK, 'sec-fetch-mode': mode })),
    ...['cross-site', 'same-site', 'nonsense'].map(site => ({ ...NAVIGATION, 'sec-fetch-site': site })),
    { ...OWN_LINK, 'sec-purpose': 'prefetch' },
    { ...TYPED_IN, 'sec-purpose': 'prefetch;prerender' },
    { ...OWN_LINK, origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    NAVIGATION,
    // Browsers say nothing on plain http, and a link with `no-referrer` leaves out the rest.
    {},
    { accept: 'text/html' },
    { referer: `${baseUrl}/` },
    { origin: baseUrl, referer: `${baseUrl}/` },
  ]
  for (const headers of forced) {
    const what = JSON.stringify(headers)
    isAsked(await visitor.get('/logout', { headers }), what)
    assert.equal(await lives(), true, what)
  }
  assert.equal(provider.callsTo('logout').length, 0)
})

test('/logout from another site asks for confirmation and keeps the session', async t => {
  const { visitor, provider, lives, baseUrl } = await openSignedIn(t)
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: baseUrl, referer: `${baseUrl}/` },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'nonsense' },
    { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `${baseUrl}.evil.example` },
    { origin: baseUrl.replace('localhost', '127.0.0.1') },
    { referer: 'https://evil.example/' },
    { referer: `https://evil.example/?${baseUrl}` },
    { referer: `${baseUrl}@evil.example/` },
    { referer: '' },
  ]
  for (const headers of foreign)
    for (const method of ['GET', 'POST']) {
      const what = `${method} ${JSON.stringify(headers)}`
      isAsked(await visitor.request({ method, path: '/logout', headers }), what)
      assert.equal(await lives(), true, what)
    }
  assert.equal(provider.callsTo('logout').length, 0)
  isToLogin(await visitor.post('/logout', {}, { headers: { 'sec-fetch-site': 'same-origin' } }), 303)
})

test('a prefetch of /logout does not sign the user out', async t => {
  const { visitor, lives } = await openSignedIn(t)
  const ahead = [
    { 'sec-purpose': 'prefetch' },
    { 'sec-purpose': 'prefetch;prerender', 'sec-fetch-site': 'same-origin' },
    // What browsers say where Sec- headers are not sent, and what older ones say.
    { purpose: 'prefetch' },
    { 'x-purpose': 'preview' },
    { 'x-moz': 'prefetch' },
  ]
  for (const headers of ahead) {
    assert.deepEqual((await visitor.get('/logout', { headers })).setCookies, [], JSON.stringify(headers))
    assert.equal(await lives(), true, JSON.stringify(headers))
  }
})

test('the sign-out request to the provider has client_id and the refresh token, not the access token or the secret', async t => {
  const { visitor, provider } = await openSignedIn(t)
  await visitor.post('/logout')
  const [call] = provider.callsTo('logout')
  assert.ok(call)
  assert.equal(call.method, 'POST')
  assert.equal(call.query.size, 0, 'nothing in an address')
  assert.deepEqual([...call.form.keys()].sort(), ['client_id', 'refresh_token'])
  assert.equal(call.form.get('client_id'), 'menshen-test')
  assert.match(call.form.get('refresh_token') ?? '', /^rt-CANARY-/)
  assert.doesNotMatch(JSON.stringify(call.headers) + call.body, /at-CANARY|secret-CANARY/)
  assert.equal(call.headers.cookie, undefined)
})

test('after a refresh, the sign-out request to the provider has the new refresh token', async t => {
  const { visitor, gateway, provider } = await openSignedIn(t)
  gateway.passSeconds(7000)
  await visitor.get('/')
  await visitor.post('/logout')
  const spent = provider.callsTo('refresh')[0]?.form.get('refresh_token')
  assert.notEqual(provider.callsTo('logout')[0]?.form.get('refresh_token'), spent)
})

test('without a refresh token, the provider is still notified, with client_id alone', async t => {
  const { gateway, provider } = await openSignedIn(t)
  provider.behaviour.refreshTokens = false
  const visitor = gateway.visitor()
  await signIn(visitor, provider)
  isToLogin(await visitor.post('/logout'), 303)
  assert.deepEqual([...(provider.callsTo('logout')[0]?.form.keys() ?? [])], ['client_id'])
})

const FAULTS: Record<string, Answer> = {
  hangs: { kind: 'hang' },
  'answers 500': { kind: 'json', status: 500, body: {} },
  refuses: { kind: 'json', status: 401, body: { error: 'invalid_token' } },
  'cuts the connection': { kind: 'cut', when: 'at once' },
  'sends a body without end': { kind: 'endless' },
  'does not speak HTTP': { kind: 'wire', bytes: 'nonsense' },
  redirects: { kind: 'redirect', to: 'http://127.0.0.1:9/' },
}

for (const [fault, given] of Object.entries(FAULTS))
  test(`a provider that ${fault} does not prevent a sign-out`, async t => {
    const { visitor, provider, lives } = await openSignedIn(t)
    provider.answer('logout', given)
    const started = performance.now()
    const answer = await visitor.post('/logout')
    assert.ok(performance.now() - started < PATIENCE_MS)
    isToLogin(answer, 303)
    assert.deepEqual(answer.setCookies, [CLEARED, CONFIRMED])
    assert.equal(await lives(), false)
    assert.equal(provider.callsTo('logout').length, 1)
  })

test('a provider that is unreachable does not prevent a sign-out', async t => {
  const { visitor, provider, lives } = await openSignedIn(t)
  await provider.close()
  isToLogin(await visitor.post('/logout'), 303)
  assert.equal(await lives(), false)
})

test('the session has ended before the provider answers the sign-out request', async t => {
  const { visitor, provider, lives } = await openSignedIn(t)
  const release = provider.hold('logout')
  const pending = visitor.post('/logout')
  await provider.called('logout')
  assert.equal(await lives(), false)
  release()
  isToLogin(await pending, 303)
})

test('a sign-out that the store does not confirm answers 503, is reported, and still notifies the provider', async t => {
  const provider = await openScriptedProvider(t)
  const memory = createMemoryStore({ now: Date.now })
  const memoryStore = {
    ...memory,
    async take(key: string) {
      await memory.take(key)
      throw new MenshenError('store_unavailable', 'the store does not answer')
    },
  }
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const settings = readSettings({ ...provider.settings, STORE: 'memory:', BASE_URL: url, UPSTREAM: provider.url })
  const { log, lines } = createTestLog()
  const core = await createCore({ settings, config: {}, log, now: Date.now, memoryStore })
  t.after(() => core.close())
  await listen(t, createServer(core.listener), port)
  const visitor = createClient(url)
  await signIn(visitor, provider)
  assert.equal((await visitor.post('/logout')).status, 503)
  await provider.called('logout')
  assert.ok(lines.some(({ event }) => event === 'session_end_unconfirmed'))
  assert.equal((await visitor.get('/_menshen/me')).status, 401)
})

test('a browser that disconnects during the sign-out is still signed out', async t => {
  const { visitor, provider, lives } = await openSignedIn(t)
  const release = provider.hold('logout')
  const leaving = new AbortController()
  const left = visitor.post('/logout', {}, { signal: leaving.signal }).catch((error: Error) => error.name)
  await provider.called('logout')
  leaving.abort()
  assert.equal(await left, 'AbortError')
  release()
  assert.equal(await lives(), false)
})

test('with LOGOUT_STYLE=none, a sign-out ends the session without notifying the provider', async t => {
  const { visitor, provider, lives } = await openSignedIn(t, { LOGOUT_STYLE: 'none' })
  isToLogin(await visitor.post('/logout'), 303)
  assert.equal(await lives(), false)
  assert.equal(provider.callsTo('logout').length, 0)
})

test('LOGOUT_STYLE=browser sends the browser through the provider and back to /login, without a token', async t => {
  const { visitor, provider, lives, baseUrl } = await openSignedIn(t, { LOGOUT_STYLE: 'browser' })
  const answer = await visitor.post('/logout')
  assert.equal(answer.status, 303)
  assert.deepEqual(answer.setCookies, [CLEARED, CONFIRMED])
  const address = new URL(answer.headers.location ?? '')
  assert.equal(address.origin + address.pathname, `${provider.url}/oauth/logout`)
  assert.deepEqual([...address.searchParams], [['redirect_url', `${baseUrl}/login`]])
  assert.equal(provider.callsTo('logout').length, 0, 'Menshen itself does not call')
  assert.equal(await lives(), false)
  const back = await visitor.follow(answer)
  assert.equal(back.headers.location, `${baseUrl}/login`)
})

test('LOGOUT_URL can be a path with a query or an absolute URL', async t => {
  const addresses = {
    '/public/sp/slo/app-1?x=1': '/public/sp/slo/app-1',
    'https://sso.example.com/slo?x=1': 'https://sso.example.com/slo',
  }
  for (const [LOGOUT_URL, place] of Object.entries(addresses)) {
    const { visitor, provider, baseUrl } = await openSignedIn(t, { LOGOUT_STYLE: 'browser', LOGOUT_URL })
    const address = new URL((await visitor.post('/logout')).headers.location ?? '')
    assert.equal(address.origin + address.pathname, place.startsWith('/') ? provider.url + place : place)
    assert.deepEqual(Object.fromEntries(address.searchParams), { x: '1', redirect_url: `${baseUrl}/login` })
  }
})

test('without a valid session, /logout redirects to /login and does not notify the provider', async t => {
  for (const LOGOUT_STYLE of ['server', 'browser', 'none']) {
    const { gateway, provider } = await openSignedIn(t, { LOGOUT_STYLE })
    for (const cookie of ['', 'menshen_session=x', `menshen_session=${'A'.repeat(43)}`]) {
      isToLogin(await gateway.visitor().post('/logout', {}, { headers: { cookie } }), 303)
      isToLogin(await gateway.visitor().get('/logout', { headers: { cookie } }), 302)
    }
    assert.equal(provider.callsTo('logout').length, 0)
  }
})

for (const kind of ['memory', 'sqlite'])
  test(`several sign-outs of one session at once notify the provider once (${kind})`, async t => {
    const STORE = kind === 'memory' ? 'memory:' : `sqlite:${tempFolder(t)}/menshen.db`
    const { visitor, provider, cookie, lives } = await openSignedIn(t, { STORE })
    const headers = { cookie }
    const answers = await Promise.all([1, 2, 3, 4].map(() => visitor.post('/logout', {}, { headers })))
    for (const answer of answers) isToLogin(answer, 303)
    assert.equal(await lives(), false)
    assert.equal(provider.callsTo('logout').length, 1)
  })

test('a sign-out ends only its own session, and the user can sign in again right away', async t => {
  const { gateway, visitor, provider, lives } = await openSignedIn(t)
  const phone = gateway.visitor()
  await signIn(phone, provider)
  await visitor.post('/logout')
  assert.equal(await lives(), false)
  assert.equal((await phone.get('/')).status, 200)
  assert.equal((await signIn(visitor, provider)).headers.location, '/')
  assert.equal((await visitor.get('/')).status, 200)
})

test('every sign-out clears the browser cache with Clear-Site-Data', async t => {
  const { gateway, visitor, provider, baseUrl } = await openSignedIn(t)
  const forgets = ({ headers }: Response) => assert.equal(headers['clear-site-data'], '"cache"')
  forgets(await visitor.post('/logout'))
  forgets(await visitor.post('/logout'))
  await signIn(visitor, provider)
  forgets(await visitor.get('/logout', { headers: TYPED_IN }))
  await signIn(visitor, provider)
  forgets(await visitor.post('/_menshen/sign-out-everywhere', '', { headers: { origin: baseUrl } }))
  assert.equal((await gateway.visitor().get('/login')).headers['clear-site-data'], undefined)
  assert.equal((await gateway.visitor().get('/logout')).headers['clear-site-data'], undefined)
  const through = await openSignedIn(t, { LOGOUT_STYLE: 'browser' })
  forgets(await through.visitor.post('/logout'))
})

test('the login page confirms a sign-out, once', async t => {
  const { gateway, visitor, provider, baseUrl } = await openSignedIn(t)
  const plain = (await gateway.visitor().get('/login')).text
  assert.doesNotMatch(plain, /退出登录/)
  isToLogin(await visitor.post('/logout'), 303)
  assert.doesNotMatch((await visitor.request({ method: 'HEAD', path: '/login' })).text, /退出登录/)
  const page = await visitor.get('/login')
  assert.match(page.text, /role="status"><p><strong>您已安全退出登录。/)
  assert.deepEqual(page.setCookies, ['menshen_signed_out=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
  assert.equal((await visitor.get('/login')).text, plain)

  await signIn(visitor, provider)
  const everywhere = await visitor.post('/_menshen/sign-out-everywhere', {}, { headers: { origin: baseUrl } })
  isToLogin(everywhere, 303)
  assert.match((await visitor.get('/login')).text, /您已在所有设备上退出登录。/)
})

test('the sign-out confirmation ignores unknown cookie values and is not shown to signed-in users', async t => {
  const { gateway, visitor } = await openSignedIn(t)
  for (const value of ['<b>x</b>', '1', 'constructor', '__proto__', 'HERE']) {
    const page = await gateway.visitor().get('/login', { headers: { cookie: `menshen_signed_out=${value}` } })
    assert.doesNotMatch(page.text, /退出登录|<b>/, value)
  }
  const [[name, value] = []] = [...visitor.cookies]
  const cookie = `${name}=${value}; menshen_signed_out=here`
  assert.doesNotMatch((await visitor.get('/login', { headers: { cookie } })).text, /您已安全退出/)
})

test('GET /logout without a session redirects to /login from any site, and a cross-site POST asks for confirmation', async t => {
  const { gateway } = await openSignedIn(t)
  for (const headers of [{}, TYPED_IN, { ...NAVIGATION, 'sec-fetch-site': 'cross-site' }])
    isToLogin(await gateway.visitor().get('/logout', { headers }), 302)
  // With a POST of another site no cookie comes along, whether or not there is one.
  isAsked(await gateway.visitor().post('/logout', '', { headers: { 'sec-fetch-site': 'cross-site' } }), 'a POST')
})
