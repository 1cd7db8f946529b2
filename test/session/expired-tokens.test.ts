// Sessions outlive access tokens, for every provider but `idaas`: the first request after the token's end refreshes before it is
// answered, and nothing of an expired token reaches an application.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import test, { type TestContext } from 'node:test'
import { decodeJwt } from 'jose'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Config } from '../../src/index.ts'
import { type Client, cookieOf, createClient, type Response } from '../kit/client.ts'
import { type Environment, type Instance, isServed, setUpInstances } from '../kit/instance.ts'
import { type OidcCall, signedInAt, startOidcServer } from '../kit/oidc-server.ts'
import { setUpOidc } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, refusal } from '../kit/websocket.ts'

/** As Keycloak's access tokens. */
const LIFE = 300
const HOUR = 3600
const MAX_HOURS = 168
const PAGE = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const SCRIPT = { accept: 'application/json' }

async function open(t: TestContext, env: Environment = {}, config: Config = {}, tokenFields: object = {}) {
  const { provider: op, upstream, ...gateway } = await setUpOidc(t, { env, config })
  Object.assign(op, { expiresIn: LIFE, tokenFields })
  const user = await gateway.user()
  const refreshes = () => op.callsTo('/token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length
  /** The application was told of nobody, or of nothing at all. */
  const forwarded = () => upstream.received.length
  /** A WebSocket of the user. */
  async function openSocket(): Promise<WebSocket> {
    const sockets = new WebSocketServer({ server: upstream.server })
    t.after(() => sockets.close())
    const socket = dial(gateway, user)
    await once(socket, 'open')
    return socket
  }
  return { op, upstream, gateway, user, refreshes, eventsOf: gateway.eventsOf, forwarded, openSocket }
}

const maxAge = ({ setCookies }: Response) =>
  Number(setCookies.map(cookie => /^menshen_session=.*Max-Age=(\d+)/.exec(cookie)?.[1]).find(Boolean))

const expiresAt = async (client: Client) => (await client.get('/_menshen/me')).json<{ expiresAt: number }>().expiresAt

test('a user who reads a page for longer than the access token lives is still signed in, after one refresh', async t => {
  const { gateway, user, refreshes, upstream } = await open(t)
  gateway.passSeconds(2 * HOUR)
  const page = await user.get('/', { headers: PAGE })
  assert.equal(page.status, 200)
  assert.equal(refreshes(), 1)
  assert.equal(upstream.received.at(-1)?.headers['x-forwarded-user'], 'zhangsan')
})

test('the session, its cookie and its record last SESSION_MAX_HOURS if the provider gives no lifetime for the refresh token', async t => {
  const { gateway, user } = await open(t)
  const started = gateway.now()
  assert.equal(await expiresAt(user), started + MAX_HOURS * HOUR * 1000)
  gateway.passSeconds(MAX_HOURS * HOUR - 1)
  assert.equal((await user.get('/', { headers: PAGE })).status, 200)
  gateway.passSeconds(1)
  assert.equal((await user.get('/', { headers: PAGE })).headers.location, '/login')
})

for (const name of ['refresh_expires_in', 'refresh_token_expires_in'])
  test(`the session ends with the refresh token if ${name} gives its lifetime, and each refresh extends it`, async t => {
    const { gateway, user, refreshes } = await open(t, {}, {}, { [name]: 1800 })
    assert.equal(await expiresAt(user), gateway.now() + 1800 * 1000)
    gateway.passSeconds(1799)
    const page = await user.get('/', { headers: PAGE })
    assert.deepEqual([page.status, maxAge(page), refreshes()], [200, 1800, 1])
    assert.equal(await expiresAt(user), gateway.now() + 1800 * 1000)
    gateway.passSeconds(1799)
    assert.equal((await user.get('/', { headers: PAGE })).status, 200, 'the renewed cookie is still there')
    gateway.passSeconds(1800)
    assert.equal((await user.get('/', { headers: PAGE })).headers.location, '/login')
  })

test('refresh_expires_in: 0, which Keycloak sends for offline tokens, does not limit the session', async t => {
  const { gateway, user } = await open(t, {}, {}, { refresh_expires_in: 0 })
  assert.equal(await expiresAt(user), gateway.now() + MAX_HOURS * HOUR * 1000)
})

test('a refresh response without a refresh token leaves the end of the session unchanged', async t => {
  const { op, gateway, user } = await open(t, {}, {}, { refresh_expires_in: 1800 })
  const end = gateway.now() + 1800 * 1000
  op.tokenFields = { refresh_token: undefined }
  gateway.passSeconds(1000)
  assert.equal(await expiresAt(user), end)
})

test('without a refresh token the session ends with its access token', async t => {
  const { gateway, user, refreshes } = await open(t, {}, {}, { refresh_token: undefined, refresh_expires_in: 1800 })
  assert.equal(await expiresAt(user), gateway.now() + LIFE * 1000)
  gateway.passSeconds(LIFE)
  assert.equal((await user.get('/', { headers: PAGE })).headers.location, '/login')
  assert.equal(refreshes(), 0)
})

test('100 parallel requests after the access token expired cause one refresh, and all are served', async t => {
  const { gateway, user, refreshes } = await open(t)
  gateway.passSeconds(HOUR)
  const cookie = cookieOf(user)
  const pages = await Promise.all(
    Array.from({ length: 100 }, () => createClient(gateway.url).get('/', { headers: { cookie } })),
  )
  assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([200]))
  assert.equal(refreshes(), 1)
})

test('invalid_grant after the access token expired ends the session, and the login page shows the reason once', async t => {
  const { op, gateway, user, eventsOf } = await open(t, { PAGE_LANGUAGE: 'en' })
  gateway.passSeconds(HOUR)
  op.intercept = ({ path }, response) =>
    path === '/token' &&
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'invalid_grant' }))
  const page = await user.get('/', { headers: PAGE })
  assert.equal(page.headers.location, '/login')
  assert.deepEqual(
    eventsOf('session_ended').map(({ reason, user }) => [reason, user]),
    [['refresh_failed', 'zhangsan']],
  )
  const why = 'your session couldn’t be renewed'
  assert.ok((await user.get('/login', { headers: PAGE })).text.includes(why))
  assert.ok(!(await user.get('/login', { headers: PAGE })).text.includes(why))
})

const WAYS: Record<string, (user: Client) => Promise<Response>> = {
  'a page': user => user.get('/', { headers: PAGE }),
  'a form': user => user.post('/', {}, { headers: PAGE }),
  '/_menshen/account': user => user.get('/_menshen/account', { headers: PAGE }),
  '/_menshen/forward': user =>
    user.get('/_menshen/forward', { headers: { ...PAGE, 'x-forwarded-uri': '/', 'x-forwarded-method': 'GET' } }),
  '/_menshen/authz': user => user.get('/_menshen/authz/page', { headers: PAGE }),
}
const SCRIPTED_WAYS: Record<string, (user: Client) => Promise<Response>> = {
  'a script': user => user.get('/data', { headers: SCRIPT }),
  '/_menshen/me': user => user.get('/_menshen/me', { headers: SCRIPT }),
  '/_menshen/stay': user => user.post('/_menshen/stay', {}, { headers: SCRIPT }),
}

test('while the provider is unavailable an expired token gives 503, nothing is forwarded, and the session stays', async t => {
  const { op, gateway, user, forwarded, refreshes, eventsOf } = await open(t, { TRUSTED_PROXIES: '127.0.0.1' })
  gateway.passSeconds(HOUR)
  op.isAway = true
  for (const [name, ask] of Object.entries(WAYS)) {
    const { status, headers, text, setCookies } = await ask(user)
    assert.deepEqual([status, headers['retry-after'], setCookies], [503, '5', []], name)
    assert.ok(/You have not been signed out|您并未退出登录/.test(text), name)
  }
  for (const [name, ask] of Object.entries(SCRIPTED_WAYS)) {
    const answer = await ask(user)
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'], name)
    assert.equal(answer.json<{ error: string }>().error, 'provider_unavailable', name)
  }
  const check = await user.get('/_menshen/check')
  assert.deepEqual([check.status, check.headers['x-forwarded-user']], [503, ''])
  assert.equal(forwarded(), 0)
  assert.equal(refreshes(), 1, 'everything else was answered during the pause')
  assert.deepEqual(
    eventsOf('session_refresh_failed').map(({ outcome }) => outcome),
    ['kept'],
  )
  op.isAway = false
  gateway.passSeconds(31)
  assert.equal((await user.get('/', { headers: PAGE })).status, 200)
  assert.deepEqual(eventsOf('session_ended'), [])
})

test('while the provider is unavailable, a user with an expired token sees public pages as a visitor and keeps the cookie', async t => {
  const { op, gateway, user, upstream } = await open(t, {}, { rules: [{ path: '/public', public: true }] })
  gateway.passSeconds(HOUR)
  op.isAway = true
  const page = await user.get('/public/page', { headers: PAGE })
  assert.deepEqual([page.status, page.setCookies], [200, []])
  assert.ok(!upstream.received.at(-1)?.headers['x-forwarded-user'])
  op.isAway = false
  gateway.passSeconds(31)
  await user.get('/public/page', { headers: PAGE })
  assert.equal(upstream.received.at(-1)?.headers['x-forwarded-user'], 'zhangsan')
})

test('with REFRESH_FAILURE=clear, a session with an expired token ends if the provider is unavailable', async t => {
  const { op, gateway, user, eventsOf } = await open(t, { REFRESH_FAILURE: 'clear' })
  gateway.passSeconds(HOUR)
  op.isAway = true
  assert.equal((await user.get('/', { headers: PAGE })).headers.location, '/login')
  assert.deepEqual(
    eventsOf('session_ended').map(({ reason }) => reason),
    ['refresh_failed'],
  )
})

test('without REFRESH_FAILURE, a failed refresh does not end a session whose token is still valid', async t => {
  const { op, gateway, user, upstream } = await open(t)
  gateway.passSeconds(LIFE - 100)
  op.isAway = true
  assert.equal((await user.get('/', { headers: PAGE })).status, 200)
  assert.equal(upstream.received.at(-1)?.headers['x-forwarded-user'], 'zhangsan')
})

test('requests of 20 users with expired tokens call an unavailable provider once per pause, not once each', async t => {
  const { op, gateway, refreshes } = await open(t)
  const users = await Promise.all(Array.from({ length: 20 }, () => gateway.user()))
  gateway.passSeconds(HOUR)
  op.isAway = true
  const before = op.calls.length
  assert.equal((await users[0]?.get('/', { headers: PAGE }))?.status, 503)
  const tries = op.calls.length - before
  for (const user of users) assert.equal((await user.get('/', { headers: PAGE })).status, 503)
  assert.equal(op.calls.length - before, tries)
  op.isAway = false
  gateway.passSeconds(31)
  const asked = refreshes()
  for (const user of users) assert.equal((await user.get('/', { headers: PAGE })).status, 200)
  assert.equal(refreshes() - asked, users.length)
})

test('a pause after a failed refresh is over when the clock is set back', async t => {
  const { op, gateway, user } = await open(t)
  gateway.passSeconds(5 * HOUR)
  op.isAway = true
  assert.equal((await user.get('/', { headers: PAGE })).status, 503)
  op.isAway = false
  gateway.passSeconds(-2 * HOUR)
  assert.equal((await user.get('/', { headers: PAGE })).status, 200)
})

test('a provider that returns 500 for one user’s refresh does not block the refresh of another user', async t => {
  const { op, gateway, user } = await open(t)
  const other = await gateway.user()
  gateway.passSeconds(HOUR)
  let broken: string | null = null
  op.intercept = ({ path, form }, response) => {
    if (path !== '/token') return false
    broken ??= form.get('refresh_token')
    return form.get('refresh_token') === broken && response.writeHead(500).end()
  }
  assert.equal((await user.get('/', { headers: PAGE })).status, 503)
  assert.equal((await other.get('/', { headers: PAGE })).status, 200)
})

for (const [what, fail] of [
  ['429', (response: ServerResponse) => response.writeHead(429).end()],
  ['no response', (response: ServerResponse) => response.destroy()],
] as const)
  test(`a provider that answers one user’s refresh with ${what} does not block other users, unless a second user’s fails too`, async t => {
    const { op, gateway, user } = await open(t)
    const ofSameUser = await gateway.user()
    const [second, third] = [await gateway.user({ sub: 'sub-2' }), await gateway.user({ sub: 'sub-3' })]
    gateway.passSeconds(HOUR)
    const failing = new Set(op.issued.slice(0, 2).map(({ refresh_token }) => refresh_token))
    op.intercept = ({ path, form }, response) =>
      path === '/token' && failing.has(form.get('refresh_token') ?? '') && fail(response)
    const statuses = async (...clients: Client[]) => {
      const found: number[] = []
      for (const client of clients) found.push((await client.get('/', { headers: PAGE })).status)
      return found
    }
    const before = op.calls.length
    assert.deepEqual(await statuses(user), [503])
    const tries = op.calls.length - before
    assert.deepEqual(await statuses(ofSameUser), [503])
    assert.equal(op.calls.length - before, tries, 'the other sessions of this user wait')
    assert.deepEqual(await statuses(second), [200])
    gateway.passSeconds(HOUR)
    for (const { refresh_token } of op.issued.slice(2)) failing.add(refresh_token)
    assert.deepEqual(await statuses(user, second), [503, 503])
    const asked = op.calls.length
    assert.deepEqual(await statuses(third), [503])
    assert.equal(op.calls.length, asked, 'the third user waits')
  })

/** Another user, with this many sessions. */
async function openManySessions({ gateway }: Awaited<ReturnType<typeof open>>, count: number): Promise<Client[]> {
  const claims = { sub: 'sub-2', preferred_username: 'lisi' }
  return Promise.all(Array.from({ length: count }, () => gateway.user(claims)))
}

for (const [what, path] of [
  ['refresh', '/token'],
  ['identity refresh', '/userinfo'],
] as const)
  test(`a user with many sessions that are due does not delay the ${what} of another user`, async t => {
    const scene = await open(t, { PROVIDER_PARALLEL_CALLS: '1' })
    const { op, gateway, user } = scene
    const many = await openManySessions(scene, 8)
    gateway.passSeconds(HOUR)
    const before = op.callsTo(path).length
    const calls = () => op.callsTo(path).slice(before)
    const release = Promise.withResolvers<void>()
    op.intercept = call => call.path === path && release.promise
    const refreshed = op.callsTo('/token').length
    const allWait = async (sessions: number) => {
      if (path === '/userinfo') await until(() => op.callsTo('/token').length === refreshed + sessions)
      // The gateway answers this after it has read what was sent before.
      for (let n = 0; n < 3; n++) await gateway.visitor().get('/_menshen/health')
    }
    const pages = many.map(session => session.get('/', { headers: PAGE }))
    await until(() => calls().length === 1)
    await allWait(many.length)
    const page = user.get('/', { headers: PAGE })
    await allWait(many.length + 1)
    release.resolve()
    for (const { status } of await Promise.all([page, ...pages])) assert.equal(status, 200)
    const isOfUser = ({ form, authorization }: OidcCall) => {
      const issued = op.issued.find(
        ({ refresh_token, access_token }) =>
          refresh_token === form.get('refresh_token') || `Bearer ${access_token}` === authorization,
      )
      return issued !== undefined && decodeJwt(issued.id_token).sub === 'sub-1'
    }
    const place = calls().findIndex(isOfUser)
    assert.ok(place > 0 && place <= 2, `the other user's call was number ${place}`)
  })

test('while the provider is unavailable, an open WebSocket stays and a new one gets 503; invalid_grant then closes it', async t => {
  const { op, gateway, user, eventsOf, openSocket } = await open(t)
  const socket = await openSocket()
  op.isAway = true
  gateway.passSeconds(HOUR)
  await until(() => eventsOf('streams_unchecked').length > 0)
  assert.equal(socket.readyState, socket.OPEN)
  assert.equal(await refusal(dial(gateway, user)), 503)
  op.isAway = false
  op.intercept = ({ path }, response) =>
    path === '/token' &&
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'invalid_grant' }))
  gateway.passSeconds(31)
  await once(socket, 'close')
  assert.deepEqual(
    eventsOf('session_ended').map(({ reason }) => reason),
    ['refresh_failed'],
  )
})

test('a WebSocket is closed at the end of its session even if the provider stays unavailable', async t => {
  const { op, gateway, openSocket } = await open(t)
  const socket = await openSocket()
  op.isAway = true
  gateway.passSeconds(MAX_HOURS * HOUR)
  await once(socket, 'close')
})

test('session() and accessToken() reject with provider_unavailable during a provider outage and work again afterwards', async t => {
  const { op, gateway, user } = await open(t)
  const request = { headers: { cookie: cookieOf(user) } }
  const first = await gateway.menshen.accessToken(request)
  gateway.passSeconds(HOUR)
  op.isAway = true
  await assert.rejects(gateway.menshen.session(request), { code: 'provider_unavailable' })
  await assert.rejects(gateway.menshen.accessToken(request), { code: 'provider_unavailable' })
  op.isAway = false
  gateway.passSeconds(31)
  assert.equal((await gateway.menshen.session(request))?.userInfo.username, 'zhangsan')
  const second = await gateway.menshen.accessToken(request)
  assert.ok(second !== undefined && second !== first)
})

test('two processes on one store refresh an expired session once, and one takes over if the other is killed during a refresh', async t => {
  const op = await startOidcServer(t)
  op.now = Date.now
  op.expiresIn = 2
  const refreshes = () => op.callsTo('/token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length
  const { start } = await setUpInstances(t, { ...op.settings, PROVIDER_TIMEOUT_MS: '500' })
  const [one, other] = await Promise.all([start(), start()])
  const both = [one, other] as const
  const user = await signedInAt(one.url, Date.now)
  const cookie = cookieOf(user)
  const get = (instance: Instance) => createClient(instance.url).get('/', { headers: { cookie } })
  const expired = async () => {
    const end = Date.now() + op.expiresIn * 1000
    await until(() => Date.now() > end)
  }

  await expired()
  op.expiresIn = 3600
  const pages = await Promise.all(Array.from({ length: 40 }, (_, n) => get(both[n % 2] ?? one)))
  assert.ok(pages.every(isServed))
  assert.equal(refreshes(), 1)

  op.expiresIn = 2
  const second = await signedInAt(one.url, Date.now)
  await expired()
  op.expiresIn = 3600
  const asked = Promise.withResolvers<void>()
  op.intercept = ({ form }) => {
    if (form.get('grant_type') !== 'refresh_token') return false
    asked.resolve()
    return true
  }
  const cut = createClient(one.url)
    .get('/', { headers: { cookie: cookieOf(second) } })
    .catch(() => 'cut off')
  await asked.promise
  await one.kill('SIGKILL')
  op.intercept = undefined
  assert.equal(await cut, 'cut off')
  assert.ok(isServed(await createClient(other.url).get('/', { headers: { cookie: cookieOf(second) } })))
})
