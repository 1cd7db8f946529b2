// The keys that applications verify assertions with: published without asking the store at every hit.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createPublishedKeys } from '../../src/proxy/assertions.ts'
import { newDataKeys } from '../../src/session/data-keys.ts'
import { createSigningKeys } from '../../src/session/signing-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'

const DATA_KEYS = newDataKeys()
const MONTH_MS = 30 * 24 * 3_600_000

function openKeys() {
  const clock = { now: 700 * MONTH_MS }
  const now = () => clock.now
  const counted = { reads: 0, isAway: false }
  const memory = createMemoryStore({ now })
  const store: Store = {
    ...memory,
    read(key) {
      counted.reads++
      return counted.isAway ? Promise.reject(new Error('away')) : memory.read(key)
    },
  }
  const published = createPublishedKeys(createSigningKeys(store, { current: async () => DATA_KEYS }, now), now)
  return { clock, counted, published, close: () => memory.close() }
}

test('a thousand requests for the published keys cause no store reads after the first', async t => {
  const { counted, published, close } = openKeys()
  t.after(close)
  const first = await published()
  const { reads } = counted
  const answers = await Promise.all(Array.from({ length: 1000 }, () => published()))
  assert.equal(counted.reads, reads)
  for (const answer of answers) assert.deepEqual(answer, first)
})

test('the next key is published before the month in which it signs', async t => {
  const { clock, published, close } = openKeys()
  t.after(close)
  const idsOf = async () => (await published()).keys.map(key => Reflect.get(key, 'kid'))
  const before = await idsOf()
  assert.equal(before.length, 2)
  clock.now += MONTH_MS
  const after = await idsOf()
  assert.deepEqual(after.slice(0, 2), before)
  assert.equal(after.length, 3)
})

test('after a store failure, the next request for the published keys reads the store again', async t => {
  const { clock, counted, published, close } = openKeys()
  t.after(close)
  counted.isAway = true
  await assert.rejects(published())
  counted.isAway = false
  assert.equal((await published()).keys.length, 2)
  counted.isAway = true
  clock.now += 10_000
  assert.equal((await published()).keys.length, 2)
})
