import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openRedisStore } from '../../../src/stores/redis/store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { freePort } from '../../kit/free-port.ts'
import { PRIMARY_NAME, startCluster, startRedis, startSentinel, startWithSentinels } from '../../kit/redis-server.ts'
import { HANG_MS, until } from '../../kit/until.ts'
import { conformance } from '../conformance.ts'

const PASSWORD = 'p@ss:w/ord'
const LOGIN = `:${encodeURIComponent(PASSWORD)}`

const plain = await startRedis()
const secured = await startRedis({ password: PASSWORD, tls: true })
const watched = await startWithSentinels(PASSWORD)
const cluster = await startCluster()
after(() => Promise.all([plain, secured, watched, cluster].map(each => each.stop())))

const sentinelHosts = watched.sentinels.map(({ host }) => host).join(',')
const sentinelAddress = `redis+sentinel://${LOGIN}@${sentinelHosts}/${PRIMARY_NAME}/1`
const clusterAddress = `redis+cluster://${cluster.servers.map(({ host }) => host).join(',')}`

conformance('Redis', async () => {
  await plain.command('FLUSHALL')
  return openAtOwnTime(`redis://${plain.host}`)
})

conformance('Redis behind TLS and a password', async () => {
  await secured.command('FLUSHALL')
  return openAtOwnTime(`rediss://${LOGIN}@${secured.host}/3?ca=${encodeURIComponent(secured.ca)}`)
})

conformance('Redis with sentinels', async () => {
  await watched.primary.command('FLUSHALL')
  return openAtOwnTime(sentinelAddress)
})

conformance('Redis with a prefix', async () => {
  await plain.command('FLUSHALL')
  return openAtOwnTime(`redis://${plain.host}?prefix=acme:sso`)
})

conformance('A cluster of Redis, with a prefix', async () => {
  await Promise.all(cluster.servers.map(server => server.command('FLUSHALL')))
  const opened = await openAtOwnTime(`${clusterAddress}?prefix=acme`)
  const { store } = opened
  // A cluster proves nothing without asking, as the contract allows. So the suite asks.
  const isCurrent = async (key: string, version: number) => (await store.read(key))?.version === version
  return { ...opened, store: { ...store, isCurrent } as unknown as Store }
})

test('the path of a Redis address selects the database', async () => {
  const store = await open(`rediss://${LOGIN}@localhost:${secured.port}/3?ca=${encodeURIComponent(secured.ca)}`)
  await secured.command('FLUSHALL')
  await store.create('k', entry('a'))
  await store.close()
  assert.match(await secured.command('INFO', 'keyspace'), /^db3:/m)
})

test('installations with different prefixes can share a database, and every key has its prefix', async () => {
  await plain.command('FLUSHALL')
  const [one, other] = [
    await open(`redis://${plain.host}?prefix=one`),
    await open(`redis://${plain.host}?prefix=other`),
  ]
  await one.create('k', { ...entry('a'), labels: ['label'], since: 1 })
  await one.trail.append([{ value: new Uint8Array(1), tags: [], kind: 'sign_in' }], 10)
  assert.equal(await other.read('k'), undefined)
  assert.equal((await other.newest({ limit: 1 })).entries.length, 0)
  assert.equal((await one.newest({ limit: 1 })).entries.length, 1)
  const names = (await plain.command('KEYS', '*')).trim().split(/\s+/)
  assert.ok(names.length >= 5, names.join(' '))
  assert.deepEqual(
    names.filter(name => !name.startsWith('one:')),
    [],
  )
  await Promise.all([one.close(), other.close()])
})

test('the records of a cluster are spread over all nodes', async () => {
  const store = await open(clusterAddress)
  for (let i = 0; i < 30; i++) await store.create(`k${i}`, entry('a'))
  await store.close()
  for (const server of cluster.servers) assert.notEqual(await server.command('DBSIZE'), '0')
})

test('a store works with a sentinel that requires the same password as the server', async t => {
  const primary = await startRedis({ password: PASSWORD })
  const sentinel = await startSentinel(primary, PASSWORD, { password: PASSWORD })
  t.after(() => Promise.all([primary.stop(), sentinel.stop()]))
  const store = await open(`redis+sentinel://${LOGIN}@${sentinel.host}/${PRIMARY_NAME}`)
  t.after(() => store.close())
  assert.ok(await store.create('k', entry('a')))
})

test('a store opens with a warning while its server is down, and works once the server is up', async t => {
  const lines: object[] = []
  const port = await freePort()
  const store = await open(`redis://127.0.0.1:${port}`, lines)
  t.after(() => store.close())
  await assert.rejects(store.ready(), { code: 'store_unavailable' })
  assert.equal(lines.length, 1)
  const late = await startRedis({ port })
  t.after(() => late.stop())
  await eventually(() => store.ready())
  assert.ok(await store.create('k', entry('a')))
})

for (const [what, servers, address] of [
  ['a Redis', [plain], `redis://${plain.host}`],
  ['a cluster', cluster.servers, clusterAddress],
] as const)
  test(`a store warns once when ${what} may evict records, and again when that begins later`, async t => {
    const setPolicy = (policy: string) =>
      Promise.all(servers.map(server => server.command('CONFIG', 'SET', 'maxmemory-policy', policy)))
    t.after(() => setPolicy('noeviction'))
    const lines: { event?: string; policy?: string }[] = []
    const warnings = () => lines.filter(({ event }) => event === 'store_evicts').map(({ policy }) => policy)
    await setPolicy('volatile-lru')
    const store = await open(address, lines)
    t.after(() => store.close())
    const reconnections = () => lines.filter(({ event }) => event === 'store_reachable').length
    const reconnect = async () => {
      const before = reconnections()
      await Promise.all(servers.map(server => server.command('CLIENT', 'KILL', 'TYPE', 'normal')))
      await until(() => reconnections() > before)
    }
    assert.deepEqual(warnings(), ['volatile-lru'])
    await reconnect()
    assert.deepEqual(warnings(), ['volatile-lru'])
    await setPolicy('noeviction')
    await reconnect()
    await setPolicy('volatile-lru')
    await reconnect()
    await until(() => warnings().length === 2)
  })

test('a wrong password is logged as WRONGPASS, and neither the log nor the error contains it', async t => {
  const lines: object[] = []
  const store = await open(
    `rediss://:not-${LOGIN.slice(1)}@${secured.host}?ca=${encodeURIComponent(secured.ca)}`,
    lines,
  )
  t.after(() => store.close())
  const written = JSON.stringify(lines)
  assert.match(written, /WRONGPASS/)
  assert.ok(!written.includes('not-'), written)
  const problem = await store.read('k').catch((error: unknown) => error)
  assert.ok(problem instanceof Error && !`${problem.message} ${problem.cause}`.includes('not-'))
})

test('a certificate from an unknown authority is refused', async t => {
  const lines: object[] = []
  const store = await open(`rediss://${LOGIN}@${secured.host}`, lines)
  t.after(() => store.close())
  assert.match(JSON.stringify(lines), /certificate/)
  await assert.rejects(store.ready(), { code: 'store_unavailable' })
})

test('an invalid address or an unreadable CA file is a bad_settings error', async () => {
  for (const address of ['redis://', 'redis+sentinel://h', 'rediss://127.0.0.1?ca=/none/such.crt'])
    await assert.rejects(open(address), { code: 'bad_settings' })
})

test('a primary that is killed is replaced by its replica within 15 seconds', async t => {
  const store = await open(sentinelAddress)
  t.after(() => store.close())
  await store.create('before', entry('a', ['label']))
  await watched.primary.command('WAIT', '1', '1000')
  await watched.primary.kill()
  await eventually(() => store.create('after', entry('b', ['label'])), 15_000)
  assert.ok(await store.read('before'))
  const { entries } = await store.list({ label: 'label', limit: 10 })
  assert.deepEqual(
    entries.map(({ key }) => key),
    ['after', 'before'],
  )
})

function entry(text: string, labels: readonly string[] = []) {
  return { value: new TextEncoder().encode(text), expiresAt: Date.now() + 60_000, labels }
}

function open(address: string, lines: object[] = []): Promise<Store> {
  return openRedisStore({ address, now: Date.now, report: (event, fields) => void lines.push({ ...fields, event }) })
}

/** With a clock of our own: the store must not care what time it is at the server. */
async function openAtOwnTime(address: string) {
  let time = 1_000_000
  const now = () => time
  const store = await openRedisStore({ address, now, report() {} })
  const passTime = async (ms: number) => {
    time += ms
  }
  return { store, now, passTime, close: () => store.close() }
}

async function eventually(attempt: () => Promise<unknown>, ms = HANG_MS): Promise<void> {
  const deadline = Date.now() + ms
  while (true) {
    try {
      await attempt()
      return
    } catch (error) {
      if (Date.now() > deadline) throw error
      await pause(20)
    }
  }
}
