// The data keys between instances that share a store: whatever happens at the same time, they all use the same ones.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { Secret } from '../../src/config/secret.ts'
import { createDataKeyring, type DataKeyring } from '../../src/session/data-keys.ts'
import { deriveKeys } from '../../src/session/derived-keys.ts'
import { type DataKeys, sealSummary } from '../../src/session/record.ts'
import { packRecord } from '../../src/session/sealing.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { START } from '../faults/doubles.ts'

const NAMES = { a: 'a'.repeat(32), b: 'b'.repeat(32), c: 'c'.repeat(32) }
type Name = keyof typeof NAMES

function openStore(t: TestContext) {
  const clock = { now: START }
  const now = () => clock.now
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const events: string[] = []
  /** An instance that has just started. */
  function start(...names: Name[]): DataKeyring {
    const keys = deriveKeys({ SECRET: names.map(name => new Secret(NAMES[name])), CLIENT_SECRET: undefined })
    return createDataKeyring({ store, keys, now, report: event => void events.push(event) })
  }
  return { store, events, start, clock }
}

/** A session that only these data keys list. */
async function addSession(store: Store, dataKeys: DataKeys, key: string): Promise<void> {
  const summary = {
    username: 'zhangsan',
    nickname: 'zhangsan',
    userRole: 'common',
    signedInAt: START,
    seenAt: START,
  } as const
  const value = packRecord({
    seenAt: START,
    summaryPart: sealSummary(summary, key, dataKeys),
    claimsPart: new Uint8Array(),
    sealedPart: new Uint8Array(),
  })
  await store.create(key, { value, expiresAt: START + HOUR_MS, labels: ['session'], since: START })
}

const HOUR_MS = 3_600_000

const shown = ({ labels }: DataKeys) => Buffer.from(labels).toString('hex')

test('twenty instances that start at the same time share one set of data keys', async t => {
  const { start, events } = openStore(t)
  const lists: Name[][] = [['a'], ['b', 'a'], ['a', 'b']]
  const instances = Array.from({ length: 20 }, (_, n) => start(...(lists[n % 3] ?? [])))
  const found = await Promise.all(instances.map(instance => instance.current()))
  const latest = await Promise.all(instances.map(instance => instance.current()))
  assert.equal(new Set([...found, ...latest].map(shown)).size, 1)
  assert.deepEqual(events, [])
})

test('an instance that restarts without the new secret does not revoke that secret’s access to the data keys', async t => {
  const { start, events } = openStore(t)
  const before = shown(await start('a').current())
  await start('b', 'a').current()
  assert.equal(shown(await start('a').current()), before)
  assert.equal(shown(await start('b').current()), before)
  assert.deepEqual(events, [])
})

test('an instance still running with a removed secret keeps working and does not restore that secret', async t => {
  const { store, start, events } = openStore(t)
  const running = start('a')
  const before = shown(await running.current())
  await addSession(store, await running.current(), 'one')
  await start('b', 'a').current()
  await start('b').current()
  assert.equal(shown(await running.current()), before)
  assert.notEqual(shown(await start('a').current()), before)
  assert.equal(shown(await start('b').current()), before)
  assert.deepEqual(new Set(events), new Set(['data_keys_closed']))
})

test('replacing the secret while the store has no sessions causes no warning, and the old data keys stay', async t => {
  const { store, events, start, clock } = openStore(t)
  const before = await start('a').current()
  const later = start('b')
  const own = await later.current()
  await addSession(store, own, 'own')
  clock.now += HOUR_MS / 2
  await later.current()
  assert.deepEqual(events, [])
  assert.equal(shown(await start('a').current()), shown(before))
})

test('an instance that started on an empty store reports once that its secret cannot decrypt a later session', async t => {
  const { store, events, start, clock } = openStore(t)
  const before = await start('a').current()
  const other = start('b')
  await other.current()
  await addSession(store, before, 'one')
  await other.current()
  assert.deepEqual(events, [], 'it searches once a minute')
  clock.now += 60_000
  for (let n = 0; n < 3; n++) await other.current()
  assert.deepEqual(events, ['data_keys_closed'])
})

test('inaccessible data keys are reported for personal keys, but not for expired sessions', async t => {
  const { store, events, start, clock } = openStore(t)
  await addSession(store, await start('a').current(), 'one')
  clock.now += 2 * HOUR_MS
  await start('b').current()
  assert.deepEqual(events, [])
  const entry = { value: Buffer.of(1), expiresAt: clock.now + HOUR_MS, labels: ['personal-keys'] }
  await store.create('personal-key:x', entry)
  await start('c').current()
  assert.deepEqual(events, ['data_keys_closed'])
})

test('a forgotten previous secret can still be appended after the new one', async t => {
  const { start } = openStore(t)
  const before = shown(await start('a').current())
  const mistaken = start('b')
  assert.notEqual(shown(await mistaken.current()), before)
  assert.equal(shown(await start('b', 'a').current()), before)
  assert.equal(shown(await mistaken.current()), before)
  assert.equal(shown(await start('b').current()), before)
})

test('running instances restore their data keys to an emptied store, and new instances share them', async t => {
  const { store, start } = openStore(t)
  const [one, other] = [start('a'), start('a')]
  const before = shown(await one.current())
  await other.current()
  await store.remove('data-keys')
  assert.equal(shown(await other.current()), before)
  assert.equal(shown(await start('a').current()), before)
})

test('data keys in a newer format are left unchanged and reported once', async t => {
  const { store, events, start } = openStore(t)
  const entry = { value: Buffer.of(2, 1, 2, 3), expiresAt: START + 1000, labels: [] }
  await store.create('data-keys', entry)
  const instance = start('a')
  const keys = shown(await instance.current())
  assert.equal(shown(await instance.current()), keys)
  assert.deepEqual(Buffer.from((await store.read('data-keys'))?.value ?? []), entry.value)
  assert.deepEqual(events, ['newer_format'])
})

test('invalid bytes stored as data keys are replaced', async t => {
  const { store, start } = openStore(t)
  for (const value of ['', '\u0001', '\u0001{}', '\u0001[{"id":1}]', '\u0000garbage']) {
    await store.remove('data-keys')
    await store.create('data-keys', { value: Buffer.from(value), expiresAt: START + 1000, labels: [] })
    const keys = shown(await start('a').current())
    assert.equal(shown(await start('a').current()), keys)
  }
})

test('instances that list the secrets in different orders do not rewrite the data keys at every read', async t => {
  const { store, start } = openStore(t)
  const [one, other] = [start('a', 'b'), start('b', 'a')]
  for (const instance of [one, other, one, other]) await instance.current()
  const version = (await store.read('data-keys'))?.version
  for (const instance of [one, other, one, other]) await instance.current()
  assert.equal((await store.read('data-keys'))?.version, version)
})

test('a new secret that is withdrawn no longer opens the data keys, even though it was added last', async t => {
  const { start } = openStore(t)
  const before = shown(await start('a').current())
  await start('b', 'a').current()
  assert.equal(shown(await start('a', 'b').current()), before)
  assert.equal(shown(await start('a').current()), before)
  assert.notEqual(shown(await start('b').current()), before)
})

test('a secret that is added later is dated later, even by an instance whose clock is behind', async t => {
  const { store, start, clock } = openStore(t)
  const before = shown(await start('a').current())
  clock.now -= 60_000
  await start('b', 'a').current()
  clock.now += 120_000
  assert.equal(shown(await start('a').current()), before)
  const stored = (await store.read('data-keys')) ?? assert.fail()
  const wrappers: { createdAt: number }[] = JSON.parse(String(Buffer.from(stored.value.subarray(1))))
  assert.deepEqual(
    wrappers.map(({ createdAt }) => createdAt),
    [START, START + 1],
  )
  assert.equal(shown(await start('b').current()), before)
  assert.notEqual(shown(await start('a').current()), before)
})
