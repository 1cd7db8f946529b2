// Menshen inside an application: who is signed in, our own routes as Request in and Response out, and the rules.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { suite, type TestContext, test } from 'node:test'
import { addCookies, createMenshen, readSettings, type Session, sendAnswer, type WithHeaders } from '../../src/index.ts'
import { createClient } from '../kit/client.ts'
import { EMBEDDED_URL, setUpEmbedded, TOKEN_LIFE } from '../kit/embedded.ts'
import { freePort } from '../kit/free-port.ts'
import { openHttp2 } from '../kit/http2-client.ts'
import { listen } from '../kit/listen.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { setUp } from '../kit/set-up.ts'

const PAGE = { accept: 'text/html' }
const SAME_HEADERS = ['content-type', 'cache-control', 'retry-after', 'set-cookie', 'location']

type AnyResponse = Pick<ServerResponse, 'getHeader' | 'setHeader' | 'headersSent' | 'writeHead' | 'end'>
const request = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  new Request(EMBEDDED_URL + path, { method, headers })

/** An application of node:http, and its address. */
async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return (await listen(t, createServer(listener))).url
}

suite('session', () => {
  test('session returns the signed-in user of a Request or a node:http message, and nothing secret', async t => {
    const { menshen, signIn, clock } = await setUpEmbedded(t)
    const cookie = await signIn({ username: 'admin', nickname: '管理员' })
    const session = await menshen.session(request('/', { cookie }))
    assert.equal(session?.userInfo.username, 'admin')
    assert.deepEqual(Object.keys(session), ['id', 'userInfo', 'userRole', 'groups', 'expiresAt'])
    assert.equal(session.userRole, 'developer')
    assert.deepEqual(session.groups, [])
    assert.equal(session.expiresAt, clock.now + TOKEN_LIFE * 1000)
    const url = await serve(t, async (message, response) => {
      response.end(JSON.stringify((await menshen.session(message, response)) ?? null))
    })
    assert.deepEqual((await createClient(url).get('/', { headers: { cookie } })).json(), session)
    assert.equal((await createClient(url).get('/')).json(), null)
  })

  test('session returns a separate copy to each caller', async t => {
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    const spoilt = (await menshen.session(request('/', { cookie }))) as unknown as { userInfo: { username: string } }
    spoilt.userInfo.username = 'admin'
    assert.notEqual((await menshen.session(request('/', { cookie })))?.userInfo.username, 'admin')
  })

  test('session returns no user for a forged cookie, two cookies or no headers, and reads a list of cookies as one header', async t => {
    const { menshen, signIn } = await setUpEmbedded(t)
    const cookie = await signIn()
    const nobody = [
      {},
      { cookie: 'menshen_session=forged' },
      { cookie: `menshen_session=${'A'.repeat(43)}` },
      { cookie: `${cookie}; menshen_session=other` },
      { cookie: [cookie, 'menshen_session=other'] as unknown as string },
      { cookie: `${cookie}x` },
    ]
    for (const headers of nobody) assert.equal(await menshen.session({ headers }), undefined, JSON.stringify(headers))
    assert.equal(await menshen.session({} as never), undefined)
    assert.ok(await menshen.session({ headers: { cookie: ['a=b', cookie] as unknown as string } }))
    assert.ok(await menshen.session({ headers: new Headers({ cookie }) }))
  })

  test('session refreshes once for concurrent callers, and sets the renewed cookie on each kind of response', async t => {
    const { menshen, signIn, clock, provider } = await setUpEmbedded(t)
    const cookie = await signIn()
    clock.now += (TOKEN_LIFE - 60) * 1000
    const response = new Response('page', { headers: { 'set-cookie': 'theirs=1' } })
    const headers = new Headers()
    const url = await serve(t, async (message, response) => {
      response.setHeader('set-cookie', 'theirs=1')
      await menshen.session(message, response)
      await menshen.session(message, response)
      response.end()
    })
    const [one, other, answer] = await Promise.all([
      menshen.session(request('/', { cookie }), response),
      menshen.session(request('/', { cookie }), headers),
      createClient(url).get('/', { headers: { cookie } }),
    ])
    assert.equal(provider.callsTo('refresh').length, 1)
    assert.equal(one?.expiresAt, clock.now + TOKEN_LIFE * 1000)
    assert.deepEqual(other, one)
    const renewed = `${cookie}; Path=/; Max-Age=${TOKEN_LIFE}; HttpOnly; SameSite=Lax`
    assert.deepEqual(response.headers.getSetCookie(), ['theirs=1', renewed])
    assert.deepEqual(headers.getSetCookie(), [renewed])
    assert.deepEqual(answer.setCookies, ['theirs=1', renewed])
    for (const value of [response.headers.get('cache-control'), answer.headers['cache-control']])
      assert.equal(value, 'no-store')
  })

  test('session keeps its cookie and no-store if the application sets headers afterwards, over HTTP/1.1 and HTTP/2', async t => {
    const { menshen, signIn, clock } = await setUpEmbedded(t)
    const cookie = await signIn()
    clock.now += (TOKEN_LIFE - 60) * 1000
    const theirs = { 'set-cookie': 'theirs=1', 'cache-control': 'public', 'surrogate-control': 'max-age=60' }
    const listener = async (message: WithHeaders & { url?: string }, response: AnyResponse) => {
      await menshen.session(message, response)
      if (message.url === '/head') return void response.writeHead(200, theirs).end('page')
      for (const [name, value] of Object.entries(theirs)) response.setHeader(name, value)
      response.end('page')
    }
    const url = await serve(t, listener as RequestListener)
    const session = await openHttp2(t, (await listen(t, createHttp2Server(listener as never))).url)
    for (const path of ['/', '/head']) {
      const stream = session.request({ ':path': path, cookie })
      const [byHttp2] = (await once(stream, 'response')) as [IncomingHttpHeaders]
      const { headers, setCookies } = await createClient(url).get(path, { headers: { cookie } })
      for (const [answer, cookies] of [
        [headers, setCookies],
        [byHttp2, byHttp2['set-cookie']],
      ] as const) {
        assert.deepEqual(cookies, ['theirs=1', `${cookie}; Path=/; Max-Age=${TOKEN_LIFE}; HttpOnly; SameSite=Lax`])
        assert.deepEqual([answer['cache-control'], answer['surrogate-control']], ['no-store', undefined])
      }
    }
  })

  test('session returns no user after a failed refresh, and clears the cookie', async t => {
    const { menshen, signIn, clock, provider } = await setUpEmbedded(t)
    const cookie = await signIn()
    clock.now += (TOKEN_LIFE - 60) * 1000
    provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } })
    const headers = new Headers()
    assert.equal(await menshen.session(request('/', { cookie }), headers), undefined)
    assert.deepEqual(headers.getSetCookie(), [
      'menshen_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
      'menshen_end_reason=refresh_failed; Path=/; Max-Age=600; HttpOnly; SameSite=Lax',
    ])
  })

  test('session has the fields that the configuration maps, empty if the provider returns no value', async t => {
    const fields = { employee_no: ['email'], floor: ['nowhere'] }
    const { menshen, signIn } = await setUpEmbedded(t, { provider: { preset: 'idaas', fields } })
    const session = await menshen.session(request('/', { cookie: await signIn({ email: 'a@b.example' }) }))
    const { employee_no, floor }: Record<string, string> = session?.userInfo ?? assert.fail()
    assert.deepEqual({ employee_no, floor }, { employee_no: 'a@b.example', floor: '' })
  })
})

suite('onSignIn and onSignOut', () => {
  test('the data that onSignIn returns stays with the session through a refresh and is passed to onSignOut', async t => {
    const heard: [hook: string, user: Session][] = []
    const { menshen, signIn, clock } = await setUpEmbedded(t, {
      onSignIn: async user => {
        heard.push(['in', user])
        return { tenant: 7, 部门: ['财务'], at: new Date(0) }
      },
      onSignOut: user => void heard.push(['out', user]),
    })
    const cookie = await signIn({ username: 'admin' })
    const data = { tenant: 7, 部门: ['财务'], at: '1970-01-01T00:00:00.000Z' }
    const session = await menshen.session(request('/', { cookie }))
    assert.deepEqual(session?.data, data)
    Object.assign(session.data ?? {}, { tenant: 8 })
    clock.now += (TOKEN_LIFE - 60) * 1000
    assert.deepEqual((await menshen.session(request('/', { cookie })))?.data, data)
    const post = new Request(`${EMBEDDED_URL}/logout`, { method: 'POST', headers: { cookie, origin: EMBEDDED_URL } })
    assert.equal((await menshen.fetch(post))?.status, 303)
    assert.deepEqual(
      heard.map(([hook, { userInfo, userRole, data: known }]) => [hook, userInfo.username, userRole, known]),
      [
        ['in', 'admin', 'developer', undefined],
        ['out', 'admin', 'developer', data],
      ],
    )
    assert.equal(await menshen.session(request('/', { cookie })), undefined)
  })

  test('a user is not signed in if onSignIn refuses, fails or returns invalid data', async t => {
    const results: [error: string, result: () => unknown][] = [
      ['access_denied', () => false],
      ['callback_error', () => Promise.reject(new Error('no such tenant'))],
      ['callback_error', () => 'text'],
      ['callback_error', () => ({ long: 'x'.repeat(16 * 1024) })],
      ['callback_error', () => new Map([['tenant', 7]])],
      ['callback_error', () => ({ within: new (class Tenant {})() })],
    ]
    for (const [error, result] of results) {
      const { get, provider, lines } = await setUpEmbedded(t, { onSignIn: result as never })
      const answer = await get(`/callback?code=${provider.codeFor({})}&state=abc_idp`)
      assert.equal(answer?.headers.get('location'), `/login?error=${error}`)
      assert.deepEqual(
        answer.headers.getSetCookie().filter(one => one.startsWith('menshen_session=')),
        [],
      )
      const failed = lines.find(({ event }) => event === 'sign_in_failed')
      assert.equal(Object(failed?.fields).reason, error)
      if (error === 'callback_error') {
        assert.equal(Object(failed?.fields).hook, 'onSignIn')
        assert.equal(Object(failed?.fields).user, 'zhangsan')
      }
      assert.ok(!lines.some(({ event }) => event === 'sign_in'))
    }
  })

  test('a session has no data if onSignIn returns true, null or undefined', async t => {
    for (const result of [true, null, undefined]) {
      const { menshen, signIn } = await setUpEmbedded(t, { onSignIn: () => result })
      const session = await menshen.session(request('/', { cookie: await signIn() }))
      assert.ok(session && !('data' in session))
    }
  })

  test('a failed hook is written to console.error if no log is configured', async t => {
    const said = t.mock.method(console, 'error', () => {})
    const failure = new Error('no such tenant')
    const { get, provider } = await setUpEmbedded(t, { log: undefined, onSignIn: () => Promise.reject(failure) })
    await get(`/callback?code=${provider.codeFor({ username: 'lisi' })}&state=abc_idp`)
    const out = await setUpEmbedded(t, { log: undefined, onSignOut: () => Promise.reject(failure) })
    const cookie = await out.signIn({ username: 'lisi' })
    await out.menshen.fetch(
      new Request(`${EMBEDDED_URL}/logout`, { method: 'POST', headers: { cookie, origin: EMBEDDED_URL } }),
    )
    assert.deepEqual(
      said.mock.calls.map(call => call.arguments),
      ['onSignIn', 'onSignOut'].map(hook => [`Menshen: ${hook} failed for lisi:`, failure]),
    )
  })

  test('a failing onSignOut does not prevent a sign-out, and a hook that is not a function is a startup error', async t => {
    const { menshen, signIn, lines } = await setUpEmbedded(t, { onSignOut: () => Promise.reject(new Error('away')) })
    const cookie = await signIn()
    const post = new Request(`${EMBEDDED_URL}/logout`, { method: 'POST', headers: { cookie, origin: EMBEDDED_URL } })
    assert.equal((await menshen.fetch(post))?.status, 303)
    assert.equal(await menshen.session(request('/', { cookie })), undefined)
    assert.ok(lines.some(({ event }) => event === 'hook_failed'))
    await assert.rejects(createMenshen({ store: 'memory:', onSignIn: 'x' } as never), {
      message: /^onSignIn is the text "x"; expected a function that takes the user\.$/,
    })
  })
})

suite('a hook that never settles', () => {
  const never = (t: TestContext, called: () => void) => () => {
    // Only the deadline of the hook is left to the test.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    called()
    return new Promise<undefined>(() => {})
  }

  test('an onSignOut hook that never settles does not prevent a sign-out', async t => {
    const called = Promise.withResolvers<void>()
    const { menshen, signIn, lines } = await setUpEmbedded(t, { onSignOut: never(t, called.resolve) })
    const cookie = await signIn()
    const answer = menshen.fetch(
      new Request(`${EMBEDDED_URL}/logout`, { method: 'POST', headers: { cookie, origin: EMBEDDED_URL } }),
    )
    await called.promise
    t.mock.timers.tick(10_000)
    t.mock.timers.reset()
    assert.equal((await answer)?.status, 303)
    assert.equal(await menshen.session(request('/', { cookie })), undefined)
    assert.deepEqual(
      lines.filter(({ event }) => event === 'hook_failed').map(({ fields }) => Object(fields).hook),
      ['onSignOut'],
    )
  })

  test('an onSignIn hook that never settles fails its own sign-in and does not block other users', async t => {
    const called = Promise.withResolvers<void>()
    const hang = never(t, called.resolve)
    const { get, signIn, provider, lines } = await setUpEmbedded(t, {
      providerParallelCalls: 1,
      onSignIn: ({ userInfo }) => (userInfo.username === 'slow' ? hang() : undefined),
    })
    const slow = get(`/callback?code=${provider.codeFor({ username: 'slow' })}&state=abc_idp`)
    await called.promise
    assert.ok(await signIn({ username: 'other' }), 'the only slot at the provider is free')
    t.mock.timers.tick(10_000)
    t.mock.timers.reset()
    assert.equal((await slow)?.headers.get('location'), '/login?error=callback_error')
    assert.deepEqual(
      lines.filter(({ event }) => event === 'hook_failed').map(({ fields }) => Object(fields).hook),
      ['onSignIn'],
    )
    assert.ok(lines.some(({ event, fields }) => event === 'sign_in_failed' && Object(fields).error === 'hook_timeout'))
  })
})

suite('accessToken', () => {
  test('accessToken returns the session’s token, refreshed if due, and never an expired one', async t => {
    const { menshen, signIn, clock, provider } = await setUpEmbedded(t)
    const cookie = await signIn()
    const first = await menshen.accessToken(request('/', { cookie }))
    assert.ok(first && provider.livingTokens.includes(first))
    clock.now += (TOKEN_LIFE - 60) * 1000
    const [second, same] = await Promise.all([1, 2].map(() => menshen.accessToken(request('/', { cookie }))))
    assert.equal(second, same)
    assert.notEqual(second, first)
    assert.ok(second && provider.livingTokens.includes(second))
    clock.now += TOKEN_LIFE * 1000
    assert.equal(await menshen.accessToken(request('/', { cookie })), undefined)
    assert.equal(await menshen.accessToken(request('/')), undefined)
  })
})

suite('fetch', () => {
  test('fetch handles Menshen’s own routes and returns undefined for other paths', async t => {
    const { get } = await setUpEmbedded(t)
    const login = await get('/login')
    assert.equal(login?.status, 200)
    assert.match(login.headers.get('content-type') ?? '', /^text\/html/)
    assert.match(login.headers.get('x-request-id') ?? '', /^[\w-]{8,128}$/)
    assert.equal((await get('/_menshen/health'))?.status, 200)
    assert.equal((await get('/_menshen/nothing'))?.status, 404)
    assert.equal((await get('/_menshen/check'))?.status, 401)
    assert.equal((await get('/_menshen/x/../../login'))?.status, 200)
    for (const path of ['/', '/login/', '/loginx', '/a%2Fb', '/_menshe']) assert.equal(await get(path), undefined, path)
  })

  test('fetch reads a form of up to 16 KiB, and refuses one that was already read', async t => {
    const { menshen, lines } = await setUpEmbedded(t, { stateCheck: 'bound', clientTimeoutMs: 100 })
    const post = (body: BodyInit | null, headers: Record<string, string> = { origin: EMBEDDED_URL }) =>
      new Request(`${EMBEDDED_URL}/login`, { method: 'POST', body, headers, duplex: 'half' } as RequestInit)
    assert.equal((await menshen.fetch(post(new URLSearchParams({ provider: '' }))))?.status, 303)
    assert.equal((await menshen.fetch(post(null)))?.status, 303)
    assert.equal((await menshen.fetch(post('x'.repeat(16 * 1024 + 1))))?.status, 413)
    assert.equal((await menshen.fetch(post('a', { origin: 'https://evil.example' })))?.status, 403)
    assert.equal((await menshen.fetch(post(new ReadableStream())))?.status, 400)
    assert.ok(lines.some(({ event }) => event === 'client_cut_off'))
    const read = post('provider=')
    await read.text()
    assert.equal((await menshen.fetch(read))?.status, 400)
    assert.ok(lines.some(({ event }) => event === 'form_already_read'))
  })

  test('fetch applies the rate limit by the given address, and no limit without an address', async t => {
    const { get, lines } = await setUpEmbedded(t, { rateLimitPerMinute: 1, trustedProxies: '10.0.0.1' })
    const state = '/callback?code=x&state=abc_idp'
    const status = async (source: object, headers = {}) => (await get(state, headers, source))?.status
    assert.equal(await status({ address: '192.0.2.1' }), 302)
    assert.equal(await status({ address: '192.0.2.1' }, { 'x-forwarded-for': '192.0.2.9' }), 429)
    assert.equal(await status({ address: '10.0.0.1' }, { 'x-forwarded-for': '192.0.2.2' }), 302)
    assert.equal(await status({ address: '10.0.0.1' }, { 'x-forwarded-for': '192.0.2.2' }), 429)
    for (let n = 0; n < 3; n++) assert.equal(await status({}, { 'x-forwarded-for': '192.0.2.1' }), 302)
    assert.equal(lines.filter(({ event }) => event === 'address_unknown').length, 1)
  })
})

suite('admit', () => {
  const rules = [
    { path: '/public', public: true as const },
    { path: '/finance', roles: ['developer'] },
  ]

  test('admit lets users through, redirects visitors to login, returns 401 to scripts, and enforces the rules', async t => {
    const { menshen, signIn } = await setUpEmbedded(t, { rules })
    const cookie = await signIn({ username: 'lisi' })
    const admitted = await menshen.admit(request('/page', { cookie }))
    assert.equal(admitted.answer, undefined)
    assert.equal(admitted.user?.userInfo.username, 'lisi')
    const visitor = await menshen.admit(request('/page?x=1', PAGE))
    assert.equal(visitor.answer?.status, 302)
    assert.equal(visitor.answer.headers.get('location'), '/login')
    assert.match(visitor.answer.headers.getSetCookie().join(), /^menshen_return=/)
    assert.equal((await menshen.admit(request('/page', { accept: 'application/json' }))).answer?.status, 401)
    assert.equal((await menshen.admit(request('/page', PAGE, 'POST'))).answer?.status, 401)
    assert.equal((await menshen.admit(request('/finance/a', { ...PAGE, cookie }))).answer?.status, 403)
    const { requestId, require, ...rest } = await menshen.admit(request('/public/a'))
    assert.deepEqual(rest, { cookies: [] })
    assert.match(requestId, /^[\w-]{8,128}$/)
    assert.equal((await menshen.admit(request('/public/a', { cookie }))).user?.userRole, 'common')
    // Whatever stands at our own address is ours.
    assert.equal((await menshen.admit(request('/login'))).answer?.status, 200)
  })

  test('the require function of admit demands a signed-in user or one of the given roles beyond the rules', async t => {
    const { menshen, signIn, lines } = await setUpEmbedded(t, { rules })
    const cookie = await signIn({ username: 'lisi' })
    const user = await menshen.admit(request('/public/a', { ...PAGE, cookie }))
    assert.equal(user.require(), undefined)
    assert.equal(user.require(['developer', 'common']), undefined)
    const refused = user.require(['developer'])
    assert.equal(refused?.status, 403)
    assert.equal(refused.headers.get('x-request-id'), user.requestId)
    assert.match(await refused.text(), new RegExp(`lisi[^]*${user.requestId}`))
    assert.ok(
      lines.some(
        ({ event, fields }) => event === 'refused' && 'requestId' in fields && fields.requestId === user.requestId,
      ),
    )
    assert.equal(user.require([])?.status, 403)
    // JavaScript has no types, and `includes` of a text compares parts.
    for (const roles of ['common', 'm', '', {}])
      assert.throws(
        () => user.require(roles as unknown as string[]),
        /^MenshenError: require: expected a list of roles/,
      )
    const visitor = await menshen.admit(request('/public/a', PAGE))
    assert.equal(visitor.require()?.headers.get('location'), '/login')
    const script = await menshen.admit(request('/public/a', { accept: 'application/json' }))
    assert.equal(script.require(['developer'])?.status, 401)
    const own = await menshen.admit(request('/login'))
    assert.equal(own.require(), own.answer)
  })

  test('admit applies the rules to the canonical path, and refuses ambiguous paths with 400', async t => {
    const { menshen, signIn } = await setUpEmbedded(t, { rules })
    const cookie = await signIn({ username: 'lisi' })
    const url = await serve(t, async (message, response) => {
      const { answer } = await menshen.admit(message)
      if (answer) await sendAnswer(response, answer)
      else response.end('application')
    })
    const status = async (path: string) => (await createClient(url).get(path, { headers: { cookie } })).status
    assert.equal(await status('/page'), 200)
    for (const path of ['/finance', '/f%69nance', '/FINANCE', '/finance/']) assert.equal(await status(path), 403, path)
    for (const path of ['/public/../finance', '/public/%2e%2e/finance', '//finance', '/public%2f..%2ffinance', '*'])
      assert.equal(await status(path), 400, path)
    for (const path of ['/f%69nance', '/public/../finance', '/FINANCE'])
      assert.equal((await menshen.admit(request(path, { cookie }))).answer?.status, 403, path)
  })

  test('admit accepts a machine’s token where a rule allows it, and session returns the admitted machine', async t => {
    const provider = await startOidcServer(t)
    const menshen = await createMenshen({
      settings: readSettings({ STORE: 'memory:', ...provider.settings }),
      roles: [{ role: 'robot', groups: ['robots'] }],
      rules: [{ path: '/api', roles: ['robot'], bearer: true }],
      now: provider.now,
    })
    t.after(() => menshen.close())
    const robot = { sub: 'robot-1', client_id: 'robot', groups: ['robots'] }
    const authorization = `Bearer ${await provider.sign(robot, { typ: 'at+jwt' })}`
    const { user, answer } = await menshen.admit(request('/api', { authorization }))
    assert.equal(answer, undefined)
    assert.deepEqual([user?.userInfo.sub, user?.userRole, user?.groups], ['robot-1', 'robot', ['robots']])
    assert.ok(user && user.expiresAt > provider.now())
    assert.equal((await menshen.admit(request('/page', { authorization }))).answer?.status, 401)
    assert.equal((await menshen.admit(request('/api', { authorization: 'Bearer x' }))).answer?.status, 401)
    assert.equal(await menshen.session(request('/api', { authorization })), undefined)
    assert.equal(user.machine, true)
    // A handler behind an adapter has the request that was admitted.
    const admitted = request('/api', { authorization })
    await menshen.admit(admitted)
    assert.deepEqual(await menshen.session(admitted), user)
    const refused = request('/page', { authorization })
    await menshen.admit(refused)
    assert.equal(await menshen.session(refused), undefined)
    assert.equal(await menshen.accessToken(request('/api', { authorization })), undefined)
  })

  test('admit refuses a WebSocket from another site with 403', async t => {
    const { menshen, signIn, lines } = await setUpEmbedded(t)
    const cookie = await signIn()
    const upgrade = { cookie, upgrade: 'websocket', connection: 'upgrade' }
    const statusFor = async (origin: string) =>
      (await menshen.admit(request('/socket', { ...upgrade, origin }))).answer?.status
    assert.equal(await statusFor(EMBEDDED_URL), undefined)
    assert.equal(await statusFor('https://evil.example'), 403)
    assert.ok(lines.some(({ event }) => event === 'foreign_origin'))
  })

  test('admit treats a request without headers as a visitor’s', async t => {
    const { menshen } = await setUpEmbedded(t)
    const bare = { method: 'GET', url: '/' } as unknown as IncomingMessage
    assert.equal((await menshen.admit(bare)).answer?.status, 302)
    assert.equal((await menshen.admit(new Request(EMBEDDED_URL))).answer?.status, 302)
  })

  test('admit uses the original URL of a message whose path a framework has shortened', async t => {
    const { menshen } = await setUpEmbedded(t, { rules })
    const message = { method: 'GET', url: '/', originalUrl: '/finance/', headers: PAGE, socket: {} }
    assert.equal((await menshen.admit(message as unknown as IncomingMessage)).answer?.status, 302)
  })

  test('admit returns the cookies of a renewed session for the application’s response', async t => {
    const { menshen, signIn, clock } = await setUpEmbedded(t)
    const cookie = await signIn()
    clock.now += (TOKEN_LIFE - 60) * 1000
    const { user, cookies } = await menshen.admit(request('/', { cookie }))
    assert.ok(user)
    const answer = new Response('x')
    addCookies(answer, cookies)
    assert.deepEqual(answer.headers.getSetCookie(), [
      `${cookie}; Path=/; Max-Age=${TOKEN_LIFE}; HttpOnly; SameSite=Lax`,
    ])
  })

  test('during a store outage admit and fetch return the same 503 as the gateway, and session rejects with store_unavailable', async t => {
    const STORE = `redis://127.0.0.1:${await freePort()}`
    const { menshen } = await setUpEmbedded(t, { store: STORE })
    const gateway = await setUp(t, { env: { STORE } })
    const cookie = `menshen_session=${'A'.repeat(43)}`
    // The id differs with every request.
    const parts = (status = 0, headers: Headers, text: string) => ({
      status,
      headers: SAME_HEADERS.map(name => headers.get(name)),
      text: text.replaceAll(headers.get('x-request-id') ?? '', ''),
    })
    for (const accept of ['text/html', 'application/json'])
      for (const path of ['/', '/_menshen/me']) {
        const asked = { accept, cookie }
        const ofGateway = await fetch(gateway.url + path, { headers: asked, redirect: 'manual' })
        const ask = () => request(path, asked)
        const answer = path === '/' ? (await menshen.admit(ask())).answer : await menshen.fetch(ask())
        assert.ok(answer)
        const expected = parts(ofGateway.status, ofGateway.headers, await ofGateway.text())
        assert.equal(expected.status, 503)
        assert.deepEqual(parts(answer.status, answer.headers, await answer.text()), expected)
      }
    const headers = { ...PAGE, cookie }
    const { answer, user } = await menshen.admit(request('/', headers))
    assert.equal(answer?.status, 503)
    assert.equal(user, undefined)
    await assert.rejects(menshen.session(request('/', headers)), { code: 'store_unavailable' })
    assert.equal((await menshen.fetch(request('/_menshen/me', headers)))?.status, 503)
  })

  test('admit accepts a form that a framework has already parsed', async t => {
    const { menshen } = await setUpEmbedded(t, { stateCheck: 'bound' })
    const url = await serve(t, async (message: IncomingMessage & { body?: unknown }, response) => {
      const text = (await message.toArray()).join('')
      if (message.headers['x-parsed']) message.body = Object.fromEntries(new URLSearchParams(text))
      const { answer } = await menshen.admit(message)
      if (answer) await sendAnswer(response, answer)
    })
    const post = (headers: Record<string, string>) =>
      createClient(url).post('/login', { provider: 'default' }, { headers: { origin: EMBEDDED_URL, ...headers } })
    assert.equal((await post({ 'x-parsed': 'yes' })).status, 303)
    assert.equal((await post({})).status, 400)
  })
})

suite('sendAnswer', () => {
  test('sendAnswer keeps the application’s cookies and replaces one of the same name', async t => {
    const url = await serve(t, (_, response: ServerResponse) => {
      response.setHeader('set-cookie', ['theirs=1', 'ours=old'])
      sendAnswer(response, new Response('x', { headers: { 'set-cookie': 'ours=new' } }))
    })
    assert.deepEqual((await createClient(url).get('/')).setCookies, ['theirs=1', 'ours=new'])
  })

  test('sendAnswer sends a complete body with Content-Length and streams a slow one as it arrives', async t => {
    const { promise: later, resolve: goOn } = Promise.withResolvers<void>()
    const slow = () =>
      new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from('first'))
          await later
          controller.enqueue(Buffer.from('second'))
          controller.close()
        },
      })
    const url = await serve(t, ({ url }, response: ServerResponse) => {
      sendAnswer(response, new Response(url === '/slow' ? slow() : '整页'))
    })
    const whole = await createClient(url).get('/')
    assert.equal(whole.headers['content-length'], '6')
    assert.equal(whole.text, '整页')
    const reader = (await fetch(`${url}/slow`)).body?.getReader()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'first')
    goOn()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'second')
    assert.equal((await reader?.read())?.done, true)
  })

  test('sendAnswer cancels the stream and resolves when the client disconnects', async t => {
    const cancelled = Promise.withResolvers<void>()
    const sent = Promise.withResolvers<void>()
    const url = await serve(t, (_, response) => {
      const body = new ReadableStream({
        start: controller => controller.enqueue(Buffer.from('first')),
        cancel: () => cancelled.resolve(),
      })
      sendAnswer(response, new Response(body)).then(sent.resolve, sent.reject)
    })
    const leaving = new AbortController()
    const { body } = await fetch(url, { signal: leaving.signal })
    await body?.getReader().read()
    leaving.abort()
    await Promise.all([cancelled.promise, sent.promise])
  })
})
