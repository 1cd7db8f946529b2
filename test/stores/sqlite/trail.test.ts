// The trail of the embedded store, where several processes write it, die, or find the disk full.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import type { Trail, TrailEvent } from '../../../src/stores/trail.ts'
import { requireProgram } from '../../kit/requirements.ts'
import { tempFolder } from '../../kit/temp.ts'
import { until } from '../../kit/until.ts'
import { startNeighbour } from '../neighbour.ts'

const run = promisify(execFile)
const KEEP = 100_000

test('two processes that append at the same time lose no event, and the events of each stay in order', async context => {
  const { store, neighbour } = await openShared(context)
  const batches = (who: string) => Array.from({ length: 150 }, (_, n) => [event(`${who}${n}a`), event(`${who}${n}b`)])
  const theirs = neighbour.call(...batches('t').map(batch => ['trail.append', batch, KEEP] as const))
  await Promise.all(batches('m').map(batch => store.trail.append(batch, KEEP)))
  assert.ok((await theirs).every(({ error }) => error === undefined))
  const texts = await textsOf(store.trail)
  assert.equal(texts.length, 600)
  for (const who of 'mt')
    assert.deepEqual(
      texts.filter(text => text.startsWith(who)),
      batches(who).flat().map(textOf),
    )
  for (let n = 0; n < texts.length; n += 2) assert.equal(texts[n]?.replace('a', 'b'), texts[n + 1])
  const [seen] = await neighbour.call(['trail.read', { limit: 1, scan: 1 }])
  assert.deepEqual(seen, { result: await store.trail.read({ limit: 1, scan: 1 }) })
})

test('after kill -9, all acknowledged events are there in order, and another process can still append', async context => {
  const { store, neighbour } = await openShared(context)
  let acknowledged = 0
  const hundred = Promise.withResolvers<void>()
  for (let n = 0; n < 3000; n++) {
    const appending = neighbour.call(['trail.append', [event(`${n}a`), event(`${n}b`)], KEEP])
    const acknowledge = () => {
      if (++acknowledged === 100) hundred.resolve()
    }
    appending.then(acknowledge, () => {}) // those that the kill cuts off
  }
  await hundred.promise
  neighbour.process.kill('SIGKILL')
  await neighbour.leave()
  await store.trail.append([event('mine')], KEEP)
  const texts = await textsOf(store.trail)
  assert.equal(texts.pop(), 'mine')
  assert.ok(texts.length >= 2 * acknowledged, `${texts.length} events of ${acknowledged} acknowledged calls`)
  assert.deepEqual(
    texts,
    texts.map((_, n) => `${Math.floor(n / 2)}${n % 2 ? 'b' : 'a'}`),
  )
})

test('a full disk fails appends but not the process, and appends work again once there is space', async context => {
  const { neighbour } = await openShared(context)
  const limit = (bytes: string) =>
    run(requireProgram('prlimit'), ['--pid', String(neighbour.process.pid), `--fsize=${bytes}:`])
  const append = (text: string) => ['trail.append', [{ ...event(text), value: new Uint8Array(100_000) }], KEEP] as const
  await neighbour.call(append('before'))

  await limit('1000000')
  let outcome: unknown
  for (let n = 0; n < 20 && outcome !== 'store_unavailable'; n++)
    outcome = (await neighbour.call(append(`${n}`)))[0]?.error
  assert.equal(outcome, 'store_unavailable')
  const atOnce = await neighbour.call(...Array.from({ length: 20 }, () => append('x')), ['create', 'k', entry()])
  assert.ok(atOnce.every(({ error }) => error === undefined || error === 'store_unavailable'))
  assert.ok(atOnce.some(({ error }) => error === 'store_unavailable'))

  await limit('unlimited')
  await until(async () => (await neighbour.call(append('after')))[0]?.error === undefined)
  const [page] = await neighbour.call(['trail.read', { limit: 1, scan: 1 }])
  assert.equal(page?.error, undefined)
  assert.equal(await neighbour.leave(), 0)
})

test('an event with damaged tags is read without tags, and the other events are unaffected', async context => {
  const { store, file } = await openShared(context)
  await store.trail.append([event('a'), event('b'), event('c')], KEEP)
  const database = new DatabaseSync(file)
  database.exec(`UPDATE audit_events SET tags = '{' WHERE number = 2`)
  database.close()
  assert.deepEqual(await textsOf(store.trail), ['a', 'b', 'c'])
  const { events } = await store.trail.read({ tag: 'tag', limit: 9, scan: 9 })
  assert.deepEqual(events.map(textOf), ['c', 'a'])
})

test('the trail of a closed store fails with store_unavailable', async context => {
  const { store } = await openShared(context)
  const appending = store.trail.append([event('a')], KEEP)
  await store.close()
  await appending
  await assert.rejects(store.trail.append([event('b')], KEEP), { code: 'store_unavailable' })
  await assert.rejects(store.trail.read({ limit: 1, scan: 1 }), { code: 'store_unavailable' })
})

async function openShared(context: TestContext) {
  const file = join(tempFolder(context), 'menshen.db')
  const neighbour = await startNeighbour(file)
  context.after(() => neighbour.leave())
  const store = await openSqliteStore({ file, now: Date.now })
  context.after(() => store.close())
  return { file, neighbour, store }
}

function event(text: string): TrailEvent {
  return { value: new TextEncoder().encode(text), tags: ['tag'] }
}

function entry() {
  return { value: new Uint8Array(100_000), expiresAt: Date.now() + 60_000, labels: [], since: 1 }
}

function textOf({ value }: TrailEvent): string {
  return new TextDecoder().decode(value)
}

async function textsOf(trail: Trail): Promise<string[]> {
  return (await trail.read({ after: '', limit: KEEP, scan: KEEP })).events.map(textOf)
}
