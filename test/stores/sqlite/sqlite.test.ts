import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createSnapshots } from '../../../src/stores/sqlite/reader.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { startSweeper } from '../../../src/stores/sqlite/sweeper.ts'
import { type Entry, newFreshness, type Page, type Store } from '../../../src/stores/store.ts'
import { createCommandRunner } from '../../kit/command-runner.ts'
import { freePort } from '../../kit/free-port.ts'
import { runMenshen } from '../../kit/instance.ts'
import { requireProgram } from '../../kit/requirements.ts'
import { until } from '../../kit/until.ts'
import { conformance } from '../conformance.ts'
import { type Neighbour, type Outcome, startNeighbour } from '../neighbour.ts'

const run = promisify(execFile)
const commands = createCommandRunner()

conformance('The embedded store', async () => {
  const folder = await makeFolder()
  let time = 1_000_000
  const now = () => time
  const store = await openSqliteStore({ file: join(folder, 'menshen.db'), now })
  const passTime = async (ms: number) => {
    time += ms
  }
  const close = async () => {
    await store.close()
    await removeFolder(folder)
  }
  return { store, now, passTime, close }
})

test('the embedded store does not mistake messages of `node --watch` for responses of its thread', async context => {
  const file = await fileFor(context)
  // Node sets it in a process that it watches; threads then post the names of their imports.
  process.env.WATCH_REPORT_DEPENDENCIES = '1'
  context.after(() => delete process.env.WATCH_REPORT_DEPENDENCIES)
  const store = await openSqliteStore({ file, now: () => 0 })
  assert.ok(await store.create('a', entry('a')))
  await store.close()
})

describe('The embedded store, shared by processes:', () => {
  test('each process immediately sees the writes and removals of the other', async context => {
    const { store, neighbour } = await openShared(context)
    for (let round = 0; round < 50; round++) {
      assert.equal(await store.read('theirs'), undefined)
      await neighbour.call(['create', 'theirs', entry('a')])
      const found = await store.read('theirs')
      assert.ok(found)
      await neighbour.call(['remove', 'theirs'])
      assert.equal(await store.isCurrent('theirs', found.version), false)
      await nextTurn()
      assert.equal(store.readSync?.('theirs'), undefined)

      await store.create('mine', entry('a'))
      assert.deepEqual(await neighbour.call(['remove', 'mine']), [{ result: true }])
      assert.equal(await store.read('mine'), undefined)
    }
  })

  test('four processes can open a new file at the same time', async context => {
    const file = await fileFor(context)
    const neighbours = await Promise.all(Array.from({ length: 4 }, () => startNeighbour(file)))
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

  test('if two processes create the same key at the same time, one wins', async context => {
    const { store, neighbour } = await openShared(context)
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`)
    const theirs = neighbour.call(...keys.map(key => ['create', key, entry('theirs')] as const))
    const mine = await Promise.all(keys.map(key => store.create(key, entry('mine'))))
    await assertOneWinner(store, keys, mine, await theirs)
  })

  test('if two processes replace the same version at the same time, one wins', async context => {
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
  test('an entry is there if its create had resolved', async context => {
    const { file, neighbour } = await openNeighbour(context)
    await neighbour.callAndDie(['create', 'k', entry('kept', ['label'])])
    const store = await openFor(context, file)
    assert.equal(Buffer.from((await store.read('k'))?.value ?? []).toString(), 'kept')
    assert.equal((await store.list({ label: 'label', limit: 10 })).entries.length, 1)
  })

  test('an entry is gone if its remove had resolved', async context => {
    const { file, neighbour } = await openNeighbour(context)
    await neighbour.call(['create', 'k', entry('a', ['label'])])
    await neighbour.callAndDie(['remove', 'k'])
    const store = await openFor(context, file)
    assert.equal(await store.read('k'), undefined)
    assert.equal((await store.list({ label: 'label', limit: 10 })).entries.length, 0)
  })

  test('every write acknowledged before the kill is there, and other processes can still write', async context => {
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

describe('The embedded store with an unusable disk or file:', () => {
  test('a full disk fails writes but not the process, and writes work again once there is space', async context => {
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

  const spoilers: Record<string, [spoil: (file: string) => unknown, says: RegExp]> = {
    'lies below a file': [
      async file => {
        await rm(dirname(file), { recursive: true })
        await writeFile(dirname(file), '')
      },
      /not a folder.*use a file in a folder/,
    ],
    'is a folder': [file => mkdir(file), /not a file/],
    'is not a database': [file => writeFile(file, 'something else '.repeat(10_000)), /move the file away/],
    'belongs to another program': [
      file => changeDatabase(file, 'CREATE TABLE notes (text); PRAGMA application_id = 7'),
      /the database of another program/,
    ],
    'belongs to another program that sets no application_id': [
      file => changeDatabase(file, 'CREATE TABLE notes (text)'),
      /the database of another program/,
    ],
    'was written by a newer version': [
      async file => {
        await (await openSqliteStore({ file, now: Date.now })).close()
        changeDatabase(file, 'PRAGMA user_version = 2')
      },
      /written by a newer version of Menshen/,
    ],
  }
  for (const [what, [spoil, says]] of Object.entries(spoilers)) {
    test(`a file that ${what} causes a startup error with a remedy and stays as it is`, async context => {
      const file = await fileFor(context)
      await spoil(file)
      const before = await contentOf(file)
      await assert.rejects(openSqliteStore({ file, now: Date.now }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'cannot_start')
        assert.match(error.message, says)
        assert.match(error.message, /set STORE to another file\.$/)
        return true
      })
      assert.deepEqual(await contentOf(file), before)
    })
  }

  /** The bytes of a file, or why it cannot be read. */
  const contentOf = (file: string) => readFile(file).catch((error: NodeJS.ErrnoException) => error.code)
})

for (const folder of ['/proc/menshen', '/proc/self/deep/menshen', '/dev/fd/menshen', '/dev/null', '/sys/menshen'])
  test(`a start with the store in ${folder} exits with code 1 and one error line`, async () => {
    const ports = { PORT: String(await freePort()), DEV_PROVIDER_PORT: String(await freePort()) }
    const env = { ...ports, STORE: `sqlite:${folder}/menshen.db` }
    // The first one as a process with its worker, the others as the worker alone.
    const isFirst = folder === '/proc/menshen'
    const { code, output } = await (isFirst ? runMenshen(env) : commands.run({ ...env, MENSHEN_ONLY_WORKER: '1' }))
    assert.equal(code, 1)
    const sentence = output.split('\n').filter(line => line.includes(folder))
    assert.equal(sentence.length, 1, output)
    assert.match(sentence.join(), /Cannot open the store .*set STORE to another file\./)
  })

test('after the generation could not be read, no earlier freshness proof is valid', () => {
  let [generation, version, isBroken] = [1, 1, false]
  const proofs = createSnapshots({
    readGeneration() {
      if (isBroken) throw new Error('the disk is away')
      return generation
    },
    lookUp: () => ({ version, expiresAt: 2 }),
    now: () => 1,
  })
  const proof = newFreshness()
  assert.equal(proofs.isCurrent('k', 1, proof), true)
  isBroken = true
  proofs.invalidate()
  assert.throws(() => proofs.isCurrent('k', 1, proof))
  // In the same turn still.
  generation = 2
  version = 2
  assert.throws(() => proofs.isCurrent('k', 1, proof))
  isBroken = false
  assert.equal(proofs.isCurrent('k', 1, proof), false)
  assert.equal(proofs.isCurrent('k', 2, newFreshness()), true)
})

test('a record is looked up once per generation, and its version is no longer current when the record expires', () => {
  let [generation, time, lookUps] = [1, 1, 0]
  const proofs = createSnapshots({
    readGeneration: () => generation,
    lookUp() {
      lookUps++
      return { version: 1, expiresAt: 3 }
    },
    now: () => time,
  })
  const proof = newFreshness()
  const holds = () => {
    proofs.invalidate()
    return proofs.isCurrent('k', 1, proof)
  }
  assert.deepEqual([holds(), holds(), lookUps], [true, true, 1])
  generation = 2
  assert.deepEqual([holds(), holds(), lookUps], [true, true, 2])
  time = 3
  assert.deepEqual([holds(), lookUps], [false, 2])
})

test('one read of the generation serves all requests of an event loop turn, or otherwise a single callback', async () => {
  let looks = 0
  const readGeneration = () => ++looks
  const proofs = createSnapshots({ readGeneration, lookUp: () => ({ version: 1, expiresAt: 2 }), now: () => 1 })
  const looksFor = (times: number) => {
    const before = looks
    for (let n = 0; n < times; n++) assert.ok(proofs.isCurrent('k', 1))
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
  proofs.invalidate()
  assert.equal(looksFor(2), 1)
  await nextTurn()
  assert.equal(looksFor(1), 1, 'the turn is over')
  proofs.beginTurn()
  assert.equal(looksFor(1), 1, 'a request does not rely on what was seen before it')
})

test('a record with damaged labels is read without labels, and can be replaced, removed and swept', async context => {
  const file = await fileFor(context)
  const store = await openSqliteStore({ file, now: Date.now, sweepIntervalMs: 1 })
  context.after(() => store.close())
  for (const key of ['replaced', 'removed', 'swept']) await store.create(key, entry('a', ['label']))
  changeDatabase(file, `UPDATE records SET labels = '{'; UPDATE records SET expires_at = 0 WHERE key = 'swept'`)
  const found = await store.read('replaced')
  assert.deepEqual(found?.labels, [])
  assert.ok(await store.replace('replaced', entry('b', ['label']), found?.version ?? 0))
  assert.ok(await store.remove('removed'))
  await until(() => rowsOf(file, 'records') === 1)
  const { entries } = await store.list({ label: 'label', limit: 9 })
  assert.deepEqual(
    entries.map(({ key }) => key),
    ['replaced'],
  )
})

test('the embedded store returns a short page rather than a slow one, and the next page continues', async context => {
  let time = 1_000_000
  const file = await fileFor(context)
  const store = await openSqliteStore({ file, now: () => time, sweepIntervalMs: 1_000_000 })
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

test('the folders and files of the embedded store are accessible only to their owner', async context => {
  const folder = join(dirname(await fileFor(context)), 'deep.er', 'data.d')
  const store = await openFor(context, join(folder, 'menshen.db'))
  await store.create('k', entry('a'))
  for (const made of [folder, dirname(folder)]) assert.equal((await stat(made)).mode & 0o777, 0o700)
  assert.deepEqual((await readdir(folder)).sort(), ['menshen.db', 'menshen.db-shm', 'menshen.db-wal'])
  for (const name of await readdir(folder)) assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600, name)
})

test('a clean stop leaves one file with the expected tables, application_id and user_version', async context => {
  const file = await fileFor(context)
  const store = await openFor(context, file)
  await store.create('k', entry('a', ['label']))
  await store.close()
  assert.deepEqual(await readdir(dirname(file)), ['menshen.db'])
  const database = new DatabaseSync(file, { readOnly: true })
  context.after(() => database.close())
  const read = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map(row => Object.values(row)[0])
  assert.deepEqual(read("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"), [
    'audit_events',
    'audit_kinds',
    'record_labels',
    'records',
    'store_state',
  ])
  assert.deepEqual(
    read("SELECT strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite%'"),
    [1, 1, 1, 1, 1],
  )
  assert.deepEqual(read('PRAGMA application_id'), [0x4d53484e])
  assert.deepEqual(read('PRAGMA user_version'), [1])
  assert.deepEqual(read('PRAGMA journal_mode'), ['wal'])
})

test('expired entries are swept from the file, live ones stay, and the generation does not change', async context => {
  const file = await fileFor(context)
  const store = await openSqliteStore({ file, now: Date.now, sweepIntervalMs: 1 })
  context.after(() => store.close())
  const expired = { ...entry('old', ['label']), expiresAt: Date.now() - 1, since: 1 }
  await Promise.all(Array.from({ length: 1200 }, (_, i) => store.create(`old${i}`, expired)))
  await store.create('living', { ...entry('new', ['label']), since: 2 })
  const generation = readNumber(file, `SELECT number FROM store_state WHERE name = 'generation'`)
  await until(() => rowsOf(file, 'records') === 1)
  assert.equal(rowsOf(file, 'record_labels'), 1)
  assert.equal(await store.count(), 1)
  assert.equal(readNumber(file, `SELECT number FROM store_state WHERE name = 'generation'`), generation)
  assert.ok(await store.read('living'))
})

test('100 changes that arrive together take fewer than five transactions', async context => {
  const file = await fileFor(context)
  const store = await openFor(context, file)
  const generation = () => readNumber(file, `SELECT number FROM store_state WHERE name = 'generation'`)
  const before = generation()
  await Promise.all(Array.from({ length: 100 }, (_, i) => store.create(`k${i}`, entry('a', ['label']))))
  const made = generation() - before
  assert.ok(made > 0 && made < 5, `${made} transactions for 100 changes`)
})

test('a change that cannot be stored fails, and the changes that arrive with it succeed', async context => {
  const store = await openFor(context, await fileFor(context))
  const outcomes = await Promise.allSettled([
    store.create('good', entry('a')),
    store.create('bad', { ...entry('b'), since: 1.5 }),
    store.create('as good', entry('c')),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.ok((await store.read('good')) && (await store.read('as good')))
  assert.equal(await store.count(), 0)
})

test('a sweep that fails is retried and does not end the process', async () => {
  let [failures, left] = [0, 70]
  const done = Promise.withResolvers<void>()
  const sweeper = startSweeper({
    now: Date.now,
    intervalMs: 1,
    hasExpired: () => left > 0,
    async change() {
      if (failures++ < 5) throw new Error('the disk is full')
      const swept = Math.min(left, 30)
      left -= swept
      if (left === 0) done.resolve()
      return swept
    },
  })
  // Its timers keep no process alive.
  const alive = setInterval(() => {}, 1000)
  await done.promise
  clearInterval(alive)
  await sweeper.stop()
})

test('calls to a closed embedded store fail with store_unavailable', async context => {
  const store = await openFor(context, await fileFor(context))
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

/** To a process that may not make a file larger, the disk is full. */
async function limitFileSize(neighbour: Neighbour, bytes: string): Promise<void> {
  await run(requireProgram('prlimit'), ['--pid', String(neighbour.process.pid), `--fsize=${bytes}:`])
}

async function makeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'menshen-store-'))
}

async function removeFolder(directory: string): Promise<void> {
  // A thread that is just ending may still write to it.
  await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}

async function fileFor(context: TestContext): Promise<string> {
  const folder = await makeFolder()
  context.after(() => removeFolder(folder))
  return join(folder, 'menshen.db')
}

/** As an operator does with sqlite3. */
function changeDatabase(file: string, sql: string): void {
  const database = new DatabaseSync(file, { timeout: 5000 })
  database.exec(sql)
  database.close()
}

function readNumber(file: string, sql: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  const [number] = Object.values(database.prepare(sql).get() ?? {})
  database.close()
  return Number(number)
}

function rowsOf(file: string, table: string): number {
  return readNumber(file, `SELECT count(*) FROM ${table}`)
}

async function openFor(context: TestContext, file: string): Promise<Store> {
  const store = await openSqliteStore({ file, now: Date.now })
  context.after(() => store.close())
  return store
}

async function openNeighbour(context: TestContext) {
  const folder = await makeFolder()
  const file = join(folder, 'menshen.db')
  const neighbour = await startNeighbour(file)
  context.after(async () => {
    await neighbour.leave()
    await removeFolder(folder)
  })
  return { file, neighbour }
}

async function openShared(context: TestContext) {
  const { file, neighbour } = await openNeighbour(context)
  return { file, store: await openFor(context, file), neighbour }
}
