import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryStore } from '../../src/stores/memory.ts'
import { conformance } from './conformance.ts'

conformance('The memory store', async () => {
  let time = 1_000_000
  const now = () => time
  const store = createMemoryStore({ now })
  const passTime = async (ms: number) => {
    time += ms
  }
  return { store, now, passTime, close: () => store.close() }
})

test('expired entries do not pile up in the memory store', async () => {
  let time = 0
  const store = createMemoryStore({ now: () => time })
  const create = (key: string) => store.create(key, { value: new Uint8Array(), expiresAt: time + 10, labels: [] })
  await create('k')
  const before = await store.read('k')
  for (; time < 100; time++) await create(`other${time}`)
  await create('k')
  const after = await store.read('k')
  assert.ok(before && after)
  assert.notEqual(after.version, before.version + 1, 'a key that is still kept would count on')
})
