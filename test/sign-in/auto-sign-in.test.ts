// AUTO_SIGN_IN: from a protected page straight to the provider, and never in a circle.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { type Config, createMenshen, readSettings } from '../../src/index.ts'
import { type Client, cookieOf, type Options, type Response } from '../kit/client.ts'
import { openGateway, type SetUpOptions, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'

const ON = { AUTO_SIGN_IN: 'on', STATE_CHECK: 'bound' }
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'
/** As a browser asks for a page whose address was typed in. */
const NAVIGATION = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'user-agent': CHROME,
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-site': 'none',
}

const openAuto = (t: TestContext, env: Record<string, string> = ON, more: Omit<SetUpOptions, 'env'> = {}) =>
  setUp(t, { env, ...more })

function browse(client: Client, path: string, { headers, ...more }: Options = {}): Promise<Response> {
  return client.get(path, { ...more, headers: { ...NAVIGATION, ...headers } })
}

/** Signs in at the provider to which a redirect leads; the path of the callback. */
async function callbackOf(client: Client, redirect: Response): Promise<string> {
  const { pathname, search } = new URL((await client.follow(redirect)).headers.location ?? '')
  return pathname + search
}

function isAtProvider({ status, headers }: Response, provider: { readonly url: string }): boolean {
  assert.equal(status, 302)
  return headers.location?.startsWith(`${provider.url}/`) ?? false
}

test('a visitor to a protected page is sent straight to the provider, and then back to the page', async t => {
  for (const env of [ON, { AUTO_SIGN_IN: 'on' }, { AUTO_SIGN_IN: 'on', PKCE: 'S256' }]) {
    const { visitor, provider } = await openAuto(t, env)
    const client = visitor()
    const first = await browse(client, '/reports?year=2026')
    assert.ok(isAtProvider(first, provider), JSON.stringify(env))
    const back = await browse(client, await callbackOf(client, first))
    assert.equal(back.headers.location, '/reports?year=2026')
    assert.equal((await browse(client, '/reports?year=2026')).status, 200)
  }
})

test('AUTO_SIGN_IN is off by default', async t => {
  const { visitor } = await openAuto(t, { STATE_CHECK: 'bound' })
  const { headers, setCookies } = await browse(visitor(), '/')
  assert.equal(headers.location, '/login')
  assert.deepEqual(
    setCookies.map(cookie => cookie.split('=')[0]),
    ['menshen_return'],
  )
})

test('the login page waits for a click if it is opened directly, from another site or with an error', async t => {
  const { visitor } = await openAuto(t)
  for (const path of ['/login', '/login?error=access_denied', '/login?x=1', '/login?return=https://evil.example/'])
    assert.equal((await browse(visitor(), path)).status, 200, path)
  const { status } = await visitor().get('/login?return=%2Freports', {
    headers: { ...NAVIGATION, 'sec-fetch-site': 'cross-site' },
  })
  assert.equal(status, 200, 'a link of another site does not say where to return to')
})

test('the login page with a return path redirects to the provider, and then back to that path', async t => {
  const { visitor, provider } = await openAuto(t)
  const client = visitor()
  const led = await browse(client, '/login?return=%2Freports')
  assert.ok(isAtProvider(led, provider))
  assert.equal((await browse(client, await callbackOf(client, led))).headers.location, '/reports')
  assert.equal(
    (await browse(client, '/login?return=%2Freports')).status,
    200,
    'who is signed in has nothing to do there',
  )
})

test('only GET navigations start an attempt, and prefetches do not', async t => {
  const { visitor } = await openAuto(t)
  const get = (headers: Record<string, string>) => visitor().get('/x', { headers: { ...NAVIGATION, ...headers } })
  const others: [number, string | undefined, Response][] = [
    [302, '/login', await visitor().request({ method: 'HEAD', path: '/x', headers: NAVIGATION })],
    [302, '/login', await get({ 'sec-fetch-dest': 'iframe' })],
    [302, '/login', await get({ 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors' })],
    [401, undefined, await get({ 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' })],
    [401, undefined, await visitor().post('/x', 'a=1', { headers: NAVIGATION })],
    [401, undefined, await visitor().get('/x', { headers: { accept: '*/*', 'service-worker': 'script' } })],
  ]
  for (const [status, location, answer] of others) {
    assert.deepEqual([answer.status, answer.headers.location], [status, location])
    assert.ok(!answer.setCookies.some(cookie => cookie.startsWith('menshen_attempt')))
  }
  for (const name of ['sec-purpose', 'purpose', 'x-moz']) {
    const { headers, setCookies } = await get({ [name]: 'prefetch' })
    assert.match(headers.location ?? '', /^\/login\?return=/, name)
    assert.ok(!setCookies.some(cookie => cookie.startsWith('menshen_attempt')))
  }
})

test('after a sign-out, the login page waits for a click, even a day later', async t => {
  const { visitor, provider, passSeconds } = await openAuto(t)
  const client = visitor()
  await browse(client, await callbackOf(client, await browse(client, '/')))
  await client.post('/logout')
  for (const seconds of [0, 61, 86_400]) {
    passSeconds(seconds)
    const answer = await browse(client, '/reports')
    assert.match(answer.headers.location ?? '', /^\/login\?return=/)
    assert.equal((await browse(client, answer.headers.location ?? '')).status, 200)
  }
  const clicked = await client.post('/login')
  assert.equal(clicked.status, 303)
  assert.ok(isAtProvider(await browse(client, '/reports'), provider), 'the click counts, whatever comes of it')
})

test('for a minute after a failed sign-in, the login page waits for a click', async t => {
  const { visitor, provider, passSeconds } = await openAuto(t)
  const client = visitor()
  assert.ok(isAtProvider(await browse(client, '/reports'), provider))
  const failed = await browse(client, '/callback?error=access_denied')
  assert.equal(failed.headers.location, '/login?error=access_denied')
  const again = await browse(client, '/reports')
  assert.match(again.headers.location ?? '', /^\/login\?return=/)
  assert.equal((await browse(client, again.headers.location ?? '')).status, 200)
  assert.ok(isAtProvider(await browse(visitor(), '/reports'), provider), 'another browser is not concerned')
  passSeconds(61)
  assert.ok(isAtProvider(await browse(client, '/reports'), provider))
})

test('a failed sign-in does not turn automatic sign-in back on after a sign-out', async t => {
  const { visitor, passSeconds } = await openAuto(t)
  const client = visitor()
  await client.post('/logout')
  await browse(client, '/callback?error=access_denied')
  passSeconds(120)
  assert.match((await browse(client, '/reports')).headers.location ?? '', /^\/login/)
})

test('if a sign-in leaves no session cookie, the next page redirects to the login page', async t => {
  const { visitor } = await openAuto(t)
  const client = visitor()
  await browse(client, await callbackOf(client, await browse(client, '/reports')))
  const cookie = [...client.cookies].filter(([name]) => name !== 'menshen_session').map(pair => pair.join('='))
  const landed = await browse(client, '/reports', { headers: { cookie: cookie.join('; ') } })
  assert.match(landed.headers.location ?? '', /^\/login/)
})

test('a browser without cookies ends on the login page, with and without STATE_CHECK=bound', async t => {
  const without = { headers: { cookie: '' } }
  for (const env of [ON, { AUTO_SIGN_IN: 'on' }]) {
    const { visitor, provider } = await openAuto(t, env)
    const client = visitor()
    const trips: string[] = []
    let answer = await browse(client, '/reports', without)
    while (answer.status !== 200 && answer.status !== 400 && trips.length < 12) {
      const location = answer.headers.location ?? ''
      trips.push(location)
      const path = location.startsWith(provider.url) ? await callbackOf(client, answer) : location
      answer = await browse(client, path, without)
    }
    assert.ok(trips.length < 8, trips.join('\n'))
    assert.match(answer.text, /<form[^>]*action="\/login"/)
  }
})

test('a callback without an automatic attempt does not stop automatic sign-in of other browsers at its address', async t => {
  for (const env of [ON, { AUTO_SIGN_IN: 'on' }]) {
    const { visitor, provider } = await openAuto(t, env)
    const client = visitor()
    await browse(client, '/callback?code=x&state=made-up_idp', { headers: { cookie: '' } })
    await browse(client, '/callback?error=access_denied', { headers: { cookie: '' } })
    const started = await client.post('/login')
    await browse(client, await callbackOf(client, started), { headers: { cookie: '' } })
    assert.ok(isAtProvider(await browse(visitor(), '/reports'), provider), 'a sign-in by a click, without cookies')
    const automatic = await callbackOf(visitor(), await browse(visitor(), '/reports', { headers: { cookie: '' } }))
    const elsewhere = { cookie: '', 'user-agent': 'Mozilla/5.0 (another browser)' }
    await browse(client, automatic, { headers: elsewhere })
    assert.ok(
      isAtProvider(await browse(visitor(), '/reports'), provider),
      'the answer to an attempt of another browser',
    )
  }
})

test('five tabs opened at once each reach the provider and return to their own page', async t => {
  for (const env of [ON, { AUTO_SIGN_IN: 'on' }]) {
    const { visitor, provider } = await openAuto(t, env)
    const client = visitor()
    const paths = [1, 2, 3, 4, 5].map(n => `/page-${n}`)
    // None of them has a cookie yet, and all cookies that they are given stay.
    const redirects = await Promise.all(paths.map(path => browse(client, path, { headers: { cookie: '' } })))
    for (const redirect of redirects) assert.ok(isAtProvider(redirect, provider))
    const callbacks = await Promise.all(redirects.map(redirect => callbackOf(client, redirect)))
    const locations: (string | undefined)[] = []
    for (const path of callbacks) locations.push((await browse(client, path)).headers.location)
    assert.deepEqual(locations, paths)
    const kept = [...client.cookies.keys()].filter(name => name.startsWith('menshen_attempt'))
    assert.deepEqual(kept, ['menshen_attempt'], 'nothing of the single attempts stays')
  }
})

test('the cookie of a single attempt is never forwarded to the application', async t => {
  const { visitor, user, upstream } = await openAuto(t, { AUTO_SIGN_IN: 'on' })
  const client = await user()
  const started = await browse(visitor(), '/x')
  const own = started.setCookies.find(cookie => cookie.startsWith('menshen_attempt_'))?.split(';')[0]
  assert.ok(own)
  const cookie = `a=1; ${own}; __Host-${own}; menshen_session=${client.cookies.get('menshen_session')}; b=2`
  await browse(client, '/', { headers: { cookie } })
  assert.equal(upstream.last().headers.cookie, 'a=1; b=2')
})

test('above the rate limit for sign-ins, visitors are sent to the login page instead of the provider', async t => {
  const { visitor, provider } = await openAuto(t, { ...ON, RATE_LIMIT_PER_MINUTE: '2' })
  assert.ok(isAtProvider(await browse(visitor(), '/a'), provider))
  assert.ok(isAtProvider(await browse(visitor(), '/b'), provider))
  const client = visitor()
  const third = await browse(client, '/c')
  assert.match(third.headers.location ?? '', /^\/login\?return=/)
  assert.equal((await browse(client, third.headers.location ?? '')).status, 200)
})

test('while provider metadata is unavailable, the login page shows temporarily_unavailable and does not redirect', async t => {
  const { visitor } = await openGateway(t, {
    ...{ PROVIDER: 'oidc', AUTH_URL: 'http://127.0.0.1:9', CLIENT_ID: 'c' },
    ...{ CLIENT_SECRET: 'a secret of some length', AUTO_SIGN_IN: 'on' },
  })
  const client = visitor()
  assert.equal((await browse(client, '/')).headers.location, '/login?error=temporarily_unavailable')
  assert.equal((await browse(client, '/login?error=temporarily_unavailable')).status, 200)
  assert.equal((await browse(client, '/')).headers.location, '/login')
})

test('/_menshen/forward redirects to the provider, and /_menshen/check still answers 401', async t => {
  const { visitor, provider } = await openAuto(t, { ...ON, TRUSTED_PROXIES: '127.0.0.1' })
  const client = visitor()
  const forwarded = { 'x-forwarded-uri': '/reports?a=1', 'x-forwarded-method': 'GET' }
  const answer = await browse(client, '/_menshen/forward', { headers: forwarded })
  assert.ok(isAtProvider(answer, provider))
  assert.equal((await browse(client, await callbackOf(client, answer))).headers.location, '/reports?a=1')
  const head = { ...forwarded, 'x-forwarded-method': 'HEAD' }
  assert.equal((await browse(visitor(), '/_menshen/forward', { headers: head })).headers.location, '/login')
  const asked = { 'x-original-uri': '/reports', 'x-original-method': 'GET' }
  assert.equal((await browse(visitor(), '/_menshen/check', { headers: asked })).status, 401)
})

test('the library redirects to the provider, and require() on a public page does so through the login page', async t => {
  const { provider } = await openAuto(t)
  const settings = readSettings({ STORE: 'memory:', PORT: '3000', ...provider.settings, ...ON })
  const config: Config = { rules: [{ path: '/public', public: true }] }
  const menshen = await createMenshen({ settings, config })
  t.after(() => menshen.close())
  const admit = (path: string) =>
    menshen.admit(new Request(`http://localhost:3000${path}`, { headers: NAVIGATION }), { address: '192.0.2.1' })
  const { answer } = await admit('/reports')
  assert.ok(answer?.headers.get('location')?.startsWith(provider.url))
  const demanded = (await admit('/public')).require()
  const login = demanded?.headers.get('location') ?? ''
  assert.match(login, /^\/login\?return=/)
  assert.ok((await admit(login)).answer?.headers.get('location')?.startsWith(provider.url))
})

// Inside the apps.

const AGENTS = {
  wecom:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 wxwork/4.1.38 MicroMessenger/7.0.1 Language/zh ColorScheme/Light',
  feishu:
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.6367.243 Safari/537.36 Lark/7.32.11 LarkLocale/zh_CN Feishu/7.32.11 SDK-Version/7.32.9',
  lark: 'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/120.0.0.0 Mobile Safari/537.36 Lark/7.20.5 LarkLocale/en_US',
  dingtalk:
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21E219 AliApp(DingTalk/7.5.20) com.laiwang.DingTalk/34919 Channel/201200 language/zh-Hans-CN',
}

const CLIENT = { clientId: 'client', clientSecret: 'a secret of some length' }
const APPS = {
  wecom: { preset: 'wecom', ...CLIENT, clientId: 'ww0123', vars: { agent: '1000002' } },
  feishu: { preset: 'feishu', ...CLIENT },
  dingtalk: { preset: 'dingtalk', ...CLIENT },
  staff: {
    preset: 'oauth2',
    ...CLIENT,
    authorizationUrl: 'https://idp.example/authorize',
    tokenUrl: 'https://idp.example/token',
  },
}

const ADDRESSES = {
  wecom: 'https://open.weixin.qq.com/connect/oauth2/authorize?',
  feishu: 'https://accounts.feishu.cn/open-apis/authen/v1/authorize?',
  lark: 'https://accounts.feishu.cn/open-apis/authen/v1/authorize?',
  dingtalk: 'https://login.dingtalk.com/oauth2/auth?',
}

test('of several providers, an in-app browser uses the one of its app, and other browsers get the login page', async t => {
  const env = { AUTO_SIGN_IN: 'in-app', BASE_URL: 'https://app.example.com' }
  const { visitor } = await openGateway(t, env, { config: { providers: APPS } })
  for (const app of ['wecom', 'feishu', 'lark', 'dingtalk'] as const) {
    const { status, headers } = await browse(visitor(), '/x', { headers: { 'user-agent': AGENTS[app] } })
    assert.equal(status, 302)
    assert.ok(headers.location?.startsWith(ADDRESSES[app]), `${app}: ${headers.location}`)
  }
  assert.match((await browse(visitor(), '/x')).headers.location ?? '', /^\/login\?return=/)
  const wechat = AGENTS.wecom.replace('wxwork/4.1.38 ', '')
  const { headers } = await browse(visitor(), '/x', { headers: { 'user-agent': wechat } })
  assert.match(headers.location ?? '', /^\/login/, 'WeChat is not WeCom')
})

test('inside its app, WeCom uses a different address, with exactly these parameters in this order', async t => {
  const env = { AUTO_SIGN_IN: 'in-app', BASE_URL: 'https://app.example.com' }
  const { visitor } = await openGateway(t, env, { config: { providers: { wecom: APPS.wecom } } })
  const inApp = { headers: { 'user-agent': AGENTS.wecom } }
  const location = (await browse(visitor(), '/x', inApp)).headers.location ?? ''
  assert.match(
    location,
    /^https:\/\/open\.weixin\.qq\.com\/connect\/oauth2\/authorize\?appid=ww0123&redirect_uri=https%3A%2F%2Fapp\.example\.com%2Fcallback%2Fwecom&response_type=code&scope=snsapi_base&state=[\da-f]{64}&agentid=1000002#wechat_redirect$/,
  )
  const button = await visitor().post('/login', '', inApp)
  assert.match(button.headers.location ?? '', /^https:\/\/open\.weixin\.qq\.com\//, 'the button leads there, too')
  const outside = await visitor().post('/login', '', { headers: { 'user-agent': CHROME } })
  assert.match(outside.headers.location ?? '', /^https:\/\/login\.work\.weixin\.qq\.com\/wwlogin\/sso\/login\?/)
})

test('without AUTO_SIGN_IN, WeCom uses its usual address inside the app too', async t => {
  const { visitor } = await openGateway(t, {}, { config: { providers: { wecom: APPS.wecom } } })
  const { headers } = await visitor().post('/login', '', { headers: { 'user-agent': AGENTS.wecom } })
  assert.match(headers.location ?? '', /^https:\/\/login\.work\.weixin\.qq\.com\//)
})

test('with two WeCom companies configured, the in-app browser gets the login page', async t => {
  const config = { providers: { one: APPS.wecom, two: { ...APPS.wecom, clientId: 'ww4567' } } }
  const { visitor } = await openGateway(t, { AUTO_SIGN_IN: 'in-app' }, { config })
  const { headers } = await browse(visitor(), '/x', { headers: { 'user-agent': AGENTS.wecom } })
  assert.match(headers.location ?? '', /^\/login/)
})

test('with several providers, AUTO_SIGN_IN=on shows the login page', async t => {
  const { visitor } = await openGateway(t, { AUTO_SIGN_IN: 'on' }, { config: { providers: APPS } })
  assert.match((await browse(visitor(), '/x')).headers.location ?? '', /^\/login/)
})

test('the session cookie of one tab still works after another tab has signed in', async t => {
  const { visitor } = await openAuto(t)
  const client = visitor()
  const redirects = [await browse(client, '/a'), await browse(client, '/b')] as const
  const callbacks = [await callbackOf(client, redirects[0]), await callbackOf(client, redirects[1])] as const
  assert.equal((await browse(client, callbacks[0])).headers.location, '/a')
  const cookie = cookieOf(client)
  assert.equal((await browse(client, callbacks[1])).headers.location, '/b')
  assert.notEqual(cookieOf(client), cookie)
  assert.equal((await browse(visitor(), '/a', { headers: { cookie } })).status, 200)
})

test('a session that another tab has just replaced ends at the latest when its instance stops', async t => {
  const env = { ...ON, STORE: `sqlite:${tempFolder(t)}/menshen.db` }
  const { visitor, provider, close } = await openAuto(t, env)
  const client = visitor()
  const redirects = [await browse(client, '/a'), await browse(client, '/b')]
  const cookies: string[] = []
  for (const redirect of redirects) {
    await browse(client, await callbackOf(client, redirect))
    cookies.push(cookieOf(client))
  }
  await close()
  const next = await openGateway(t, { ...provider.settings, ...env })
  const statuses = cookies.map(
    async cookie => (await next.visitor().get('/_menshen/me', { headers: { cookie } })).status,
  )
  assert.deepEqual(await Promise.all(statuses), [401, 200])
})
