// DPoP (RFC 9449): one key for each session, a fresh proof for each request, nonces of servers, and a provider that demands it,
// changes its mind or asks for ever.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { calculateJwkThumbprint, EmbeddedJWK, type JWK, type JWTPayload, jwtVerify } from 'jose'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { readSettings } from '../../src/config/read.ts'
import type { Config } from '../../src/index.ts'
import { planProviders } from '../../src/provider/providers.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, startInstance } from '../kit/instance.ts'
import { answerOf, type OidcCall, type OidcServer, signedInAt, startOidcServer } from '../kit/oidc-server.ts'
import { openGateway, setUpOidc } from '../kit/set-up.ts'
import { bytesOf, tempFolder } from '../kit/temp.ts'
import { startUpstream } from '../kit/upstream.ts'

const SECRET = 'a text of thirty-two characters or more'
/** Tokens live for an hour, and are refreshed five minutes before they end. */
const DUE_SECONDS = 3301

interface Proof {
  readonly jkt: string
  readonly jwk: JWK
  readonly payload: JWTPayload
}

/** The proof of a call, once everything about it that a server has to check is right. */
async function proofOf(op: OidcServer, { path, headers }: OidcCall, method = 'POST'): Promise<Proof> {
  const now = new Date(op.now())
  const { payload, protectedHeader } = await jwtVerify(String(headers.dpop), EmbeddedJWK, { currentDate: now })
  const { typ, alg, jwk = {} } = protectedHeader
  assert.deepEqual([typ, alg, payload.htm, payload.htu], ['dpop+jwt', 'ES256', method, op.issuer + path])
  assert.deepEqual(Object.keys(jwk).sort(), ['crv', 'kty', 'x', 'y'], 'nothing of the private key')
  assert.equal(payload.iat, Math.floor(op.now() / 1000))
  const [scheme, token = ''] = (headers.authorization ?? '').split(' ')
  if (scheme === 'DPoP') assert.equal(payload.ath, hash('sha256', token, 'base64url'))
  else assert.equal(payload.ath, undefined)
  return { jkt: await calculateJwkThumbprint(jwk), jwk, payload }
}

async function open(t: TestContext, env: Environment = {}, config: Config = {}) {
  const { provider: op, user: signIn, ...gateway } = await setUpOidc(t, { env, config, application: false })
  op.tokenType = 'DPoP'
  const details = () => gateway.lines.map(({ fields }) => String(fields.detail))
  return { op, ...gateway, details, signIn }
}

const refuse = (response: ServerResponse, error: string, nonce?: string) =>
  response
    .writeHead(400, { 'content-type': 'application/json', ...(nonce && { 'dpop-nonce': nonce }) })
    .end(JSON.stringify({ error }))

test('each session has its own DPoP key, and each request its own proof', async t => {
  const { op, signIn, passSeconds } = await open(t, { DPOP: 'on' })
  const [alice, bob] = [await signIn(), await signIn()]
  passSeconds(DUE_SECONDS)
  for (const client of [alice, bob]) assert.equal((await client.get('/_menshen/me')).status, 200)
  op.now = () => Date.parse('2026-03-01T08:00:00Z')
  const [first, second, ...refreshes] = op.callsTo('/token')
  assert.ok(first && second)
  const keys = [(await proofOf(op, first)).jkt, (await proofOf(op, second)).jkt]
  assert.notEqual(keys[0], keys[1])
  const users = await Promise.all(
    op
      .callsTo('/userinfo')
      .slice(0, 2)
      .map(call => proofOf(op, call, 'GET')),
  )
  assert.deepEqual(
    users.map(({ jkt }) => jkt),
    keys,
  )
  op.now = () => Date.parse('2026-03-01T08:00:00Z') + DUE_SECONDS * 1000
  const refreshed = await Promise.all(refreshes.map(call => proofOf(op, call)))
  assert.deepEqual(
    refreshed.map(({ jkt }) => jkt),
    keys,
  )
  const ids = [...users, ...refreshed].map(({ payload }) => payload.jti)
  assert.equal(new Set(ids).size, ids.length)
  for (const { authorization } of op.callsTo('/userinfo')) assert.match(authorization, /^DPoP at-/)
})

test('DPOP=auto sends no proof until the provider demands one, and then sends one with every request', async t => {
  for (const demand of ['invalid_dpop_proof', 'use_dpop_nonce']) {
    const { op, signIn } = await open(t)
    op.tokenType = 'Bearer'
    await signIn()
    assert.equal(op.callsTo('/token')[0]?.headers.dpop, undefined)
    op.tokenType = 'DPoP'
    op.intercept = ({ path, headers }, response) =>
      path === '/token' && headers.dpop === undefined && refuse(response, demand, 'nonce-1')
    op.calls.length = 0
    await signIn()
    const [plain, proven, ...more] = op.callsTo('/token')
    assert.deepEqual([plain?.headers.dpop, more.length], [undefined, 0])
    assert.equal((await proofOf(op, proven as OidcCall)).payload.nonce, 'nonce-1')
    op.calls.length = 0
    await signIn()
    assert.equal(op.callsTo('/token').length, 1, 'it is remembered')
    await proofOf(op, op.callsTo('/token')[0] as OidcCall)
  }
})

test('with DPOP=off no request has a proof, a refused one is not repeated, and the log says that the provider requires DPoP', async t => {
  const { op, visitor, details, signIn } = await open(t, { DPOP: 'off' })
  op.intercept = ({ path }, response) => path === '/token' && refuse(response, 'use_dpop_nonce', 'nonce-1')
  const client = visitor()
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
  assert.equal(op.callsTo('/token').length, 1)
  assert.match(details().at(-1) ?? '', /use_dpop_nonce: the provider requires DPoP, which is off/)
  op.intercept = undefined
  await client.get(await answerOf(client))
  assert.match(details().at(-1) ?? '', /bound to a key \(DPoP\), but DPOP is off/)
  op.tokenType = 'Bearer'
  await signIn()
  assert.ok(op.callsTo('/userinfo').length > 0)
  for (const { path, headers } of op.calls) assert.equal(headers.dpop, undefined, path)
})

test('a DPoP nonce that changes with every response costs at most one extra request per call', async t => {
  const { op, signIn, passSeconds } = await open(t, { DPOP: 'on' })
  let count = 0
  const valid = new Set<unknown>()
  const next = () => {
    const nonce = `nonce-${++count}`
    valid.add(nonce)
    return nonce
  }
  op.intercept = async (call, response) => {
    if (!['/token', '/userinfo'].includes(call.path)) return false
    const isToken = call.path === '/token'
    const { payload } = await proofOf(op, call, isToken ? 'POST' : 'GET')
    const isValid = valid.delete(payload.nonce)
    response.setHeader('dpop-nonce', next())
    if (isValid) return false
    if (isToken) return refuse(response, 'use_dpop_nonce')
    response.setHeader('www-authenticate', 'DPoP error="use_dpop_nonce", error_description="a nonce is needed"')
    return response.writeHead(401).end()
  }
  const clients = await Promise.all(Array.from({ length: 5 }, signIn))
  assert.ok(op.callsTo('/token').length <= 10, String(op.callsTo('/token').length))
  assert.ok(op.callsTo('/userinfo').length <= 10)
  op.calls.length = 0
  await signIn()
  assert.deepEqual([op.callsTo('/token').length, op.callsTo('/userinfo').length], [1, 1], 'the last nonce is used')
  op.calls.length = 0
  passSeconds(DUE_SECONDS)
  const answers = await Promise.all(clients.map(client => client.get('/_menshen/me')))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  assert.ok(op.callsTo('/token').length <= 10)
})

test('DPoP nonces of the authorization server and of the user info endpoint are kept separately', async t => {
  const { op, signIn } = await open(t, { DPOP: 'on' })
  op.intercept = ({ path }, response) => {
    response.setHeader('dpop-nonce', path === '/userinfo' ? 'of-resource' : 'of-server')
    return false
  }
  await signIn()
  await signIn()
  const nonces = async (path: string, method: string) =>
    (await Promise.all(op.callsTo(path).map(call => proofOf(op, call, method)))).map(({ payload }) => payload.nonce)
  assert.deepEqual(await nonces('/token', 'POST'), [undefined, 'of-server'])
  assert.deepEqual(await nonces('/userinfo', 'GET'), [undefined, 'of-resource'])
})

test('a server that demands a new DPoP nonce every time is called twice, and then the sign-in fails', async t => {
  const { op, visitor, details } = await open(t, { DPOP: 'on' })
  let count = 0
  op.intercept = ({ path }, response) => path === '/token' && refuse(response, 'use_dpop_nonce', `nonce-${++count}`)
  const client = visitor()
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
  assert.equal(op.callsTo('/token').length, 2)
  assert.match(details().at(-1) ?? '', /400 with use_dpop_nonce: the provider does not accept the DPoP proof/)
  op.calls.length = 0
  op.intercept = ({ path }, response) =>
    path === '/userinfo' &&
    response.writeHead(401, { 'www-authenticate': 'DPoP error="use_dpop_nonce"', 'dpop-nonce': `n-${++count}` }).end()
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=userinfo_error')
  assert.equal(op.callsTo('/userinfo').length, 2)
})

test('an invalid or missing DPoP nonce is ignored, and the request is not repeated', async t => {
  const { op, visitor } = await open(t, { DPOP: 'on' })
  for (const nonce of [undefined, 'with space', 'with"quote', 'back\\slash', 'ü', 'x'.repeat(2000)]) {
    op.calls.length = 0
    op.intercept = ({ path }, response) => path === '/token' && refuse(response, 'use_dpop_nonce', nonce)
    const client = visitor()
    assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
    assert.equal(op.callsTo('/token').length, 1, String(nonce))
  }
  op.calls.length = 0
  op.intercept = ({ path }, response) =>
    path === '/token' &&
    response.socket?.end('HTTP/1.1 400 Bad\r\ndpop-nonce: a\u0001b\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}')
  const client = visitor()
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
  assert.equal(op.callsTo('/token').length, 1, 'a control character breaks the answer')
  op.intercept = undefined
  await client.get(await answerOf(client))
  assert.equal((await proofOf(op, op.callsTo('/token').at(-1) as OidcCall)).payload.nonce, undefined)
})

test('a token that is not bound to the DPoP key is refused with DPOP=on and accepted with DPOP=auto', async t => {
  const on = await open(t, { DPOP: 'on' })
  on.op.tokenType = 'Bearer'
  const client = on.visitor()
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
  assert.match(on.details().at(-1) ?? '', /a token that is not bound to the key/)
  assert.deepEqual(on.op.callsTo('/userinfo'), [])

  const { op, signIn } = await open(t, {})
  op.tokenType = 'Bearer'
  op.intercept = ({ path, headers }, response) =>
    path === '/token' && headers.dpop === undefined && refuse(response, 'invalid_dpop_proof')
  await signIn()
  assert.match(op.callsTo('/userinfo')[0]?.authorization ?? '', /^Bearer /)
  op.intercept = undefined
  op.calls.length = 0
  await signIn()
  assert.equal(op.callsTo('/token')[0]?.headers.dpop, undefined, 'the provider does not bind any more')
})

test('sessions survive a change of DPOP: those without a key get one on demand, and those with a key keep it', async t => {
  const op = await startOidcServer(t)
  const [STORE, PORT] = [`sqlite:${join(tempFolder(t), 'data', 'menshen.db')}`, String(await freePort())]
  let at = Date.parse('2026-03-01T08:00:00Z')
  op.now = () => at
  const start = (DPOP: string) => openGateway(t, { ...op.settings, SECRET, STORE, PORT, DPOP }, { now: at })
  const pass = (gateway: { passSeconds(seconds: number): void }) => {
    at += DUE_SECONDS * 1000
    gateway.passSeconds(DUE_SECONDS)
    op.calls.length = 0
  }

  const off = await start('off')
  const client = await signedInAt(off.url, () => at)
  const bearer = await signedInAt(off.url, () => at)
  await off.close()

  const on = await start('on')
  pass(on)
  assert.equal((await bearer.get('/_menshen/me')).status, 200)
  assert.deepEqual(
    op.callsTo('/token').map(({ headers }) => headers.dpop),
    [undefined],
  )
  op.intercept = ({ path, headers }, response) =>
    path === '/token' && headers.dpop === undefined && refuse(response, 'invalid_dpop_proof')
  op.tokenType = 'DPoP'
  assert.equal((await client.get('/_menshen/me')).status, 200, 'it gets a key')
  const { jkt } = await proofOf(op, op.callsTo('/token').at(-1) as OidcCall)
  pass(on)
  assert.equal((await client.get('/_menshen/me')).status, 200)
  assert.deepEqual(
    [op.callsTo('/token').length, (await proofOf(op, op.callsTo('/token')[0] as OidcCall)).jkt],
    [1, jkt],
  )
  await on.close()

  const offAgain = await start('off')
  pass(offAgain)
  assert.equal((await client.get('/_menshen/me')).status, 200, 'a session with a key keeps it')
  assert.equal((await proofOf(op, op.callsTo('/token')[0] as OidcCall)).jkt, jkt)
  pass(offAgain)
  op.intercept = ({ path, headers }, response) => path === '/token' && headers.dpop && refuse(response, 'invalid_grant')
  assert.equal((await client.get('/_menshen/me')).status, 401, 'a dead refresh token ends the session')
  assert.equal(op.callsTo('/token').length, 1)
})

test('two instances that refresh one session at the same time send one request, with a proof by the session’s key', async t => {
  const op = await startOidcServer(t)
  Object.assign(op, { tokenType: 'DPoP', now: Date.now, expiresIn: 4 })
  const STORE = `sqlite:${join(tempFolder(t), 'data', 'menshen.db')}`
  const port = await freePort()
  const env = { ...op.settings, STORE, SECRET, DPOP: 'on', BASE_URL: `http://localhost:${port}` }
  const instances = [
    await startInstance({ ...env, PORT: String(port) }),
    await startInstance({ ...env, PORT: String(await freePort()) }),
  ]
  for (const instance of instances) t.after(() => instance.stop())
  const client = await signedInAt(`http://localhost:${port}`, Date.now)
  const signedInBy = String(op.callsTo('/token')[0]?.headers.dpop)
  op.expiresIn = 3600
  op.calls.length = 0
  const cookie = `menshen_session=${client.cookies.get('menshen_session')}`
  const ask = async (url: string) => (await fetch(`${url}/_menshen/me`, { headers: { cookie } })).status
  const deadline = Date.now() + 10_000
  while (op.callsTo('/token').length === 0 && Date.now() < deadline) {
    const statuses = await Promise.all(instances.flatMap(({ url }) => [ask(url), ask(url), ask(url)]))
    assert.deepEqual(new Set(statuses), new Set([200]))
  }
  assert.equal(op.callsTo('/token').length, 1)
  const jwkOf = async (proof: string) => (await jwtVerify(proof, EmbeddedJWK)).protectedHeader.jwk
  assert.deepEqual(await jwkOf(String(op.callsTo('/token')[0]?.headers.dpop)), await jwkOf(signedInBy))
})

test('a session’s DPoP key is in no log line, page, header or audit record, and not in plain text in the store', async t => {
  const folder = tempFolder(t)
  const seen: string[] = []
  const upstream = await startUpstream(t, (request, response) => {
    seen.push(JSON.stringify(request.rawHeaders))
    response.end('hello')
  })
  const env = {
    DPOP: 'on',
    STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`,
    AUDIT_FILE: join(folder, 'audit'),
    UPSTREAM: upstream.url,
  }
  const config = { roles: [{ role: 'developer', username: ['zhangsan'] }] } as Config
  const { op, signIn, lines, passSeconds, close } = await open(t, { ...env, LOG_LEVEL: 'trace' }, config)
  const client = await signIn()
  // The key is kept as x, y and d in one text.
  const { x = '' } = (await proofOf(op, op.callsTo('/token')[0] as OidcCall)).jwk
  assert.equal(x.length, 43)
  for (const path of [
    '/',
    '/_menshen/me',
    '/_menshen/account',
    '/_menshen/console',
    '/_menshen/console/sessions',
    '/_menshen/console/audit.jsonl',
    '/_menshen/metrics',
  ]) {
    const { status, text, headers } = await client.get(path)
    assert.equal(status, 200, path)
    seen.push(text, JSON.stringify(headers))
  }
  passSeconds(DUE_SECONDS)
  await client.get('/')
  await client.post('/logout')
  seen.push(JSON.stringify(lines), readFileSync(env.AUDIT_FILE, 'utf8'))
  const other = await signIn()
  assert.equal((await other.get('/')).status, 200)
  const again =
    (await proofOf({ ...op, now: op.now } as OidcServer, op.callsTo('/token').at(-1) as OidcCall)).jwk.x ?? ''
  await close()
  const stored = bytesOf(join(folder, 'data'))
  for (const key of [x, again]) {
    assert.ok(!seen.some(text => text.includes(key)))
    assert.ok(!stored.includes(key))
  }
})

test('DPOP=on with FORWARD_ACCESS_TOKEN is refused at startup; with DPOP=auto, tokens stay unbound', async t => {
  const plan = (env: Environment, config: Config = {}) => planProviders(config, readSettings(env))
  const env = {
    PROVIDER: 'oidc',
    AUTH_URL: 'https://a.example',
    CLIENT_ID: 'a',
    CLIENT_SECRET: 'b',
    FORWARD_ACCESS_TOKEN: 'true',
  }
  assert.throws(
    () => plan({ ...env, DPOP: 'on' }),
    /DPOP is "on" with FORWARD_ACCESS_TOKEN: an application cannot use a token/,
  )
  const named = { preset: 'oidc', vars: { auth_url: 'https://a.example' }, clientId: 'a', clientSecret: 'b' }
  assert.throws(
    () => plan({ FORWARD_ACCESS_TOKEN: 'true' }, { providers: { x: { ...named, dpop: 'on' } } }),
    /providers\.x\.dpop is "on" with FORWARD_ACCESS_TOKEN/,
  )
  assert.equal(plan(env)[0].dpop, 'off')
  const unforwarded = { ...env, FORWARD_ACCESS_TOKEN: 'false' }
  const exchanging = { upstream: { url: 'http://127.0.0.1:9', accessToken: { audience: 'one' } } }
  const config = { hosts: { 'wiki.example': exchanging } }
  assert.throws(() => plan({ ...unforwarded, DPOP: 'on' }, config), /DPOP is "on" with accessToken of an upstream/)
  assert.equal(plan(unforwarded, config)[0].dpop, 'off')
  assert.equal(plan(unforwarded)[0].dpop, 'auto')
  const { op, visitor, details } = await open(t, { FORWARD_ACCESS_TOKEN: 'true' })
  op.intercept = ({ path }, response) => path === '/token' && refuse(response, 'invalid_dpop_proof')
  const client = visitor()
  await client.get(await answerOf(client))
  assert.equal(op.callsTo('/token').length, 1)
  assert.match(details().at(-1) ?? '', /requires DPoP, which is off/)
})

test('a DPoP-bound token is not forwarded to the application, even after FORWARD_ACCESS_TOKEN is turned on', async t => {
  const op = await startOidcServer(t)
  op.tokenType = 'DPoP'
  const sent: (string | undefined)[] = []
  const upstream = await startUpstream(t, (request, response) => {
    sent.push(request.headers.authorization)
    response.end('hello')
  })
  const [STORE, PORT] = [`sqlite:${join(tempFolder(t), 'data', 'menshen.db')}`, String(await freePort())]
  const env = { ...op.settings, SECRET, STORE, PORT, UPSTREAM: upstream.url }
  const before = await openGateway(t, { ...env, DPOP: 'on' })
  op.now = before.now
  const client = await signedInAt(before.url, before.now)
  await before.close()
  const after = await openGateway(t, { ...env, FORWARD_ACCESS_TOKEN: 'true' })
  op.tokenType = 'Bearer'
  const other = await signedInAt(after.url, after.now)
  for (const one of [client, other]) assert.equal((await one.get('/')).status, 200)
  assert.equal(sent[0], undefined)
  assert.match(sent[1] ?? '', /^Bearer at-/)
})

test('menshen doctor reports a rejected DPoP proof and suggests a remedy', async t => {
  const op = await startOidcServer(t)
  const diagnose = async (DPOP: string) => {
    const environment = { ...op.settings, DPOP, STORE: 'memory:' }
    const { text } = await runDoctorCommand(['--json'], { environment, now: Date.now, paint: createPaint(false) })
    const { checks } = JSON.parse(text) as { checks: { name: string; level: string; seen: string; remedy: string }[] }
    return checks.find(({ name }) => name === 'provider client') ?? assert.fail(text)
  }
  op.intercept = ({ path }, response) => path === '/token' && refuse(response, 'invalid_dpop_proof')
  const on = await diagnose('on')
  assert.equal(on.level, 'failure')
  assert.match(on.seen, /invalid_dpop_proof: the provider does not accept the DPoP proof/)
  assert.match(on.remedy, /Allow DPoP with ES256 for this client.*compare the clocks/)
  const off = await diagnose('off')
  assert.match(off.seen, /requires DPoP, which is off/)
  assert.match(off.remedy, /Set DPOP=on/)
  op.intercept = undefined
  assert.equal((await diagnose('on')).level, 'good')
})
