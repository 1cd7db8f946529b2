import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
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
  const heldBefore = heldBytes()
  const value = new Uint8Array(64 * 1024)
  for (; time < 1000; time++) await store.create(`k${time}`, { value, expiresAt: time + 10, labels: [] })
  assert.ok(heldBytes() - heldBefore < 50 * value.length)
  await store.close()
})

function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().arrayBuffers
}
