// Offboarding is one call: all sessions and personal keys of a user end, at every instance, and their open streams close.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get } from 'node:http'
import test, { type TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { type Client, cookieOf, signIn } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { setUpTwoProviders } from '../kit/two-providers.ts'
import { dial } from '../kit/websocket.ts'
import { allPages, CONFIG, createCaller, isSignedIn, setUpApi } from './set-up-api.ts'

const MANY = 230

async function openTwo(t: TestContext, STORE: string) {
  const now = Date.now()
  const one = await setUpApi(t, {
    env: { STORE },
    now,
    answer: (request, response) => {
      if (request.url !== '/stream') return void response.end('hello')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
    },
  })
  const { provider, upstream, baseUrl } = one
  const sockets = new WebSocketServer({ server: upstream.server })
  t.after(() => sockets.close())
  const settings = { ...provider.settings, STORE, UPSTREAM: upstream.url, BASE_URL: baseUrl }
  const other = await openGateway(t, settings, { config: CONFIG, now })
  return { one, other, callOther: createCaller(other.url) }
}

/** An event stream of this user, which has begun. */
async function openStream({ url }: { url: string }, client: Client): Promise<{ readonly closed: Promise<void> }> {
  const request = get(`${url}/stream`, { headers: { cookie: cookieOf(client) } })
  const [response] = await once(request, 'response')
  assert.equal(response.statusCode, 200)
  await once(response, 'data')
  response.resume()
  response.on('error', () => {})
  return { closed: new Promise(resolve => response.once('close', () => resolve())) }
}

async function offboard(t: TestContext, STORE: string): Promise<void> {
  const { one, other, callOther } = await openTwo(t, STORE)
  const { user, makeKey, provider, eventsOf } = one
  const clients: Client[] = []
  for (let n = 0; n < MANY; n++) clients.push(await user('zhangsan'))
  const [first = assert.fail(), second = assert.fail()] = clients
  const lisi = await user('lisi')
  const keys = [await makeKey(first, 'a'), await makeKey(first, 'b')]
  const lisisKey = await makeKey(lisi)
  const use = (key: string, gateway: { visitor(): Client } = one) =>
    gateway.visitor().get('/api', { headers: { 'x-menshen-key': key } })
  const there = other.visitor()
  await signIn(there, provider, { username: 'zhangsan' })
  assert.ok(await isSignedIn(there))
  const listed = await allPages<{ id: string; user: string }>(one.call, 'sessions', 'user=zhangsan&limit=100')
  assert.equal(new Set(listed.map(({ id }) => id)).size, MANY + 1)

  const streams = [await openStream(one, first), await openStream(other, there)]
  const sockets = [dial(one, second), dial(other, there), dial(one, lisi)]
  await Promise.all(sockets.map(socket => once(socket, 'open')))
  const [mine, theirs, lisis] = sockets
  const closed = [mine, theirs].map(socket => socket && once(socket, 'close'))

  const answer = await callOther('/sessions?user=zhangsan', { method: 'DELETE' })
  assert.deepEqual(answer.json(), { ended: MANY + 1, keys: 2 })
  assert.ok(!(await isSignedIn(there)))
  for (const client of [first, second, clients.at(-1) ?? assert.fail()]) assert.ok(!(await isSignedIn(client)))
  for (const key of keys) {
    assert.equal((await use(key)).status, 401)
    assert.equal((await use(key, other)).status, 401)
  }
  await Promise.all([...closed, ...streams.map(stream => stream.closed)])
  assert.equal(lisis?.readyState, lisis?.OPEN)
  assert.ok(await isSignedIn(lisi))
  assert.equal((await use(lisisKey)).status, 200)
  lisis?.terminate()

  assert.deepEqual((await one.call('/sessions?user=zhangsan')).json(), { sessions: [] })
  assert.deepEqual((await one.call('/keys?user=zhangsan')).json(), { keys: [] })
  const again = await one.call('/sessions?user=zhangsan', { method: 'DELETE' })
  assert.deepEqual(again.json(), { ended: 0, keys: 0 })
  assert.deepEqual(eventsOf('session_ended'), [], 'an end of nothing is not reported')
  const ended = other.lines.filter(({ event }) => event === 'session_ended' || event === 'key_revoked')
  const reported = ended.map(({ event, fields }) => {
    const { user, by, byUser, ended, revoked } = Object(fields) as Record<string, unknown>
    return { event, user, by, byUser, count: ended ?? revoked }
  })
  const by = { user: 'zhangsan', by: 'machine', byUser: 'machine:admin' }
  assert.deepEqual(reported, [
    { event: 'key_revoked', ...by, count: 2 },
    { event: 'session_ended', ...by, count: MANY + 1 },
  ])
}

test('with Redis, one call to one instance ends more than 200 sessions, all keys and the streams of a user at all instances', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  await offboard(t, `redis://${redis.host}`)
})

test('with SQLite, one call ends more than 200 sessions, all keys and the streams of a user at both gateways of a process', async t => {
  await offboard(t, `sqlite:${tempFolder(t)}/menshen.db`)
})

test('one username at two providers is two users: their sessions are listed with the provider and end with one event each', async t => {
  const { url, signIn, eventsOf } = await setUpTwoProviders(t, { config: CONFIG })
  const call = createCaller(url)
  const clients = [await signIn('staff'), await signIn('partners'), await signIn('partners')]
  const { sessions } = (await call('/sessions?user=zhangsan')).json<{ sessions: { id: string; provider: string }[] }>()
  assert.deepEqual(sessions.map(({ provider }) => provider).sort(), ['partners', 'partners', 'staff'])
  const [one] = sessions.filter(({ provider }) => provider === 'partners')
  assert.equal((await call(`/sessions/${one?.id}`, { method: 'DELETE' })).status, 204)
  const still = await Promise.all(clients.map(isSignedIn))
  assert.equal(still[0], true, 'the user of the other provider')
  assert.equal(still.filter(Boolean).length, 2)
  const answer = await call('/sessions?user=zhangsan', { method: 'DELETE' })
  assert.deepEqual(answer.json(), { ended: 2, keys: 0 })
  for (const client of clients) assert.ok(!(await isSignedIn(client)))
  const ends = eventsOf('session_ended').map(({ provider, ended }) => `${provider} ${ended}`)
  assert.deepEqual(ends.sort(), ['partners 1', 'partners 1', 'staff 1'])
})

test('while the store is unavailable, the API answers 503 in JSON with Retry-After and still refuses wrong keys with 401', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const { call } = await setUpApi(t, { env: { STORE: `redis://${redis.host}` }, now: Date.now() })
  assert.equal((await call('/sessions')).status, 200)
  await redis.stop()
  for (const [path, method] of [
    ['/sessions', 'GET'],
    ['/sessions?user=zhangsan', 'GET'],
    ['/keys', 'GET'],
    ['/audit', 'GET'],
    ['/sessions?user=zhangsan', 'DELETE'],
    [`/sessions/${'a'.repeat(43)}`, 'DELETE'],
    [`/keys/${'0'.repeat(64)}`, 'DELETE'],
  ] as const) {
    const answer = await call(path, { method })
    assert.equal(answer.status, 503, path)
    const { error, message, ...more } = answer.json<{ error: string; message: string }>()
    assert.deepEqual([error, more], ['unavailable', {}])
    assert.match(message, /存储暂时不可用/)
    assert.equal(answer.headers['retry-after'], '5')
  }
  assert.equal((await call('/sessions', { headers: { authorization: 'Bearer mk_x' } })).status, 401)
  assert.equal((await call('/openapi.json')).status, 200)
})
