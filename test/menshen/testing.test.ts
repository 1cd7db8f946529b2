// menshen/testing, as the tests of an application use it.

import assert from 'node:assert/strict'
import { Server, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { MenshenOptions } from '../../src/index.ts'
import { createTestMenshen } from '../../src/testing.ts'
import { freePort } from '../kit/free-port.ts'

async function open(t: TestContext, options: MenshenOptions = {}) {
  const auth = await createTestMenshen(options as MenshenOptions<string, string>)
  t.after(() => auth.close())
  return auth
}

const page = (cookie: string, path = '/') =>
  new Request(`http://localhost${path}`, { headers: { cookie, accept: 'application/json' } })

test('signIn of a test instance returns a cookie and the session of its requests, with the given fields and data', async t => {
  const auth = await open(t, { now: () => 1_000_000 })
  const { cookie, session } = await auth.signIn({
    username: 'ann',
    email: 'ann@example.com',
    dept: 'finance',
    groups: ['finance'],
    data: { tenant: 7 },
    expiresIn: 60,
  })
  assert.match(cookie, /^menshen_session=[\w-]{43}$/)
  const { user, answer } = await auth.admit(page(cookie))
  assert.equal(answer, undefined)
  assert.deepEqual(user, session)
  assert.deepEqual(
    [session.userInfo.username, session.userInfo.nickname, session.userInfo.email, session.userInfo.dept],
    ['ann', 'ann', 'ann@example.com', 'finance'],
  )
  assert.deepEqual(
    [session.userRole, session.groups, session.data, session.expiresAt],
    ['common', ['finance'], { tenant: 7 }, 1_060_000],
  )
  assert.ok(session.id && session.signal)
})

test('a test user has the role that signIn names, or else the one that the options give, and an unknown role is refused', async t => {
  const auth = await open(t, {
    roles: [{ role: 'auditor', groups: ['audit'] }],
    rules: [{ path: '/audit', roles: ['auditor'] }],
  })
  const roleOf = async (user: { groups?: string[]; role?: string }) =>
    (await auth.signIn({ username: 'ann', ...user })).session.userRole
  assert.equal(await roleOf({}), 'common')
  assert.equal(await roleOf({ groups: ['audit'] }), 'auditor')
  assert.equal(await roleOf({ role: 'auditor' }), 'auditor')
  assert.equal(await roleOf({ groups: ['audit'], role: 'common' }), 'common')
  const { cookie } = await auth.signIn({ username: 'ann', role: 'auditor' })
  assert.equal((await auth.admit(page(cookie, '/audit'))).answer, undefined)
  await assert.rejects(roleOf({ role: 'auditer' }), {
    code: 'bad_settings',
    message: 'signIn: role is "auditer"; expected one of "developer", "common", "auditor"; did you mean "auditor"?',
  })
})

test('signIn of a test instance refuses invalid values and names the field', async t => {
  const auth = await open(t)
  const wrong: [object, RegExp][] = [
    [{}, /expected a username/],
    [{ username: 'a', expiresIn: 0 }, /expiresIn: .* advance the clock that `now` of createTestMenshen returns/],
    [{ username: 'a', groups: 'x' }, /groups/],
    [{ username: 'a', email: 7 }, /email: expected text/],
    [{ username: 'a', data: [] }, /signIn: expected data to be an object/],
    [{ username: 'a', provider: 'x' }, /provider is "x"/],
  ]
  for (const [user, message] of wrong) await assert.rejects(auth.signIn(user as never), { message })
})

test('a test session ends with signOut or when it expires, and hooks do not run', async t => {
  let now = 1_000_000
  const calls: string[] = []
  const auth = await open(t, {
    now: () => now,
    onSignIn: () => void calls.push('in'),
    onSignOut: () => void calls.push('out'),
  })
  const { cookie, session } = await auth.signIn({ username: 'ann' })
  const late = await auth.signIn({ username: 'bob', expiresIn: 60 })
  await auth.signOut(cookie)
  assert.equal(await auth.session(page(cookie)), undefined)
  const { signal } = session
  if (!signal?.aborted) await new Promise(resolve => signal?.addEventListener('abort', resolve))
  assert.equal(session.signal, signal)
  now += 60_000
  assert.equal((await auth.admit(page(late.cookie))).answer?.status, 401)
  assert.deepEqual(calls, [])
})

test('a test instance starts, signs a user in and serves requests without a connection, with production options or without options', async t => {
  const production = {
    baseUrl: 'https://app.example.com',
    provider: { preset: 'oidc', issuer: 'https://idp.example.com', clientId: 'app', clientSecret: 'x' },
    store: `redis://127.0.0.1:${await freePort()}`,
  }
  const connect = t.mock.method(Socket.prototype, 'connect')
  const listen = t.mock.method(Server.prototype, 'listen')
  for (const [options, cookieName] of [
    [production, '__Host-menshen_session'],
    [{}, 'menshen_session'],
    [{ devProvider: true }, 'menshen_session'],
  ] as const) {
    const auth = await open(t, options)
    const origin = 'baseUrl' in options ? options.baseUrl : 'http://localhost'
    const { cookie } = await auth.signIn({ username: 'ann' })
    assert.equal(cookie.split('=')[0], cookieName)
    const headers = { cookie, origin }
    assert.equal((await auth.fetch(new Request(`${origin}/login`)))?.status, 200)
    await auth.fetch(new Request(`${origin}/login`, { method: 'POST', headers }))
    await auth.fetch(new Request(`${origin}/callback?code=x&state=y`))
    await auth.fetch(new Request(`${origin}/logout`, { method: 'POST', headers }))
  }
  assert.equal(connect.mock.callCount(), 0)
  assert.equal(listen.mock.callCount(), 0)
})

test('createTestMenshen refuses to start with NODE_ENV=production, regardless of its options', async t => {
  const before = process.env.NODE_ENV
  t.after(() => {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  })
  process.env.NODE_ENV = 'production'
  for (const options of [{}, { nodeEnv: 'test' }, { devProvider: true }, { baseUrl: 'http://localhost:3000' }])
    await assert.rejects(createTestMenshen(options), {
      code: 'bad_settings',
      message:
        'createTestMenshen: NODE_ENV is "production"; it signs in any user, and starts only in tests; expected test or development.',
    })
  process.env.NODE_ENV = 'test'
  await assert.rejects(createTestMenshen({ nodeEnv: 'production' }), { message: /NODE_ENV is "production"/ })
})
