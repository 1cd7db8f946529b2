// Several providers at once: one button each, each answer bound to the provider that was asked, and users who are never
// taken for those of another.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { refuseTakenPaths } from '../../src/config/conflicts.ts'
import { type Config, createMenshen, MenshenError, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { type Client, cookieOf, createClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { answerOf, type OidcServer, signedInAt, startOidcServer } from '../kit/oidc-server.ts'
import { scrape } from '../kit/scrape.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway, setUpOidc } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'
import { setUpTwoProviders } from '../kit/two-providers.ts'
import { until } from '../kit/until.ts'

const isSignedIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200

test('the login page has one button per provider, the first is primary, and each leads to its own provider', async t => {
  const { visitor, staff, partners } = await setUpTwoProviders(t)
  const client = visitor()
  const page = (await client.get('/login')).text
  assert.match(page, /请选择登录方式/)
  const buttons = [
    ...page.matchAll(/name="provider" value="(\w+)">\s*<button type="submit" class="([^"]+)"[^>]*>([^<]+)</g),
  ]
  assert.deepEqual(
    buttons.map(([, id, style, text]) => [id, style, text]),
    [
      ['staff', 'button', '使用企业账号登录'],
      ['partners', 'button quiet', '使用合作伙伴登录'],
    ],
  )
  for (const [id, { issuer }] of [
    ['staff', staff],
    ['partners', partners],
  ] as const) {
    const form = await client.post('/login', { provider: id })
    assert.equal(form.status, 303)
    assert.ok(form.headers.location?.startsWith(`${issuer}/authorize?`), id)
    const script = await client.post('/login', { provider: id }, { headers: { accept: 'application/json' } })
    assert.ok(script.json<{ location: string }>().location.startsWith(`${issuer}/authorize?`), id)
  }
  const unsaid = await client.post('/login')
  assert.ok(unsaid.headers.location?.startsWith(staff.issuer), 'without a word it is the main one')
  for (const provider of ['nobody', 'default', '__proto__', 'STAFF'])
    assert.equal((await client.post('/login', { provider })).headers.location, '/login', provider)
})

test('a callback is accepted only from the provider with which the attempt was started', async t => {
  const stage = await setUpTwoProviders(t)
  const { staff, partners, lines } = stage
  const swapped = async (change: (answer: URL, other: URL) => void): Promise<string> => {
    const client = stage.visitor()
    const [one, other] = [await answerOf(client, 'staff'), await answerOf(client, 'partners')]
    const answer = new URL(one, stage.url)
    change(answer, new URL(other, stage.url))
    const { headers } = await client.get(answer.pathname + answer.search)
    assert.equal(await isSignedIn(client), false)
    return String(headers.location)
  }
  const spent = () => staff.callsTo('/token').length + partners.callsTo('/token').length
  assert.equal(
    await swapped((answer, other) => answer.searchParams.set('state', other.searchParams.get('state') ?? '')),
    '/login?error=callback_error',
    'its iss is that of staff, and the state that of partners',
  )
  assert.equal(await swapped(answer => answer.searchParams.set('iss', partners.issuer)), '/login?error=callback_error')
  assert.equal(await swapped(answer => answer.searchParams.delete('iss')), '/login?error=callback_error')
  assert.equal(
    await swapped(answer => answer.searchParams.append('iss', partners.issuer)),
    '/login?error=callback_error',
  )
  assert.equal(spent(), 0, 'no code has left us')
  assert.equal(
    await swapped((answer, other) => answer.searchParams.set('code', other.searchParams.get('code') ?? '')),
    '/login?error=token_error',
    'a code of partners is none of staff',
  )
  assert.equal(partners.callsTo('/token').length, 0)
  const stranger = stage.visitor()
  const begun = await answerOf(stage.visitor(), 'staff')
  const late = new URL((await stranger.get(begun)).headers.location ?? '')
  assert.equal(late.origin, new URL(staff.issuer).origin, 'a new attempt at the provider of this address')
  assert.equal((await stranger.get(begun)).headers.location, '/login?error=invalid_state')
  assert.ok(lines.every(line => !JSON.stringify(line).includes('CANARY')))
})

test('each of several providers has its own redirect URI, and a single provider keeps /callback', async t => {
  const stage = await setUpTwoProviders(t)
  const redirectOf = async (client: Client, provider?: string) => {
    const { headers } = await client.post('/login', provider ? { provider } : {})
    return new URL(String(headers.location)).searchParams.get('redirect_uri')
  }
  assert.equal(await redirectOf(stage.visitor(), 'staff'), `${stage.baseUrl}/callback/staff`)
  assert.equal(await redirectOf(stage.visitor(), 'partners'), `${stage.baseUrl}/callback/partners`)
  await stage.signIn('partners')
  assert.equal(stage.partners.callsTo('/token').at(-1)?.form.get('redirect_uri'), `${stage.baseUrl}/callback/partners`)
  const single = await setUpOidc(t, { application: false })
  assert.equal(await redirectOf(single.client), `${single.baseUrl}/callback`)
  await single.user()
})

test('without iss, a code from an honest provider is never redeemed at the malicious provider of the attempt', async t => {
  // RFC 9700, 4.4: the attempt is one of the malicious provider, which led the browser on to the honest one.
  const stage = await setUpTwoProviders(t, { metadata: { authorization_response_iss_parameter_supported: undefined } })
  const { staff, partners } = stage
  staff.sendsIssuer = false
  partners.sendsIssuer = false
  const client = stage.visitor()
  const started = await client.post('/login', { provider: 'partners' })
  const asked = new URL(String(started.headers.location))
  const honest = new URL(`${staff.issuer}/authorize${asked.search}`)
  // The honest provider knows one redirect address for its client, and refuses any other.
  honest.searchParams.set('redirect_uri', `${stage.baseUrl}/callback/staff`)
  honest.searchParams.set('client_id', staff.clientId)
  const back = await fetch(honest, { redirect: 'manual' })
  const { pathname, search } = new URL(String(back.headers.get('location')))
  assert.equal(pathname, '/callback/staff')
  const refused = await client.get(pathname + search)
  assert.equal(refused.headers.location, '/login?error=callback_error')
  const failed = stage.lines.find(({ event }) => event === 'sign_in_failed')
  assert.match(JSON.stringify(failed), /the answer came to another address than that of the provider that was asked/)
  assert.equal(staff.callsTo('/token').length + partners.callsTo('/token').length, 0)
  assert.equal(await isSignedIn(client), false)
})

test('with several providers, /callback accepts no response, and unknown paths below it belong to the application', async t => {
  const stage = await setUpTwoProviders(t)
  const client = stage.visitor()
  const answer = await answerOf(client, 'staff')
  assert.match(answer, /^\/callback\/staff\?/)
  for (const path of ['/callback', '/callback/partners']) {
    const { headers } = await client.get(answer.replace('/callback/staff', path))
    assert.equal(headers.location, '/login?error=callback_error', path)
  }
  assert.equal(stage.staff.callsTo('/token').length, 0)
  assert.equal((await client.get(answer)).headers.location, '/', 'the attempt has not been spent')
  for (const path of ['/callback/other', '/callback/staff/more', '/callback/', '/callback/STAFF']) {
    const before = stage.upstream.received.length
    assert.equal((await client.get(path)).status, 200, path)
    assert.equal(stage.upstream.received.length, before + 1, path)
  }
  assert.equal((await client.get('/callback/staff?error=access_denied')).headers.location, '/login?error=access_denied')
  assert.equal((await client.get('/callback/partners')).headers.location, '/login?error=missing_code')
  assert.equal((await client.post('/callback/partners')).status, 405)
  assert.equal((await stage.visitor().get('/callback/__proto__')).headers.location, '/login', 'as any other page')
})

test('a rule or an upstream at the callback path of a provider is refused', async () => {
  const providers = { staff: { preset: 'oidc' }, 'b-2': { preset: 'oidc' } }
  for (const config of [
    { rules: [{ path: '/callback/staff', public: true as const }] },
    { upstreams: { '/callback/b-2': 'http://127.0.0.1:8080' } },
  ])
    assert.throws(() => refuseTakenPaths({}, { providers, ...config }), /this path belongs to Menshen/)
  refuseTakenPaths({}, { providers, rules: [{ path: '/callback/other', public: true }] })
  refuseTakenPaths({}, { rules: [{ path: '/callback/staff', public: true }] })
})

test('a provider without an issuer rejects a callback with the iss of another provider', async t => {
  const oidc = await startOidcServer(t)
  const plain = await openScriptedProvider(t)
  const { CLIENT_ID, CLIENT_SECRET, AUTH_URL } = plain.settings
  const idaas = { preset: 'idaas', vars: { auth_url: AUTH_URL }, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET }
  const gateway = await openGateway(t, {}, { config: { providers: { plain: idaas, oidc: oidc.config } } })
  oidc.now = gateway.now
  const client = createClient(gateway.url, gateway.now)
  const answer = await answerOf(client, 'plain')
  const mixed = await client.get(`${answer}&iss=${encodeURIComponent(oidc.issuer)}`)
  assert.equal(mixed.headers.location, '/login?error=callback_error')
  assert.equal(plain.callsTo('token').length, 0)
  const again = await client.get(await answerOf(client, 'plain'))
  assert.equal(again.headers.location, '/')
  const other = createClient(gateway.url, gateway.now)
  const suffix = await other.get(`/callback/plain?code=${plain.codeFor({})}&state=abc_idp`)
  assert.equal(suffix.status, 303, 'of several, every state is bound: a new attempt')
  assert.ok(!other.cookies.has('menshen_session'))
})

test('the same sub and name from two providers are two users to the application, the account page and sign-out everywhere', async t => {
  const stage = await setUpTwoProviders(t)
  const { upstream } = stage
  const [staff, again, partner] = [
    await stage.signIn('staff'),
    await stage.signIn('staff'),
    await stage.signIn('partners'),
  ]
  const tell = async (client: Client) => {
    await client.get('/')
    const { headers } = upstream.last()
    const { sub, username, provider } = decodeJwt(String(headers['x-menshen-assertion']))
    return { user: headers['x-forwarded-user'], sub, username, provider }
  }
  assert.deepEqual(await tell(staff), { user: 'zhangsan', sub: 'sub-1', username: 'zhangsan', provider: 'staff' })
  assert.deepEqual(await tell(partner), {
    user: 'partners:zhangsan',
    sub: 'partners:sub-1',
    username: 'partners:zhangsan',
    provider: 'partners',
  })
  assert.equal((await partner.get('/_menshen/me')).json<{ provider: string }>().provider, 'partners')
  assert.match((await partner.get('/_menshen/account')).text, /<dt>登录方式<\/dt><dd>合作伙伴<\/dd>/)
  await partner.post('/_menshen/sign-out-everywhere', '', { headers: { origin: stage.baseUrl } })
  assert.deepEqual([await isSignedIn(staff), await isSignedIn(again), await isSignedIn(partner)], [true, true, false])

  const other = await stage.signIn('partners')
  await staff.post('/_menshen/sign-out-everywhere', '', { headers: { origin: stage.baseUrl } })
  assert.deepEqual([await isSignedIn(staff), await isSignedIn(again), await isSignedIn(other)], [false, false, true])
})

test('a user cannot take the name or the group of a user of another provider', async t => {
  const stage = await setUpTwoProviders(t, {
    config: { rules: [{ path: '/p', users: ['partners:lisi'], groups: ['partners:cfo'] }] },
  })
  stage.staff.user = { sub: 'partners:sub-9', preferred_username: 'partners:lisi', groups: ['partners:cfo'] }
  const staff = await stage.signIn('staff')
  assert.equal((await staff.get('/p')).status, 403)
  await staff.get('/')
  assert.equal(stage.upstream.last().headers['x-forwarded-user'], 'staff:partners:lisi')
  stage.partners.user = { sub: 'sub-9', preferred_username: 'lisi' }
  assert.equal((await (await stage.signIn('partners')).get('/p')).status, 200)
})

test('the default developer admin and role rows without a provider apply only to the first provider, other rows to those that they name', async t => {
  const usual = await setUpTwoProviders(t)
  for (const provider of [usual.staff, usual.partners])
    provider.user = { sub: 'a', preferred_username: 'admin', groups: ['ops'] }
  const consoleOf = async (client: Client) => (await client.get('/_menshen/console')).status
  assert.equal(await consoleOf(await usual.signIn('staff')), 200)
  assert.equal(await consoleOf(await usual.signIn('partners')), 403)

  const roles: Config['roles'] = [
    { role: 'ops', groups: ['ops'] },
    { role: 'partner', provider: ['partners'], groups: ['ops'] },
  ]
  const own = await setUpTwoProviders(t, { config: { roles } })
  for (const provider of [own.staff, own.partners])
    provider.user = { sub: 'a', preferred_username: 'x', groups: ['ops'] }
  const roleOf = async (client: Client) => (await client.get('/_menshen/me')).json<{ userRole: string }>().userRole
  assert.equal(await roleOf(await own.signIn('staff')), 'ops')
  assert.equal(await roleOf(await own.signIn('partners')), 'partner')

  const named = await setUpTwoProviders(t, {
    config: { roles: [{ role: 'developer', provider: ['partners'], username: ['admin'] }] },
  })
  for (const provider of [named.staff, named.partners]) provider.user = { sub: 'a', preferred_username: 'admin' }
  assert.equal(await consoleOf(await named.signIn('partners')), 200)
  assert.equal(await consoleOf(await named.signIn('staff')), 403)
})

test('the console shows the provider, and ends the sessions of a user at one provider only', async t => {
  const stage = await setUpTwoProviders(t)
  const [staff, partner] = [await stage.signIn('staff'), await stage.signIn('partners')]
  stage.staff.user = { sub: 'a', preferred_username: 'admin' }
  const admin = await stage.signIn('staff')
  const { text } = await admin.get('/_menshen/console/sessions?username=zhangsan')
  assert.match(text, /role="columnheader">登录方式<\/th>/)
  const rows = [...text.matchAll(/<tr role="row">\s*<th scope="row".*?<\/tr>/gs)]
    .map(([row]) => row)
    .filter(row => row.includes('name="session"'))
  assert.equal(rows.length, 2)
  const ofPartner = rows.find(row => row.includes('合作伙伴')) ?? ''
  const key = /name="session" value="([^"]+)"/.exec(ofPartner)?.[1] ?? ''
  await admin.post('/_menshen/console/end', { session: key, all: 'yes' }, { headers: { origin: stage.baseUrl } })
  assert.deepEqual([await isSignedIn(staff), await isSignedIn(partner)], [true, false])
})

test('the account page neither shows the devices and sign-ins of a namesake at another provider nor ends them', async t => {
  const stage = await setUpTwoProviders(t)
  const [staff, partner] = [await stage.signIn('staff'), await stage.signIn('partners')]
  const pageOf = async (client: Client) => (await client.get('/_menshen/account')).text
  const lists = (page: string) =>
    [...page.matchAll(/<ul class="entries">.*?<\/ul>/gs)].map(([list]) => list.match(/<li>/g))
  await until(async () => lists(await pageOf(partner))[1]?.length === 1)
  assert.deepEqual(lists(await pageOf(staff)), [['<li>'], ['<li>']])
  await staff.post('/_menshen/account/end', { others: 'yes' }, { headers: { origin: stage.baseUrl } })
  assert.deepEqual([await isSignedIn(staff), await isSignedIn(partner)], [true, true])
})

test('back-channel logout from one provider ends no session of another provider', async t => {
  const stage = await setUpTwoProviders(t)
  for (const provider of [stage.staff, stage.partners])
    provider.user = { sub: 'sub-1', preferred_username: 'zhangsan', sid: 'sid-1' }
  const logout = async (provider: OidcServer, claims: object) => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const token = await provider.sign({ events, jti: crypto.randomUUID(), ...claims }, { typ: 'logout+jwt' })
    return (await stage.visitor().post('/_menshen/backchannel-logout', { logout_token: token })).status
  }
  for (const claims of [{ sub: 'sub-1' }, { sid: 'sid-1' }, { sub: 'sub-1', sid: 'sid-1' }]) {
    const [staff, partner] = [await stage.signIn('staff'), await stage.signIn('partners')]
    assert.equal(await logout(stage.partners, claims), 200)
    assert.deepEqual([await isSignedIn(staff), await isSignedIn(partner)], [true, false], JSON.stringify(claims))
    const forged = { ...claims, iss: stage.staff.issuer, aud: stage.staff.clientId }
    assert.equal(await logout(stage.partners, forged), 400, 'signed by another than it names')
    assert.equal(await isSignedIn(staff), true)
    assert.equal(await logout(stage.staff, claims), 200)
    assert.equal(await isSignedIn(staff), false)
  }
})

test('a language switch on the callback of a provider leads to the home page, not back to the callback', async t => {
  const stage = await setUpTwoProviders(t)
  const client = stage.visitor()
  for (const path of ['/callback/staff?code=x&state=a_idp', '/callback/partners']) {
    const page = `${stage.baseUrl}${path}`
    const headers = { origin: stage.baseUrl, referer: page }
    const { headers: answered } = await client.post('/_menshen/language', { language: 'en' }, { headers })
    assert.equal(answered.location, '/', path)
  }
  const headers = { origin: stage.baseUrl, referer: `${stage.baseUrl}/callback/of-the-application` }
  const { headers: answered } = await client.post('/_menshen/language', { language: 'en' }, { headers })
  assert.equal(answered.location, '/callback/of-the-application')
})

test('two providers can use the same jti in a logout token, each once', async t => {
  const stage = await setUpTwoProviders(t)
  for (const provider of [stage.staff, stage.partners]) provider.user = { sub: 'sub-1', preferred_username: 'zhangsan' }
  const staff = await stage.signIn('staff')
  const logout = async (provider: OidcServer) => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const token = await provider.sign({ events, jti: 'the-same', sub: 'sub-1' }, { typ: 'logout+jwt' })
    return (await stage.visitor().post('/_menshen/backchannel-logout', { logout_token: token })).status
  }
  assert.equal(await logout(stage.partners), 200)
  assert.equal(await isSignedIn(staff), true)
  assert.equal(await logout(stage.staff), 200)
  assert.equal(await isSignedIn(staff), false)
  assert.deepEqual([await logout(stage.staff), await logout(stage.partners)], [400, 400], 'each of them once')
})

test('back-channel logout by sub matches the sub of the provider, not the one mapped by fields.sub', async t => {
  const fields = { sub: ['employee_no'] }
  const oidc = await startOidcServer(t)
  const gateway = await openGateway(t, {}, { config: { providers: { mapped: { ...oidc.config, fields } } } })
  oidc.now = gateway.now
  const signInAs = (sub: string, employee_no: string, sid?: string) => {
    oidc.user = { sub, employee_no, preferred_username: `user-${sub}`, ...(sid && { sid }) }
    return signedInAt(gateway.url, gateway.now, 'mapped')
  }
  const logout = async (claims: object) => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const token = await oidc.sign({ events, jti: crypto.randomUUID(), ...claims }, { typ: 'logout+jwt' })
    const answer = await createClient(gateway.url, gateway.now).post('/_menshen/backchannel-logout', {
      logout_token: token,
    })
    assert.equal(answer.status, 200)
  }
  const [meant, again, other] = [await signInAs('7', '1001'), await signInAs('7', '1001'), await signInAs('1001', '7')]
  gateway.passSeconds(3500)
  assert.equal(await isSignedIn(meant), true, 'refreshed once')
  await logout({ sub: '7' })
  assert.deepEqual([await isSignedIn(meant), await isSignedIn(again), await isSignedIn(other)], [false, false, true])
  await logout({ sub: '1001' })
  assert.equal(await isSignedIn(other), false)
  const unknown = await signInAs('7', '1001')
  await logout({ sub: '7', sid: 'never-told' })
  assert.equal(await isSignedIn(unknown), false)
})

test('refresh, sign-out and revocation go only to the session’s own provider, with the session’s own tokens', async t => {
  const stage = await setUpTwoProviders(t)
  const partner = await stage.signIn('partners')
  stage.passSeconds(3500)
  assert.equal(await isSignedIn(partner), true)
  const refreshed = stage.partners.callsTo('/token').filter(({ form }) => form.get('grant_type') === 'refresh_token')
  assert.equal(refreshed.length, 1)
  const [first, second] = stage.partners.issued
  assert.ok(first && second)
  assert.equal(refreshed[0]?.form.get('refresh_token'), first.refresh_token)
  const out = await partner.post('/logout', '', { headers: { origin: stage.baseUrl } })
  const left = new URL(String(out.headers.location))
  assert.equal(left.origin, stage.partners.issuer)
  assert.equal(left.searchParams.get('client_id'), stage.partners.clientId)
  assert.equal(left.searchParams.get('id_token_hint'), second.id_token)
  const revoked = stage.partners.callsTo('/revoke').map(({ form }) => form.get('token'))
  assert.deepEqual(revoked, [second.refresh_token])
  assert.deepEqual(
    stage.staff.calls.filter(({ path }) => !path.startsWith('/.well-known')),
    [],
    'the other one learns nothing',
  )
})

test('a reload that removes a provider ends the sessions of its users, with the reason configuration in the metrics', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const other = await setUpTwoProviders(t, { env: { STORE } })
  const [staff, partner] = [await other.signIn('staff'), await other.signIn('partners')]
  const { log, lines } = createTestLog()
  const env = { STORE, UPSTREAM: other.upstream.url, BASE_URL: other.baseUrl, METRICS_FROM: '127.0.0.1' }
  const settings = readSettings(env)
  const core = await createCore({ settings, config: { providers: other.providers }, log, now: other.now })
  t.after(() => core.close())
  const { url } = await listen(t, createServer(core.listener))
  const visit = (client: Client) => createClient(url).get('/', { headers: { cookie: cookieOf(client) } })
  assert.deepEqual([(await visit(staff)).status, (await visit(partner)).status], [200, 200])
  const calls = other.partners.calls.length

  await core.prepare(settings, { providers: { staff: other.providers.staff } })(undefined)
  assert.equal((await visit(staff)).status, 200)
  const gone = await visit(partner)
  assert.deepEqual([gone.status, gone.headers.location], [302, '/login'])
  assert.ok(gone.setCookies.some(cookie => /^menshen_session=;/.test(cookie)))
  assert.equal(await isSignedIn(partner), false)
  const ended = lines.filter(({ event }) => event === 'session_ended').map(({ fields }) => fields.by)
  assert.deepEqual(ended, ['configuration'])
  assert.equal((await scrape(url)).value('menshen_sessions_ended_total{reason="configuration"}'), 1)
  assert.equal(other.partners.calls.length, calls, 'nothing more is sent to it')
})

test('an instance that never had the provider of a session shows the login page, and the user stays signed in elsewhere', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const one = await setUpTwoProviders(t, { env: { STORE } })
  const [staff, partner] = [await one.signIn('staff'), await one.signIn('partners')]
  const behind = await openGateway(
    t,
    { STORE, UPSTREAM: one.upstream.url, BASE_URL: one.baseUrl },
    { config: { providers: { staff: one.providers.staff } } },
  )
  const visit = (client: Client, path: string) =>
    createClient(behind.url).get(path, { headers: { cookie: cookieOf(client) } })
  assert.equal((await visit(staff, '/')).status, 200)
  for (let times = 0; times < 2; times++) {
    const refused = await visit(partner, '/')
    assert.deepEqual([refused.status, refused.headers.location], [302, '/login'])
    assert.ok(!refused.setCookies.some(cookie => cookie.startsWith('menshen_session=')))
  }
  assert.equal((await visit(partner, '/_menshen/me')).status, 401)
  const offersToContinue = async (client: Client) => /继续/.test((await visit(client, '/login')).text)
  assert.deepEqual([await offersToContinue(staff), await offersToContinue(partner)], [true, false])
  assert.deepEqual(behind.eventsOf('session_ended'), [])
  assert.deepEqual(
    behind.eventsOf('unknown_provider').map(({ provider }) => provider),
    ['partners'],
  )
  assert.equal(await isSignedIn(partner), true)
})

test('with a single provider, pages, cookies, identity headers and /_menshen/me name no provider', async t => {
  const { upstream, client, user } = await setUpOidc(t)
  const page = (await client.get('/login')).text
  assert.equal(page.match(/<form [^>]*class="sign-in"/g)?.length, 1)
  assert.doesNotMatch(page, /name="provider"/)
  const admin = await user({ sub: 'a', preferred_username: 'admin' })
  assert.deepEqual([...admin.cookies.keys()].sort(), ['menshen_attempt', 'menshen_session'])
  await admin.get('/')
  const { headers } = upstream.last()
  assert.equal(headers['x-forwarded-user'], 'admin')
  assert.ok(!('provider' in decodeJwt(String(headers['x-menshen-assertion']))))
  assert.ok(!('provider' in (await admin.get('/_menshen/me')).json<object>()))
  assert.doesNotMatch((await admin.get('/_menshen/console/sessions')).text, /登录方式/)
  assert.doesNotMatch((await admin.get('/_menshen/account')).text, /登录方式/)
})

test('settings for a single provider are refused next to providers, and each error names the option to use instead', async () => {
  const config: Config = {
    providers: {
      staff: { preset: 'idaas', vars: { auth_url: 'https://a.example' }, clientId: 'a', clientSecret: 'b' },
    },
  }
  const { log } = createTestLog()
  const start = (env: Record<string, string>, given = config) =>
    createMenshen({ settings: readSettings({ STORE: 'memory:', ...env }), config: given, log }).then(
      menshen => menshen.close().then(() => ''),
      (error: unknown) => (error instanceof MenshenError ? error.message : String(error)),
    )
  const rows: [name: string, value: string, place: string][] = [
    ['PROVIDER', 'oidc', 'preset'],
    ['PROVIDER_NAME', 'x', 'name'],
    ['PROVIDER_VARS', 'realm=x', 'vars'],
    ['AUTH_URL', 'https://b.example', 'vars.auth_url'],
    ['CLIENT_ID', 'x', 'clientId'],
    ['CLIENT_SECRET', 'x', 'clientSecret'],
    ['CLIENT_AUTH', 'basic', 'clientAuth'],
    ['SCOPE', 'x', 'scope'],
    ['STATE_CHECK', 'bound', 'stateCheck'],
    ['PKCE', 'S256', 'pkce'],
    ['PAR', 'auto', 'par'],
    ['DPOP', 'on', 'dpop'],
    ['LOGOUT_STYLE', 'none', 'logout.style'],
    ['LOGOUT_URL', '/x', 'logoutUrl'],
    ['ISSUER', 'https://b.example', 'issuer'],
    ['ISSUER_REQUIRED', 'true', 'sendsIssuer'],
    ['JWKS_URL', 'https://b.example/jwks', 'jwksUrl'],
  ]
  for (const [name, value, place] of rows)
    assert.equal(
      await start({ [name]: value }),
      `${name} applies to a single provider, but the configuration has providers; expected providers.staff.${place} instead.`,
    )
  assert.equal(await start({}), '')
  assert.match(await start({}, { ...config, provider: 'oidc' }), /provider: expected either provider or providers/)
  assert.match(await start({}, { providers: {} }), /providers: expected at least one provider/)
  assert.match(await start({}, { providers: { default: {} } }), /providers/)
})
