// Rules that want a recent or a strong sign-in: who has to sign in again, what comes back, and how nobody gets more by it.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { type Config, createMenshen, type Rule, readSettings } from '../../src/index.ts'
import { type Client, createClient, type Response } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { type GatewayOptions, setUp, setUpOidc } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'

const BROWSER = { accept: 'text/html', 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate' }
const SCRIPT = { accept: 'application/json', 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' }

const RULES: Rule[] = [
  { path: '/pay', roles: ['*'], maxAge: 300 },
  { path: '/vault', roles: ['*'], acr: ['gold', 'platinum'] },
  { path: '/keys', roles: ['*'], amr: ['mfa', 'hwk'] },
  { path: '/all', roles: ['*'], maxAge: 60, acr: ['gold'], amr: ['mfa'] },
  { path: '/forms', roles: ['*'] },
  { path: '/forms', methods: ['POST'], roles: ['*'], maxAge: 300 },
  { path: '/admin', roles: ['developer'], maxAge: 300 },
]

async function scene(t: TestContext, env: Record<string, string> = {}, options: GatewayOptions = {}) {
  const { provider, upstream, ...gateway } = await setUpOidc(t, { env, config: { rules: RULES }, ...options })
  const seconds = () => Math.floor(gateway.now() / 1000)

  /** Signs in, or finishes a step-up, by following redirects until there are none to the provider or to the callback. */
  async function follow(client: Client, answer: Response): Promise<Response> {
    let last = answer
    for (let n = 0; n < 6 && last.headers.location; n++) last = await client.follow(last, { headers: BROWSER })
    return last
  }
  async function user(claims: object = { auth_time: seconds() }): Promise<Client> {
    provider.idClaims = { ...claims }
    const client = createClient(gateway.url, gateway.now)
    await follow(client, await client.post('/login'))
    assert.ok(client.cookies.has('menshen_session'))
    return client
  }
  const page = (client: Client, path: string) => client.get(path, { headers: BROWSER })
  const events = (code: string) => gateway.lines.filter(line => line.event === code)
  return { provider, upstream, gateway, seconds, follow, user, page, events }
}

test('a page that needs a newer sign-in redirects to the provider with max_age, and back with a new session', async t => {
  const { provider, gateway, seconds, follow, user, page, events } = await scene(t)
  const client = await user()
  assert.equal((await page(client, '/pay/7?x=1')).status, 200)
  const before = client.cookies.get('menshen_session')
  gateway.passSeconds(330)
  const away = await page(client, '/pay/7?x=1')
  assert.equal(away.status, 302)
  const asked = new URL(String(away.headers.location))
  assert.equal(asked.origin, provider.issuer)
  assert.equal(asked.searchParams.get('max_age'), '300')
  assert.equal(asked.searchParams.has('acr_values'), false)
  assert.equal(asked.searchParams.has('prompt'), false)
  provider.idClaims = { auth_time: seconds() }
  const back = await follow(client, away)
  assert.equal(back.status, 200)
  assert.equal(back.url, `${gateway.url}/pay/7?x=1`)
  assert.notEqual(client.cookies.get('menshen_session'), before)
  assert.equal(
    (await gateway.client.get('/pay', { headers: { ...SCRIPT, cookie: `menshen_session=${before}` } })).status,
    401,
  )
  assert.equal(events('step_up').length, 1)
  assert.equal(events('step_up_started').length, 1)
  assert.equal(events('sign_in').length, 1)
})

test('maxAge is measured from auth_time, not from our own sign-in, with a grace period of a few seconds', async t => {
  const { gateway, seconds, user, page } = await scene(t)
  const client = await user({ auth_time: seconds() - 200 })
  gateway.passSeconds(104)
  assert.equal((await page(client, '/pay')).status, 200)
  gateway.passSeconds(28)
  assert.equal((await page(client, '/pay')).status, 302)
})

test('acr_values are separated by spaces, and amr alone sends prompt=login', async t => {
  const { user, page } = await scene(t)
  const client = await user()
  const query = async (path: string) => new URL(String((await page(client, path)).headers.location)).searchParams
  const vault = await query('/vault')
  assert.equal(vault.get('acr_values'), 'gold platinum')
  assert.equal(vault.has('max_age'), false)
  const keys = await query('/keys')
  assert.deepEqual([keys.get('prompt'), keys.has('acr_values'), keys.has('max_age')], ['login', false, false])
  const all = await query('/all')
  assert.deepEqual([all.get('acr_values'), all.get('max_age'), all.has('prompt')], ['gold', '60', false])
})

test('the id_token decides: a user who edits the authorization URL gets 403 step_up_failed and no redirect loop', async t => {
  const { gateway, provider, seconds, follow, user, page, events } = await scene(t)
  const client = await user()
  const away = await page(client, '/vault')
  const edited = String(away.headers.location).replace('acr_values=gold+platinum', 'acr_values=bronze')
  provider.idClaims = { auth_time: seconds(), acr: 'bronze' }
  const refused = await follow(client, { ...away, headers: { location: edited } })
  assert.equal(refused.status, 403)
  assert.equal(refused.url, `${gateway.url}/vault`)
  assert.match(refused.text, /需要进一步验证身份/)
  assert.equal((await page(client, '/vault')).status, 403)
  const script = await client.get('/vault', { headers: SCRIPT })
  assert.deepEqual([script.status, script.json<{ error: string }>().error], [403, 'step_up_failed'])
  assert.equal(provider.callsTo('/authorize').length, 2)
  assert.deepEqual(
    events('step_up_failed').map(({ fields }) => fields.reason),
    ['not_met'],
  )
  assert.equal(events('refused')[0]?.fields.reason, 'step_up_failed')
  const { user: whose, session, requestId, provider: id, role } = events('step_up_failed')[0]?.fields ?? {}
  assert.deepEqual(
    [whose, typeof session, typeof requestId, id, role],
    ['zhangsan', 'string', 'string', 'default', 'common'],
  )
  // Another page that wants something else is another question, and other pages stay open.
  assert.equal((await page(client, '/keys')).status, 302)
  assert.equal((await page(client, '/forms')).status, 200)
  // The button of the page signs in again, and then there is another chance.
  const [, signed = ''] = /name="return" value="([^"]+)"/.exec(refused.text) ?? []
  const again = await follow(
    client,
    await client.post('/login', { return: signed }, { headers: { origin: gateway.baseUrl } }),
  )
  assert.equal(again.status, 403)
  provider.idClaims = { auth_time: seconds(), acr: 'gold' }
  const [, next = ''] = /name="return" value="([^"]+)"/.exec(again.text) ?? []
  assert.equal((await follow(client, await client.post('/login', { return: next }))).status, 200)
})

test('if the provider ignores max_age and returns an old auth_time, the user gets 403 and no redirect loop', async t => {
  const { gateway, provider, follow, user, page } = await scene(t)
  const client = await user()
  gateway.passSeconds(1000)
  const refused = await follow(client, await page(client, '/pay'))
  assert.equal(refused.status, 403)
  assert.equal(provider.callsTo('/authorize').length, 2)
})

test('an id_token without auth_time never satisfies maxAge, and its step-up fails without renewing the sign-in age', async t => {
  const { follow, user, page, events } = await scene(t)
  const client = await user({})
  const away = await page(client, '/pay')
  assert.equal(away.status, 302, 'the provider may have signed the user in without asking')
  assert.equal(new URL(String(away.headers.location)).searchParams.get('max_age'), '300')
  assert.equal((await follow(client, away)).status, 403)
  assert.deepEqual(
    events('step_up_failed').map(({ fields }) => fields.reason),
    ['auth_time_missing'],
  )
  // Nor for a rule with another age.
  const { searchParams } = new URL(String((await page(client, '/all')).headers.location))
  assert.equal(searchParams.get('max_age'), '60')
})

test('an auth_time in the future, in milliseconds or as a string is ignored', async t => {
  const { seconds, user, page } = await scene(t)
  for (const auth_time of [seconds() + 3600, seconds() * 1000, String(seconds())]) {
    const client = await user({ auth_time })
    assert.equal((await page(client, '/pay')).status, 302)
    assert.equal((await page(client, '/forms')).status, 200, 'other rules admit the user')
  }
})

test('a silent sign-in without auth_time satisfies maxAge only after a step-up returns a recent auth_time', async t => {
  const { provider, seconds, follow, user, page } = await scene(t)
  const client = await user({})
  const away = await page(client, '/pay')
  provider.idClaims = { auth_time: seconds() - 400 }
  assert.equal((await follow(client, away)).status, 403, 'the provider has not asked again')
  const other = await user({})
  const again = await page(other, '/pay')
  provider.idClaims = { auth_time: seconds() }
  assert.equal((await follow(other, again)).status, 200)
})

test('one matching value satisfies amr, and the acr of the session must be one of the listed values', async t => {
  const { seconds, user, page } = await scene(t)
  const client = await user({ auth_time: seconds(), acr: 'platinum', amr: ['pwd', 'hwk'] })
  for (const path of ['/vault', '/keys', '/pay']) assert.equal((await page(client, path)).status, 200, path)
  assert.equal((await page(client, '/all')).status, 302)
})

test("a step-up with another account ends in callback_error and leaves the user's session unchanged", async t => {
  const { gateway, provider, seconds, user, page, events } = await scene(t)
  const client = await user()
  const before = client.cookies.get('menshen_session')
  gateway.passSeconds(400)
  const away = await page(client, '/pay')
  provider.user = { sub: 'sub-attacker', preferred_username: 'attacker' }
  provider.idClaims = { auth_time: seconds() }
  const answer = await client.follow(await client.follow(away))
  assert.equal(answer.headers.location, '/login?error=callback_error')
  assert.match((await client.follow(answer)).text, /之前的登录仍然有效/)
  assert.equal(client.cookies.get('menshen_session'), before)
  assert.equal((await page(client, '/forms')).status, 200)
  assert.equal((await page(client, '/pay')).status, 302)
  assert.match(String(events('sign_in_failed')[0]?.fields.detail), /a different user signed in/)
})

test('a step-up callback works once, only in its own browser, and not after another user has signed in there', async t => {
  const { gateway, provider, seconds, follow, user, page } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  provider.idClaims = { auth_time: seconds() }
  const back = await client.follow(await page(client, '/pay'))
  const { pathname, search } = new URL(String(back.headers.location))
  const stranger = createClient(gateway.url, gateway.now)
  const restarted = await stranger.get(pathname + search)
  assert.equal(restarted.status, 303)
  assert.ok(String(restarted.headers.location).startsWith(`${provider.issuer}/authorize?`))
  assert.equal(stranger.cookies.get('menshen_session'), undefined)
  assert.equal((await client.get(pathname + search)).headers.location, '/pay')
  assert.equal((await client.get(pathname + search)).headers.location, '/')
  assert.equal((await page(client, '/pay')).status, 200)

  // Another user signs in, in another tab, while the first is at the provider.
  gateway.passSeconds(400)
  const begun = await page(client, '/pay')
  provider.idClaims = { auth_time: seconds() }
  const late = await client.follow(begun)
  provider.user = { sub: 'sub-2', preferred_username: 'lisi' }
  await follow(client, await client.post('/login'))
  const lisi = client.cookies.get('menshen_session')
  const answer = await client.follow(late)
  assert.equal(answer.headers.location, '/login?error=callback_error')
  assert.equal(client.cookies.get('menshen_session'), lisi)
})

test('two tabs that step up at the same time both return to their pages', async t => {
  const { gateway, provider, seconds, follow, user, page, events } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  provider.idClaims = { auth_time: seconds() }
  const [one, two] = [await page(client, '/pay/1'), await page(client, '/pay/2')]
  assert.equal((await follow(client, one)).url, `${gateway.url}/pay/1`)
  assert.equal((await follow(client, two)).url, `${gateway.url}/pay/2`)
  assert.equal(events('step_up').length, 2)
})

test('a user without access gets 403 instead of a step-up, and a visitor gets the login page', async t => {
  const { gateway, user, page } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  assert.equal((await page(client, '/admin')).status, 403)
  const visitor = createClient(gateway.url, gateway.now)
  assert.match(String((await page(visitor, '/pay')).headers.location), /^\/login/)
})

test('a script gets 401 step_up_required with the header of RFC 9470, and the path where a tab can sign in', async t => {
  const { gateway, user } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  const answer = await client.get('/all', { headers: SCRIPT })
  assert.equal(answer.status, 401)
  assert.equal(
    answer.headers['www-authenticate'],
    'Bearer error="insufficient_user_authentication", acr_values="gold", max_age="60"',
  )
  const { error, login } = answer.json<{ error: string; login: string }>()
  assert.deepEqual([error, login], ['step_up_required', '/_menshen/step-up?method=GET&path=%2Fall'])
  const keys = await client.get('/keys', { headers: SCRIPT })
  assert.equal(keys.headers['www-authenticate'], 'Bearer error="insufficient_user_authentication"')
})

test('a submitted form gets a page whose button signs in again in a new tab, after which it can be resubmitted', async t => {
  const { gateway, provider, upstream, seconds, follow, user, page } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  const send = () => client.post('/forms/new', { text: 'long' }, { headers: BROWSER })
  assert.equal((await page(client, '/forms/new')).status, 200)
  const asked = await send()
  assert.equal(asked.status, 401)
  assert.match(asked.text, /请重新登录/)
  assert.doesNotMatch(asked.text, /_menshen\/language/, 'another language would cost the form')
  const [, link = ''] = /href="(\/_menshen\/step-up[^"]+)" target="_blank"/.exec(asked.text) ?? []
  provider.idClaims = { auth_time: seconds() }
  const done = await follow(client, await page(client, link.replaceAll('&amp;', '&')))
  assert.equal(done.status, 200)
  assert.match(done.text, /已重新登录[\s\S]*回到原来的页面/)
  assert.equal((await send()).status, 200)
  assert.equal(upstream.last().method, 'POST')
})

test('the step-up page requires a session, rejects invalid paths with 400, and answers 403 without access', async t => {
  const { gateway, user, page } = await scene(t)
  const visitor = createClient(gateway.url, gateway.now)
  assert.match(String((await page(visitor, '/_menshen/step-up?path=/pay')).headers.location), /^\/login/)
  const client = await user()
  assert.equal((await page(client, '/_menshen/step-up?path=/pay')).status, 200)
  for (const query of [
    '',
    '?path=https://evil.example/',
    '?path=/a/../b',
    '?path=/pay&method=g%20t',
    '?path=//evil.example',
  ])
    assert.equal((await page(client, `/_menshen/step-up${query}`)).status, 400, query)
  assert.equal((await page(client, '/_menshen/step-up?path=/admin')).status, 403)
})

test('a session without auth_time satisfies acr, but not maxAge', async t => {
  const { user, page } = await scene(t)
  const client = await user({ acr: 'gold' })
  assert.equal((await page(client, '/vault')).status, 200)
  assert.equal((await page(client, '/pay')).status, 302)
})

test('a token refresh renews neither the age of the sign-in nor its acr', async t => {
  const { gateway, provider, seconds, user, page } = await scene(t, { REFRESH_LEAD_SECONDS: '60' })
  const client = await user({ auth_time: seconds(), acr: 'silver' })
  gateway.passSeconds(3570)
  provider.idClaims = { auth_time: seconds(), acr: 'gold' }
  assert.equal((await page(client, '/forms')).status, 200)
  assert.ok(provider.callsTo('/token').some(({ form }) => form.get('grant_type') === 'refresh_token'))
  assert.equal((await page(client, '/pay')).status, 302)
  assert.equal((await page(client, '/vault')).status, 302)
})

test('in forward-auth, check answers 401 with the header of RFC 9470, and forward redirects to the provider', async t => {
  const { gateway, provider, user } = await scene(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const client = await user()
  gateway.passSeconds(400)
  const check = await client.get('/_menshen/check', { headers: { 'x-original-uri': '/pay', ...BROWSER } })
  assert.equal(check.status, 401)
  assert.equal(check.headers['www-authenticate'], 'Bearer error="insufficient_user_authentication", max_age="300"')
  const forward = await client.get('/_menshen/forward', { headers: { 'x-forwarded-uri': '/pay?x=1', ...BROWSER } })
  assert.equal(forward.status, 302)
  assert.ok(String(forward.headers.location).startsWith(`${provider.issuer}/authorize?`))
  assert.match(forward.setCookies.join(), /menshen_attempt=/)
})

test('a WebSocket upgrade is refused with 401 if the sign-in is too old', async t => {
  const { gateway, user } = await scene(t)
  const client = await user()
  gateway.passSeconds(400)
  const headers = {
    upgrade: 'websocket',
    connection: 'upgrade',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  }
  const answer = await client.get('/pay/socket', { headers })
  assert.equal(answer.status, 401)
  assert.match(String(answer.headers['www-authenticate']), /insufficient_user_authentication/)
})

test('the provider error unmet_authentication_requirements has its own message, and the session stays valid', async t => {
  const { user, page } = await scene(t, { PAGE_LANGUAGE: 'auto' })
  const client = await user()
  const answer = await client.get('/callback?error=unmet_authentication_requirements&state=x')
  assert.equal(answer.headers.location, '/login?error=unmet_authentication_requirements')
  assert.match((await page(client, String(answer.headers.location))).text, /无法按此页面要求的方式验证您的身份/)
  const english = await client.get(String(answer.headers.location), {
    headers: { ...BROWSER, 'accept-language': 'en' },
  })
  assert.match(english.text, /can’t sign you in the way this page requires/)
  assert.equal((await page(client, '/forms')).status, 200)
})

test('step-ups from one address are rate-limited like sign-ins', async t => {
  const { gateway, user, page } = await scene(t, { RATE_LIMIT_PER_MINUTE: '5' })
  const client = await user()
  gateway.passSeconds(400)
  const answers: number[] = []
  for (let n = 0; n < 6; n++) answers.push((await page(client, '/pay')).status)
  assert.equal(answers.at(-1), 429)
})

test('without id_tokens, maxAge is measured from our own sign-in, and signing in again satisfies it', async t => {
  const { user, passSeconds, provider, url } = await setUp(t, {
    config: { rules: [{ path: '/pay', roles: ['*'], maxAge: 300 }] },
  })
  const client = await user()
  const page = () => client.get('/pay', { headers: BROWSER })
  assert.equal((await page()).status, 200)
  passSeconds(400)
  const away = await page()
  assert.equal(away.status, 302)
  const asked = new URL(String(away.headers.location))
  assert.equal(asked.searchParams.get('max_age'), '300')
  const state = asked.searchParams.get('state')
  // Somebody else comes back: the attempt was stored, whatever STATE_CHECK says.
  const other = await client.get(
    `/callback?code=${provider.codeFor({ username: 'lisi', sub: 'sub-lisi' })}&state=${state}`,
  )
  assert.equal(other.headers.location, '/login?error=callback_error')
  const next = new URL(String((await page()).headers.location)).searchParams.get('state')
  const back = await client.get(`/callback?code=${provider.codeFor({ username: 'zhangsan' })}&state=${next}`)
  assert.equal(back.headers.location, '/pay')
  assert.equal((await page()).status, 200)
  assert.ok(url)
})

test('a machine must meet step-up rules with the auth_time and acr of its token, or gets the RFC 9470 challenge', async t => {
  const rules: Rule[] = [
    { path: '/api', roles: ['*'], bearer: true, maxAge: 300, origin: 'own' },
    { path: '/gold', roles: ['*'], bearer: true, acr: ['gold'], networks: ['10.0.0.0/8'] },
  ]
  const { provider, gateway, seconds } = await scene(
    t,
    { TRUSTED_PROXIES: '127.0.0.1' },
    { config: { rules } as Config },
  )
  const bring = async (claims: object, path = '/api', more: Record<string, string> = {}) => {
    const token = await provider.sign({ sub: 'robot', client_id: 'robot', scope: 'x', ...claims }, { typ: 'at+jwt' })
    const headers = { authorization: `Bearer ${token}`, ...more }
    return createClient(gateway.url).request({ method: 'POST', path, headers })
  }
  assert.equal((await bring({ auth_time: seconds() })).status, 200, 'and origin is not asked of it')
  for (const claims of [{}, { auth_time: seconds() - 400 }]) {
    const answer = await bring(claims)
    assert.equal(answer.status, 401)
    assert.equal(
      answer.headers['www-authenticate'],
      `Bearer error="insufficient_user_authentication", max_age="300", resource_metadata="${gateway.url}/.well-known/oauth-protected-resource/api"`,
    )
    const body = answer.json<{ error: string; login?: string }>()
    assert.deepEqual([body.error, body.login], ['step_up_required', undefined])
  }
  const office = { 'x-forwarded-for': '10.0.0.1' }
  assert.equal((await bring({ acr: 'gold' }, '/gold', office)).status, 200)
  assert.equal((await bring({ acr: 'tin' }, '/gold', office)).status, 401)
  const outside = await bring({ acr: 'gold' }, '/gold')
  assert.deepEqual([outside.status, outside.json<{ error: string }>().error], [403, 'outside_network'])
  assert.equal(outside.headers['www-authenticate'], undefined, 'no other token would help')
})

test('the library redirects pages to the provider, answers scripts with 401, and needs an address for networks', async t => {
  const provider = await startOidcServer(t)
  const clock = { now: provider.now() }
  provider.now = () => clock.now
  provider.idClaims = { auth_time: clock.now / 1000 }
  const { log } = createTestLog()
  const settings = readSettings({
    STORE: 'memory:',
    PORT: String(await freePort()),
    RATE_LIMIT_PER_MINUTE: '0',
    ...provider.settings,
  })
  const config: Config = {
    rules: [...RULES, { path: '/office', public: true, networks: ['10.0.0.0/8'] }] as Config['rules'] & object,
  }
  const menshen = await createMenshen({ settings, config, log, now: () => clock.now })
  t.after(() => menshen.close())
  const cookies = new Map<string, string>()
  const ask = async (
    path: string,
    headers: Record<string, string> = BROWSER,
    init: RequestInit = {},
    address?: string,
  ) => {
    const cookie = [...cookies].map(pair => pair.join('=')).join('; ')
    const request = new Request(new URL(path, settings.BASE_URL), { ...init, headers: { ...headers, cookie } })
    const { answer, user } = await menshen.admit(request, { address })
    for (const set of answer?.headers.getSetCookie() ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    return { status: answer?.status, location: answer?.headers.get('location') ?? '', user, answer }
  }
  const trip = async (location: string) => {
    const back = await fetch(location, { redirect: 'manual' })
    return ask(String(back.headers.get('location')))
  }
  await trip((await ask('/login', {}, { method: 'POST' })).location)
  assert.equal((await ask('/pay')).user?.userInfo.username, 'zhangsan')
  clock.now += 400_000
  assert.equal((await ask('/pay', SCRIPT)).status, 401)
  const away = await ask('/pay')
  assert.equal(away.status, 302)
  provider.idClaims = { auth_time: clock.now / 1000 }
  assert.equal((await trip(away.location)).location, '/pay')
  assert.equal((await ask('/pay')).user?.userInfo.username, 'zhangsan')
  assert.equal((await ask('/office')).status, 403)
  assert.equal((await ask('/office', BROWSER, {}, '10.1.1.1')).status, undefined)
})
