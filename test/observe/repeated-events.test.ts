// What the log says of who was there: one client's repeats never hide another's first.

import assert from 'node:assert/strict'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { freePort } from '../kit/free-port.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { openWire } from '../proxy/raw.ts'

/** Everybody in these tests comes through a proxy of ours, which says from where. */
const BEHIND_PROXY = { TRUSTED_PROXIES: '127.0.0.1' }
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

interface Facts {
  [name: string]: unknown
}

function fieldsOf({ lines }: Pick<Scene, 'lines'>, code: string): Facts[] {
  return lines.filter(({ event }) => event === code).map(({ fields }) => ({ ...fields }))
}

test('repeats of a shadow rule by one user do not hide the first log line of another user', async t => {
  const rules = [{ path: '/trial', roles: ['developer' as const], shadow: true }]
  const scene = await setUp(t, { config: { rules } })
  const [one, other] = [await scene.user('zhangsan'), await scene.user('lisi')]
  for (let n = 0; n < 20; n++) await one.get('/trial')
  await other.get('/trial')
  const refused = fieldsOf(scene, 'shadow_refused')
  assert.equal(refused.length, 11)
  const { user, sub, role, address, path } = refused.at(-1) ?? {}
  assert.deepEqual(
    { user, sub, role, address, path },
    { user: 'lisi', sub: 'sub-lisi', role: 'common', address: '127.0.0.1', path: '/trial' },
  )
})

test('an application that fails is reported for each user and address, also after many repeats', async t => {
  const env = { ...BEHIND_PROXY, UPSTREAM: `http://127.0.0.1:${await freePort()}` }
  const scene = await setUp(t, { env })
  const [one, other] = [await scene.user('zhangsan'), await scene.user('lisi')]
  for (let n = 0; n < 15; n++) await one.get('/', from('10.0.0.1'))
  await other.get('/', from('10.0.0.1'))
  await one.get('/', from('10.0.0.2'))
  const failed = fieldsOf(scene, 'upstream_failed').map(({ user, address }) => `${user} ${address}`)
  assert.deepEqual(failed.slice(10), ['lisi 10.0.0.1', 'zhangsan 10.0.0.2'])
})

test('a failed sign-in is reported for each address', async t => {
  const scene = await setUp(t, { env: BEHIND_PROXY })
  const fail = (address: string) => scene.visitor().get('/callback?code=nonsense&state=a_idp', from(address))
  for (let n = 0; n < 15; n++) await fail('10.0.0.1')
  await fail('10.0.0.2')
  const addresses = fieldsOf(scene, 'sign_in_failed').map(({ address }) => address)
  assert.deepEqual([addresses.length, addresses.at(-1)], [11, '10.0.0.2'])
})

test('a log line has at most 300 characters of the Origin header of another site', async t => {
  const scene = await setUp(t)
  const headers = { origin: `https://${'a'.repeat(9000)}.example` }
  assert.equal((await (await scene.user()).post('/_menshen/language', { language: 'en' }, { headers })).status, 403)
  const [told] = fieldsOf(scene, 'foreign_origin')
  assert.equal(String(told?.origin).length, 300)
})

test('a client that exceeds the rate limit is reported once for each address', async t => {
  const scene = await setUp(t, { env: { ...BEHIND_PROXY, RATE_LIMIT_PER_MINUTE: '1' } })
  for (const address of ['10.0.0.1', '10.0.0.1', '10.0.0.2', '10.0.0.2'])
    await scene.visitor().post('/login', '', from(address))
  const limited = fieldsOf(scene, 'rate_limited').map(({ address, kind }) => ({ address, kind }))
  assert.deepEqual(limited, [
    { address: '10.0.0.1', kind: 'sign-in' },
    { address: '10.0.0.2', kind: 'sign-in' },
  ])
})

test('a refused auth check and a failed request behind a proxy are logged with the address of the client', async t => {
  const env = { ...BEHIND_PROXY, STORE: `redis://127.0.0.1:${await freePort()}` }
  const scene = await setUp(t, { env })
  const headers = { 'x-forwarded-for': '10.0.0.9' }
  const asked = { headers: { ...headers, 'x-original-uri': '/a/..%2fb' } }
  assert.equal((await scene.visitor().get('/_menshen/check', asked)).status, 400)
  assert.equal(fieldsOf(scene, 'check_refused')[0]?.address, '10.0.0.9')
  const cookie = `menshen_session=${'A'.repeat(43)}`
  assert.equal((await scene.visitor().get('/page', { headers: { ...headers, cookie } })).status, 503)
  const [{ address, path } = {}] = fieldsOf(scene, 'request_failed')
  assert.deepEqual({ address, path }, { address: '10.0.0.9', path: '/page' })
})

test('a WebSocket that cannot be opened is logged with its path, upstream, user and address', async t => {
  const env = { ...BEHIND_PROXY, UPSTREAM: `http://127.0.0.1:${await freePort()}` }
  const scene = await setUp(t, { env })
  const cookie = cookieOf(await scene.user())
  const wire = await openWire(scene.url)
  wire.socket.write(
    `GET /chat HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nx-forwarded-for: 10.0.0.3\r\ncookie: ${cookie}\r\n\r\n`,
  )
  await until(() => fieldsOf(scene, 'upstream_failed').length > 0)
  const [{ user, address, path, upstream } = {}] = fieldsOf(scene, 'upstream_failed')
  assert.deepEqual(
    { user, address, path, upstream },
    { user: 'zhangsan', address: '10.0.0.3', path: '/chat', upstream: env.UPSTREAM },
  )
  wire.socket.destroy()
})

test('a client that is cut off behind a proxy is logged with its own address', async t => {
  const scene = await setUp(t, { env: { ...BEHIND_PROXY, CLIENT_TIMEOUT_MS: '150' } })
  const cookie = cookieOf(await scene.user())
  const wire = await openWire(scene.url)
  wire.socket.write(
    `POST /page HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 10.0.0.4\r\ncookie: ${cookie}\r\ncontent-length: 9\r\n\r\n`,
  )
  await until(() => fieldsOf(scene, 'client_cut_off').length > 0)
  assert.equal(fieldsOf(scene, 'client_cut_off')[0]?.address, '10.0.0.4')
})

test('a successful and a failed refresh are logged with the user and the short session key', async t => {
  const scene = await setUp(t, { env: { REFRESH_FAILURE: 'keep' } })
  const user = await scene.user('lisi')
  scene.passSeconds(7200 - 200)
  await user.get('/')
  scene.provider.answer('refresh', { kind: 'json', status: 500, body: {} })
  scene.passSeconds(7200 - 200)
  await user.get('/')
  const [refreshed = {}, ...others] = fieldsOf(scene, 'session_refreshed')
  const [failed = {}] = fieldsOf(scene, 'session_refresh_failed')
  assert.deepEqual(others, [])
  assert.equal(failed.outcome, 'kept')
  for (const each of [refreshed, failed]) assert.deepEqual([each.user, each.sub], ['lisi', 'sub-lisi'])
  assert.match(String(refreshed.session), /^[\w-]{10}$/)
  assert.equal(failed.session, refreshed.session)
})

test('a session that a developer ends is logged with its user and the developer', async t => {
  const scene = await setUp(t)
  const developer = await scene.user('admin')
  for (const username of ['zhangsan', 'lisi']) await scene.user(username)
  for (const username of ['zhangsan', 'lisi']) {
    const page = (await developer.get(`/_menshen/console/sessions?username=${username}`)).text
    const session = /name="session" value="([\w-]{43})"/.exec(page)?.[1] ?? ''
    const origin = { headers: { origin: scene.baseUrl } }
    await developer.post('/_menshen/console/end', { session, all: 'yes' }, origin)
  }
  const ended = fieldsOf(scene, 'session_ended').map(({ by, byUser, user, ended }) => ({ by, byUser, user, ended }))
  const byAdmin = { by: 'developer', byUser: 'admin', ended: 1 }
  assert.deepEqual(ended, [
    { ...byAdmin, user: 'zhangsan' },
    { ...byAdmin, user: 'lisi' },
  ])
})
