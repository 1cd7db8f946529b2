// An application that is busy or hangs: who waits, for how long, and what they are told.

import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import test, { type TestContext } from 'node:test'
import { readSettings } from '../../src/index.ts'
import { createCapacity, type SlotHolder } from '../../src/proxy/capacity.ts'
import { startRelay } from '../../src/proxy/relay.ts'
import { createUpstreamPool } from '../../src/proxy/upstream-pool.ts'
import { type Client, cookieOf, type Response } from '../kit/client.ts'
import { scrape } from '../kit/scrape.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { openWire, request } from './raw.ts'

const ONE_SLOT = { UPSTREAM_CONNECTIONS: '1' }

/** An application that answers what it was asked under /held only when it is told to. */
async function openHeld(t: TestContext, env: Record<string, string> = {}) {
  const held: ServerResponse[] = []
  let asked = 0
  const answer: RequestListener = (request, response) => {
    request.resume()
    if (!request.url?.startsWith('/held')) return void response.end('hello')
    asked++
    held.push(response)
  }
  const scene = await setUp(t, { env: { ...ONE_SLOT, ...env }, answer })
  return {
    ...scene,
    held,
    targets: () => scene.upstream.received.map(({ target }) => target),
    /** Resolves when the only slot is taken. */
    async hold(user: Client): Promise<Promise<Response>> {
      // Not by `held`, which may be let go before this is seen.
      const before = asked
      const holding = user.get('/held')
      await until(() => asked > before)
      return holding
    },
    letGo(): void {
      for (const response of held.splice(0)) response.end('at last')
    },
  }
}

/** Resolves when this many requests wait for the application. */
async function queueHas({ url }: { url: string }, requests: number): Promise<void> {
  await until(async () => (await scrape(url)).value('menshen_upstream_queue') === requests)
}

async function ready(user: Client): Promise<[status: number, reason: unknown]> {
  const answer = await user.get('/_menshen/ready')
  return [answer.status, answer.json<{ reason?: string }>().reason]
}

test('a request beyond UPSTREAM_CONNECTIONS waits in the queue and then gets its page', async t => {
  const scene = await openHeld(t)
  const user = await scene.user()
  const first = scene.hold(user)
  await until(() => scene.held.length === 1)
  const others = ['/a', '/b', '/c'].map(path => user.get(path))
  scene.letGo()
  assert.equal((await await first).text, 'at last')
  for (const { status } of await Promise.all(others)) assert.equal(status, 200)
  assert.deepEqual(scene.targets().sort(), ['/a', '/b', '/c', '/held'])
})

test('a request that times out in the queue gets 503 with Retry-After, as a Chinese page or as JSON; readiness stays 200', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE_TIMEOUT_MS: '300' })
  const user = await scene.user()
  const holding = scene.hold(user)
  await until(() => scene.held.length === 1)
  assert.deepEqual(await ready(user), [200, undefined])

  const [page, json] = await Promise.all([
    user.get('/page'),
    user.get('/data', { headers: { accept: 'application/json' } }),
  ])
  assert.equal(page.status, 503)
  assert.match(String(page.headers['retry-after']), /^[1-9]\d*$/)
  assert.equal(page.headers['cache-control'], 'no-store')
  assert.match(page.text, /<html lang="zh-CN"[\s\S]*应用正忙/)
  assert.equal(json.status, 503)
  assert.equal(json.json<{ error: string }>().error, 'busy')
  assert.deepEqual(await ready(user), [200, undefined], 'signing in and other applications still work')
  assert.deepEqual(scene.targets(), ['/held'])
  assert.ok(scene.lines.some(({ event }) => event === 'upstream_busy'))

  scene.letGo()
  await holding
  assert.equal((await user.get('/page')).status, 200)
})

test('the queue takes turns between users, regardless of how many requests one user has in it', async t => {
  const scene = await openHeld(t)
  const [greedy, modest, visitor] = [await scene.user(), await scene.user('lisi'), await scene.user('wangwu')]
  const holding = scene.hold(greedy)
  await until(() => scene.held.length === 1)
  const asking: Promise<Response>[] = []
  const ask = async (user: Client, path: string) => {
    asking.push(user.get(path))
    await queueHas(scene, asking.length)
  }
  for (const path of ['/1', '/2', '/3']) await ask(greedy, path)
  await ask(modest, '/modest')
  await ask(visitor, '/late')
  scene.letGo()
  for (const { status } of await Promise.all(asking)) assert.equal(status, 200)
  await holding
  assert.deepEqual(scene.targets(), ['/held', '/1', '/modest', '/late', '/2', '/3'])
})

test('a full queue makes room for another user by rejecting the last request of the user with the most requests', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE: '3' })
  const [greedy, modest] = [await scene.user(), await scene.user('lisi')]
  const holding = scene.hold(greedy)
  await until(() => scene.held.length === 1)
  const answered: [path: string, status: number][] = []
  const waiting: Promise<unknown>[] = []
  for (const path of ['/1', '/2', '/3']) {
    waiting.push(greedy.get(path).then(({ status }) => answered.push([path, status])))
    await queueHas(scene, waiting.length)
  }
  const page = modest.get('/page')
  await until(() => answered.length === 1)
  assert.deepEqual(answered, [['/3', 503]])
  scene.letGo()
  assert.equal((await page).status, 200)
  await Promise.all([holding, ...waiting])
  assert.deepEqual(
    answered.slice(1).map(([, status]) => status),
    [200, 200],
  )
})

test('while one user holds all slots, other users get extra ones, at most a quarter of the total', async t => {
  const scene = await openHeld(t, { UPSTREAM_CONNECTIONS: '8', UPSTREAM_QUEUE_TIMEOUT_MS: '300' })
  const [greedy, ...others] = await Promise.all(['a', 'b', 'c', 'd'].map(name => scene.user(name)))
  assert.ok(greedy)
  const holding = Array.from({ length: 8 }, (_, n) => greedy.get(`/held/${n}`))
  await until(() => scene.held.length === 8)
  assert.equal((await greedy.get('/page')).status, 503, 'the one who holds them has none on top')
  for (const other of others) assert.equal((await other.get('/page')).status, 200)
  const more = others.map(other => other.get('/held/more'))
  await until(() => scene.held.length === 10)
  const statuses = Promise.all(more.map(async one => (await one).status))
  await until(() => scene.lines.filter(({ event }) => event === 'upstream_busy').length === 2)
  assert.equal(scene.held.length, 10)
  scene.letGo()
  assert.deepEqual((await statuses).sort(), [200, 200, 503])
  for (const { status } of await Promise.all(holding)) assert.equal(status, 200)
  for (const user of [greedy, ...others]) assert.equal((await user.get('/page')).status, 200)
})

test('while the application hangs, requests sent to it get 504 and requests in the queue get 503', async t => {
  const env = { UPSTREAM_CONNECTIONS: '2', UPSTREAM_HEADERS_TIMEOUT_MS: '2500', UPSTREAM_QUEUE_TIMEOUT_MS: '300' }
  const scene = await openHeld(t, env)
  const user = await scene.user()
  const inside = [user.get('/held/1'), user.get('/held/2')]
  await until(() => scene.held.length === 2)
  assert.equal((await user.get('/page')).status, 503)
  for (const { status } of await Promise.all(inside)) assert.equal(status, 504)
  assert.equal((await user.get('/page')).status, 200)
  assert.deepEqual(await ready(user), [200, undefined])
})

test('requests beyond UPSTREAM_QUEUE get 503 without waiting', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE: '2' })
  const user = await scene.user()
  const holding = scene.hold(user)
  await until(() => scene.held.length === 1)
  const answered: number[] = []
  const asking = Array.from({ length: 5 }, async () => answered.push((await user.get('/page')).status))
  await until(() => answered.length === 3)
  assert.deepEqual(answered, [503, 503, 503])
  scene.letGo()
  await Promise.all([holding, ...asking])
  assert.deepEqual(answered.slice(3), [200, 200])
})

test('the content type of gRPC does not lift UPSTREAM_CONNECTIONS for an HTTP/1.1 application, with any method', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE_TIMEOUT_MS: '1000' })
  const user = await scene.user()
  const headers = { 'content-type': 'application/grpc', origin: scene.baseUrl }
  for (const method of ['GET', 'POST']) {
    const first = user.request({ method, path: '/held', headers })
    await until(() => scene.held.length === 1)
    // It is rejected only if the first one never gives its slot back.
    const second = await user.request({ method, path: '/held', headers })
    assert.equal(second.headers['grpc-status'], '14')
    assert.equal(scene.held.length, 1)
    scene.letGo()
    assert.equal((await first).text, 'at last')
  }
})

test('the unanswered gRPC calls of one user occupy at most as many streams as there are slots', t => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  const SLOTS = 3
  const capacity = createCapacity({ slots: SLOTS, streams: 100, queue: 100, queueMs: 60_000 })
  const call = (owner: string): SlotHolder => ({
    owner,
    index: 0,
    stage: 'outside',
    isEndless: false,
    waitsForClient: () => false,
    checkSlow: () => 'unanswered_call',
    start() {},
    reject: reason => assert.fail(reason),
    cutOff() {},
  })
  const stages = (calls: readonly SlotHolder[]) => calls.map(({ stage }) => stage)
  const [one, other] = ['one', 'other'].map(owner => Array.from({ length: 2 * SLOTS + 1 }, () => call(owner)))
  assert.ok(one && other)
  for (const each of one) capacity.enter(each)
  for (let n = 0; n < 5; n++) t.mock.timers.tick(100)
  assert.deepEqual(stages(one), ['stream', 'stream', 'stream', 'slot', 'slot', 'slot', 'waiting'])

  // The streams of one user are not those of another.
  for (const each of one.slice(SLOTS)) capacity.leave(each)
  for (const each of other) capacity.enter(each)
  for (let n = 0; n < 5; n++) t.mock.timers.tick(100)
  assert.deepEqual(stages(other), ['stream', 'stream', 'stream', 'slot', 'slot', 'slot', 'waiting'])
  for (const each of [...one, ...other]) capacity.leave(each)
})

test('a queued request is dropped when its browser disconnects, and never reaches the application', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE: '1' })
  const user = await scene.user()
  const holding = scene.hold(user)
  await until(() => scene.held.length === 1)
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /left HTTP/1.1', `cookie: ${cookieOf(user)}`))
  await queueHas(scene, 1)
  assert.equal((await user.get('/full')).status, 503)

  wire.socket.destroy()
  await queueHas(scene, 0)
  const waiting = user.get('/page')
  await queueHas(scene, 1)
  scene.letGo()
  assert.equal((await waiting).status, 200)
  await holding
  assert.deepEqual(scene.targets(), ['/held', '/page'])
})

test('a request whose browser disconnects before its session is loaded is not queued', async t => {
  const scene = await openHeld(t, { UPSTREAM_QUEUE: '1' })
  const [user, leaving] = [await scene.user(), await scene.user('lisi')]
  const holding = scene.hold(user)
  await until(() => scene.held.length === 1)
  scene.passSeconds(7200 - 200)
  const other = await scene.user('wangwu')
  const letRefresh = scene.provider.hold('refresh')
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /left HTTP/1.1', `cookie: ${cookieOf(leaving)}`))
  await scene.provider.called('refresh')
  wire.socket.destroy()
  for (let n = 0; n < 3; n++) await other.get('/_menshen/health')
  letRefresh()
  await until(() => scene.lines.some(({ event }) => event === 'session_refreshed'))
  for (let n = 0; n < 3; n++) await other.get('/_menshen/health')

  const waiting = other.get('/page')
  await queueHas(scene, 1)
  scene.letGo()
  assert.equal((await waiting).status, 200)
  await holding
  assert.deepEqual(scene.targets(), ['/held', '/page'])
})

test('a queued upload gets 100 Continue only when its turn comes', async t => {
  const scene = await openHeld(t)
  const user = await scene.user()
  const holding = scene.hold(user)
  await until(() => scene.held.length === 1)
  const wire = await openWire(scene.url)
  const headers = [`cookie: ${cookieOf(user)}`, 'expect: 100-continue', 'content-length: 4']
  wire.socket.write(request('POST /upload HTTP/1.1', ...headers))
  assert.equal((await user.get('/_menshen/health')).status, 200)
  assert.equal(wire.seen, '')
  scene.letGo()
  await holding
  await wire.sees('100 Continue')
  wire.socket.write('body')
  assert.match(await wire.rest(), /200 OK[\s\S]*hello/)
})

test('a request that cannot be sent does not leak its upstream slot', async t => {
  const upstream = await startUpstream(t)
  const settings = readSettings({ UPSTREAM: upstream.url, ...ONE_SLOT })
  const pool = createUpstreamPool()
  const upstreams = pool.choose(settings, {})
  pool.use(upstreams)
  t.after(() => pool.close(0))
  const scene = await setUp(t, {
    answer(incoming, response) {
      const application = upstreams.for('/')
      assert.ok(application)
      const bad = incoming.url === '/bad'
      startRelay({
        upstream: application,
        owner: 'somebody',
        method: 'GET',
        path: '/',
        headers: bad ? ['x-name', '门神'] : [],
        incoming,
        hasBody: false,
        body: null,
        isBodyUnusual: false,
        expectsContinue: false,
        isGrpc: false,
        trailers: () => ({}),
        onEndless() {},
        takesScript: false,
        onContinue() {},
        response,
        onAnswer() {},
        onStart() {},
        onLasting() {},
        answerHeaders: () => [],
        onDone: error => error && response.writeHead(502).end((error as { code?: string }).code),
      })
    },
  })
  const user = await scene.user()
  for (let n = 0; n < 5; n++) assert.equal((await user.get('/bad')).text, 'UND_ERR_INVALID_ARG')
  assert.equal((await user.get('/good')).text, 'hello')
})
