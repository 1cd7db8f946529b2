// REVOKE=always revokes tokens that will not be used; and a store that fails after the session was created fails no sign-in.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { createMenshen, type MenshenOptions } from '../../src/index.ts'
import { createClient } from '../kit/client.ts'
import { answerOf, type OidcServer, startOidcServer } from '../kit/oidc-server.ts'
import { setUpOidc } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'

const ALWAYS = { REVOKE: 'always' }

async function open(t: TestContext, env: Record<string, string> = ALWAYS, config = {}) {
  const { provider: op, ...gateway } = await setUpOidc(t, { env, config, application: false })
  return { op, gateway }
}

const revoked = (op: OidcServer) => op.callsTo('/revoke').map(({ form }) => form.get('token'))

/** Every token response of the provider, in their order. */
function watchTokens(op: OidcServer): string[] {
  const issued: string[] = []
  let n = 0
  const fields = op.tokenFields
  Object.defineProperty(op, 'tokenFields', {
    get() {
      const refresh_token = `rt-CANARY-${++n}`
      issued.push(refresh_token)
      return { ...fields, refresh_token }
    },
  })
  return issued
}

test('a sign-in that replaces a session revokes the previous tokens, and none of the new ones', async t => {
  const { op, gateway } = await open(t)
  const issued = watchTokens(op)
  const user = await gateway.user()
  await user.get(await answerOf(user))
  await until(() => revoked(op).length > 0)
  assert.deepEqual(revoked(op), issued.slice(0, 1))
  assert.equal((await user.get('/_menshen/me')).status, 200)
})

test('with REVOKE=never, no token is revoked', async t => {
  const { op, gateway } = await open(t, { REVOKE: 'never' })
  const user = await gateway.user()
  await user.get(await answerOf(user))
  await user.post('/logout')
  assert.deepEqual(revoked(op), [])
})

test('tokens that the new session shares with the replaced one are revoked only by its sign-out', async t => {
  const { op, gateway } = await open(t)
  op.tokenFields = { access_token: 'the-same', refresh_token: 'as-before' }
  op.intercept = ({ path }, response) =>
    path === '/userinfo' && response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(op.user))
  const user = await gateway.user()
  await user.get(await answerOf(user))
  await user.post('/logout')
  await until(() => revoked(op).length > 0)
  assert.deepEqual(revoked(op), ['as-before'], 'by the sign-out alone')
})

test('with the same provider sid, neither a new nor a failed sign-in revokes tokens; only the sign-out does', async t => {
  const { op, gateway } = await open(t)
  op.idClaims = { sid: 'the-session-at-the-provider' }
  const issued = watchTokens(op)
  const user = await gateway.user()
  await user.get(await answerOf(user))
  op.intercept = ({ path }, response) => path === '/userinfo' && response.writeHead(500).end()
  assert.match(String((await user.get(await answerOf(user))).headers.location), /^\/login\?error=/)
  await user.post('/logout')
  await until(() => revoked(op).length > 0)
  assert.deepEqual(revoked(op), issued.slice(1, 2))
})

const FAILURES: Record<string, (op: OidcServer) => void> = {
  'user info that fails': op => {
    op.intercept = ({ path }, response) => path === '/userinfo' && response.writeHead(500).end()
  },
  'an id_token that is not valid': op => {
    op.idClaims = { nonce: 'another' }
  },
  'a requirement that is not met': op => {
    op.user = { ...op.user, email: 'somebody@elsewhere.example' }
  },
}
for (const [name, fail] of Object.entries(FAILURES))
  test(`a failed sign-in revokes its tokens (${name})`, async t => {
    const { op, gateway } = await open(t, ALWAYS, { provider: { require: { email: ['zhangsan@corp.example'] } } })
    const issued = watchTokens(op)
    fail(op)
    const client = gateway.visitor()
    const answer = await client.get(await answerOf(client))
    assert.match(String(answer.headers.location), /^\/login\?error=/)
    await until(() => revoked(op).length > 0)
    assert.deepEqual(revoked(op), issued)
  })

test('a refresh that returns another user ends the session and revokes its tokens', async t => {
  const { op, gateway } = await open(t)
  const issued = watchTokens(op)
  const user = await gateway.user()
  op.idClaims = { sub: 'another' }
  gateway.passSeconds(3500)
  assert.equal((await user.get('/_menshen/me')).status, 401)
  await until(() => revoked(op).length > 0)
  assert.deepEqual(revoked(op), issued.slice(0, 1))
})

async function openEmbedded(t: TestContext, onSignIn: MenshenOptions['onSignIn']) {
  const op = await startOidcServer(t)
  const { log, lines } = createTestLog()
  const { AUTH_URL: authUrl, CLIENT_ID: clientId, CLIENT_SECRET: clientSecret } = op.settings
  const menshen = await createMenshen({
    ...{ baseUrl: 'http://localhost:3000', store: 'memory:', provider: 'oidc', authUrl, clientId, clientSecret },
    ...{ revoke: 'always', log, now: op.now },
    ...(onSignIn && { onSignIn }),
  } as MenshenOptions)
  t.after(() => menshen.close())
  const get = (path: string, init: RequestInit = {}) => menshen.fetch(new Request(`http://localhost:3000${path}`, init))
  async function signIn() {
    const started = await get('/login', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'http://localhost:3000' },
      body: '',
    })
    const cookie =
      started?.headers
        .getSetCookie()
        .map(each => each.split(';')[0])
        .join('; ') ?? ''
    const at = new URL(String(started?.headers.get('location')))
    const back = await createClient(at.origin).get(at.pathname + at.search)
    const { pathname, search } = new URL(String(back.headers.location))
    return get(pathname + search, { headers: { cookie } })
  }
  return { op, lines, signIn }
}

for (const [name, onSignIn] of [
  ['refuses', () => false],
  ['fails', () => Promise.reject(new Error('the application is broken'))],
] as const)
  test(`if the onSignIn hook ${name}, the tokens of the sign-in are revoked`, async t => {
    const { op, signIn } = await openEmbedded(t, onSignIn as MenshenOptions['onSignIn'])
    const issued = watchTokens(op)
    assert.match(String((await signIn())?.headers.get('location')), /^\/login\?error=/)
    await until(() => revoked(op).length > 0)
    assert.deepEqual(revoked(op), issued)
  })
