// Whether the store can be written is known while it can still be read.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { runInNewContext } from 'node:vm'
import { MenshenError } from '../../src/errors.ts'
import type { Report } from '../../src/events.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { storeProblemOf, watchWrites } from '../../src/stores/write-watch.ts'
import { systemCodeOf } from '../../src/util/system-code.ts'
import { until } from '../kit/until.ts'

const FULL = new MenshenError(
  'store_unavailable',
  'The disk is full.',
  Object.assign(new Error('x'), { code: 'ENOSPC' }),
)
const EVERY_MS = 20

/** A memory store on a disk that the test fills. */
function watchStoreOnFullDisk(t: TestContext) {
  const disk = { error: undefined as Error | undefined, writes: 0 }
  const memory = createMemoryStore({ now: Date.now })
  const write = <Result>(work: () => Promise<Result>): Promise<Result> => {
    disk.writes++
    return disk.error ? Promise.reject(disk.error) : work()
  }
  const events: [string, object | undefined][] = []
  const report: Report = (code, fields) => void events.push([code, fields])
  const store = watchWrites(
    {
      ...memory,
      create: (key, entry) => write(() => memory.create(key, entry)),
      replace: (key, entry, version) => write(() => memory.replace(key, entry, version)),
      remove: key => write(() => memory.remove(key)),
      take: key => write(() => memory.take(key)),
      trail: { ...memory.trail, append: (given, keep) => write(() => memory.trail.append(given, keep)) },
    },
    { now: Date.now, report, intervalMs: EVERY_MS },
  )
  t.after(() => store.close())
  return { disk, memory, store, events }
}

const entry = () => ({ value: new Uint8Array(8), expiresAt: Date.now() + 60_000, labels: [] })

test('after a failed write, a store is not ready and reports it once; after a successful write, it is ready', async t => {
  const { disk, store, events } = watchStoreOnFullDisk(t)
  await store.create('a', entry())
  disk.error = FULL
  for (let n = 0; n < 3; n++) await assert.rejects(store.create('b', entry()), FULL)
  await assert.rejects(store.ready(), FULL)
  assert.ok(await store.read('a'), 'it can still be read')
  const detail = { error: 'store_unavailable', detail: 'The disk is full.', code: 'ENOSPC' }
  assert.deepEqual(events, [['store_not_writable', detail]])
  disk.error = undefined
  await store.create('c', entry())
  await store.ready()
  assert.deepEqual(
    events.map(([code]) => code),
    ['store_not_writable', 'store_writable'],
  )
})

test('ready tries a write on a store without other writes, and leaves no entry behind', async t => {
  const { disk, memory, store } = watchStoreOnFullDisk(t)
  disk.error = FULL
  await assert.rejects(store.ready(), FULL)
  disk.error = undefined
  await until(() =>
    store
      .ready()
      .then(() => true)
      .catch(() => false),
  )
  assert.equal(await memory.count(), 0, 'what was written for it is gone')
})

test('100 calls of ready at once try only one write', async t => {
  const { disk, store } = watchStoreOnFullDisk(t)
  disk.error = FULL
  await Promise.allSettled(Array.from({ length: 100 }, () => store.ready()))
  assert.equal(disk.writes, 1)
})

test('a remove that finds no entry is not treated as a successful write', async t => {
  const { disk, store } = watchStoreOnFullDisk(t)
  disk.error = FULL
  await assert.rejects(store.create('a', entry()), FULL)
  const unwritten = watchWrites(
    { ...store, remove: async () => false, create: () => Promise.reject(FULL) },
    { now: Date.now, report() {}, intervalMs: 60_000 },
  )
  t.after(() => unwritten.close())
  await assert.rejects(unwritten.create('a', entry()), FULL)
  await unwritten.remove('nothing')
  await assert.rejects(unwritten.ready(), FULL)
})

test('the code of a store failure comes from the system, SQLite or Redis, and is never other text', () => {
  const wrapped = (cause: unknown) => new MenshenError('store_unavailable', 'x', cause)
  const sqlite = Object.assign(new Error('full'), { code: 'ERR_SQLITE_ERROR', errcode: 13 })
  const cases: [unknown, string | undefined, string][] = [
    [wrapped(Object.assign(new Error('no space'), { code: 'ENOSPC' })), 'ENOSPC', 'store_full'],
    [wrapped(sqlite), 'SQLITE_FULL', 'store_full'],
    // As in Jest, where the errors of Node belong to another realm.
    [wrapped(runInNewContext("Object.assign(new Error(), { code: 'ENOSPC' })")), 'ENOSPC', 'store_full'],
    [wrapped(Object.assign(new Error('x'), { errcode: 8 + 256 * 4 })), 'SQLITE_READONLY', 'store_read_only'],
    [wrapped(new Error('OOM command not allowed when used memory > maxmemory.')), 'OOM', 'store_full'],
    [wrapped(new Error("READONLY You can't write against a read only replica.")), 'READONLY', 'store_read_only'],
    [wrapped(Object.assign(new Error('x'), { code: 'token=secret' })), undefined, 'store'],
    [wrapped(undefined), undefined, 'store'],
  ]
  for (const [error, code, problem] of cases) {
    assert.equal(systemCodeOf(error), code)
    assert.equal(storeProblemOf(code), problem)
  }
})
