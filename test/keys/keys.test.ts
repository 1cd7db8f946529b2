// Keys of machines, from outside: where they count, what is refused, and that no application ever sees one.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { type Config, readSettings } from '../../src/index.ts'
import { createCore } from '../../src/menshen.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { createClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { requireProgram } from '../kit/requirements.ts'
import { type SetUpOptions, setUp, setUpOidc } from '../kit/set-up.ts'
import { createTestLog } from '../kit/test-log.ts'
import { startUpstream } from '../kit/upstream.ts'
import { openWire, raw, request } from '../proxy/raw.ts'

const PASSWORD = 'Basic realm="menshen"'
const INVALID = 'Bearer error="invalid_token"'
const BACKUP = newKey()
const EXPIRED = newKey()
const AUDITOR = newKey()
const CONFIG: Config = {
  roles: [
    { role: 'robot', groups: ['robots'] },
    { role: 'developer', username: ['admin'] },
  ],
  machines: [
    { name: 'backup', keySha256: keySha256(BACKUP), groups: ['robots'], expires: '2027-01-01' },
    { name: 'old', keySha256: keySha256(EXPIRED), groups: ['robots'], expires: '2026-03-01' },
    { name: 'auditor', keySha256: keySha256(AUDITOR).toUpperCase() },
  ],
  rules: [
    { path: '/api', roles: ['robot'], users: ['zhangsan'], keys: true },
    { path: '/api/closed', roles: ['*'] },
    { path: '/audit', users: ['machine:auditor'], keys: true },
    { path: '/office', roles: ['robot'], keys: true, networks: ['192.0.2.0/24'] },
    { path: '/own', roles: ['robot'], keys: true, origin: 'own' },
    { path: '/pay', roles: ['robot'], keys: true, maxAge: 300 },
    { path: '/public', public: true },
    { path: '/', roles: ['*'] },
  ],
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const basic = (key: string, user = 'git') => ({
  authorization: `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}`,
})
const own = (key: string) => ({ 'x-menshen-key': key })

/** A gateway with the machines of `CONFIG`; `bring` is a request without cookies. */
async function setUpMachines(t: TestContext, options: SetUpOptions = {}) {
  const scene = await setUp(t, { config: CONFIG, ...options })
  const bring = (path: string, headers: Record<string, string>, method = 'GET') =>
    createClient(scene.url).request({ method, path, headers })
  return { ...scene, bring }
}

test('a key is accepted in each of its three forms, and the application receives the machine’s name but not the key', async t => {
  const { bring, upstream, lines } = await setUpMachines(t, { env: { ACCESS_LOG: 'true' } })
  for (const headers of [
    bearer(BACKUP),
    basic(BACKUP),
    basic(BACKUP, ''),
    own(BACKUP),
    { ...bearer(BACKUP), ...own(BACKUP) },
  ]) {
    const answer = await bring('/api/items', headers)
    assert.equal(answer.status, 200, JSON.stringify(Object.keys(headers)))
    assert.deepEqual(answer.setCookies, [])
    const { headers: received } = upstream.last()
    assert.equal(received['x-forwarded-user'], 'machine:backup')
    assert.equal(received['x-forwarded-role'], 'robot')
    assert.equal(received['x-forwarded-groups'], 'robots')
    assert.equal(received.authorization, undefined)
    assert.equal(received['x-menshen-key'], undefined)
  }
  assert.equal((await bring('/audit', bearer(AUDITOR))).status, 200, 'a hash in capitals is the same hash')
  const users = lines.filter(({ event }) => event === 'request').map(({ fields }) => Object(fields).user)
  assert.deepEqual(new Set(users), new Set(['machine:backup', 'machine:auditor']))
  assert.doesNotMatch(JSON.stringify(lines), /mk_/)
})

test("a key is accepted only where a rule allows it and its role has access, and never on Menshen's own pages", async t => {
  const { bring, upstream } = await setUpMachines(t)
  const admitted = upstream.received.length
  // Every interpretation of the path counts.
  for (const path of ['/', '/other', '/api/closed', '/api/%2e%2fclosed', '/api//closed', '/API/closed'])
    assert.ok([400, 401, 403].includes((await bring(path, bearer(BACKUP))).status), path)
  const wrongRole = await bring('/api', bearer(AUDITOR))
  assert.equal(wrongRole.status, 403)
  assert.equal(wrongRole.headers['www-authenticate'], undefined)
  for (const path of ['/_menshen/account', '/_menshen/console', '/_menshen/me'])
    for (const headers of [bearer(BACKUP), basic(BACKUP), own(BACKUP)])
      assert.equal((await bring(path, headers)).status, 401, path)
  const { status, text } = await bring('/login', bearer(BACKUP))
  assert.equal(status, 200)
  assert.doesNotMatch(text, /backup/)
  assert.equal(upstream.received.length, admitted)
})

test('an unknown, expired, malformed or ambiguous key gets 401 in every form', async t => {
  const { bring, upstream, lines } = await setUpMachines(t)
  const wrong: Record<string, Record<string, string>> = {
    unknown: bearer(newKey()),
    expired: bearer(EXPIRED),
    'unknown password': basic(newKey()),
    'unknown in its own header': own(newKey()),
    'two that differ': { ...bearer(BACKUP), ...own(AUDITOR) },
    'one letter less': bearer(BACKUP.slice(0, -1)),
    'one letter more': bearer(`${BACKUP}A`),
    'other letters': bearer(`mk_${'!'.repeat(43)}`),
    'no letters': bearer('mk_'),
    'a short password': basic('mk_short'),
    'a password with a line break': basic(`${BACKUP}\n`),
    'an empty header': own(''),
    'a header that is not a key': own('secret'),
    'the header twice': own(`${BACKUP}, ${BACKUP}`),
    'a right one and a wrong one': { ...bearer(newKey()), ...own(BACKUP) },
  }
  for (const [name, headers] of Object.entries(wrong)) {
    const answer = await bring('/api', headers)
    assert.equal(answer.status, 401, name)
    const isPassword = headers.authorization?.startsWith('Basic')
    assert.equal(answer.headers['www-authenticate'], isPassword ? `${INVALID}, ${PASSWORD}` : INVALID, name)
    assert.equal(answer.json<{ error: string }>().error, 'invalid_key')
    assert.deepEqual(answer.setCookies, [])
  }
  assert.equal((await bring('/api', basic('a password'))).status, 401)
  assert.equal(upstream.received.length, 0)
  const reasons = lines.filter(({ event }) => event === 'key_refused').map(({ fields }) => Object(fields).reason)
  assert.deepEqual(new Set(reasons), new Set(['unknown', 'expired', 'malformed', 'several']))
  assert.doesNotMatch(JSON.stringify(lines), /mk_/)
})

test('values in key form are removed from every request in any scheme, encoding or spelling; other credentials pass', async t => {
  const { url, upstream, user } = await setUpMachines(t)
  const client = await user()
  const cookie = [...client.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const key = newKey()
  const encoded = Buffer.from(`a?>:${key}`).toString('base64')
  const hiding = [
    `Authorization: Bearer ${key}`,
    `authorization: bearer   ${key}`,
    `Authorization: BEARER\t${key}`,
    `Authorization: Token ${key}`,
    `Authorization: ${key}`,
    `Authorization: Basic ${encoded}`,
    `Authorization: basic  ${encoded.replace(/=+$/, '')}`,
    `Authorization: Basic ${Buffer.from(`a?>:${key}`).toString('base64url')}`,
    `Authorization: Basic ${encoded.slice(0, 20)} ${encoded.slice(20)}`,
    `Authorization: Basic ${Buffer.from(`${key}:`).toString('base64')}`,
    `Authorization: Basic ${Buffer.from(`u:${key}\n`).toString('base64')}`,
    `Authorization: Bearer other, Basic ${encoded}`,
    `Authorization: Bearer other\r\nAuthorization: Bearer ${key}`,
    `X-Menshen-Key: ${key}`,
    `x_menshen_key: ${key}`,
    `X-Menshen-Key: something`,
  ]
  const traces = [
    key,
    Buffer.from(`:${key.slice(0, 20)}`)
      .toString('base64')
      .slice(4, 20),
    encoded.slice(8, 40),
  ]
  for (const header of hiding)
    for (const [path, more] of [
      ['/public', ''],
      ['/page', `cookie: ${cookie}\r\n`],
    ] as const) {
      const before = upstream.received.length
      const answer = await raw(
        url,
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${more}${header}\r\n\r\n`,
      )
      assert.match(answer, /^HTTP\/1.1 200/, header)
      assert.equal(upstream.received.length, before + 1)
      const lines = JSON.stringify(upstream.last().lines)
      for (const trace of traces) assert.ok(!lines.includes(trace), `${path} ${header}`)
      assert.ok(!/x.menshen.key/.test(lines), header)
    }
  const passing = [
    'Bearer mk_live_0123456789012345678901234567890123456789012345678901',
    'Basic dTpw',
    'Bearer mk_short',
    'Digest x',
  ]
  for (const value of passing) {
    await client.get('/page', { headers: { authorization: value } })
    assert.equal(upstream.last().headers.authorization, value)
  }
  // The application's own credentials, beside a key in its own header.
  await createClient(url).get('/api', { headers: { ...own(BACKUP), authorization: 'Basic dTpw' } })
  assert.equal(upstream.last().headers.authorization, 'Basic dTpw')
  assert.equal(upstream.last().headers['x-forwarded-user'], 'machine:backup')
})

test('a session takes precedence over a key that is sent with it', async t => {
  const { user, visitor, upstream } = await setUpMachines(t)
  const client = await user()
  for (const key of [BACKUP, newKey()]) {
    assert.equal((await client.get('/api', { headers: bearer(key) })).status, 200)
    assert.equal(upstream.last().headers['x-forwarded-user'], 'zhangsan')
    assert.equal(upstream.last().headers.authorization, undefined)
  }
  // Nothing is gained against `origin`.
  const foreign = { origin: 'https://evil.example', ...own(BACKUP) }
  assert.equal((await client.post('/own', '', { headers: foreign })).status, 403)
  assert.equal((await visitor().post('/own', '', { headers: foreign })).status, 200)
})

test('rule conditions apply to keys, and a key never meets a condition that needs a sign-in', async t => {
  const { bring } = await setUpMachines(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const from = (address: string) => ({ ...basic(BACKUP), 'x-forwarded-for': address })
  assert.equal((await bring('/office', from('192.0.2.7'))).status, 200)
  const outside = await bring('/office', from('198.51.100.7'))
  assert.equal(outside.status, 403)
  assert.equal(outside.json<{ error: string }>().error, 'outside_network')
  // Envoy removes the key because the answer says so.
  const asked = await bring('/_menshen/authz/api', { ...basic(BACKUP), ...own(BACKUP) })
  assert.equal(asked.status, 200)
  assert.equal(asked.headers['x-forwarded-user'], 'machine:backup')
  assert.equal(asked.headers['x-envoy-auth-headers-to-remove'], 'authorization,x-menshen-key')
  const stepUp = await bring('/pay', basic(BACKUP))
  assert.equal(stepUp.status, 403)
  assert.equal(stepUp.json<{ error: string }>().error, 'step_up_failed')
})

test('made-up keys over RATE_LIMIT_PER_MINUTE get 429 and few log lines, and a valid key is still accepted', async t => {
  const { bring, lines } = await setUpMachines(t, { env: { RATE_LIMIT_PER_MINUTE: '20' } })
  const statuses: number[] = []
  for (let n = 0; n < 60; n++) statuses.push((await bring('/api', bearer(newKey()))).status)
  assert.deepEqual([...new Set(statuses)], [401, 429])
  assert.equal(statuses.filter(status => status === 401).length, 20)
  assert.equal((await bring('/api', bearer(BACKUP))).status, 200)
  // Repeats are counted, and written once a minute.
  assert.ok(lines.filter(({ event }) => event === 'key_refused').length <= 10)
  assert.ok(lines.filter(({ event }) => event === 'rate_limited').length <= 10)
})

test('a program without credentials is asked for a password where keys are accepted; a browser never is', async t => {
  const { bring } = await setUpMachines(t)
  const git = await bring('/api/info/refs?service=git-upload-pack', { 'user-agent': 'git/2.39.5' })
  assert.equal(git.status, 401)
  assert.equal(git.headers['www-authenticate'], 'Basic realm="menshen"')
  assert.equal((await bring('/api', {}, 'PROPFIND')).headers['www-authenticate'], 'Basic realm="menshen"')
  const browser = { 'user-agent': 'Mozilla/5.0', accept: 'application/json' }
  assert.equal((await bring('/api', browser)).headers['www-authenticate'], 'Cookie realm="menshen"')
  assert.equal(
    (await bring('/page', { 'user-agent': 'git/2.39.5' })).headers['www-authenticate'],
    'Cookie realm="menshen"',
  )
  assert.equal((await bring('/api', { 'user-agent': 'Mozilla/5.0', accept: 'text/html' })).status, 302)
})

test('where keys and tokens are accepted, git is asked for a password first and other programs for a token first', async t => {
  const rules = [{ path: '/api', roles: ['robot'], keys: true as const, bearer: true, scopes: ['read'] }]
  const { url, upstream } = await setUpOidc(t, { config: { ...CONFIG, rules } })
  const challenge = async (headers: Record<string, string>) =>
    (await createClient(url).request({ path: '/api/info/refs', method: 'GET', headers })).headers['www-authenticate']
  const token = `resource_metadata="${url}/.well-known/oauth-protected-resource/api", scope="read"`
  assert.equal(await challenge({ 'user-agent': 'git/2.39.5' }), `${PASSWORD}, Bearer ${token}`)
  assert.equal(await challenge({ 'user-agent': 'JGit/7.0.0' }), `${PASSWORD}, Bearer ${token}`)
  const agent = { 'user-agent': 'agent/1.0', accept: 'application/json' }
  assert.equal(await challenge(agent), `Bearer ${token}, ${PASSWORD}`)
  assert.equal(await challenge({ ...agent, 'user-agent': 'Mozilla/5.0' }), `Bearer ${token}`, 'no browser is asked')
  assert.equal(await challenge({ ...agent, 'sec-fetch-mode': 'cors' }), `Bearer ${token}`)
  const invalid = `Bearer error="invalid_token", ${token}`
  for (const headers of [bearer('made-up'), bearer(newKey()), own(newKey())])
    assert.equal(await challenge({ ...agent, ...headers }), invalid)
  assert.equal(await challenge({ ...agent, ...basic(newKey()) }), `${invalid}, ${PASSWORD}`)
  assert.equal(await challenge({ 'user-agent': 'git/2.39.5', ...basic(newKey()) }), `${PASSWORD}, ${invalid}`)
  assert.equal(upstream.received.length, 0)
})

test('git sends its key to a rule that accepts both keys and tokens', async t => {
  const program = requireProgram('git')
  const rules = [{ path: '/api', roles: ['robot'], keys: true as const, bearer: true }]
  const { url, upstream } = await setUpOidc(t, { config: { ...CONFIG, rules } })
  const helper = `credential.helper=!printf 'username=x\\npassword=${BACKUP}\\n'`
  const git = spawn(program, ['-c', 'credential.helper=', '-c', helper, 'ls-remote', `${url}/api/project.git`], {
    env: { PATH: process.env.PATH, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1', HOME: '/nonexistent' },
    stdio: 'ignore',
  })
  await once(git, 'close')
  assert.equal(upstream.last().headers['x-forwarded-user'], 'machine:backup')
})

test('a WebSocket opened with a key reaches the application without the key, and closes when the key expires', async t => {
  const { url, upstream, passSeconds } = await setUpMachines(t)
  const { WebSocketServer } = await import('ws')
  const sockets = new WebSocketServer({ server: upstream.server })
  t.after(() => sockets.close())
  const refused = new WebSocket(`${url.replace('http', 'ws')}/api/socket`, { headers: bearer(newKey()) })
  const [, answer] = await once(refused, 'unexpected-response')
  assert.equal(answer.statusCode, 401)
  assert.equal(answer.headers['www-authenticate'], INVALID)
  refused.on('error', () => {}).terminate()
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/socket`, { headers: { ...basic(BACKUP) } })
  await once(socket, 'open')
  assert.equal(upstream.last().headers['x-forwarded-user'], 'machine:backup')
  assert.equal(upstream.last().headers.authorization, undefined)
  passSeconds(400 * 24 * 3600)
  await once(socket, 'close')
})

test('no user can sign in under the name of a machine', async t => {
  const { visitor, provider, lines } = await setUpMachines(t)
  for (const user of [
    { username: 'machine:backup' },
    { username: ' Machine:x' },
    { username: 'ann', sub: 'machine:backup' },
  ]) {
    const answer = await visitor().get(`/callback?code=${provider.codeFor(user)}&state=abc_idp`)
    assert.equal(answer.headers.location, '/login?error=userinfo_error', JSON.stringify(user))
  }
  assert.match(JSON.stringify(lines), /starts with machine:/)
  const admitted = await visitor().get(`/callback?code=${provider.codeFor({ username: 'machinist' })}&state=abc_idp`)
  assert.equal(admitted.headers.location, '/')
})

test('a program that embeds Menshen gets the machine as its user, and the request without the key', async t => {
  const { menshen } = await setUpMachines(t)
  const headers = { ...basic(BACKUP), ...own(BACKUP), accept: '*/*' }
  const request = new Request('http://localhost/api', { headers })
  const { user, answer } = await menshen.admit(request)
  assert.equal(answer, undefined)
  assert.equal(user?.userInfo.username, 'machine:backup')
  assert.equal(user?.userRole, 'robot')
  assert.equal(user?.machine, true)
  assert.deepEqual([...request.headers.keys()], ['accept'])
  assert.equal((await menshen.session(request))?.userInfo.username, 'machine:backup')
  const refused = new Request('http://localhost/page', { headers: { ...own(newKey()), authorization: 'Basic dTpw' } })
  assert.equal((await menshen.admit(refused)).answer?.status, 401)
  assert.deepEqual([...refused.headers.keys()], ['authorization'])
})

for (const isReadBefore of [false, true])
  test(`a node:http application does not find the key in any of its header properties${isReadBefore ? ', even if it has read them before' : ''}`, async t => {
    const { menshen } = await setUpMachines(t)
    let seen: Pick<IncomingMessage, 'headers' | 'headersDistinct' | 'rawHeaders'> | undefined
    const application = createServer(async (request, response) => {
      if (isReadBefore) void request.headersDistinct
      const { user } = await menshen.admit(request)
      const { headers, headersDistinct, rawHeaders } = request
      seen = { headers, headersDistinct, rawHeaders }
      response.end(user?.userInfo.username)
    })
    const { url } = await listen(t, application)
    const lines = [
      'Host: localhost',
      `Authorization: Bearer ${BACKUP}`,
      'Authorization: Basic dTpw',
      `X-Menshen-Key: ${BACKUP}`,
      `X_MENSHEN_KEY: ${BACKUP}`,
    ]
    const answer = await raw(url, `GET /api HTTP/1.1\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`)
    assert.match(answer, /machine:backup/)
    assert.deepEqual(
      { ...seen?.headersDistinct },
      { host: ['localhost'], authorization: ['Basic dTpw'], connection: ['close'] },
    )
    assert.deepEqual(seen?.headers, { host: 'localhost', connection: 'close' })
    assert.deepEqual(seen?.rawHeaders, ['Host', 'localhost', 'Authorization', 'Basic dTpw', 'Connection', 'close'])
  })

test('an open stream of a machine ends when a reload limits the machine to networks that exclude its client', async t => {
  const upstream = await startUpstream(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n')
  })
  const settings = readSettings({ STORE: 'memory:', UPSTREAM: upstream.url })
  const [backup = assert.fail()] = CONFIG.machines ?? []
  const within = (networks: string[]) => ({ ...CONFIG, machines: [{ ...backup, networks }] })
  const config = within(['127.0.0.0/8'])
  const core = await createCore({ settings, config, log: createTestLog().log, now: () => Date.parse('2026-03-01') })
  t.after(() => core.close())
  const { url } = await listen(t, createServer(core.listener))
  const wire = await openWire(url)
  wire.socket.write(request('GET /api/events HTTP/1.1', `x-menshen-key: ${BACKUP}`))
  await wire.sees('data: 1')
  await core.prepare(settings, within(['192.0.2.0/24']))(undefined)
  await wire.rest()
})
