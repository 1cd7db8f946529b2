// The keys that sign assertions, between instances that share a store: applications verify the assertions of each with the keys
// that any of them publishes.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { createSigningKeys, type SigningKeys } from '../../src/session/signing-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { START } from '../faults/doubles.ts'
import { until } from '../kit/until.ts'

const [OLD, NEW, WRONG] = ['o', 'n', 'w'].map(letter => letter.repeat(32)) as [string, string, string]

function openInstances(t: TestContext) {
  const clock = { now: START }
  const now = () => clock.now
  const memory = createMemoryStore({ now })
  t.after(() => memory.close())
  const created = new Set<string>()
  const store: Store = {
    ...memory,
    create(key, entry) {
      created.add(key)
      return memory.create(key, entry)
    },
  }
  /** An instance that has just started with these secrets. */
  async function start(...secrets: string[]): Promise<SigningKeys> {
    const keys = deriveKeys({ SECRET: secrets.map(secret => new Secret(secret)), CLIENT_SECRET: undefined })
    const keyring = createDataKeyring({ store, keys, now, report() {} })
    await keyring.current()
    return createSigningKeys(store, keyring, now)
  }
  const removeAll = () => Promise.all([...created].map(key => memory.remove(key)))
  return { clock, start, removeAll }
}

const idsOf = async (keys: SigningKeys) => (await keys.all()).map(({ id }) => id)

test('an instance that starts with only the old secret while SECRET is being replaced shares the signing keys', async t => {
  const { start } = openInstances(t)
  const one = await start(OLD)
  const ids = await idsOf(one)
  for (const secrets of [[NEW, OLD], [OLD], [NEW, OLD], [NEW]])
    assert.deepEqual(await idsOf(await start(...secrets)), ids, `${secrets}`)
  assert.deepEqual(await idsOf(one), ids)
})

test('a start with a wrong secret leaves the signing keys of the other instances as they are', async t => {
  const { start } = openInstances(t)
  const one = await start(OLD)
  const ids = await idsOf(one)
  const wrong = await idsOf(await start(WRONG))
  assert.ok(wrong.every(id => !ids.includes(id)))
  assert.deepEqual(await idsOf(one), ids)
  assert.deepEqual(await idsOf(await start(OLD)), ids)
})

test('after the store was emptied, a running instance keeps its signing keys, and one that starts shares them', async t => {
  const { start, removeAll } = openInstances(t)
  const one = await start(OLD)
  const ids = await idsOf(one)
  await removeAll()
  assert.deepEqual(await idsOf(one), ids)
  assert.deepEqual(await idsOf(await start(OLD)), ids)
})

test('a running instance adopts within a minute the signing key that another has stored in its place', async t => {
  const { clock, start, removeAll } = openInstances(t)
  const one = await start(OLD)
  const former = await one.current()
  await removeAll()
  const other = await (await start(OLD)).current()
  assert.notEqual(other.id, former.id)
  assert.equal(one.latest()?.id, former.id, 'it signs without waiting for the store')
  clock.now += 60_000
  await until(() => one.latest()?.id === other.id)
})
