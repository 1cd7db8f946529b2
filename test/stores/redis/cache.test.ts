import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, beforeEach, describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { openRedisStore } from '../../../src/stores/redis/store.ts'
import { type Freshness, newFreshness, type Store } from '../../../src/stores/store.ts'
import { startRedis } from '../../kit/redis-server.ts'
import { HANG_MS } from '../../kit/until.ts'
import { createRandom } from '../../security/random.ts'

const RECORDS = 'menshen:record:'
const server = await startRedis()
after(() => server.stop())
beforeEach(() => server.command('FLUSHALL'))

describe('cached records that another instance changes', () => {
  const changes = {
    removed: (store: Store) => store.remove('k'),
    taken: (store: Store) => store.take('k'),
    replaced: async (store: Store) => store.replace('k', entry('new'), await versionOf(store, 'k')),
  }
  for (const [what, change] of Object.entries(changes)) {
    test(`a cached record is current until another instance has ${what} it, and is then read again`, async t => {
      const [one, other] = [await open(t), await open(t)]
      await one.create('k', entry('old'))
      const version = await versionOf(other, 'k')
      assert.equal(other.isCurrent('k', version), true)
      await change(one)
      assert.equal(one.isCurrent('k', version), false)
      await until(() => !other.isCurrent('k', version))
      assert.notEqual((await other.read('k'))?.version, version)
    })
  }

  test('a cached record is no longer current after the database is flushed', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    await server.command('FLUSHALL')
    await until(() => !store.isCurrent('k', version))
    assert.equal(await store.read('k'), undefined)
  })

  test('an instance that acquires a lease reads the record as the previous holder changed it', async t => {
    const [one, other] = [await open(t), await open(t)]
    await one.create('k', entry('0'))
    for (let round = 0; round < 100; round++) {
      const stale = await versionOf(other, 'k')
      await one.create('lease', entry(''))
      const changing = one.replace('k', entry(`${round}`), await versionOf(one, 'k')).then(() => one.remove('lease'))
      while (!(await other.create('lease', entry('')))) {}
      assert.notEqual(await versionOf(other, 'k'), stale)
      await other.remove('lease')
      await changing
    }
  })

  for (const isHeld of [true, false])
    test(`readLatest returns the current record although ${isHeld ? 'the previous one is still cached' : 'an older read is still in flight'}`, async t => {
      const relay = await startRelay(server.port)
      t.after(() => relay.close())
      const [far, near] = [await open(t, relay.port), await open(t)]
      await near.create('k', entry('before'))
      const version = await versionOf(near, 'k')
      if (isHeld) assert.equal(await versionOf(far, 'k'), version)
      const hasAnswered = relay.hold('before')
      const earlier = far.read('k')
      if (!isHeld) await hasAnswered
      const changed = await near.replace('k', entry('after'), version)
      relay.intervene(bytes => {
        if (bytes.includes(`${RECORDS}k`)) relay.release()
      })
      assert.equal((await far.readLatest('k'))?.version, changed)
      assert.equal((await earlier)?.version, version)
      assert.equal(await versionOf(far, 'k'), changed)
    })

  test('concurrent reads never leave a removed record in the cache', async t => {
    const [one, other] = [await open(t), await open(t)]
    for (let round = 0; round < 100; round++) {
      await one.create('k', entry('a'))
      const reads = Array.from({ length: 5 }, () => other.read('k'))
      const removing = one.remove('k')
      const ownReads = Array.from({ length: 5 }, () => one.read('k'))
      await Promise.all([removing, ...reads, ...ownReads])
      assert.equal(await one.read('k'), undefined)
      await other.ready()
      assert.equal(await other.read('k'), undefined)
    }
  })

  test('of 50 creates across two instances, one wins', async t => {
    const stores = [await open(t), await open(t)]
    const won = await Promise.all(Array.from({ length: 50 }, (_, i) => stores[i % 2]?.create('k', entry(`${i}`))))
    assert.equal(won.filter(Boolean).length, 1)
  })
})

describe('records that an instance has written', () => {
  const changes = {
    removed: (store: Store) => store.remove('k'),
    taken: (store: Store) => store.take('k'),
    replaced: async (store: Store) => store.replace('k', entry('new'), await versionOf(store, 'k')),
  }
  for (const [what, change] of Object.entries(changes))
    test(`a written record is current without being read, until another instance has ${what} it`, async t => {
      const [one, other] = [await open(t), await open(t)]
      const created = (await one.create('k', entry('old'))) ?? 0
      assert.equal(one.isCurrent('k', created), true)
      const version = (await one.replace('k', entry('later'), created)) ?? 0
      assert.equal(one.isCurrent('k', created), false)
      assert.equal(one.isCurrent('k', version), true)
      await change(other)
      // The answer comes after all that the server has announced before.
      await one.ready()
      assert.equal(one.isCurrent('k', version), false)
    })

  test('changing the bytes after a write does not change the cached record', async t => {
    const store = await open(t)
    const given = entry('a')
    await store.create('k', given)
    given.value.fill(0)
    assert.equal(new TextDecoder().decode((await store.read('k'))?.value), 'a')
  })

  test('no outdated record stays cached when two instances write, read and remove at once', async t => {
    const stores = [await open(t), await open(t)]
    const uncached = await open(t, server.port, 0)
    const { pick } = createRandom(7)
    const acts = [
      (store: Store) => store.create('k', entry('a', ['label'])),
      async (store: Store) => store.replace('k', entry('b', ['label']), (await store.read('k'))?.version ?? 0),
      (store: Store) => store.read('k'),
      (store: Store) => store.remove('k'),
    ]
    for (let round = 0; round < 100; round++) {
      // The server forgets the scripts, as after a failover: they are sent again, after what was sent since.
      if (round % 10 === 0) await server.command('SCRIPT', 'FLUSH')
      await Promise.all(Array.from({ length: 12 }, () => pick(acts)(pick(stores))))
      await Promise.all(stores.map(store => store.ready()))
      const held = await Promise.all(stores.map(store => store.read('k')))
      const latest = await uncached.read('k')
      assert.deepEqual(
        held.map(stored => stored?.version),
        [latest?.version, latest?.version],
      )
    }
  })

  test('a written record replaces one that was read while the script had to be sent to the server again', async t => {
    const store = await open(t)
    const version = (await store.create('k', entry('old'))) ?? 0
    await server.command('SCRIPT', 'FLUSH')
    const replacing = store.replace('k', entry('new'), version)
    await nextTurn() // it is on its way
    assert.equal((await store.read('k'))?.version, version)
    const written = await replacing
    assert.equal(await versionOf(store, 'k'), written)
  })

  test('on a server that may evict records, a written record is not current before it is read or after its eviction', async t => {
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-random')
    t.after(() => server.command('CONFIG', 'SET', 'maxmemory', '0'))
    t.after(() => server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction'))
    const store = await open(t)
    const created = (await store.create('k', entry('a'))) ?? 0
    assert.equal(store.isCurrent('k', created), false)
    assert.equal(await versionOf(store, 'k'), created)
    const [, used] = /used_memory:(\d+)/.exec(await server.command('INFO', 'memory')) ?? []
    await server.command('CONFIG', 'SET', 'maxmemory', used ?? '')
    for (let n = 0; (await server.command('EXISTS', `${RECORDS}k`)) === '1'; n++)
      await Promise.all(Array.from({ length: 50 }, (_, i) => store.create(`k${n} ${i}`, entry('x'.repeat(1000)))))
    await store.ready()
    assert.equal(store.isCurrent('k', created), false)
  })
})

describe('cached records', () => {
  test('reads of cached records send no GET to the server', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    await server.command('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 1000; i++) assert.ok((await store.read('k')) && store.isCurrent('k', version))
    assert.doesNotMatch(await server.command('INFO', 'commandstats'), /cmdstat_get:/)
  })

  test('the cache stays within its byte limit, and records that are too long are not cached', async t => {
    const store = await open(t, server.port, 1000, Date.now, 100_000)
    const versions: number[] = []
    for (let n = 0; n < 20; n++) {
      await store.create(`k${n}`, entry('x'.repeat(10_000)))
      versions.push(await versionOf(store, `k${n}`))
    }
    const held = versions.filter((version, n) => store.isCurrent(`k${n}`, version)).length
    assert.ok(held > 5 && held * 10_000 <= 100_000, `${held} are held`)
    await store.create('large', entry('x'.repeat(200_000)))
    assert.equal(
      store.isCurrent('large', await versionOf(store, 'large')),
      false,
      'one that is too long is read each time',
    )
    const none = await open(t, server.port, 1000, Date.now, 0)
    assert.equal(none.isCurrent('k1', await versionOf(none, 'k1')), false)
  })

  test('cached records stay current while nothing happens', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    await pause(2500)
    assert.equal(store.isCurrent('k', version), true)
  })

  test('cached records and pending changes survive a server that is busy for more than a second', async t => {
    const relay = await startRelay(server.port)
    t.after(() => relay.close())
    const store = await open(t, relay.port)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    const busy = Promise.withResolvers<void>()
    let isOver = false
    relay.intervene(async bytes => {
      if (isOver || !bytes.includes('PING')) return
      isOver = true
      busy.resolve()
      await pause(1200)
    })
    await busy.promise
    assert.ok(await store.create('other', entry('b')))
    await until(() => store.isCurrent('k', version))
  })

  test('after the process was asleep, cached records are not current until the server responds', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    sleepDeeply(2100)
    assert.equal(store.isCurrent('k', version), false)
    await until(() => store.isCurrent('k', version))
  })

  test('a read succeeds even if the process was asleep when the response arrived', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const reading = store.read('k')
    await nextTurn() // it is on its way
    sleepDeeply(2100)
    assert.ok(await reading)
  })

  test('the cache keeps no more records than its size, and drops the oldest first', async t => {
    const store = await open(t, server.port, 10)
    for (let i = 0; i < 30; i++) await store.create(`k${i}`, entry('a'))
    const versions: number[] = []
    for (let i = 0; i < 30; i++) versions.push(await versionOf(store, `k${i}`))
    const held = versions.filter((version, i) => store.isCurrent(`k${i}`, version))
    assert.deepEqual(held, versions.slice(-10))
  })

  test('a freshness proof keeps a record current until something changes, even if the record was evicted from the cache', async t => {
    const clock = { now: Date.now() }
    const [store, other] = [await open(t, server.port, 10, () => clock.now), await open(t)]
    const known: { key: string; version: number; proof: Freshness }[] = []
    for (let i = 0; i < 10; i++) {
      await store.create(`k${i}`, entry('a'))
      known.push({ key: `k${i}`, version: await versionOf(store, `k${i}`), proof: newFreshness() })
    }
    const held = () =>
      known.filter(({ key, version, proof }) => store.isCurrent(key, version, proof)).map(({ key }) => key)
    assert.equal(held().length, 10)
    for (let i = 0; i < 10; i++) await other.create(`other ${i}`, entry('a'))
    for (let i = 0; i < 10; i++) await store.read(`other ${i}`)
    assert.equal(held().length, 10)
    assert.equal(store.isCurrent('k1', await versionOf(other, 'k1')), false, 'it is not cached any more')
    await other.remove('k0')
    await until(() => !held().includes('k0'))
    // Nothing is known of the others until they are read again.
    assert.deepEqual(held(), [])
    assert.equal(await versionOf(store, 'k1'), known[1]?.version)
    assert.deepEqual(held(), ['k1'])
    clock.now += 120_000
    assert.deepEqual(held(), [])
  })

  test('a freshness proof from a former connection is not valid on the next one', async t => {
    const store = await open(t)
    const version = (await store.create('k', entry('a'))) ?? 0
    const proof = newFreshness()
    assert.equal(store.isCurrent('k', version, proof), true)
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await until(() => !store.isCurrent('k', version, proof))
    await until(() => store.ready().then(() => true))
    assert.equal(store.isCurrent('k', version, proof), false)
    await store.read('k')
    assert.equal(store.isCurrent('k', version, proof), true)
  })

  test('cached records are dropped when the connection is cut, and a change made during the outage is seen afterwards', async t => {
    const store = await open(t)
    await store.create('k', entry('a'))
    const version = await versionOf(store, 'k')
    // With this password it cannot come back.
    await server.command('CONFIG', 'SET', 'requirepass', 'another')
    t.after(() => server.command('-a', 'another', 'CONFIG', 'SET', 'requirepass', ''))
    await server.command('-a', 'another', 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await until(() => !store.isCurrent('k', version))
    await assert.rejects(store.read('k'), { code: 'store_unavailable' })

    await server.command('-a', 'another', 'DEL', 'menshen:record:k')
    await server.command('-a', 'another', 'CONFIG', 'SET', 'requirepass', '')
    await until(() => store.ready().then(() => true))
    assert.equal(await store.read('k'), undefined)
  })

  test('cached records are trusted on a silent connection for 2.5 seconds at most, and are read and cached again on the next one', async t => {
    const relay = await startRelay(server.port)
    t.after(() => relay.close())
    const [far, near] = [await open(t, relay.port), await open(t)]
    await far.create('k', entry('a'))
    await far.create('stays', entry('a'))
    const version = await versionOf(far, 'k')
    const versionThatStays = await versionOf(far, 'stays')
    const connectionEnds = relay.nextEnd()
    relay.mute()
    await near.remove('k')
    const silentSince = performance.now()
    assert.equal(far.isCurrent('k', version), true)
    let trustedAt = silentSince
    await until(() => {
      const now = performance.now()
      if (!far.isCurrent('k', version)) return true
      trustedAt = now
      return false
    })
    assert.ok(trustedAt - silentSince < 2500)
    await connectionEnds
    relay.unmute()
    await until(() => far.ready().then(() => true))
    assert.equal(await far.read('k'), undefined)
    assert.equal(far.isCurrent('stays', versionThatStays), false, 'nothing is known of it on this connection')
    assert.equal(await versionOf(far, 'stays'), versionThatStays)
    assert.equal(far.isCurrent('stays', versionThatStays), true)
  })
})

describe('label indexes', () => {
  /** There is one for each label, and none besides. */
  async function onlyIndex(): Promise<string> {
    const names = (await server.command('--raw', 'KEYS', '*')).split('\n').filter(name => !name.startsWith(RECORDS))
    assert.equal(names.length, 1, names.join())
    return names.join()
  }

  test('an index drops expired members as new ones are added, and has an expiry', async t => {
    let time = Date.now()
    const store = await open(t, server.port, 10, () => time)
    const create = (key: string) => store.create(key, { ...entry('a', ['label']), expiresAt: time + 1000 })
    const keys = () => Array.from({ length: 200 }, () => `session:${Math.random()}`)
    for (let generation = 0; generation < 8; generation++) {
      await Promise.all(keys().map(create))
      time += 1000
    }
    const index = await onlyIndex()
    const size = Number(await server.command('ZCARD', index))
    assert.ok(size < 800, `${size} of 1600 are left in ${index}`)
    assert.ok(Number(await server.command('PTTL', index)) > 0)
  })

  test('a listing drops expired members from the index, and a page of only expired members still has a next', async t => {
    let time = Date.now()
    const store = await open(t, server.port, 10, () => time)
    for (let i = 10; i < 99; i++) await store.create(`k${i}`, { ...entry('a', ['label']), expiresAt: time + 1000 })
    time += 1000
    await store.create('last', { ...entry('a', ['label']), expiresAt: time + 1000 })
    const first = await store.list({ label: 'label', limit: 1 })
    assert.deepEqual(first.entries, [])
    assert.ok(first.next)
    const second = await store.list({ label: 'label', limit: 1, after: first.next })
    const third = await store.list({ label: 'label', limit: 1, after: second.next ?? first.next })
    assert.deepEqual(
      [...second.entries, ...third.entries].map(({ key }) => key),
      ['last'],
    )
    const index = await onlyIndex()
    await until(async () => (await server.command('ZCARD', index)) === '1')
  })

  test('a record that is replaced between the reads of the index and the record is still listed', async t => {
    const relay = await startRelay(server.port)
    t.after(() => relay.close())
    const [far, near] = [await open(t, relay.port), await open(t)]
    await near.create('k', entry('a', ['label']))
    const version = await versionOf(near, 'k')
    let replaced: number | undefined
    relay.intervene(async bytes => {
      if (replaced !== undefined || !bytes.includes('menshen:record:k')) return
      replaced = await near.replace('k', { ...entry('b', ['label']), expiresAt: Date.now() + 90_000 }, version)
    })
    const { entries } = await far.list({ label: 'label', limit: 10 })
    assert.ok(replaced)
    assert.deepEqual(
      entries.map(({ key }) => key),
      ['k'],
    )
  })

  test('the other records are listed if one record is damaged', async t => {
    const store = await open(t)
    for (const key of ['a', 'b', 'c']) await store.create(key, entry('a', ['label']))
    for (const damage of ['x', 'x'.repeat(20), 'x'.repeat(100)]) {
      await server.command('SET', `${RECORDS}b`, damage)
      const { entries } = await store.list({ label: 'label', limit: 9 })
      assert.deepEqual(
        entries.map(({ key }) => key),
        ['a', 'c'],
      )
      assert.equal(await store.read('b'), undefined)
    }
  })

  test('a create that loses leaves nothing in the index', async t => {
    const store = await open(t)
    await Promise.all(Array.from({ length: 20 }, () => store.create('k', entry('a', ['label']))))
    const index = await onlyIndex()
    await until(async () => (await server.command('ZCARD', index)) === '1')
    assert.equal((await store.list({ label: 'label', limit: 10 })).entries.length, 1)
  })
})

function entry(text: string, labels: readonly string[] = []) {
  return { value: new TextEncoder().encode(text), expiresAt: Date.now() + 60_000, labels }
}

async function open(
  t: TestContext,
  port = server.port,
  size = 100,
  now = Date.now,
  bytes = 10_000_000,
): Promise<Store> {
  const store = await openRedisStore({
    address: `redis://127.0.0.1:${port}`,
    now,
    report() {},
    cache: { size, bytes },
  })
  t.after(() => store.close())
  return store
}

async function versionOf(store: Store, key: string): Promise<number> {
  const found = await store.read(key)
  assert.ok(found, `${key} is there`)
  return found.version
}

function sleepDeeply(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + HANG_MS
  while (!(await Promise.resolve(isSo()).catch(() => false))) {
    assert.ok(Date.now() < deadline, `in time: ${isSo}`)
    await pause(2)
  }
}

/** Stands between a store and the server, and can keep the server's words to itself, for good or for a while. */
async function startRelay(port: number) {
  const sockets = new Set<Socket>()
  let ended = Promise.withResolvers<void>()
  let isMute = false
  let held: { readonly awaited: string; readonly hasCome: () => void; readonly writes: (() => void)[] } | undefined
  let beforeRequest: (bytes: Buffer | string) => unknown = () => {}
  const relay = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          near.destroy()
          far.destroy()
          ended.resolve()
        })
    }
    let passedOn: Promise<unknown> = Promise.resolve()
    near.on('data', bytes => {
      passedOn = passedOn.then(() => beforeRequest(bytes)).then(() => far.write(bytes))
    })
    far.on('data', bytes => {
      if (held) {
        held.writes.push(() => near.write(bytes))
        if (bytes.includes(held.awaited)) held.hasCome()
      } else if (!isMute) near.write(bytes)
    })
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const address = relay.address()
  assert.ok(address !== null && typeof address === 'object')
  return {
    port: address.port,
    mute: () => {
      isMute = true
    },
    unmute: () => {
      isMute = false
    },
    /** Holds what the server says until `release`. Resolves when the server has said this. */
    hold(awaited: string): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = { awaited, hasCome: resolve, writes: [] }
      return promise
    },
    release() {
      const { writes = [] } = held ?? {}
      held = undefined
      for (const write of writes) write()
    },
    /** Resolves when one of the connections ends. */
    nextEnd() {
      ended = Promise.withResolvers()
      return ended.promise
    },
    /** What happens before the server is given these words. */
    intervene(act: typeof beforeRequest) {
      beforeRequest = act
    },
    close() {
      relay.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
