// S39: all sessions of one user end at once, by the user, by a developer or by the provider; those of others do not.

import assert from 'node:assert/strict'
import { type KeyObject, randomUUID } from 'node:crypto'
import { Agent, type RequestListener } from 'node:http'
import { type TestContext, test } from 'node:test'
import { exportJWK, SignJWT } from 'jose'
import { DEFAULT_ROLES } from '../../src/access/roles.ts'
import { Secret } from '../../src/config/secret.ts'
import { readSettings } from '../../src/index.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { createSessions } from '../../src/session/sessions.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Client, createClient, type Options, signIn } from '../kit/client.ts'
import { takeRsaPair } from '../kit/rsa-keys.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { openGateway, setUp } from '../kit/set-up.ts'
import { CLIENT_ID } from '../kit/strict-provider.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const isIn = async (client: Client) => (await client.get('/_menshen/me')).status === 200

/** Two instances on one folder; a client of either is known to both. */
async function openTwo(t: TestContext) {
  const provider = await openScriptedProvider(t)
  const env = { ...provider.settings, STORE: `sqlite:${tempFolder(t)}/menshen.db` }
  const [one, other] = [await openGateway(t, env), await openGateway(t, env)]
  async function user(username: string, { url, now }: typeof one, more = {}): Promise<Client> {
    const client = createClient(url, now)
    await signIn(client, provider, { username, ...more })
    return client
  }
  /** Whether the instances agree that this ticket is in. */
  async function isInEverywhere(client: Client): Promise<boolean> {
    const headers = { cookie: `menshen_session=${tickets.get(client) ?? client.cookies.get('menshen_session')}` }
    const answers = [one, other].map(({ url }) => createClient(url).get('/_menshen/me', { headers }))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    assert.equal(new Set(statuses).size, 1, `they disagree: ${statuses}`)
    return statuses[0] === 200
  }
  const tickets = new Map<Client, string>()
  const remember = (...clients: Client[]) => {
    for (const client of clients) tickets.set(client, client.cookies.get('menshen_session') ?? '')
  }
  return { provider, one, other, user, isInEverywhere, remember }
}

test('退出所有设备 ends every session of the user on both instances, and no other user’s', async t => {
  const { one, other, user, isInEverywhere, remember } = await openTwo(t)
  const mine = [await user('zhangsan', one), await user('zhangsan', one), await user('zhangsan', other)]
  // The same name is not the same user: only `sub` is.
  const others = [
    await user('lisi', one),
    await user('zhangsan', other, { sub: 'sub-another' }),
    await user('admin', other),
  ]
  remember(...mine, ...others)
  for (const client of [...mine, ...others]) assert.ok(await isInEverywhere(client))
  const answer = await mine[0]?.post('/_menshen/sign-out-everywhere', '', { headers: { origin: one.baseUrl } })
  assert.equal(answer?.status, 303)
  assert.equal(answer?.headers.location, '/login')
  assert.match(String(answer?.setCookies), /menshen_session=; Path=\/; Max-Age=0/)
  for (const client of mine) assert.ok(!(await isInEverywhere(client)))
  for (const client of others) assert.ok(await isInEverywhere(client))
  assert.ok(await isInEverywhere(await user('zhangsan', other)), 'a new sign-in works at once')
})

test('ending all sessions of a user covers every page of the store’s list, even after an empty page', async t => {
  const [settings, now] = [readSettings({}), Date.now]
  const memory = createMemoryStore({ now })
  t.after(() => memory.close())
  /** As a store lists whose index is full of what has expired: at first only where to go on. */
  const store: Store = {
    ...memory,
    list: async query => (query.after === undefined ? { entries: [], next: ' ' } : memory.list({ ...query, limit: 2 })),
  }
  const keys = deriveKeys({ SECRET: undefined, CLIENT_SECRET: new Secret('a secret of this very test') })
  const keyring = createDataKeyring({ store, keys, now: Date.now, report() {} })
  const nobody = () => Promise.reject(new Error('nobody asked'))
  const providers = { get: () => ({ plan: { refreshLead: 'fixed' as const }, refresh: nobody, signOut: nobody }) }
  const sessions = createSessions({ store, providers, roles: DEFAULT_ROLES, keyring, settings, now, report() {} })
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresIn: 7200, receivedAt: now() }
  const userInfo = { sub: 's', ou_id: '', nickname: '', phone_number: '', ou_name: '', email: '', username: 'zhangsan' }
  const opened = []
  for (let device = 0; device < 5; device++)
    opened.push(await sessions.open({ tokens, user: { userInfo, groups: [], claims: {} }, provider: undefined }))
  assert.equal((await sessions.endAllOf({ sub: 's' })).count, 5)
  for (const { ticket } of opened) assert.equal(await sessions.get(ticket), undefined)
})

test('退出所有设备 only accepts a POST from its own origin by a signed-in user', async t => {
  const scene = await setUp(t)
  const [user, second] = [await scene.user(), await scene.user()]
  const path = '/_menshen/sign-out-everywhere'
  for (const headers of [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { referer: 'http://evil.example/' },
    { origin: 'http://evil.example', referer: `${scene.baseUrl}/` },
    { 'sec-purpose': 'prefetch' },
  ]) {
    assert.equal((await user.post(path, '', { headers })).status, 403, JSON.stringify(headers))
  }
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
    assert.equal((await user.request({ method, path })).status, 405)
  assert.equal((await scene.visitor().post(path)).status, 401)
  assert.ok((await isIn(user)) && (await isIn(second)))
})

test('全部结束 in the console ends all sessions of that user on both instances, and no other user’s', async t => {
  const { one, other, user, isInEverywhere, remember } = await openTwo(t)
  const developer = await user('admin', one)
  const theirs = [await user('zhangsan', one), await user('zhangsan', other), await user('zhangsan', other)]
  const bystander = await user('lisi', other)
  remember(developer, bystander, ...theirs)
  const console = (await developer.get('/_menshen/console/sessions?username=zhangsan')).text
  const key = /name="session" value="([\w-]{43})"/.exec(console)?.[1] ?? ''
  assert.match(console, /name="user" value="[\w-]{43}"[^>]*>全部结束</)
  const origin = { headers: { origin: one.baseUrl } }
  const end = (client: Client, more = {}) => client.post('/_menshen/console/end', { session: key, all: 'yes' }, more)
  const [colleague] = theirs
  if (colleague) assert.equal((await end(colleague, origin)).status, 403)
  assert.equal((await end(developer, { headers: { origin: 'http://evil.example' } })).status, 403)
  const byPage = { ...origin.headers, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' }
  const byScript = { ...byPage, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
  for (const headers of [byPage, byScript]) assert.equal((await end(developer, { headers })).status, 403)
  for (const client of theirs) assert.ok(await isInEverywhere(client))
  assert.equal((await end(developer, origin)).status, 303)
  for (const client of theirs) assert.ok(!(await isInEverywhere(client)))
  for (const client of [bystander, developer]) assert.ok(await isInEverywhere(client))
})

const ISSUER = 'https://idp.example.com'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const EVENTS = { [EVENT]: {} }
const KEY_ID = 'key-1'
const rsa = takeRsaPair()
const stranger = takeRsaPair()

interface Token {
  claims?: Record<string, unknown>
  key?: KeyObject | Uint8Array
  alg?: string
  kid?: string
  typ?: string | undefined
}

async function openBackchannel(t: TestContext, serveKeys?: RequestListener, more: Record<string, string> = {}) {
  const jwk = { ...(await exportJWK(rsa.publicKey)), kid: KEY_ID, alg: 'RS256', use: 'sig' }
  const keys = await startUpstream(
    t,
    serveKeys ?? ((_, response) => void response.end(JSON.stringify({ keys: [jwk] }))),
  )
  const env = { ISSUER, JWKS_URL: `${keys.url}/keys`, PROVIDER_TIMEOUT_MS: '700', ...more }
  const scene = await setUp(t, { env })
  const user = await signedIn('zhangsan')
  const bystander = await signedIn('lisi')

  async function signedIn(username: string): Promise<Client> {
    const client = scene.visitor()
    await client.get(
      `/callback?code=${scene.provider.codeFor({ username })}&state=a_idp&iss=${encodeURIComponent(ISSUER)}`,
    )
    assert.ok(await isIn(client))
    return client
  }
  const seconds = () => Math.floor(scene.now() / 1000)
  /** Valid, unless something is said otherwise; `undefined` leaves a claim out. */
  function token(wanted: Token = {}): Promise<string> {
    const { claims = {}, key = rsa.privateKey, alg = 'RS256', kid = KEY_ID } = wanted
    const typ = 'typ' in wanted ? wanted.typ : 'logout+jwt'
    const all = {
      iss: ISSUER,
      aud: CLIENT_ID,
      iat: seconds(),
      exp: seconds() + 120,
      jti: randomUUID(),
      sub: 'sub-zhangsan',
    }
    const given = Object.entries({ ...all, events: EVENTS, ...claims }).filter(([, value]) => value !== undefined)
    return new SignJWT(Object.fromEntries(given)).setProtectedHeader({ alg, kid, ...(typ && { typ }) }).sign(key)
  }
  const tell = (logoutToken: string, options?: Options) =>
    createClient(scene.url).post('/_menshen/backchannel-logout', { logout_token: logoutToken }, options)
  return { scene, keys, user, bystander, signedIn, seconds, token, tell }
}

type Backchannel = Awaited<ReturnType<typeof openBackchannel>>

test('a logout token of the provider ends the user’s sessions, and no other user’s', async t => {
  const { scene, user, bystander, signedIn, token, tell } = await openBackchannel(t)
  const second = await signedIn('zhangsan')
  const answer = await tell(await token())
  assert.equal(answer.status, 200, JSON.stringify(scene.lines.at(-1)))
  assert.equal(answer.headers['cache-control'], 'no-store')
  for (const client of [user, second]) assert.ok(!(await isIn(client)))
  assert.ok(await isIn(bystander))
  assert.equal((await tell(await token({ claims: { sub: 'sub-nobody' } }))).status, 200)
  assert.ok(await isIn(bystander))
  const [ended, ...more] = scene.lines.filter(({ event }) => event === 'session_ended')
  assert.partialDeepStrictEqual(ended?.fields, { by: 'provider', user: 'zhangsan', sub: 'sub-zhangsan', ended: 2 })
  assert.deepEqual(more, [])
})

test('a logout token after the user’s own sign-out logs no second event', async t => {
  const { scene, user, token, tell } = await openBackchannel(t)
  await user.post('/logout', '', { headers: { origin: scene.baseUrl } })
  assert.equal((await tell(await token())).status, 200)
  const events = scene.lines.map(({ event }) => event)
  assert.ok(events.includes('sign_out') && !events.includes('session_ended'), String(events))
})

test('each of 50 logout tokens without a matching session is logged, without the provider’s session id', async t => {
  const { scene, token, tell } = await openBackchannel(t)
  for (let n = 0; n < 30; n++) assert.equal((await tell(await token({ claims: { sub: `sub-${n}` } }))).status, 200)
  for (let n = 0; n < 20; n++)
    assert.equal((await tell(await token({ claims: { sub: undefined, sid: `device-${n}` } }))).status, 200)
  const ended = scene.lines.filter(({ event }) => event === 'no_session_to_end')
  assert.equal(ended.length, 50)
  assert.ok(!JSON.stringify(ended).includes('device-'), 'the provider’s own names of its sessions are not for the log')
})

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')

const REFUSED: Record<string, (scene: Backchannel) => string | Promise<string>> = {
  'of another issuer': ({ token }) => token({ claims: { iss: 'https://evil.example' } }),
  'without an issuer': ({ token }) => token({ claims: { iss: undefined } }),
  'for another client': ({ token }) => token({ claims: { aud: 'another' } }),
  'without an audience': ({ token }) => token({ claims: { aud: undefined } }),
  'signed by somebody else': ({ token }) => token({ key: stranger.privateKey }),
  'with a key that nobody knows': ({ token }) => token({ kid: 'key-2' }),
  'signed with the public key as a shared secret': async ({ token }) => {
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    return token({ alg: 'HS256', key: Buffer.from(pem) })
  },
  'without a signature (alg none)': async ({ token }) => {
    const [, claims] = (await token()).split('.')
    return `${encoded({ alg: 'none', kid: KEY_ID })}.${claims}.`
  },
  'with its signature cut off': async ({ token }) => (await token()).replace(/[^.]*$/, ''),
  'with claims changed after signing': async ({ token }) => {
    const [head, , signature] = (await token({ claims: { sub: 'sub-lisi' } })).split('.')
    const [, claims] = (await token()).split('.')
    return `${head}.${claims}.${signature}`
  },
  expired: ({ token, seconds }) => token({ claims: { iat: seconds() - 200, exp: seconds() - 100 } }),
  'made too long ago': ({ token, seconds }) => token({ claims: { iat: seconds() - 301 } }),
  'made in the future': ({ token, seconds }) => token({ claims: { iat: seconds() + 3600, exp: seconds() + 7200 } }),
  'without iat': ({ token }) => token({ claims: { iat: undefined } }),
  'with a nonce, like an ID token': ({ token }) => token({ claims: { nonce: 'n' } }),
  'without events': ({ token }) => token({ claims: { events: undefined } }),
  'with another event': ({ token }) => token({ claims: { events: { 'http://evil.example/event': {} } } }),
  'with events that are a list': ({ token }) => token({ claims: { events: Object.keys(EVENTS) } }),
  'without sub and sid': ({ token }) => token({ claims: { sub: undefined } }),
  'with an empty sid': ({ token }) => token({ claims: { sid: '' } }),
  'with a sid that is not text': ({ token }) => token({ claims: { sid: ['device-1'] } }),
  'with an empty sub': ({ token }) => token({ claims: { sub: '' } }),
  'without exp and not of this moment': ({ token, seconds }) =>
    token({ claims: { exp: undefined, iat: seconds() - 301 } }),
  'with an exp that is not a number': ({ token, seconds }) => token({ claims: { exp: String(seconds() + 120) } }),
  'with an event that is a text': ({ token }) => token({ claims: { events: { [EVENT]: 'yes' } } }),
  'with an event that is null': ({ token }) => token({ claims: { events: { [EVENT]: null } } }),
  'with an event that is a list': ({ token }) => token({ claims: { events: { [EVENT]: [] } } }),
  'with an event that is true': ({ token }) => token({ claims: { events: { [EVENT]: true } } }),
  'of the type of access tokens': ({ token }) => token({ typ: 'at+jwt' }),
  'of the type of our own assertions': ({ token }) => token({ typ: 'menshen+jwt' }),
  'of a type that only ends alike': ({ token }) => token({ typ: 'not-logout+jwt' }),
  'of a type that begins alike': ({ token }) => token({ typ: 'logout+jwt+x' }),
  'without jti': ({ token }) => token({ claims: { jti: undefined } }),
  'that is garbage': () => 'garbage',
  'that is three times garbage': () => 'a.b.c',
  'that is empty': () => '',
  'of 15 KB': () => 'x'.repeat(15_000),
}

test('an invalid logout token gets 400, is logged and signs no user out', async t => {
  const scene = await openBackchannel(t)
  const refusals = () => scene.scene.lines.filter(({ event }) => event === 'logout_token_refused').length
  for (const [name, make] of Object.entries(REFUSED)) {
    const before = refusals()
    const answer = await scene.tell(await make(scene))
    assert.equal(answer.status, 400, name)
    assert.equal(answer.text, '{"error":"invalid_request"}', name)
    for (const client of [scene.user, scene.bystander]) assert.ok(await isIn(client), name)
    assert.equal(refusals(), before + 1, `${name} is not in the log`)
    scene.scene.passSeconds(10)
  }
  assert.equal((await scene.tell(await scene.token())).status, 200, 'and a right one still works')
  assert.ok(!(await isIn(scene.user)))
})

test('a logout token without typ or with a generic one is accepted, because many providers send it that way', async t => {
  const { signedIn, token, tell } = await openBackchannel(t)
  for (const typ of [undefined, 'JWT', 'logout+jwt', 'LOGOUT+JWT', 'application/logout+jwt']) {
    const user = await signedIn('zhangsan')
    assert.equal((await tell(await token({ typ }))).status, 200, `${typ}`)
    assert.ok(!(await isIn(user)), `${typ}`)
  }
})

test('a thousand valid logout tokens from one address are all accepted, while invalid ones are rate limited', async t => {
  const { scene, user, bystander, token, tell } = await openBackchannel(t, undefined, {
    RATE_LIMIT_PER_MINUTE: '5',
    PROVIDER_TIMEOUT_MS: '5000',
    // Signing the next tokens may take longer than the five seconds of Node.
    KEEP_ALIVE_TIMEOUT_MS: '90000',
  })
  const refusals = []
  for (let n = 0; n < 8; n++) refusals.push((await tell('garbage')).status)
  assert.deepEqual(refusals, [400, 400, 400, 400, 400, 429, 429, 429])
  const statuses = new Set<number>()
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  for (let n = 0; n < 1000; n += 50) {
    const some = Array.from({ length: 50 }, async (_, m) => {
      const sub = n + m === 500 ? 'sub-zhangsan' : `sub-${n + m}`
      return tell(await token({ claims: { sub } }), { agent })
    })
    for (const { status } of await Promise.all(some)) statuses.add(status)
  }
  assert.deepEqual([...statuses], [200])
  assert.ok(!(await isIn(user)))
  assert.ok(await isIn(bystander))
  assert.equal((await tell('garbage')).status, 429)
  const limited = await createClient(scene.url).post('/_menshen/backchannel-logout', '', {
    headers: { accept: 'application/json' },
  })
  assert.equal(limited.json<{ error: string }>().error, 'too_many')
})

test('a logout token with sid ends only the session of that device, with or without sub', async t => {
  const { scene, user, bystander, signedIn, seconds, token, tell } = await openBackchannel(t)
  async function device(sid: string, username = 'zhangsan'): Promise<Client> {
    const claims = { iss: ISSUER, aud: CLIENT_ID, sub: `sub-${username}`, iat: seconds(), exp: seconds() + 300, sid }
    const idToken = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: KEY_ID }).sign(rsa.privateKey)
    scene.provider.behaviour.extras = { id_token: idToken }
    return signedIn(username)
  }
  const devices = [await device('one'), await device('two'), await device('three')]
  const colleague = await device('four', 'lisi')
  const inside = async () => Promise.all([...devices, user, colleague, bystander].map(isIn))
  const end = async (claims: object) => assert.equal((await tell(await token({ claims: { ...claims } }))).status, 200)

  await end({ sid: 'one' })
  assert.deepEqual(await inside(), [false, true, true, true, true, true])
  await end({ sub: undefined, sid: 'two' })
  assert.deepEqual(await inside(), [false, false, true, true, true, true])
  await end({ sub: undefined, sid: 'nobody’s' })
  assert.deepEqual(await inside(), [false, false, true, true, true, true])
  // It may be the device of which we were never told: that of the user, and of nobody else, ends.
  await end({ sid: 'unheard of' })
  assert.deepEqual(await inside(), [false, false, true, false, true, true])
  await end({})
  assert.deepEqual(await inside(), [false, false, false, false, true, true])
})

test('a logout token works once', async t => {
  const { signedIn, token, tell } = await openBackchannel(t)
  const used = await token()
  assert.equal((await tell(used)).status, 200)
  const again = await signedIn('zhangsan')
  assert.equal((await tell(used)).status, 400)
  assert.ok(await isIn(again))
})

test('a logout token sent twenty times in parallel is accepted once', async t => {
  const { token, tell } = await openBackchannel(t)
  const used = await token()
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await tell(used)).status))
  assert.equal(statuses.filter(status => status === 200).length, 1)
})

test('a back-channel logout that is too large, empty, in the query or by GET is refused and ends no session', async t => {
  const { scene, user, token } = await openBackchannel(t)
  const path = '/_menshen/backchannel-logout'
  const client = scene.visitor()
  assert.equal((await client.post(path, { logout_token: 'x'.repeat(20_000) })).status, 413)
  assert.equal((await client.post(path)).status, 400)
  assert.equal((await client.post(`${path}?logout_token=${await token()}`)).status, 400)
  assert.equal((await client.get(`${path}?logout_token=${await token()}`)).status, 405)
  assert.ok(await isIn(user))
})

test('back-channel logout returns 404 unless both ISSUER and JWKS_URL are set', async t => {
  for (const env of [{}, { ISSUER }, { JWKS_URL: 'http://127.0.0.1:9/keys' }]) {
    const scene = await setUp(t, { env: env as Record<string, string> })
    assert.equal((await scene.visitor().post('/_menshen/backchannel-logout', { logout_token: 'a.b.c' })).status, 404)
  }
})

/** Far more than the deadline, far less than for ever. */
const PATIENCE_MS = 20_000

const SICK: Record<string, RequestListener> = {
  'never answers': () => {},
  'starts a response and never ends it': (_, response) => void response.write('{"keys":['),
  'returns 500': (_, response) => void response.writeHead(500).end(),
  'returns garbage': (_, response) => void response.end('\x00garbage'),
  'returns no keys': (_, response) => void response.end('{"keys":[]}'),
  'returns invalid keys': (_, response) => void response.end('{"keys":[null,1,{"kty":"RSA"}]}'),
  'sends data without end': (_, response) => {
    const more = setInterval(() => response.write(' '.repeat(200_000)), 5)
    response.once('close', () => clearInterval(more))
  },
  redirects: (_, response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
}

for (const [name, serveKeys] of Object.entries(SICK)) {
  test(`a logout token gets 400 within 20 s and signs no user out if the key server ${name}`, async t => {
    const { keys, user, token, tell } = await openBackchannel(t, serveKeys)
    const began = performance.now()
    assert.equal((await tell(await token())).status, 400)
    assert.ok(performance.now() - began < PATIENCE_MS, `it took ${performance.now() - began} ms`)
    assert.ok(await isIn(user))
    assert.ok(keys.received.every(({ target }) => target === '/keys'))
    await until(() => keys.sockets.size === 0 || keys.received.length > 0)
  })
}
