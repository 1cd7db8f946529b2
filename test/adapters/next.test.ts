// The adapter for Next, called as Next calls it.
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { createMenshen, readSettings } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { current, type NextResponse, takeThePlaceOfNext } from './next-double.ts'

takeThePlaceOfNext()
const { menshen } = await import('../../src/adapters/next.ts')

const BASE = 'http://localhost:3000'
const LIFE = 7200
const PAGE = { accept: 'text/html' }

async function setUp(t: TestContext, options: { rateLimitPerMinute?: number } = {}) {
  const provider = await openScriptedProvider(t, { expiresIn: LIFE })
  const clock = { now: Date.parse('2026-03-01T08:00:00Z') }
  const rules = [
    { path: '/about', public: true as const },
    { path: '/reports', roles: ['developer' as const] },
  ]
  const usual = { ...provider.options, baseUrl: BASE, now: () => clock.now, rules, ...options }
  const starts: number[] = []
  const create = () => {
    starts.push(clock.now)
    return createMenshen(usual)
  }
  const adapter = menshen(create, { address: request => request.headers.get('x-real-ip') ?? undefined })
  t.after(async () => {
    const running = await adapter.start()
    forgetTheStart()
    await running.close()
  })
  const ask = (path: string, headers: Record<string, string> = {}) =>
    adapter.proxy(new Request(BASE + path, { headers: { ...PAGE, ...headers } }))
  /** The cookie of somebody who has just signed in. */
  const signIn = async (username = 'zhangsan') => {
    const answer = await ask(`/callback?code=${provider.codeFor({ username })}&state=abc_idp`)
    const cookie = answer.headers.getSetCookie().find(one => one.startsWith('menshen_session='))
    return cookie?.split(';')[0] ?? assert.fail('no session')
  }
  /** As a page does that was asked for with this cookie. */
  const within = <T>(cookie: string, work: () => Promise<T>) => current.run(new Headers({ cookie }), work)
  return { adapter, provider, clock, create, starts, ask, signIn, within }
}

/** It lives as long as the process, and each test wants its own. */
function forgetTheStart(): void {
  Reflect.deleteProperty(globalThis, Symbol.for('menshen/next'))
}

suite('the proxy of Next', () => {
  test('the proxy of Next answers our own paths, and leads visitors to the login page by a whole address', async t => {
    const { ask } = await setUp(t)
    assert.equal((await ask('/login')).status, 200)
    assert.equal((await ask('/_menshen/nothing')).status, 404)
    assert.equal((await ask('/callback')).headers.get('location'), `${BASE}/login?error=missing_code`)
    const visitor = await ask('/page')
    assert.deepEqual([visitor.status, visitor.headers.get('location')], [302, `${BASE}/login`])
    assert.equal((await ask('/page', { accept: 'application/json' })).status, 401)
  })

  test('the proxy of Next lets the application answer users who may see the page, and keeps that from shared caches', async t => {
    const { ask, signIn } = await setUp(t)
    const isPassedOn = ({ headers }: Response) => headers.get('x-middleware-next') === '1'
    const [common, developer] = [await signIn(), await signIn('admin')]
    const refused = await ask('/reports', { cookie: common })
    assert.equal(refused.status, 403)
    assert.ok(!isPassedOn(refused))
    const admitted = await ask('/reports', { cookie: developer })
    assert.ok(isPassedOn(admitted))
    assert.match(admitted.headers.get('cache-control') ?? '', /^private, .*no-store/)
    assert.match(admitted.headers.get('x-request-id') ?? '', /^[\w-]{8,128}$/)
    const visitors = await ask('/about')
    assert.ok(isPassedOn(visitors))
    assert.equal(visitors.headers.get('cache-control'), null)
  })

  test('the proxy of Next refreshes what is due and renews the cookie; the page that follows does not', async t => {
    const { adapter, ask, signIn, within, clock, provider } = await setUp(t)
    const cookie = await signIn()
    clock.now += (LIFE - 60) * 1000
    const answer = await ask('/', { cookie })
    assert.deepEqual(answer.headers.getSetCookie(), [`${cookie}; Path=/; Max-Age=${LIFE}; HttpOnly; SameSite=Lax`])
    assert.equal((await within(cookie, adapter.auth))?.expiresAt, clock.now + LIFE * 1000)
    assert.equal(provider.callsTo('refresh').length, 1)
  })

  test('the proxy of Next refuses an application below a basePath in one sentence', async t => {
    const { adapter } = await setUp(t)
    const request = Object.assign(new Request(`${BASE}/app/page`), { nextUrl: { basePath: '/app' } })
    await assert.rejects(adapter.proxy(request), {
      code: 'bad_settings',
      message: /basePath of next\.config is "\/app"/,
    })
  })

  test('the proxy of Next counts by the address that it is told', async t => {
    const { ask } = await setUp(t, { rateLimitPerMinute: 5 })
    const attempt = (address: string) => ask('/callback?code=x&state=abc_idp', { 'x-real-ip': address })
    const statuses = async (address: string) => {
      const answers = await Promise.all(Array.from({ length: 6 }, () => attempt(address)))
      return new Set(answers.map(({ status }) => status))
    }
    assert.ok((await statuses('192.0.2.1')).has(429))
    assert.notEqual((await attempt('192.0.2.2')).status, 429)
  })
})

suite('a machine behind Next', () => {
  test('a machine behind Next is known to pages that the proxy has let it in to, and to no others; no page gets a key', async t => {
    const provider = await startOidcServer(t)
    const key = newKey()
    const adapter = menshen(() =>
      createMenshen({
        settings: readSettings({ STORE: 'memory:', BASE_URL: BASE, ...provider.settings }),
        machines: [{ name: 'backup', keySha256: keySha256(key) }],
        rules: [
          { path: '/api', users: ['robot-1', 'machine:backup'], bearer: true, keys: true },
          { path: '/public', public: true },
        ],
        now: provider.now,
      }),
    )
    t.after(async () => {
      const running = await adapter.start()
      forgetTheStart()
      await running.close()
    })
    const claims = { sub: 'robot-1', client_id: 'robot', preferred_username: 'robot-1' }
    const authorization = `Bearer ${await provider.sign(claims, { typ: 'at+jwt' })}`
    const ask = async (path: string, headers: Record<string, string> = { authorization }) =>
      (await adapter.proxy(new Request(BASE + path, { headers }))) as NextResponse
    const { passedOn = assert.fail('the page knows nothing of it') } = await ask('/api/x')
    const user = await current.run(passedOn, adapter.auth)
    assert.deepEqual([user?.userInfo.sub, user?.machine], ['robot-1', true])
    const refused = await ask('/page')
    assert.deepEqual([refused.status, refused.passedOn], [401, undefined])
    const note = passedOn.get('x-menshen-machine') ?? assert.fail()
    const stolen = [{ authorization: 'Bearer other' }, {}].map(
      more => new Headers({ 'x-menshen-machine': note, ...more }),
    )
    for (const headers of [...stolen, new Headers({ authorization }), new Headers({ 'x-menshen-machine': 'made-up' })])
      assert.equal(await current.run(headers, adapter.auth), undefined)
    const withKey = await ask('/api/x', { authorization: `Bearer ${key}` })
    assert.deepEqual([...(withKey.passedOn?.keys() ?? [])], ['x-menshen-machine'])
    assert.equal((await current.run(withKey.passedOn ?? assert.fail(), adapter.auth))?.userInfo.sub, 'machine:backup')
    const visitor = await ask('/public', { authorization, 'x-menshen-key': key })
    assert.deepEqual([...(visitor.passedOn?.keys() ?? [])], ['authorization'])
    assert.equal((await ask('/public')).passedOn, undefined)
  })
})

suite('pages, route handlers and actions of Next', () => {
  test('pages, route handlers and actions of Next know who is there, and no one for a forged cookie or two', async t => {
    const { adapter, signIn, within } = await setUp(t)
    const cookie = await signIn()
    assert.equal((await within(cookie, adapter.auth))?.userInfo.username, 'zhangsan')
    assert.match((await within(cookie, adapter.accessToken)) ?? '', /./)
    await within(cookie, () => adapter.updateData({ tenant: 7 }))
    assert.deepEqual((await within(cookie, adapter.auth))?.data, { tenant: 7 })
    await assert.rejects(
      within('', () => adapter.updateData({ tenant: 8 })),
      { code: 'no_session' },
    )
    for (const wrong of ['', `menshen_session=${'A'.repeat(43)}`, `${cookie}; menshen_session=x`, `${cookie}x`]) {
      assert.equal(await within(wrong, adapter.auth), undefined, wrong)
      assert.equal(await within(wrong, adapter.accessToken), undefined, wrong)
    }
  })

  test('pages, route handlers and actions of Next lead visitors to the login page, and have nothing for those without the role', async t => {
    const { adapter, signIn, within } = await setUp(t)
    const [common, developer] = [await signIn(), await signIn('admin')]
    const forDevelopers = () => adapter.requireRole('developer')
    assert.equal((await within(common, adapter.requireUser)).userRole, 'common')
    assert.equal((await within(developer, forDevelopers)).userRole, 'developer')
    await assert.rejects(within('', adapter.requireUser), /redirect \/login/)
    await assert.rejects(within('', forDevelopers), /redirect \/login/)
    await assert.rejects(within(common, forDevelopers), /not found/)
    const requireNothing = adapter.requireRole as () => Promise<unknown>
    await assert.rejects(within(developer, requireNothing), { code: 'bad_settings' })
  })
})

suite('the start', () => {
  test('the start of Menshen in Next is one for all bundles of the process, and none outside of a request', async t => {
    const { adapter, create, starts, ask } = await setUp(t)
    await assert.rejects(adapter.auth(), /outside of a request/)
    await assert.rejects(adapter.accessToken(), /outside of a request/)
    assert.equal(starts.length, 0)
    const other = menshen(create)
    await Promise.all([ask('/'), other.proxy(new Request(BASE)), adapter.start()])
    assert.equal(await other.start(), await adapter.start())
    assert.equal(starts.length, 1)
  })

  test('the start of Menshen in Next that fails is tried again with the next request', async t => {
    const { create, adapter } = await setUp(t)
    const outcomes = [() => Promise.reject(new Error('no disk')), create]
    const { proxy } = menshen(() => (outcomes.shift() ?? assert.fail())())
    const both = await Promise.allSettled([proxy(new Request(BASE)), proxy(new Request(BASE))])
    for (const { status } of both) assert.equal(status, 'rejected')
    assert.equal((await proxy(new Request(`${BASE}/login`))).status, 200)
    assert.ok(await adapter.start())
  })
})
