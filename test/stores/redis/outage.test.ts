import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openRedisStore } from '../../../src/stores/redis/store.ts'
import type { Entry, Store } from '../../../src/stores/store.ts'
import { type RedisServer, startCluster, startRedis } from '../../kit/redis-server.ts'
import { HANG_MS, until } from '../../kit/until.ts'

/** Far more than the deadline of a verb, far less than for ever. */
const SOON_MS = 20_000

const VERBS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  create: store => store.create('new', entry('a', ['label'])),
  read: store => store.read('k'),
  replace: store => store.replace('k', entry('b'), 1),
  remove: store => store.remove('k'),
  take: store => store.take('k'),
  list: store => store.list({ label: 'label', limit: 10 }),
  newest: store => store.newest({ limit: 10 }),
  count: store => store.count(),
  append: store => store.trail.append([{ value: new Uint8Array(1), tags: ['tag'] }], 10),
  readTrail: store => store.trail.read({ tag: 'tag', limit: 10, scan: 10 }),
  ready: store => store.ready(),
}

describe('a Redis outage', () => {
  const outages = {
    killed: { begin: (server: RedisServer) => server.kill(), end: (server: RedisServer) => server.restart() },
    stopped: { begin: (server: RedisServer) => server.pause(), end: (server: RedisServer) => server.resume() },
  }
  for (const [how, { begin, end }] of Object.entries(outages)) {
    test(`with Redis ${how}, every method fails in time, and works again once Redis is back`, async t => {
      const server = await startRedis()
      t.after(() => server.stop())
      const store = await open(t, `redis://${server.host}`)
      await store.create('k', entry('a'))
      await store.read('k')
      await begin(server)
      await assertNoneWorks(store, ['create', 'list', 'ready'])
      await assertNoneWorks(store, Object.keys(VERBS))
      await end(server)
      await untilReady(store)
      await callAll(store)
      assert.ok(await store.create('again', entry('a')))
      assert.ok(await store.read('again'))
    })
  }

  test('a call that waits for Redis fails as soon as the connection breaks', async t => {
    const server = await startRedis()
    t.after(() => server.stop())
    const store = await open(t, `redis://${server.host}`)
    server.pause()
    const waiting = assert.rejects(store.read('k'), { code: 'store_unavailable' })
    await pause(50)
    await server.kill()
    const killedAt = performance.now()
    await waiting
    assert.ok(performance.now() - killedAt < 1000)
  })

  test('every method of a closed store fails with store_unavailable', async t => {
    const server = await startRedis()
    t.after(() => server.stop())
    const store = await open(t, `redis://${server.host}`)
    await store.close()
    for (const call of Object.values(VERBS)) await assert.rejects(call(store), { code: 'store_unavailable' })
    await store.close()
  })
})

test('a store is unavailable while its server is a replica, and works again when the server is a primary', async t => {
  const [server, other] = [await startRedis(), await startRedis()]
  t.after(() => Promise.all([server.stop(), other.stop()]))
  const store = await open(t, `redis://${server.host}`)
  await store.create('k', entry('a'))
  await server.command('REPLICAOF', '127.0.0.1', `${other.port}`)
  await assert.rejects(store.create('l', entry('a')), { code: 'store_unavailable' })
  await server.command('REPLICAOF', 'NO', 'ONE')
  await untilReady(store)
  assert.ok(await store.create('l', entry('a')))
})

test('a cluster of which one node or all nodes hang is not ready, fails in time and recovers, and is not ready after a node is killed', async t => {
  const cluster = await startCluster()
  t.after(() => cluster.stop())
  const store = await open(t, `redis+cluster://${cluster.servers.map(({ host }) => host).join(',')}`)
  await store.create('k', entry('a'))
  for (const servers of [cluster.servers, cluster.servers.slice(0, 1)]) {
    for (const server of servers) server.pause()
    // Methods that need only the nodes that answer may work.
    await assertNoneWorks(store, servers === cluster.servers ? Object.keys(VERBS) : ['ready'])
    await assertInTime(Object.values(VERBS).map(call => call(store).catch(assertUnavailable)))
    for (const server of servers) server.resume()
    await untilReady(store)
    // The nodes answer before they agree that the cluster is whole.
    await until(() =>
      callAll(store)
        .then(() => true)
        .catch(assertUnavailable),
    )
  }
  await cluster.servers[0]?.kill()
  await assert.rejects(store.ready(), { code: 'store_unavailable' })
})

function entry(text: string, labels: readonly string[] = []): Entry {
  return { value: new TextEncoder().encode(text), expiresAt: Date.now() + 60_000, labels }
}

async function open(t: TestContext, address: string): Promise<Store> {
  const store = await openRedisStore({ address, now: Date.now, report() {} })
  t.after(() => store.close())
  return store
}

function assertNoneWorks(store: Store, verbs: readonly string[]): Promise<void> {
  return assertInTime(
    verbs.map(verb => assert.rejects(async () => VERBS[verb]?.(store), { code: 'store_unavailable' })),
  )
}

async function assertInTime(calls: readonly Promise<unknown>[]): Promise<void> {
  const startedAt = performance.now()
  await Promise.all(calls)
  assert.ok(performance.now() - startedAt < SOON_MS)
}

function assertUnavailable({ code }: { code?: unknown }): false {
  assert.equal(code, 'store_unavailable')
  return false
}

async function callAll(store: Store): Promise<void> {
  for (const call of Object.values(VERBS)) await call(store)
}

async function untilReady(store: Store): Promise<void> {
  const deadline = Date.now() + HANG_MS
  while (true) {
    const problem = await store.ready().catch((error: unknown) => error)
    if (problem === undefined) return
    if (Date.now() > deadline) throw problem
    await pause(20)
  }
}
