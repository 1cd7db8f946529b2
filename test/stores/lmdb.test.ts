import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs, { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openFiles } from '../../src/stores/lmdb/lmdb-files.ts'
import { createLmdbReader, createProofs, readGeneration } from '../../src/stores/lmdb/lmdb-reader.ts'
import { openLmdbStore } from '../../src/stores/lmdb/lmdb-store.ts'
import { startSweeper } from '../../src/stores/lmdb/lmdb-sweeper.ts'
import { createLmdbWriter } from '../../src/stores/lmdb/lmdb-writer.ts'
import { type Entry, newProof, type Page, type Store } from '../../src/stores/store.ts'
import { breakLmdb } from '../kit/break-lmdb.ts'
import { freePort } from '../kit/free-port.ts'
import { runMenshen } from '../kit/instance.ts'
import { requireLinux, requireProgram } from '../kit/requirements.ts'
import { until } from '../kit/until.ts'
import { conformance } from './conformance.ts'
import { type Neighbour, type Outcome, startNeighbour } from './neighbour.ts'

const run = promisify(execFile)

conformance('The embedded store', async () => {
  const directory = await makeFolder()
  let time = 1_000_000
  const now = () => time
  const store = await openLmdbStore({ directory, now })
  const passTime = async (ms: number) => {
    time += ms
  }
  const close = async () => {
    await store.close()
    await removeFolder(directory)
  }
  return { store, now, passTime, close }
})

describe('The embedded store, shared by processes:', () => {
  test('each sees at once what the other wrote and removed', async context => {
    const { store, neighbour } = await openShared(context)
    for (let round = 0; round < 50; round++) {
      assert.equal(await store.read('theirs'), undefined)
      await neighbour.call(['create', 'theirs', entry('a')])
      const found = await store.read('theirs')
      assert.ok(found)
      await neighbour.call(['remove', 'theirs'])
      assert.equal(await store.holds('theirs', found.version), false)
      await nextTurn()
      assert.equal(store.readSync?.('theirs'), undefined)

      await store.create('mine', entry('a'))
      assert.deepEqual(await neighbour.call(['remove', 'mine']), [{ result: true }])
      assert.equal(await store.read('mine'), undefined)
    }
  })

  test('many can open a new folder at the same time', async context => {
    const directory = await folderFor(context)
    const neighbours = await Promise.all(Array.from({ length: 4 }, () => startNeighbour(directory)))
    for (const [i, neighbour] of neighbours.entries()) {
      const [created] = await neighbour.call(['create', `k${i}`, entry('a', ['label'])])
      assert.ok(Number(created?.result) > 0)
    }
    for (const neighbour of neighbours) {
      const [outcome] = await neighbour.call(['list', { label: 'label', limit: 10 }])
      assert.equal((outcome as { result: Page }).result.entries.length, 4)
      assert.equal(await neighbour.leave(), 0)
    }
  })

  test('each key that both create at the same time has one winner', async context => {
    const { store, neighbour } = await openShared(context)
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`)
    const theirs = neighbour.call(...keys.map(key => ['create', key, entry('theirs')] as const))
    const mine = await Promise.all(keys.map(key => store.create(key, entry('mine'))))
    await assertOneWinner(store, keys, mine, await theirs)
  })

  test('each version that both replace at the same time has one winner', async context => {
    const { store, neighbour } = await openShared(context)
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`)
    await Promise.all(keys.map(key => store.create(key, entry('first', ['label']))))
    const { entries } = await store.list({ label: 'label', limit: keys.length })
    const theirs = neighbour.call(
      ...entries.map(({ key, version }) => ['replace', key, entry('theirs'), version] as const),
    )
    const mine = await Promise.all(entries.map(({ key, version }) => store.replace(key, entry('mine'), version)))
    await assertOneWinner(
      store,
      entries.map(({ key }) => key),
      mine,
      await theirs,
    )
  })
})

describe('The embedded store after kill -9:', () => {
  test('an entry is there once its create has resolved', async context => {
    const { directory, neighbour } = await openNeighbour(context)
    await neighbour.callAndDie(['create', 'k', entry('kept', ['label'])])
    const store = await openFor(context, directory)
    assert.equal(Buffer.from((await store.read('k'))?.value ?? []).toString(), 'kept')
    assert.equal((await store.list({ label: 'label', limit: 10 })).entries.length, 1)
  })

  test('an entry is gone once its remove has resolved', async context => {
    const { directory, neighbour } = await openNeighbour(context)
    await neighbour.call(['create', 'k', entry('a', ['label'])])
    await neighbour.callAndDie(['remove', 'k'])
    const store = await openFor(context, directory)
    assert.equal(await store.read('k'), undefined)
    assert.equal((await store.list({ label: 'label', limit: 10 })).entries.length, 0)
  })

  test('in the midst of writes, all that was acknowledged is there and others go on writing', async context => {
    const { store, neighbour } = await openShared(context)
    const acknowledged: string[] = []
    const hundred = Promise.withResolvers<void>()
    for (let i = 0; i < 5000; i++) {
      const creating = neighbour.call(['create', `k${i}`, entry('x'.repeat(500), ['label'])])
      const acknowledge = () => {
        if (acknowledged.push(`k${i}`) === 100) hundred.resolve()
      }
      creating.then(acknowledge, () => {}) // those that the kill cuts off
    }
    await hundred.promise
    neighbour.process.kill('SIGKILL')
    await neighbour.leave()
    assert.ok(await store.create('mine', entry('a')))
    for (const key of acknowledged) assert.ok(await store.read(key), `${key} is there`)
  })
})

describe('The embedded store, when the disk is the problem:', () => {
  test('a full disk is an error to each caller, never the end of the process, and passes', async context => {
    const { neighbour } = await openNeighbour(context)
    const big = entry('x'.repeat(100_000))
    await neighbour.call(['create', 'before', big])

    await limitFileSize(neighbour, '1000000')
    const inTurn: Outcome[] = []
    while (inTurn.at(-1)?.error === undefined)
      inTurn.push(...(await neighbour.call(['create', `k${inTurn.length}`, big])))
    assert.deepEqual(inTurn.at(-1), { error: 'store_unavailable' })
    const atOnce = await neighbour.call(...Array.from({ length: 50 }, (_, i) => ['create', `p${i}`, big] as const))
    assert.ok(atOnce.some(({ error }) => error === 'store_unavailable'))
    assert.ok(await isThere(neighbour, 'before'))

    await limitFileSize(neighbour, 'unlimited')
    await untilCreated(neighbour, 'after', big)
    assert.ok(await isThere(neighbour, 'after'))
    assert.equal(await neighbour.leave(), 0)
  })

  test('after a failed write the disk is tried with another file, and not with lmdb-js, which would end the process', async context => {
    const { neighbour } = await openNeighbour(context)
    await limitFileSize(neighbour, '1')
    for (let n = 0; n < 20; n++)
      assert.deepEqual(await neighbour.call(['create', `k${n}`, entry('a')]), [{ error: 'store_unavailable' }])
    await limitFileSize(neighbour, 'unlimited')
    await untilCreated(neighbour, 'after', entry('a'))
    assert.equal(await neighbour.leave(), 0)
    assert.equal(failedCommits(neighbour), 1)
  })

  test('room for a small file is not enough for a commit, and does not make lmdb-js fail again', async context => {
    const { neighbour } = await openNeighbour(context)
    const big = entry('x'.repeat(100_000))
    await limitFileSize(neighbour, '1000000')
    const created: Outcome[] = []
    while (created.at(-1)?.error === undefined)
      created.push(...(await neighbour.call(['create', `k${created.length}`, big])))
    for (let n = 0; n < 20; n++)
      assert.deepEqual(await neighbour.call(['create', `l${n}`, big]), [{ error: 'store_unavailable' }])
    await limitFileSize(neighbour, 'unlimited')
    await untilCreated(neighbour, 'after', big)
    assert.equal(await neighbour.leave(), 0)
    assert.equal(failedCommits(neighbour), 1)
  })

  test('a disk that is nearly full is not filled by the try', async context => {
    const { files, fail, tries } = await openFailing(context)
    await assert.rejects(fail(), /full/)
    const statfs = context.mock.method(fs, 'statfs', async () => ({ bsize: 1024, bavail: 5000 }))
    syncBuiltinESMExports()
    await assert.rejects(fail(), /bytes free/)
    assert.equal(tries(), 1)
    statfs.mock.restore()
    syncBuiltinESMExports()
    await until(() => files.write(async () => true).catch(() => false))
  })

  test('while writes fail although the disk has room, lmdb-js is tried less and less often', async context => {
    const { clock, fail, tries } = await openFailing(context)
    await assert.rejects(fail(), /full/)
    await assert.rejects(fail(), /full/)
    assert.equal(tries(), 2)
    for (const pauseMs of [500, 1000, 2000, 4000, 8000, 10_000, 10_000]) {
      const before = tries()
      clock.now += pauseMs - 1
      await assert.rejects(fail(), /full/)
      assert.equal(tries(), before, `tried before ${pauseMs} ms had passed`)
      clock.now += 1
      // Those that fail together count once.
      await Promise.allSettled([fail(), fail(), fail()])
      assert.ok(tries() > before, `not tried after ${pauseMs} ms`)
    }
  })

  test('a probe that hangs delays a write by its deadline, and after a while a write is tried without one', async context => {
    const directory = await folderFor(context)
    const clock = { passed: 0 }
    const realNow = performance.now.bind(performance)
    context.mock.method(performance, 'now', () => realNow() + clock.passed)
    const files = await openFiles(directory)
    context.after(() => files.close())
    await assert.rejects(
      files.write(() => Promise.reject(new Error('the disk is full'))),
      /full/,
    )
    // Opening it waits for a reader, as on a disk that hangs.
    const probe = join(directory, `probe-${process.pid}`)
    await run('mkfifo', [probe])
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const waiting = files.write(async () => 'written')
    await nextTurn()
    context.mock.timers.tick(10_000)
    await assert.rejects(waiting)
    context.mock.timers.reset()
    clock.passed = 10_000
    assert.equal(await files.write(async () => 'written'), 'written')
    // Lets the probe end.
    await readFile(probe)
  })

  test('a commit that fails at its very end breaks the store for this process, which is told once', async context => {
    requireLinux('/proc')
    const directory = await folderFor(context)
    const told: unknown[] = []
    const store = await openLmdbStore({ directory, now: Date.now, onBroken: reason => told.push(reason) })
    context.after(() => store.close())
    assert.ok(await store.create('before', entry('a')))
    breakLmdb()
    const writing = ['a', 'b', 'c'].map(key => store.create(key, entry('a')))
    for (const created of writing) await assert.rejects(created, { code: 'store_unavailable' })
    await assert.rejects(store.read('before'), { code: 'store_unavailable' })
    await assert.rejects(store.trail.append([], 1), { code: 'store_unavailable' })
    assert.equal(told.length, 1)
    const other = await startNeighbour(directory)
    context.after(() => other.leave())
    assert.ok(await isThere(other, 'before'))
    assert.deepEqual(await other.call(['read', 'a']), [{ result: undefined }])
  })

  test('a disk that is full does not break the store', async context => {
    const directory = await folderFor(context)
    const files = await openFiles(directory, () => assert.fail('it is not broken'))
    context.after(() => files.close())
    await assert.rejects(
      files.write(() => Promise.reject(new Error('the disk is full'))),
      /full/,
    )
  })

  const spoilers = {
    'lies below a file': async (directory: string) => {
      await rm(dirname(directory), { recursive: true })
      await writeFile(dirname(directory), '')
    },
    'has a folder in the place of its file': (directory: string) =>
      mkdir(join(directory, 'data.mdb'), { recursive: true }),
    'holds the file of something else': async (directory: string) => {
      await mkdir(directory)
      await writeFile(join(directory, 'data.mdb'), 'something else '.repeat(10_000))
    },
  }
  for (const [what, spoil] of Object.entries(spoilers)) {
    test(`a folder that ${what} stops the start with its path and a remedy`, async context => {
      const directory = join(await folderFor(context), 'parent', 'data')
      await mkdir(dirname(directory))
      await spoil(directory)
      await assert.rejects(openLmdbStore({ directory, now: Date.now }), {
        code: 'cannot_start',
        message: new RegExp(`${directory}.*STORE`),
      })
    })
  }
})

for (const directory of ['/proc/menshen', '/proc/self/deep/menshen', '/dev/fd/menshen', '/dev/null', '/sys/menshen'])
  test(`a start with its store in ${directory} ends with one sentence`, async () => {
    const env = { PORT: String(await freePort()), DEV_PROVIDER_PORT: String(await freePort()) }
    const { code, output } = await runMenshen({ ...env, STORE: `lmdb:${directory}` })
    assert.equal(code, 1)
    const sentence = output.split('\n').filter(line => line.includes(directory))
    assert.equal(sentence.length, 1, output)
    assert.match(sentence.join(), /The store cannot be opened in .*name another one in STORE\./)
  })

test('after a look at the generation that failed, nothing is held that was proven before it', () => {
  let [generation, version, isBroken] = [1, 1, false]
  const proofs = createProofs({
    readGeneration() {
      if (isBroken) throw new Error('the disk is away')
      return generation
    },
    lookUp: () => ({ version, expiresAt: 2 }),
    now: () => 1,
  })
  const proof = newProof()
  assert.equal(proofs.holds('k', 1, proof), true)
  isBroken = true
  proofs.lookAgain()
  assert.throws(() => proofs.holds('k', 1, proof))
  // In the same turn still.
  generation = 2
  version = 2
  assert.throws(() => proofs.holds('k', 1, proof))
  isBroken = false
  assert.equal(proofs.holds('k', 1, proof), false)
  assert.equal(proofs.holds('k', 2, newProof()), true)
})

test('a record is looked up once in a generation, and its version counts no longer than it lives', () => {
  let [generation, time, lookUps] = [1, 1, 0]
  const proofs = createProofs({
    readGeneration: () => generation,
    lookUp() {
      lookUps++
      return { version: 1, expiresAt: 3 }
    },
    now: () => time,
  })
  const proof = newProof()
  const holds = () => {
    proofs.lookAgain()
    return proofs.holds('k', 1, proof)
  }
  assert.deepEqual([holds(), holds(), lookUps], [true, true, 1])
  generation = 2
  assert.deepEqual([holds(), holds(), lookUps], [true, true, 2])
  time = 3
  assert.deepEqual([holds(), lookUps], [false, 2])
})

test('one look serves the requests of a turn, and otherwise the callback that it is made in', async () => {
  let looks = 0
  const readGeneration = () => ++looks
  const proofs = createProofs({ readGeneration, lookUp: () => ({ version: 1, expiresAt: 2 }), now: () => 1 })
  const looksFor = (times: number) => {
    const before = looks
    for (let n = 0; n < times; n++) assert.ok(proofs.holds('k', 1))
    return looks - before
  }
  const nextTick = () => new Promise<void>(resolve => process.nextTick(resolve))
  assert.equal(looksFor(3), 1)
  await nextTick()
  assert.equal(looksFor(1), 1, 'the next callback looks for itself')
  await nextTick()
  proofs.beginTurn()
  assert.equal(looksFor(1), 1)
  await nextTick()
  proofs.beginTurn()
  assert.equal(looksFor(2), 0)
  proofs.lookAgain()
  assert.equal(looksFor(2), 1)
  await nextTurn()
  assert.equal(looksFor(1), 1, 'the turn is over')
  proofs.beginTurn()
  assert.equal(looksFor(1), 1, 'a request does not rely on what was seen before it')
})

test('as many processes can read at once as WORKERS may be, and commands beside them', async context => {
  const files = await openFiles(await folderFor(context))
  context.after(() => files.root.close())
  const { maxReaders } = files.root.getStats() as { maxReaders?: number }
  // Each process has a reader for its thread, and others while a transaction is under way.
  assert.ok(Number(maxReaders) >= 4 * 256, `${maxReaders} readers`)
})

test('a damaged record is absent, stands in nobody’s way, and is swept away', async context => {
  const directory = await folderFor(context)
  const files = await openFiles(directory)
  context.after(() => files.root.close())
  const store = await openLmdbStore({ directory, now: Date.now, sweepEveryMs: 1 })
  context.after(() => store.close())
  const places = { 'no header': 'abc', 'long labels': '\xff'.repeat(20), 'no labels': `${'\0'.repeat(8)}\x02\0\0\0{}` }
  for (const [key, bytes] of Object.entries(places)) {
    await store.create(key, entry('a', ['label']))
    const version = (await store.read(key))?.version ?? 0
    await files.records.put(key, Buffer.from(bytes, 'latin1'), version)
    assert.equal(await store.read(key), undefined)
    assert.equal(store.holds(key, version), false)
    assert.ok(await store.create(key, entry('new')))
    await files.records.put(key, Buffer.from(bytes, 'latin1'), version)
  }
  await store.create('whole', entry('a', ['label']))
  assert.deepEqual(
    (await store.list({ label: 'label', limit: 9 })).entries.map(({ key }) => key),
    ['whole'],
  )
  const damaged = { expiresAt: Date.now() - 1, key: 'long labels' }
  await files.byExpiry.put([damaged.expiresAt, damaged.key], Buffer.alloc(0))
  while (files.records.doesExist(damaged.key)) await nextTurn()
})

test('a page of the embedded store is short rather than late, and the next one goes on', async context => {
  let time = 1_000_000
  const directory = await folderFor(context)
  const store = await openLmdbStore({ directory, now: () => time, sweepEveryMs: 1_000_000 })
  context.after(() => store.close())
  const create = (key: string, expiresAt: number, since: number) =>
    store.create(key, { ...entry('a', ['label']), expiresAt, since })
  await Promise.all(Array.from({ length: 2500 }, (_, i) => create(`k${1000 + i}`, time + 1, 2)))
  await create('last', time + 1000, 1)
  time += 1
  const listings = {
    list: (after: string) => store.list({ label: 'label', after, limit: 10 }),
    newest: (before: string) => store.newest({ before, limit: 10 }),
  }
  for (const listing of Object.values(listings)) {
    const pages: string[][] = []
    for (let from: string | undefined = ''; from !== undefined; ) {
      const page: Page = await listing(from)
      pages.push(page.entries.map(({ key }) => key))
      from = page.next
    }
    assert.deepEqual(pages, [[], [], ['last']])
  }
})

test('the folder of the embedded store and its files are for its owner alone', async context => {
  const directory = join(await folderFor(context), 'deep.er', 'data.d')
  await openFor(context, directory)
  assert.equal((await stat(directory)).mode & 0o777, 0o700)
  for (const file of ['data.mdb', 'lock.mdb']) {
    assert.equal((await stat(join(directory, file))).mode & 0o777, 0o600)
  }
})

test('expired entries leave the files of the embedded store, the living stay, and what is proven stays proven', async context => {
  const directory = await folderFor(context)
  const store = await openLmdbStore({ directory, now: Date.now, sweepEveryMs: 1 })
  context.after(() => store.close())
  const expired = { ...entry('old', ['label']), expiresAt: Date.now() - 1, since: 1 }
  await Promise.all(Array.from({ length: 1200 }, (_, i) => store.create(`old${i}`, expired)))
  await store.create('living', { ...entry('new', ['label']), since: 2 })

  const files = await openFiles(directory)
  context.after(() => files.root.close())
  const generation = readGeneration(files)
  const counts = () => [files.records, files.byLabel, files.byExpiry, files.bySince].map(db => db.getKeysCount())
  while (counts().some(count => count > 1)) await nextTurn()
  assert.deepEqual(counts(), [1, 1, 1, 1])
  assert.equal(readGeneration(files), generation)
  assert.ok(await store.read('living'))
})

test('writes that arrive together are flushed together', async context => {
  const directory = await folderFor(context)
  const store = await openFor(context, directory)
  const { root } = await openFiles(directory)
  context.after(() => root.close())
  const transactions = () => Number(Object(root.getStats()).lastTxnId)
  const before = transactions()
  await Promise.all(Array.from({ length: 100 }, (_, i) => store.create(`k${i}`, entry('a', ['label']))))
  const made = transactions() - before
  assert.ok(made > 0 && made < 10, `${made} transactions for 100 writes`)
})

test('a sweep that fails in the midst of a step is tried again, and never ends the process', async context => {
  const files = await openFiles(await folderFor(context))
  const reader = createLmdbReader({ files, now: Date.now, closing: new AbortController().signal })
  const writer = createLmdbWriter(files, reader)
  const expired = { ...entry('old'), expiresAt: Date.now() - 1 }
  await Promise.all(
    Array.from({ length: 25 }, (_, i) => writer.change(`old${i}`, undefined, { ...expired, version: 1 })),
  )
  let failures = 0
  const sweep: typeof writer.sweep = async old => {
    if (failures++ < 50) throw new Error('the disk is full')
    return writer.sweep(old)
  }
  const sweeper = startSweeper({ files, reader, writer: { ...writer, sweep }, now: Date.now }, 1)
  context.after(async () => {
    await sweeper.stop()
    await files.root.close()
  })
  while (files.records.getKeysCount() > 0) await nextTurn()
})

test('a closed embedded store says that it is unavailable', async context => {
  const store = await openFor(context, await folderFor(context))
  const creating = store.create('k', entry('a'))
  await store.close()
  assert.ok(await creating)
  for (const call of [
    store.read('k'),
    store.create('l', entry('a')),
    store.list({ label: 'label', limit: 1 }),
    store.newest({ limit: 1 }),
    store.count(),
    store.ready(),
  ]) {
    await assert.rejects(call, { code: 'store_unavailable' })
  }
})

function entry(text: string, labels: readonly string[] = []): Entry {
  return { value: new TextEncoder().encode(text), expiresAt: Date.now() + 60_000, labels }
}

async function assertOneWinner(
  store: Store,
  keys: string[],
  mine: (number | undefined)[],
  theirs: Outcome[],
): Promise<void> {
  for (const [i, key] of keys.entries()) {
    const found = await store.read(key)
    assert.deepEqual([mine[i], theirs[i]?.result].filter(Boolean), [found?.version])
    assert.equal(Buffer.from(found?.value ?? []).toString(), mine[i] ? 'mine' : 'theirs')
  }
}

async function isThere(neighbour: Neighbour, key: string): Promise<boolean> {
  const [outcome] = await neighbour.call(['read', key])
  return outcome?.error === undefined && outcome?.result !== undefined
}

async function untilCreated(neighbour: Neighbour, key: string, entry: Entry): Promise<void> {
  await until(async () => (await neighbour.call(['create', key, entry]))[0]?.error === undefined)
}

/** lmdb-js prints the stack of each. */
function failedCommits(neighbour: Neighbour): number {
  return neighbour.printed.join('').match(/lmdb.write\.js:/g)?.length ?? 0
}

/** To a process that may not make a file larger, the disk is full. */
async function limitFileSize(neighbour: Neighbour, bytes: string): Promise<void> {
  await run(requireProgram('prlimit'), ['--pid', String(neighbour.process.pid), `--fsize=${bytes}:`])
}

async function makeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'menshen-store-'))
}

async function removeFolder(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true })
}

async function folderFor(context: TestContext): Promise<string> {
  const directory = await makeFolder()
  context.after(() => removeFolder(directory))
  return directory
}

async function openFor(context: TestContext, directory: string): Promise<Store> {
  const store = await openLmdbStore({ directory, now: Date.now })
  context.after(() => store.close())
  return store
}

async function openNeighbour(context: TestContext) {
  const directory = await folderFor(context)
  const neighbour = await startNeighbour(directory)
  context.after(() => neighbour.leave())
  return { directory, neighbour }
}

/** Files whose writes fail, and a clock that the test moves. */
async function openFailing(context: TestContext) {
  const clock = { now: 0 }
  context.mock.method(performance, 'now', () => clock.now)
  const files = await openFiles(await folderFor(context))
  context.after(() => files.close())
  let count = 0
  const fail = () =>
    files.write(() => {
      count++
      return Promise.reject(new Error('the disk is full'))
    })
  return { files, clock, fail, tries: () => count }
}

async function openShared(context: TestContext) {
  const { directory, neighbour } = await openNeighbour(context)
  return { store: await openFor(context, directory), neighbour }
}
