// What the console plots: slots of time, kept for a week, over restarts and for all processes.

import assert from 'node:assert/strict'
import test from 'node:test'
import { COUNT_NAMES, createHistory, plotOf, sumOf } from '../../src/observe/history.ts'
import { addTime, createSlotHistory, emptySlot, quantile, RANGES, slotsOf } from '../../src/observe/history-slots.ts'
import { createInstances, packInstance } from '../../src/observe/instances.ts'
import { newDataKeys } from '../../src/session/data-keys.ts'
import { createMemoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { until } from '../kit/until.ts'

const MINUTE = 60_000
const START = Date.parse('2026-03-01T08:00:00Z')
const KEYS = newDataKeys()
const keyring = { current: async () => KEYS }

function clockAt(now: number) {
  const clock = { now }
  return { clock, now: () => clock.now }
}

/** Resolves once so many processes have left word. */
async function nextWrite(store: Store, count = 1): Promise<void> {
  await until(async () => (await store.list({ label: 'instances', limit: 9 })).entries.length >= count)
}

function seriesOf(now: () => number, pid: number) {
  return createHistory({ now, instance: { host: 'a', pid, version: '1', startedAt: now() } })
}

test('an event is counted in the slot of its minute, of its quarter of an hour and of its two hours', () => {
  const { clock, now } = clockAt(START)
  const history = createSlotHistory(now)
  for (const minutes of [0, 0, 1, 20]) {
    clock.now = START + minutes * MINUTE
    const { counts } = history.current()
    counts.seen = (counts.seen ?? 0) + 1
  }
  const seen = (range: keyof typeof RANGES) =>
    slotsOf(range, [history.all()], now()).flatMap(({ at, counts }) =>
      counts.seen ? [[(at - START) / MINUTE, counts.seen]] : [],
    )
  assert.deepEqual(seen('hour'), [
    [0, 2],
    [1, 1],
    [20, 1],
  ])
  assert.deepEqual(seen('day'), [
    [0, 3],
    [15, 1],
  ])
  assert.deepEqual(seen('week'), [[0, 4]])
})

test('slots older than their range are dropped, and the number of slots stays bounded', () => {
  const { clock, now } = clockAt(START)
  const history = createSlotHistory(now)
  for (let minute = 0; minute < 30 * 24 * 60; minute += 7) {
    clock.now = START + minute * MINUTE
    history.current().counts.seen = 1
  }
  const { hour, day, week } = history.all()
  assert.ok(hour.length <= 61 && day.length <= 97 && week.length <= 85, `${hour.length} ${day.length} ${week.length}`)
  assert.equal(slotsOf('hour', [history.all()], now()).length, RANGES.hour.slots)
})

test('quantiles are within one bucket of the recorded times', () => {
  const slot = emptySlot(START)
  assert.equal(quantile(slot, 'request', 0.5), undefined)
  for (let n = 0; n < 98; n++) addTime(slot, 'request', 1)
  for (let n = 0; n < 2; n++) addTime(slot, 'request', 5000)
  const [middle = 0, last = 0] = [quantile(slot, 'request', 0.5), quantile(slot, 'request', 0.99)]
  assert.ok(middle > 0.5 && middle <= 1, `${middle}`)
  assert.ok(last > 2500 && last <= 5000, `${last}`)
  for (const odd of [0, -1, 1e12, Number.MIN_VALUE]) addTime(slot, 'request', odd)
  assert.equal(
    slot.times.request.reduce((sum, number) => sum + number),
    104,
  )
})

test('a restart loses no counts, and those of an ended process are not counted twice', async t => {
  const { clock, now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  for (let restart = 0; restart < 3; restart++) {
    const series = seriesOf(now, restart)
    series.begin({ store, keyring })
    series.observer.onEvent?.('sign_in', {})
    series.observer.onEvent?.('sign_in_failed', { reason: 'token_error' })
    const { slots } = await series.read('hour')
    assert.equal(slots.at(-1)?.at, clock.now)
    await series.close()
    clock.now += MINUTE
  }
  const last = seriesOf(now, 9)
  last.begin({ store, keyring })
  t.after(() => last.close())
  const { signIns, failures } = plotOf((await last.read('day')).slots)
  assert.deepEqual([signIns.at(-1), failures.token_error?.at(-1)], [3, 3])
  assert.deepEqual(
    (await last.instances()).map(({ pid }) => pid),
    [9],
  )
})

test('the plot has the sum of several processes, and the instances are those that are running', async t => {
  const { clock, now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const [one, other] = [seriesOf(now, 1), seriesOf(now, 2)]
  one.observer.onEvent?.('sign_in', {})
  other.observer.onEvent?.('sign_in', {})
  one.begin({ store, keyring })
  await nextWrite(store)
  other.begin({ store, keyring })
  await nextWrite(store, 2)
  t.after(() => other.close())
  const pids = async () => (await other.instances()).map(({ pid }) => pid)
  assert.equal(plotOf((await other.read('hour')).slots).signIns.at(-1), 2)
  assert.deepEqual(await pids(), [2, 1])
  await one.close()
  clock.now += MINUTE
  assert.deepEqual(await pids(), [2])
  assert.equal(sumOf(plotOf((await other.read('hour')).slots).signIns), 2)
})

test('a process that had no store for a few minutes is not counted twice once it writes again', async t => {
  const { clock, now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const quiet = seriesOf(now, 1)
  quiet.observer.onEvent?.('sign_in', {})
  quiet.begin({ store, keyring })
  await quiet.read('hour')
  await nextWrite(store)
  clock.now += 5 * MINUTE
  const next = seriesOf(now, 2)
  next.begin({ store, keyring })
  t.after(() => next.close())
  await nextWrite(store, 2)
  await quiet.close()
  clock.now += MINUTE
  assert.equal(sumOf(plotOf((await next.read('hour')).slots).signIns), 1)
})

test('an unchanged record is unpacked only once', async t => {
  const { clock, now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const one = seriesOf(now, 1)
  one.observer.onEvent?.('sign_in', {})
  one.begin({ store, keyring })
  await one.close()
  const instances = createInstances({
    store,
    keyring,
    history: createSlotHistory(now),
    now,
    instance: { host: 'a', pid: 2, version: '1', startedAt: now() },
  })
  const [before] = await instances.others()
  clock.now += MINUTE
  const [after] = await instances.others()
  assert.ok(before)
  assert.equal(after, before)
})

test('a damaged record does not affect other records', async t => {
  const { now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const hostile = { ...emptySlot(START), counts: { constructor: 5, toString: 1, [COUNT_NAMES.signIn]: 2 } }
  const instance = { host: 'a', pid: 1, version: '1', startedAt: START }
  const slots = { hour: [hostile], day: [], week: [] }
  const value = await packInstance('instance-hostile', { instance, writtenAt: START, hasEnded: true, slots }, KEYS)
  await store.create('instance-hostile', { value, expiresAt: START + 60 * MINUTE, labels: ['instances'] })
  await store.create('instance-broken', {
    value: new Uint8Array(9),
    expiresAt: START + 60 * MINUTE,
    labels: ['instances'],
  })
  const next = seriesOf(now, 2)
  next.begin({ store, keyring })
  await next.close()
  const last = seriesOf(now, 3)
  last.begin({ store, keyring })
  t.after(() => last.close())
  assert.equal(sumOf(plotOf((await last.read('hour')).slots).signIns), 2)
})

test('a record that was encrypted with another key or for another process is not read and stays in the store', async t => {
  const { now } = clockAt(START)
  const store = createMemoryStore({ now })
  t.after(() => store.close())
  const instance = { host: 'a', pid: 1, version: '1', startedAt: START }
  const slots = { hour: [{ ...emptySlot(START), counts: { [COUNT_NAMES.signIn]: 2 } }], day: [], week: [] }
  const record = { instance, writtenAt: START, hasEnded: true, slots }
  const put = (key: string, value: Uint8Array) =>
    store.create(key, { value, expiresAt: START + 60 * MINUTE, labels: ['instances'] })
  await put('instance-other', await packInstance('instance-other', record, newDataKeys()))
  await put('instance-moved', await packInstance('instance-own', record, KEYS))
  const history = createSlotHistory(now)
  const instances = createInstances({ store, keyring, history, now, instance })
  await instances.adopt()
  assert.deepEqual(
    history.all().hour.map(({ counts }) => counts),
    [{}],
  )
  assert.deepEqual(await instances.others(), [])
  assert.equal((await store.list({ label: 'instances', limit: 9 })).entries.length, 2)
})

test('only alarming events are counted by their code; sign-ins and requests have separate counters', () => {
  const { now } = clockAt(START)
  const series = seriesOf(now, 1)
  series.observer.onEvent?.('sign_in', {})
  series.observer.onEvent?.('upstream_failed', {})
  series.observer.onRequest?.(
    { requestId: 'r', startedAt: performance.now(), method: 'GET', path: '/', address: '', outcome: 'refused' },
    403,
    1,
    undefined,
  )
  return series.read('hour').then(({ slots }) => {
    const { counts = {} } = slots.at(-1) ?? {}
    assert.deepEqual(counts, {
      sign_in: 1,
      [COUNT_NAMES.event('upstream_failed')]: 1,
      [COUNT_NAMES.request.refused]: 1,
    })
  })
})
