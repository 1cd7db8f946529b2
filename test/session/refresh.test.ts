// The table of states: a token is refreshed when it expires within five minutes, once, and never at the user's expense.

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import test, { type TestContext } from 'node:test'
import type { Answer } from '../kit/answers.ts'
import { type Client, type Response, signIn } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import type { Behaviour } from '../kit/strict-provider.ts'

const LIFE = 7200
const START = Date.parse('2026-03-01T08:00:00Z')

async function openSignedIn(t: TestContext, env: Record<string, string> = {}, behaviour: Partial<Behaviour> = {}) {
  const gateway = await setUp(t, { env, provider: { expiresIn: LIFE, ...behaviour }, application: false })
  const { provider } = gateway
  const visitor = gateway.visitor()
  assert.equal((await signIn(visitor, provider)).headers.location, '/')
  /** The same ticket in a browser that ignores Max-Age. */
  const cookie = `menshen_session=${visitor.cookies.get('menshen_session')}`
  const get = (path = '/', headers: Record<string, string> = {}) =>
    visitor.get(path, { headers: { cookie, ...headers } })
  return { provider, gateway, visitor, cookie, get, refreshes: () => provider.callsTo('refresh').length }
}

const isServed = ({ status }: Response) => status === 200
const isOver = ({ status, headers }: Response) => status === 302 && headers.location === '/login'

const isRenewed = (answer: Response, maxAge: number, ticket: string) =>
  answer.setCookies.includes(`${ticket}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`)

const isCleared = ({ setCookies }: Response) =>
  setCookies.includes('menshen_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax')

const expiresAt = async (client: Client) => (await client.get('/_menshen/me')).json<{ expiresAt: number }>().expiresAt

for (const [left, refreshed] of [
  [LIFE, 0],
  [301, 0],
  [300, 1],
  [299, 1],
  [1, 1],
] as const)
  test(`a token with ${left} seconds left is ${refreshed ? '' : 'not '}refreshed, and the page is served`, async t => {
    const { gateway, get, refreshes, visitor, cookie } = await openSignedIn(t)
    gateway.passSeconds(LIFE - left)
    const page = await get()
    assert.ok(isServed(page))
    assert.equal(refreshes(), refreshed)
    assert.equal(isRenewed(page, LIFE, cookie), refreshed === 1)
    const end = refreshed ? START + (LIFE - left + LIFE) * 1000 : START + LIFE * 1000
    assert.equal(await expiresAt(visitor), end)
    assert.ok(isServed(await get()))
    assert.equal(refreshes(), refreshed, 'a request right after it needs no other')
  })

for (const left of [0, -1, -100_000])
  test(`a session whose token has ${left} seconds left is over, without a call to the provider`, async t => {
    const { gateway, get, provider } = await openSignedIn(t)
    gateway.passSeconds(LIFE - left)
    const calls = provider.calls.length
    assert.ok(isOver(await get()))
    assert.equal((await get('/_menshen/me')).status, 401)
    assert.equal(provider.calls.length, calls)
  })

test('the token’s lifetime starts when its response arrives, not when the session is saved', async t => {
  const { provider, gateway } = await openSignedIn(t)
  const visitor = gateway.visitor()
  const release = provider.hold('userinfo')
  const signingIn = signIn(visitor, provider)
  await provider.called('userinfo', 2)
  gateway.passSeconds(600)
  release()
  await signingIn
  assert.equal(await expiresAt(visitor), START + LIFE * 1000)
})

test('REFRESH_LEAD_SECONDS sets how long before its expiry a token is refreshed', async t => {
  const { gateway, get, refreshes } = await openSignedIn(t, { REFRESH_LEAD_SECONDS: '60' })
  gateway.passSeconds(LIFE - 61)
  await get()
  assert.equal(refreshes(), 0)
  gateway.passSeconds(1)
  await get()
  assert.equal(refreshes(), 1)
})

test('a refresh sends exactly the four fields, in the body only', async t => {
  const { gateway, get, provider } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 200)
  await get()
  const [call] = provider.callsTo('refresh')
  assert.ok(call)
  const { refresh_token, ...others } = Object.fromEntries(call.form)
  assert.match(refresh_token ?? '', /^rt-CANARY-/)
  assert.deepEqual(others, { grant_type: 'refresh_token', client_id: 'menshen-test', client_secret: 'secret-CANARY-1' })
  assert.deepEqual([call.form.size, call.query.size, call.headers.authorization], [4, 0, undefined])
  assert.equal(provider.callsTo('userinfo').length, 1, 'who it is was asked at sign-in')
})

test('tokens and timing are replaced: the next refresh comes a lifetime later, with the new refresh token', async t => {
  const { gateway, get, provider, visitor, refreshes } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 200)
  provider.behaviour.expiresIn = 3600
  await get()
  assert.equal(await expiresAt(visitor), START + (LIFE - 200 + 3600) * 1000)
  gateway.passSeconds(3600 - 301)
  assert.ok(isServed(await get()))
  assert.equal(refreshes(), 1)
  gateway.passSeconds(1)
  assert.ok(isServed(await get()))
  assert.equal(refreshes(), 2)
  const sent = provider.callsTo('refresh').map(call => call.form.get('refresh_token'))
  assert.notEqual(sent[0], sent[1])
  assert.equal(provider.reuses, 0)
})

test('an active session stays signed in for 20 token lifetimes', async t => {
  const { gateway, visitor, provider, refreshes } = await openSignedIn(t)
  for (let n = 1; n <= 20; n++) {
    gateway.passSeconds(LIFE - 250)
    assert.ok(isServed(await visitor.get('/')), `refresh ${n}, with a cookie that expires like a browser's`)
    assert.equal(refreshes(), n)
  }
  assert.equal(provider.reuses, 0)
})

test('the old refresh token stays when none is returned', async t => {
  const { gateway, get, provider } = await openSignedIn(t, {}, { rotate: false })
  for (let n = 0; n < 3; n++) {
    gateway.passSeconds(LIFE - 200)
    assert.ok(isServed(await get()))
  }
  const sent = provider.callsTo('refresh').map(call => call.form.get('refresh_token'))
  assert.deepEqual(new Set(sent).size, 1)
  assert.equal(sent.length, 3)
})

test('an empty or null refresh token in the response does not replace the old one', async t => {
  for (const refresh_token of ['', null]) {
    const { gateway, get, provider } = await openSignedIn(t, {}, { rotate: false })
    const body = { access_token: 'at-CANARY-new', token_type: 'bearer', expires_in: LIFE, refresh_token }
    provider.answer('refresh', { kind: 'json', body }, 'once')
    for (let n = 0; n < 2; n++) {
      gateway.passSeconds(LIFE - 200)
      assert.ok(isServed(await get()))
    }
    const [first, second] = provider.callsTo('refresh').map(call => call.form.get('refresh_token'))
    assert.equal(first, second)
  }
})

test('60 parallel requests when a refresh is due cause one refresh, no refresh token is reused, and all are served', async t => {
  const { gateway, get, provider, refreshes, cookie } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 100)
  const release = provider.hold('refresh')
  const asked = Array.from({ length: 60 }, () => get())
  await provider.called('refresh')
  asked.push(get(), get('/_menshen/me'))
  release()
  const answers = await Promise.all(asked)
  for (const answer of answers) {
    assert.ok(isServed(answer))
    assert.ok(isRenewed(answer, LIFE, cookie), 'each of them brings the longer life')
  }
  assert.ok(isServed(await get()))
  assert.equal(refreshes(), 1)
  assert.equal(provider.reuses, 0)
})

test('the sessions of two users are refreshed in parallel', async t => {
  const { gateway, get, provider, refreshes } = await openSignedIn(t)
  const other = gateway.visitor()
  await signIn(other, provider, { username: 'lisi' })
  gateway.passSeconds(LIFE - 100)
  const release = provider.hold('refresh')
  const asked = [get('/_menshen/me'), other.get('/_menshen/me')]
  await provider.called('refresh', 2)
  release()
  const names = (await Promise.all(asked)).map(
    answer => answer.json<{ userInfo: { username: string } }>().userInfo.username,
  )
  assert.deepEqual(names, ['zhangsan', 'lisi'])
  assert.equal(refreshes(), 2)
})

test('a refresh takes effect even if the browser that triggered it disconnects', async t => {
  const { gateway, visitor, get, provider, refreshes, cookie } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 100)
  const release = provider.hold('refresh')
  const leaving = new AbortController()
  const left = visitor.get('/', { headers: { cookie }, signal: leaving.signal }).catch((error: Error) => error.name)
  await provider.called('refresh')
  leaving.abort()
  assert.equal(await left, 'AbortError')
  release()
  const page = await get()
  assert.ok(isServed(page))
  assert.ok(isRenewed(page, LIFE, cookie))
  assert.equal(refreshes(), 1)
  assert.equal(provider.reuses, 0)
})

test('for the refresh lead after a refresh, every response sends the renewed cookie again, in case one was lost', async t => {
  const { gateway, get, cookie } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 300)
  await get()
  gateway.passSeconds(200)
  assert.ok(isRenewed(await get(), LIFE - 200, cookie))
  gateway.passSeconds(100)
  assert.ok(isRenewed(await get('/nothing'), LIFE - 300, cookie))
  gateway.passSeconds(1)
  assert.deepEqual((await get()).setCookies, [])
})

for (const where of ['the same browser', 'another browser with the same ticket'])
  test(`a sign-out from ${where} during a refresh wins`, async t => {
    const { gateway, visitor, get, provider, refreshes, cookie } = await openSignedIn(t)
    gateway.passSeconds(LIFE - 100)
    const release = provider.hold('refresh')
    const pending = get()
    await provider.called('refresh')
    const leaving = where === 'the same browser' ? visitor : gateway.visitor()
    const signedOut = await leaving.post('/logout', {}, { headers: { cookie } })
    assert.deepEqual([signedOut.status, signedOut.headers.location], [303, '/login'])
    release()
    const late = await pending
    assert.ok(isOver(late))
    assert.ok(!late.setCookies.some(given => given.startsWith(cookie)), 'the dead ticket does not come back')
    assert.ok(isOver(await get()))
    assert.equal((await get('/_menshen/me')).status, 401)
    assert.equal(refreshes(), 1)
  })

/** A refresh for which the provider has done its work, and whose answer is still on its way. */
async function answerOnItsWay(t: TestContext, env: Record<string, string> = {}, behaviour: Partial<Behaviour> = {}) {
  const scene = await openSignedIn(t, env, behaviour)
  const { promise: until, resolve: deliver } = Promise.withResolvers<void>()
  scene.provider.answer('refresh', { kind: 'held', until }, 'once')
  scene.gateway.passSeconds(LIFE - 100)
  const pending = scene.get()
  await scene.provider.called('refresh')
  return { ...scene, pending, deliver }
}

for (const rotate of [true, false])
  test(`a sign-out during a refresh leaves no token alive at the provider, ${rotate ? 'with' : 'without'} rotation`, async t => {
    const { visitor, provider, cookie, pending, deliver } = await answerOnItsWay(t, {}, { rotate })
    await visitor.post('/logout', {}, { headers: { cookie } })
    deliver()
    assert.ok(isOver(await pending))
    assert.deepEqual(provider.livingTokens, [])
  })

test('ending a session in the console during its refresh leaves none of its tokens valid at the provider', async t => {
  const { gateway, provider, pending, deliver } = await answerOnItsWay(t)
  const developer = gateway.visitor()
  await signIn(developer, provider, { username: 'admin' })
  const theirs = provider.livingTokens.length
  const console = (await developer.get('/_menshen/console/sessions?username=zhangsan')).text
  const session = /name="session" value="([\w-]{43})"/.exec(console)?.[1] ?? ''
  await developer.post('/_menshen/console/end', { session })
  deliver()
  assert.ok(isOver(await pending))
  assert.equal(provider.livingTokens.length, theirs - 2, 'only the developer’s own are left')
  assert.ok(isServed(await developer.get('/')))
})

test('with LOGOUT_STYLE=none, a sign-out during a refresh does not call the provider’s logout', async t => {
  const { visitor, provider, cookie, pending, deliver } = await answerOnItsWay(t, { LOGOUT_STYLE: 'none' })
  await visitor.post('/logout', {}, { headers: { cookie } })
  deliver()
  assert.ok(isOver(await pending))
  assert.equal(provider.callsTo('logout').length, 0)
})

test('a sign-out, the login page and health checks do not trigger a refresh', async t => {
  const { gateway, get, visitor, provider, refreshes, cookie } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 100)
  for (const path of ['/login', '/_menshen/health', '/_menshen/ready']) assert.ok(isServed(await get(path)))
  await visitor.post('/logout', {}, { headers: { cookie } })
  assert.equal(refreshes(), 0)
  assert.equal(provider.callsTo('logout').length, 1)
})

const FAILURES = {
  'is refused with invalid_grant': { kind: 'json', status: 400, body: { error: 'invalid_grant' } },
  'is refused with invalid_token': { kind: 'json', status: 401, body: { error: 'invalid_token' } },
  'is refused with invalid_client': { kind: 'json', status: 401, body: { error: 'invalid_client' } },
  'gets a 500': { kind: 'json', status: 500, body: {} },
  'gets a truncated response': { kind: 'cut', when: 'in the body' },
  'gets no response': { kind: 'cut', when: 'at once' },
  'gets an invalid response': { kind: 'bytes', body: 'nonsense' },
  'gets a response without a token': { kind: 'json', body: { token_type: 'bearer', expires_in: 7200 } },
} as const

for (const [what, answer] of Object.entries(FAILURES))
  test(`a refresh that ${what} ends the session and redirects to /login, also for later requests`, async t => {
    const { gateway, get, provider, refreshes } = await openSignedIn(t)
    gateway.passSeconds(LIFE - 100)
    const release = provider.hold('refresh')
    provider.answer('refresh', answer)
    const asked = get('/page?x=1')
    await provider.called('refresh')
    const others = Array.from({ length: 10 }, () => get())
    const script = get('/api', { accept: 'application/json' })
    release()
    const page = await asked
    assert.ok(isOver(page))
    assert.ok(isCleared(page))
    assert.ok(
      page.setCookies.some(given => given.startsWith('menshen_return=')),
      'and after sign-in back to the page',
    )
    for (const other of await Promise.all(others)) assert.ok(isOver(other))
    assert.equal((await script).status, 401)
    const calls = provider.calls.length
    assert.equal(refreshes(), 1)
    for (let n = 0; n < 3; n++) assert.ok(isOver(await get()))
    gateway.passSeconds(3600)
    assert.ok(isOver(await get()))
    assert.equal(provider.calls.length, calls, 'no further calls')
    assert.doesNotMatch((await get('/login')).text, /您已登录/)
  })

test('a provider that hangs until PROVIDER_TIMEOUT_MS ends the session, and the refresh is not sent again', async t => {
  const { gateway, get, provider, refreshes } = await openSignedIn(t, { PROVIDER_TIMEOUT_MS: '800' })
  gateway.passSeconds(LIFE - 100)
  provider.answer('refresh', { kind: 'hang' })
  assert.ok(isOver(await get()))
  assert.equal(refreshes(), 1, 'a request that may have arrived is not sent again')
  assert.ok(isOver(await get()))
})

test('a provider that refuses connections at a refresh is tried three times, then the session ends and its cookie is cleared', async t => {
  const { gateway, get, provider } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 100)
  let refused = 0
  const onConnectError = (message: unknown) => {
    const { connectParams } = message as { connectParams: { host: string } }
    if (connectParams.host === new URL(provider.url).host) refused++
  }
  subscribe('undici:client:connectError', onConnectError)
  t.after(() => unsubscribe('undici:client:connectError', onConnectError))
  await provider.close()
  const answer = await get()
  assert.equal(refused, 3)
  assert.ok(isOver(answer))
  assert.ok(isCleared(answer))
  assert.ok(isOver(await get()))
})

test('with REFRESH_FAILURE=keep, the session stays while refreshes fail, and the provider is called again only after a pause', async t => {
  const { gateway, get, provider, refreshes } = await openSignedIn(t, { REFRESH_FAILURE: 'keep' })
  gateway.passSeconds(LIFE - 100)
  provider.answer('refresh', { kind: 'json', status: 503, body: {} })
  for (let n = 0; n < 20; n++) assert.ok(isServed(await get()))
  assert.equal(refreshes(), 1)
  gateway.passSeconds(31)
  assert.ok(isServed(await get()))
  assert.equal(refreshes(), 2, 'it tries again after a while')
  provider.answer('refresh', { kind: 'normal' })
  gateway.passSeconds(31)
  const page = await get()
  assert.ok(isServed(page))
  assert.equal(refreshes(), 3)
  assert.ok(page.setCookies.length > 0)
  gateway.passSeconds(LIFE - 400)
  assert.ok(isServed(await get()))
  assert.equal(refreshes(), 3)
})

const VERDICTS = [
  { status: 400, body: { error: 'invalid_grant' } },
  { status: 401, body: { error: 'invalid_grant' } },
  { status: 401, body: { error: 'invalid_token' } },
  { status: 200, body: { error: 'invalid_grant' } },
]

for (const { status, body } of VERDICTS)
  test(`with REFRESH_FAILURE=keep a ${status} with ${body.error} still ends the session`, async t => {
    const { gateway, get, provider } = await openSignedIn(t, { REFRESH_FAILURE: 'keep' })
    gateway.passSeconds(LIFE - 100)
    provider.answer('refresh', { kind: 'json', status, body })
    const page = await get()
    assert.ok(isOver(page))
    assert.ok(isCleared(page))
  })

const NO_VERDICTS: Record<string, Answer> = {
  'a 401 with invalid_client': { kind: 'json', status: 401, body: { error: 'invalid_client' } },
  'a 400 with unauthorized_client': { kind: 'json', status: 400, body: { error: 'unauthorized_client' } },
  'a 400 with invalid_request': { kind: 'json', status: 400, body: { error: 'invalid_request' } },
  'a 400 without a code': { kind: 'json', status: 400, body: {} },
  'a 401 without a code': { kind: 'bytes', status: 401, body: '' },
  'a 403': { kind: 'json', status: 403, body: { error: 'forbidden' } },
  'a 404': { kind: 'bytes', status: 404, body: 'Not Found' },
  'a 405': { kind: 'bytes', status: 405, body: '' },
  'a 429': { kind: 'json', status: 429, body: { error: 'slow_down' } },
  'a firewall page with 403': { kind: 'bytes', status: 403, body: '<html>blocked: invalid_grant</html>' },
  'a firewall page with 200': { kind: 'bytes', body: '<html>{"error":"invalid_grant"}</html>' },
}

for (const [what, answer] of Object.entries(NO_VERDICTS))
  test(`with REFRESH_FAILURE=keep, ${what} does not end the session, and the next refresh succeeds`, async t => {
    const { gateway, get, provider } = await openSignedIn(t, { REFRESH_FAILURE: 'keep' })
    gateway.passSeconds(LIFE - 100)
    provider.answer('refresh', answer)
    const page = await get()
    assert.ok(isServed(page))
    assert.ok(!isCleared(page))
    provider.answer('refresh', { kind: 'normal' })
    gateway.passSeconds(31)
    assert.ok(isServed(await get()))
    gateway.passSeconds(LIFE - 400)
    assert.ok(isServed(await get()), 'and the next refresh gave it new tokens')
  })

test('with REFRESH_FAILURE=keep, a session whose refresh fails still ends with its token', async t => {
  const { gateway, get, provider } = await openSignedIn(t, { REFRESH_FAILURE: 'keep' })
  gateway.passSeconds(LIFE - 2)
  provider.answer('refresh', { kind: 'json', status: 503, body: {} })
  assert.ok(isServed(await get()))
  gateway.passSeconds(2)
  assert.ok(isOver(await get()))
  assert.equal((await get('/_menshen/me')).status, 401)
})

test('with REFRESH_FAILURE=keep, expiresAt of /_menshen/me stays the expiry of the token if the refresh fails', async t => {
  const { gateway, get, provider } = await openSignedIn(t, { REFRESH_FAILURE: 'keep' })
  gateway.passSeconds(LIFE - 2)
  provider.answer('refresh', { kind: 'json', status: 503, body: {} })
  const { expiresAt } = (await get('/_menshen/me')).json<{ expiresAt: number }>()
  assert.equal(expiresAt, START + LIFE * 1000)
})

test('a session whose token expires during a slow refresh is not lost', async t => {
  const { gateway, get, provider, refreshes, cookie } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 1)
  const release = provider.hold('refresh')
  const pending = get()
  await provider.called('refresh')
  gateway.passSeconds(2)
  const late = get()
  release()
  for (const page of await Promise.all([pending, late])) {
    assert.ok(isServed(page))
    assert.ok(page.setCookies.some(given => given.startsWith(`${cookie};`)))
  }
  assert.equal(refreshes(), 1)
})

test('without a refresh token the session lasts as long as its token, and then ends', async t => {
  const { gateway, get, provider, visitor } = await openSignedIn(t, {}, { refreshTokens: false })
  const calls = provider.calls.length
  for (const pass of [LIFE - 300, 299]) {
    gateway.passSeconds(pass)
    const page = await get()
    assert.ok(isServed(page))
    assert.deepEqual(page.setCookies, [])
  }
  assert.equal(await expiresAt(visitor), START + LIFE * 1000)
  gateway.passSeconds(1)
  assert.ok(isOver(await get()))
  assert.equal(provider.calls.length, calls)
})

test('a session that keeps refreshing ends after SESSION_MAX_HOURS', async t => {
  const { gateway, get, provider, refreshes, cookie } = await openSignedIn(
    t,
    { SESSION_MAX_HOURS: '1' },
    { expiresIn: 1800 },
  )
  gateway.passSeconds(1600)
  assert.ok(isRenewed(await get(), 1800, cookie))
  gateway.passSeconds(1600)
  assert.ok(isRenewed(await get(), 400, cookie), 'the cookie promises no more than is left')
  gateway.passSeconds(399)
  assert.ok(isServed(await get()))
  const calls = refreshes()
  gateway.passSeconds(1)
  assert.ok(isOver(await get()))
  assert.equal(refreshes(), calls)
  assert.equal(provider.reuses, 0)
})

test('SESSION_MAX_HOURS also ends a session whose refreshes fail with REFRESH_FAILURE=keep', async t => {
  const env = { SESSION_MAX_HOURS: '1', REFRESH_FAILURE: 'keep' }
  const { gateway, get, provider } = await openSignedIn(t, env, { expiresIn: 3800 })
  provider.answer('refresh', { kind: 'json', status: 503, body: {} })
  gateway.passSeconds(3599)
  assert.ok(isServed(await get()))
  gateway.passSeconds(1)
  assert.ok(isOver(await get()))
})

test('a user who signs in again while the refresh of the old session hangs keeps the new session', async t => {
  const { gateway, visitor, get, provider } = await openSignedIn(t)
  gateway.passSeconds(LIFE - 100)
  const release = provider.hold('refresh')
  const pending = get()
  await provider.called('refresh')
  await signIn(visitor, provider, { username: 'lisi' })
  release()
  const late = await pending
  assert.ok(
    !late.setCookies.some(given => given.startsWith('menshen_session=')),
    'a late answer touches no newer cookie',
  )
  const { userInfo } = (await visitor.get('/_menshen/me')).json<{ userInfo: { username: string } }>()
  assert.equal(userInfo.username, 'lisi')
})

test('if tokens never live longer than the refresh lead, each visit refreshes them, the user stays signed in and no refresh token is reused', async t => {
  const { gateway, visitor, provider, refreshes } = await openSignedIn(t, {}, { expiresIn: 120 })
  for (let n = 0; n < 5; n++) {
    gateway.passSeconds(100)
    const before = refreshes()
    const pages = await Promise.all(Array.from({ length: 10 }, () => visitor.get('/')))
    assert.ok(pages.every(isServed))
    assert.ok(refreshes() > before)
  }
  const before = refreshes()
  for (let visit = 1; visit <= 2; visit++) {
    assert.ok(isServed(await visitor.get('/')))
    assert.equal(refreshes(), before + visit)
  }
  assert.equal(provider.reuses, 0)
})
