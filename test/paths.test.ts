// LOGIN_PATH, CALLBACK_PATH and LOGOUT_PATH: our own paths can be moved, and the old ones belong to the application.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { refuseTakenPaths } from '../src/config/conflicts.ts'
import { readSettings } from '../src/index.ts'
import { createCommandRunner } from './kit/command-runner.ts'
import { setUp } from './kit/set-up.ts'
import { tempFolder } from './kit/temp.ts'

const commands = createCommandRunner()
const MOVED = { LOGIN_PATH: '/_menshen/login', CALLBACK_PATH: '/_menshen/callback', LOGOUT_PATH: '/_menshen/logout' }

test('sign-in and sign-out work on moved paths, redirect_uri is moved too, and the application gets the old paths', async t => {
  const { client, provider, baseUrl, upstream } = await setUp(t, { env: MOVED })
  const away = await client.get('/reports?x=1')
  assert.deepEqual([away.status, away.headers.location], [302, '/_menshen/login'])
  const page = await client.follow(away)
  assert.match(
    page.text,
    /<form id="sign-in"[^>]* action="\/_menshen\/login"[^>]* data-callback="\/_menshen\/callback"/,
  )
  const started = await client.post('/_menshen/login')
  const target = new URL(started.headers.location ?? '')
  assert.equal(target.searchParams.get('redirect_uri'), `${baseUrl}/_menshen/callback`)
  const state = target.searchParams.get('state')
  const back = await client.get(`/_menshen/callback?code=${provider.codeFor()}&state=${state}`)
  assert.equal(back.headers.location, '/reports?x=1')
  assert.ok(back.setCookies.some(cookie => /^menshen_fragment=; Path=\/_menshen\/callback;/.test(cookie)))
  assert.equal((await client.get('/reports')).text, 'hello')
  for (const path of ['/login', '/callback?code=c&state=a_idp', '/logout', '/callback/staff']) {
    assert.equal((await client.get(path)).text, 'hello', path)
    assert.equal(upstream.last().target, path)
  }
  const me = await client.get('/_menshen/me')
  assert.equal(me.headers.link, '</_menshen/login>; rel="login", </_menshen/logout>; rel="logout"')
  const account = await client.get('/_menshen/account')
  assert.match(account.text, /action="\/_menshen\/logout"/)
  const out = await client.post('/_menshen/logout')
  assert.deepEqual([out.status, out.headers.location], [303, '/_menshen/login'])
  const gone = await client.get('/_menshen/me')
  assert.deepEqual([gone.status, gone.json<{ login: string }>().login], [401, '/_menshen/login'])
})

test('a moved sign-in path is not accepted as a return path, and the old paths are', async t => {
  const { provider, visitor } = await setUp(t, { env: MOVED })
  for (const [wanted, expected] of [
    ['/login', '/login'],
    ['/logout', '/logout'],
    ['/callback?code=x', '/callback?code=x'],
    ['/_menshen/login?return=/x', '/'],
  ] as const) {
    const client = visitor()
    await client.get(wanted)
    const back = await client.get(`/_menshen/callback?code=${provider.codeFor()}&state=a_idp`)
    assert.equal(back.headers.location, expected, wanted)
  }
})

test('a named provider has its callback below CALLBACK_PATH, and /callback/<id> belongs to the application', async t => {
  const { client, baseUrl, provider } = await setUp(t, {
    env: { CALLBACK_PATH: '/auth/back', AUTH_URL: '', CLIENT_ID: '', CLIENT_SECRET: '' },
    config: {
      providers: {
        staff: { preset: 'idaas', clientId: 'a', clientSecret: 'b', vars: { auth_url: 'http://localhost:1' } },
      },
    },
  })
  assert.ok(provider)
  const started = await client.post('/login')
  const target = new URL(started.headers.location ?? '')
  assert.equal(target.searchParams.get('redirect_uri'), `${baseUrl}/auth/back/staff`)
  assert.match((await client.get('/auth/back/staff')).headers.location ?? '', /error=missing_code/)
  assert.equal((await client.get('/callback/staff')).headers.location, '/login', 'as any page')
})

test('a rule can cover the old sign-in path only after it is moved', async t => {
  const { client } = await setUp(t, { env: MOVED, config: { rules: [{ path: '/login', public: true }] } })
  assert.equal((await client.get('/login')).text, 'hello')
  assert.throws(
    () => refuseTakenPaths({}, { rules: [{ path: '/login', public: true }] }),
    /rules\.0\.path: this path belongs to Menshen; leave it out/,
  )
})

test('an invalid, reserved or overlapping LOGIN_PATH, CALLBACK_PATH or LOGOUT_PATH is refused with one sentence', () => {
  const bad = [
    '/',
    'login',
    '/login/',
    '/login?x=1',
    '/login#x',
    '/log*',
    '/:id',
    '/a//b',
    '/a/../b',
    '/.well',
    '/登录',
  ]
  const taken = ['/_menshen', '/_menshen/account', '/_menshen/console/x', '/_menshen/assets/x', '/_menshen/ME']
  for (const path of [...bad, ...taken])
    assert.throws(
      () => readSettings({ LOGIN_PATH: path }),
      /^MenshenError: LOGIN_PATH is ".*"; expected a path of letters, .* for example \/_menshen\/login\.$/,
      path,
    )
  for (const paths of [
    { LOGIN_PATH: '/callback' },
    { LOGIN_PATH: '/Callback' },
    { LOGIN_PATH: '/callback/login' },
    { LOGIN_PATH: '/auth', CALLBACK_PATH: '/auth/callback' },
    { LOGOUT_PATH: '/login/out' },
  ])
    assert.throws(() => readSettings(paths), /expected different paths, neither below the other\.$/)
})

test('a start and menshen check refuse a LOGIN_PATH below the prefix of an upstream, and menshen check refuses two equal paths', async t => {
  const config = { upstreams: { '/grafana': 'http://127.0.0.1:9', '/': 'http://127.0.0.1:9' } }
  const expected = /LOGIN_PATH is "\/grafana\/login", which is below the upstream \/grafana; expected a path outside it/
  await assert.rejects(setUp(t, { env: { LOGIN_PATH: '/grafana/login' }, config }), expected)
  assert.doesNotThrow(() => refuseTakenPaths({ LOGIN_PATH: '/_menshen/login' }, config))
  const cwd = tempFolder(t)
  writeFileSync(join(cwd, 'menshen.config.json'), JSON.stringify(config))
  const check = (LOGIN_PATH: string) => commands.run({ LOGIN_PATH }, { args: ['check'], cwd })
  const below = await check('/grafana/login')
  assert.equal(below.code, 1)
  assert.match(below.output, expected)
  assert.equal((await check('/_menshen/login')).code, 0)
  const { output } = await commands.run({ LOGIN_PATH: '/callback' }, { args: ['check'] })
  assert.match(output, /LOGIN_PATH is "\/callback" and CALLBACK_PATH is "\/callback"; expected different paths/)
})
