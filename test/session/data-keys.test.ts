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

test('twenty instances that start at the same time end with one set of keys', async t => {
  const { start, events } = openStore(t)
  const lists: Name[][] = [['a'], ['b', 'a'], ['a', 'b']]
  const instances = Array.from({ length: 20 }, (_, n) => start(...(lists[n % 3] ?? [])))
  const found = await Promise.all(instances.map(instance => instance.current()))
  const latest = await Promise.all(instances.map(instance => instance.current()))
  assert.equal(new Set([...found, ...latest].map(shown)).size, 1)
  assert.deepEqual(events, [])
})

test('an instance that does not have the new secret yet does not throw it out when it starts again', async t => {
  const { start, events } = openStore(t)
  const before = shown(await start('a').current())
  await start('b', 'a').current()
  assert.equal(shown(await start('a').current()), before)
  assert.equal(shown(await start('b').current()), before)
  assert.deepEqual(events, [])
})

test('an instance that still runs with a secret that was taken away goes on, and does not bring it back', async t => {
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

test('a secret that was replaced while nothing was stored is passed over in silence, and its data keys stay', async t => {
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

test('an instance with another secret is noticed once it has a session, though the store was empty at the start', async t => {
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

test('sessions that have expired need no data keys, and personal keys do', async t => {
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

test('a secret that was forgotten can still be put behind the new one', async t => {
  const { start } = openStore(t)
  const before = shown(await start('a').current())
  const mistaken = start('b')
  assert.notEqual(shown(await mistaken.current()), before)
  assert.equal(shown(await start('b', 'a').current()), before)
  assert.equal(shown(await mistaken.current()), before)
  assert.equal(shown(await start('b').current()), before)
})

test('a store that was emptied gets the keys of those who run, and whoever starts then shares them', async t => {
  const { store, start } = openStore(t)
  const [one, other] = [start('a'), start('a')]
  const before = shown(await one.current())
  await other.current()
  await store.remove('data-keys')
  assert.equal(shown(await other.current()), before)
  assert.equal(shown(await start('a').current()), before)
})

test('keys of a newer version are left alone, and it is said once', async t => {
  const { store, events, start } = openStore(t)
  const entry = { value: Buffer.of(2, 1, 2, 3), expiresAt: START + 1000, labels: [] }
  await store.create('data-keys', entry)
  const instance = start('a')
  const keys = shown(await instance.current())
  assert.equal(shown(await instance.current()), keys)
  assert.deepEqual(Buffer.from((await store.read('data-keys'))?.value ?? []), entry.value)
  assert.deepEqual(events, ['newer_format'])
})

test('broken bytes in their place are replaced', async t => {
  const { store, start } = openStore(t)
  for (const value of ['', '\u0001', '\u0001{}', '\u0001[{"id":1}]', '\u0000garbage']) {
    await store.remove('data-keys')
    await store.create('data-keys', { value: Buffer.from(value), expiresAt: START + 1000, labels: [] })
    const keys = shown(await start('a').current())
    assert.equal(shown(await start('a').current()), keys)
  }
})

test('instances whose lists differ in their order write once each, and not at every question', async t => {
  const { store, start } = openStore(t)
  const [one, other] = [start('a', 'b'), start('b', 'a')]
  for (const instance of [one, other, one, other]) await instance.current()
  const version = (await store.read('data-keys'))?.version
  for (const instance of [one, other, one, other]) await instance.current()
  assert.equal((await store.read('data-keys'))?.version, version)
})

test('a new secret that was taken back opens nothing any more, though it came into use later', async t => {
  const { start } = openStore(t)
  const before = shown(await start('a').current())
  await start('b', 'a').current()
  assert.equal(shown(await start('a', 'b').current()), before)
  assert.equal(shown(await start('a').current()), before)
  assert.notEqual(shown(await start('b').current()), before)
})

test('a secret that came into use later is newer, also by an instance whose clock is behind', async t => {
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
