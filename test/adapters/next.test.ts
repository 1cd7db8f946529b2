// The adapter for Next, called as Next calls it.
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createMenshen, type MenshenOptions, readSettings } from '../../src/index.ts'
import { createTestMenshen } from '../../src/testing.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { freePort } from '../kit/free-port.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { current, type NextResponse, takeThePlaceOfNext } from './next-double.ts'

takeThePlaceOfNext()
const { menshen } = await import('../../src/adapters/next.ts')

const BASE = 'http://localhost:3000'
const LIFE = 7200
const PAGE = { accept: 'text/html' }

/** The adapter with a provider and a clock of the test. */
async function setUpNextAdapter(t: TestContext, options: { rateLimitPerMinute?: number } = {}) {
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
    await (await adapter.start()).close()
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

suite('the Next.js proxy', () => {
  test('the Next.js proxy answers our own paths and redirects visitors to the login page with an absolute URL', async t => {
    const { ask } = await setUpNextAdapter(t)
    assert.equal((await ask('/login')).status, 200)
    assert.equal((await ask('/_menshen/nothing')).status, 404)
    assert.equal((await ask('/callback')).headers.get('location'), `${BASE}/login?error=missing_code`)
    const visitor = await ask('/page')
    assert.deepEqual([visitor.status, visitor.headers.get('location')], [302, `${BASE}/login`])
    assert.equal((await ask('/page', { accept: 'application/json' })).status, 401)
  })

  test('the Next.js proxy passes admitted users on to the application and keeps those responses out of shared caches', async t => {
    const { ask, signIn } = await setUpNextAdapter(t)
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

  test('the Next.js proxy refreshes due tokens and renews the cookie, and the page that follows does not refresh again', async t => {
    const { adapter, ask, signIn, within, clock, provider } = await setUpNextAdapter(t)
    const cookie = await signIn()
    clock.now += (LIFE - 60) * 1000
    const answer = await ask('/', { cookie })
    assert.deepEqual(answer.headers.getSetCookie(), [`${cookie}; Path=/; Max-Age=${LIFE}; HttpOnly; SameSite=Lax`])
    assert.equal((await within(cookie, adapter.auth))?.expiresAt, clock.now + LIFE * 1000)
    assert.equal(provider.callsTo('refresh').length, 1)
  })

  test('the Next.js proxy refuses an application with a basePath and names the basePath in the error', async t => {
    const { adapter } = await setUpNextAdapter(t)
    const request = Object.assign(new Request(`${BASE}/app/page`), { nextUrl: { basePath: '/app' } })
    await assert.rejects(adapter.proxy(request), {
      code: 'bad_settings',
      message: /basePath of next\.config is "\/app"/,
    })
  })

  test('the Next.js proxy limits requests by the client address that the address option returns', async t => {
    const { ask } = await setUpNextAdapter(t, { rateLimitPerMinute: 5 })
    const attempt = (address: string) => ask('/callback?code=x&state=abc_idp', { 'x-real-ip': address })
    const statuses = async (address: string) => {
      const answers = await Promise.all(Array.from({ length: 6 }, () => attempt(address)))
      return new Set(answers.map(({ status }) => status))
    }
    assert.ok((await statuses('192.0.2.1')).has(429))
    assert.notEqual((await attempt('192.0.2.2')).status, 429)
  })
})

suite('a machine behind Next.js', () => {
  test('a machine behind Next.js is known only to requests that the proxy has admitted, and no page receives its key', async t => {
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
      await (await adapter.start()).close()
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

suite('Next.js pages, route handlers and actions', () => {
  test('Next.js pages, route handlers and actions know the signed-in user, and no user for a forged or duplicate cookie', async t => {
    const { adapter, signIn, within } = await setUpNextAdapter(t)
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

  test('Next.js pages, route handlers and actions redirect visitors to the login page and answer not found without the role', async t => {
    const { adapter, signIn, within } = await setUpNextAdapter(t)
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
  test('Menshen in Next.js starts once for all bundles of the process, and not outside of a request', async t => {
    const { adapter, create, starts, ask } = await setUpNextAdapter(t)
    await assert.rejects(adapter.auth(), /outside of a request/)
    await assert.rejects(adapter.accessToken(), /outside of a request/)
    assert.equal(starts.length, 0)
    const other = menshen(create)
    await Promise.all([ask('/'), other.proxy(new Request(BASE)), adapter.start()])
    assert.equal(await other.start(), await adapter.start())
    assert.equal(starts.length, 1)
  })

  test('Menshen in Next.js retries a failed start with the next request', async t => {
    const { create, adapter } = await setUpNextAdapter(t)
    const outcomes = [() => Promise.reject(new Error('no disk')), create]
    const { proxy } = menshen(() => (outcomes.shift() ?? assert.fail())())
    const both = await Promise.allSettled([proxy(new Request(BASE)), proxy(new Request(BASE))])
    for (const { status } of both) assert.equal(status, 'rejected')
    assert.equal((await proxy(new Request(`${BASE}/login`))).status, 200)
    assert.ok(await adapter.start())
  })
})

/** A module with a call of createMenshen, as Next evaluates it: once in each bundle, and again after a change. */
async function evaluate(t: TestContext, options: MenshenOptions) {
  await nextTurn()
  const adapter = menshen(() => createMenshen(options))
  t.after(async () => (await adapter.start().catch(() => undefined))?.close())
  const ask = (path: string, cookie = '') =>
    adapter.proxy(new Request((options.baseUrl ?? BASE) + path, { headers: { ...PAGE, cookie } }))
  const isAdmitted = async (path: string, cookie = '') =>
    (await ask(path, cookie)).headers.get('x-middleware-next') === '1'
  const signIn = async (code: string) => {
    const { headers } = await ask(`/callback?code=${code}&state=abc_idp`)
    return headers.getSetCookie().find(one => one.startsWith('menshen_session=')) ?? assert.fail('no session')
  }
  return { ...adapter, ask, isAdmitted, signIn }
}

const DEVELOPERS_ALONE = [{ path: '/page', roles: ['developer' as const] }]

suite('a module that a development server evaluates again', () => {
  test('a changed rule applies in all bundles, users stay signed in with sessions in memory, and the old instance is closed', async t => {
    const provider = await openScriptedProvider(t, { expiresIn: LIFE })
    const options = { ...provider.options, baseUrl: BASE }
    const proxy = await evaluate(t, options)
    const page = await evaluate(t, { ...options })
    const unused = await evaluate(t, { ...options })
    const before = await proxy.start()
    assert.equal(await page.start(), before)
    const cookie = await proxy.signIn(provider.codeFor({ username: 'zhangsan' }))
    assert.ok(await proxy.isAdmitted('/page', cookie))

    const changed = await evaluate(t, { ...options, rules: DEVELOPERS_ALONE })
    assert.equal((await changed.ask('/page', cookie)).status, 403)
    assert.ok(await changed.isAdmitted('/', cookie))
    // Bundles from before the change follow, also one that is used for the first time.
    for (const { start } of [proxy, page, unused]) assert.equal(await start(), await changed.start())
    assert.equal((await before.admit(new Request(BASE))).answer?.status, 503)

    const undone = await evaluate(t, options)
    assert.ok(await undone.isAdmitted('/page', cookie))
  })

  test('invalid options fail every request until the next change, and users stay signed in', async t => {
    const provider = await openScriptedProvider(t, { expiresIn: LIFE })
    const options = { ...provider.options, baseUrl: BASE }
    const first = await evaluate(t, options)
    const cookie = await first.signIn(provider.codeFor({ username: 'zhangsan' }))
    const wrong = await evaluate(t, { ...options, rules: [{ path: 'page', public: true }] })
    for (let i = 0; i < 2; i++) await assert.rejects(wrong.ask('/', cookie), { code: 'bad_settings' })
    const unusable = await evaluate(t, { ...options, store: 'sqlite:/dev/null/menshen.db' })
    await assert.rejects(unusable.ask('/', cookie), { code: 'cannot_start' })
    const mended = await evaluate(t, { ...options, rules: DEVELOPERS_ALONE })
    assert.ok(await mended.isAdmitted('/', cookie))
  })

  test('after a module is evaluated again, its new hook is called, with the values that it captured', async t => {
    const provider = await openScriptedProvider(t, { expiresIn: LIFE })
    const evaluated = async (tenant: number) =>
      evaluate(t, { ...provider.options, baseUrl: BASE, onSignIn: () => ({ tenant }) })
    const first = await evaluated(1)
    const running = await first.start()
    const second = await evaluated(2)
    assert.equal(await second.start(), running)
    const cookie = await second.signIn(provider.codeFor({ username: 'zhangsan' }))
    assert.deepEqual((await current.run(new Headers({ cookie }), second.auth))?.data, { tenant: 2 })
  })

  test('the development provider on a fixed port outlasts changed rules, follows changed users and BASE_URL, and stops when turned off', async t => {
    t.mock.method(console, 'warn', () => {})
    const devProviderPort = await freePort()
    const options = { store: 'memory:', baseUrl: BASE, devProvider: true, devProviderPort }
    const usersOf = async () => {
      const redirect = encodeURIComponent(`${BASE}/callback`)
      const query = `response_type=code&client_id=menshen&redirect_uri=${redirect}&scope=read&state=abc_idp`
      return (await fetch(`http://localhost:${devProviderPort}/oauth/authorize?${query}`)).text()
    }
    const first = await evaluate(t, options)
    const login = await (await first.ask('/login')).text()
    const address = /data-authorize="([^"]*)"/.exec(login)?.[1]?.replaceAll('&amp;', '&')
    const body = new URLSearchParams({ username: 'zhangsan' })
    const back = await fetch(`${address}&state=abc_idp`, { method: 'POST', body, redirect: 'manual' })
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? assert.fail('no code')
    const ruled = await evaluate(t, { ...options, rules: DEVELOPERS_ALONE })
    // Another provider would not know the code.
    const cookie = await ruled.signIn(code)
    assert.equal((await ruled.ask('/page', cookie)).status, 403)
    const users = await evaluate(t, { ...options, devProvider: { users: [{ username: 'ann' }] } })
    await users.start()
    assert.match(await usersOf(), /ann/)
    const moved = await evaluate(t, { ...options, baseUrl: 'http://localhost:3999' })
    await moved.start()
    assert.equal((await moved.ask('/login')).status, 200)
    const real = await evaluate(t, { ...options, devProvider: false, baseUrl: 'http://localhost:3999' })
    await real.start()
    await assert.rejects(usersOf())
  })

  test('instances are independent if they have different base URLs, an instanceName, or are created in one evaluation', async t => {
    const provider = await openScriptedProvider(t, { expiresIn: LIFE })
    const options = { ...provider.options, baseUrl: BASE }
    const shop = await evaluate(t, options)
    const admin = await evaluate(t, { ...options, baseUrl: 'http://localhost:4000' })
    const named = await evaluate(t, { ...options, instanceName: 'named' })
    const together = ['/a', '/b'].map(path =>
      menshen(() => createMenshen({ ...options, baseUrl: 'http://localhost:5000', rules: [{ path, public: true }] })),
    )
    const starts = [shop, admin, named, ...together].map(({ start }) => start)
    t.after(() => Promise.all(starts.map(async start => (await start()).close())))
    const started = await Promise.all(starts.map(start => start()))
    assert.equal(new Set(started).size, starts.length)
    const changed = await evaluate(t, { ...options, instanceName: 'named', rules: [{ path: '/x', public: true }] })
    assert.ok(await changed.isAdmitted('/x'))
    const running = started.map(instance => instance !== started[2])
    const answers = await Promise.all(started.map(instance => instance.fetch(new Request(`${BASE}/login`))))
    assert.deepEqual(
      answers.map(answer => answer?.status === 200),
      running,
    )
  })

  test('in production each set of options has its own instance, and no instance is replaced', async t => {
    const provider = await openScriptedProvider(t, { expiresIn: LIFE })
    const settings = readSettings({
      ...provider.settings,
      STORE: 'memory:',
      BASE_URL: BASE,
      NODE_ENV: 'production',
      SECRET: 's'.repeat(32),
    })
    t.mock.method(console, 'warn', () => {})
    const first = await evaluate(t, { settings })
    const running = await first.start()
    const [bundle, other] = [await evaluate(t, { settings }), await evaluate(t, { settings, rules: DEVELOPERS_ALONE })]
    assert.equal(await bundle.start(), running)
    assert.notEqual(await other.start(), running)
    assert.equal(await first.start(), running)
    assert.equal((await first.ask('/login')).status, 200)
  })

  test('each Next.js adapter uses its own instance of menshen/testing', async t => {
    const adapters = [1, 2].map(() => menshen(() => createTestMenshen()))
    const [one, two] = await Promise.all(adapters.map(({ start }) => start()))
    t.after(() => Promise.all([one?.close(), two?.close()]))
    assert.notEqual(one, two)
  })
})
