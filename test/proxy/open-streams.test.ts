// What open streams cost and when they end. Those whose sessions cannot be looked at stay, and the log says it once for each
// outage.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createRules } from '../../src/access/rules.ts'
import { MenshenError } from '../../src/errors.ts'
import { createOpenStreams } from '../../src/proxy/open-streams.ts'
import type { Store } from '../../src/stores/store.ts'
import { createScene, signedIn, tokens } from '../faults/doubles.ts'

const OBSERVED = {
  requestId: 'a-request',
  startedAt: 0,
  method: 'GET',
  path: '/',
  outcome: 'admitted' as const,
  address: '127.0.0.1',
}
const REQUEST = { ...OBSERVED, search: '', headers: {}, connection: {}, observed: OBSERVED }
const RULES = createRules([])
const MACHINE = { role: 'common', username: 'robot', groups: [] }
const ADMITTED = { request: REQUEST, rules: RULES }

test('100 open streams write one warning per outage of the store, whatever other streams are open', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let isAway = true
  const { loaded } = await createScene()
    .instance('one')
    .open(signedIn(tokens('first')))
  const reported: string[] = []
  const getFresh = async () => {
    if (isAway) throw new MenshenError('store_unavailable', 'away')
    return undefined
  }
  const streams = createOpenStreams(
    { isCurrent: () => false, get: getFresh, getFresh },
    () => RULES,
    code => reported.push(code),
    Date.now,
  )
  t.after(() => streams.stop())
  let closed = 0
  const open = () => streams.addSession(ADMITTED, 'ticket', loaded, () => closed++)
  const second = async () => {
    t.mock.timers.tick(1000)
    await new Promise(setImmediate)
  }
  for (let n = 0; n < 100; n++) open()
  // Of somebody else, or of nobody: that it can be looked at is not the end of the outage.
  const visitor = { isCurrent: () => true, identify: async () => ({ who: undefined }) }
  const machine = { identify: async () => ({ who: MACHINE }) }
  for (const owner of [visitor, machine]) streams.add(ADMITTED, owner, () => assert.fail('it is still admitted'))
  for (let n = 0; n < 5; n++) await second()
  assert.deepEqual(reported, ['streams_unchecked'])
  assert.equal(closed, 0)

  isAway = false
  await second()
  assert.equal(closed, 100)
  isAway = true
  for (let n = 0; n < 5; n++) await second()
  assert.deepEqual(reported, ['streams_unchecked', 'streams_unchecked'])
})

test('a stream that ends during an outage, even while it is being checked, does not hide the next outage', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const reported: string[] = []
  const streams = createOpenStreams(
    { isCurrent: () => false, get: async () => undefined, getFresh: async () => undefined },
    () => RULES,
    code => reported.push(code),
    Date.now,
  )
  t.after(() => streams.stop())
  const looks: PromiseWithResolvers<undefined>[] = []
  const identify = () => {
    const look = Promise.withResolvers<undefined>()
    looks.push(look)
    return look.promise
  }
  for (let outage = 1; outage <= 2; outage++) {
    const forget = [1, 2].map(() => streams.add(ADMITTED, { identify }, () => {}))
    t.mock.timers.tick(1000)
    const [first, second] = looks.splice(0)
    first?.reject(new Error('away'))
    await new Promise(setImmediate)
    for (const end of forget) end()
    second?.reject(new Error('away'))
    await new Promise(setImmediate)
    assert.equal(reported.length, outage)
  }
})

test('a stream ends with its session even while the provider does not answer the pending refresh', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { loaded } = await createScene()
    .instance('one')
    .open(signedIn(tokens('first')))
  let [hasEnded, refreshes, closed] = [false, 0, 0]
  const streams = createOpenStreams(
    {
      isCurrent: () => false,
      get: async () => (hasEnded ? undefined : loaded),
      getFresh() {
        refreshes++
        return new Promise(() => {})
      },
    },
    () => RULES,
    () => {},
    Date.now,
  )
  t.after(() => streams.stop())
  streams.addSession(ADMITTED, 'ticket', loaded, () => closed++)
  const second = async () => {
    t.mock.timers.tick(1000)
    await new Promise(setImmediate)
  }
  await second()
  await second()
  assert.deepEqual([refreshes, closed], [1, 0])
  hasEnded = true
  await second()
  assert.deepEqual([refreshes, closed], [1, 1])
})

test('10,000 open streams use one timer and no store reads, even with a small cache; only changed sessions are read', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const setTimer = t.mock.method(globalThis, 'setInterval')
  const asked = { read: 0, holds: 0 }
  const counted = (store: Store): Store => ({
    ...store,
    read(key) {
      asked.read++
      return store.read(key)
    },
    isCurrent(key, version) {
      asked.holds++
      return store.isCurrent(key, version)
    },
  })
  const scene = createScene({ through: counted })
  const sessions = scene.instance('one')
  const streams = createOpenStreams(
    sessions,
    () => RULES,
    () => {},
    Date.now,
  )
  t.after(() => streams.stop())
  const closed: string[] = []
  const tickets: string[] = []
  // The cache has room for a hundred of these sessions.
  for (let user = 0; user < 1000; user++) {
    const { ticket, loaded } = await sessions.open(signedIn(tokens(`user-${user}`)))
    tickets.push(ticket)
    for (let stream = 0; stream < 10; stream++) {
      const forget = streams.addSession(ADMITTED, ticket, loaded, () => {
        closed.push(ticket)
        forget()
      })
    }
  }
  const seconds = async (count: number) => {
    Object.assign(asked, { read: 0, holds: 0 })
    for (let n = 0; n < count; n++) {
      t.mock.timers.tick(1000)
      await new Promise(setImmediate)
    }
  }
  await seconds(5)
  assert.deepEqual(asked, { read: 0, holds: 50_000 })
  assert.equal(setTimer.mock.callCount(), 1)

  const [ended = ''] = tickets
  await scene.instance('another').close(ended)
  await seconds(3)
  assert.deepEqual(closed, Array(10).fill(ended))
  assert.equal(asked.read, 10)

  // A change that keeps the session is read once, and counts from then on.
  const changed = await sessions.get(tickets[1] ?? '')
  const stored = changed && (await scene.store.read(changed.key))
  assert.ok(stored && (await scene.store.replace(stored.key, stored, stored.version)))
  await seconds(3)
  assert.equal(closed.length, 10)
  assert.ok(asked.read <= 10, `${asked.read} reads`)
  await seconds(3)
  assert.equal(asked.read, 0)
})

test('a stream outlasts maxAge, but ends after the permitted hours, even in an outage, or if new rules refuse it', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let now = Date.parse('2026-03-02T19:59:00Z')
  const hours = { from: '08:00', to: '20:00', zone: 'UTC' }
  let rules = createRules([{ path: '/', roles: ['*'], maxAge: 60 }])
  let isAway = false
  const who = { role: 'common', username: 'zhangsan', groups: [] }
  const streams = createOpenStreams(
    { isCurrent: () => false, get: async () => undefined, getFresh: async () => undefined },
    () => rules,
    () => {},
    () => now,
  )
  t.after(() => streams.stop())
  const closed = new Set<string>()
  const open = (name: string) => {
    const owner = {
      async identify() {
        if (isAway) throw new MenshenError('store_unavailable', 'away')
        return { who, authentication: { time: now - 10_000_000, acr: 'silver' } }
      },
    }
    const forget = streams.add({ request: REQUEST, rules }, owner, () => {
      closed.add(name)
      forget()
    })
  }
  const second = async () => {
    t.mock.timers.tick(1000)
    await new Promise(setImmediate)
  }
  open('aged')
  await second()
  assert.deepEqual([...closed], [])
  rules = createRules([{ path: '/', roles: ['*'], acr: ['silver'], networks: ['127.0.0.0/8'], hours }])
  await second()
  assert.deepEqual([...closed], [])
  open('timed')
  isAway = true
  now += 60_000
  await second()
  assert.deepEqual([...closed].sort(), ['aged', 'timed'])
  isAway = false
  for (const condition of [{ acr: ['gold'] }, { amr: ['mfa'] }, { networks: ['10.0.0.0/8'] }]) {
    const name = JSON.stringify(condition)
    rules = createRules([])
    open(name)
    rules = createRules([{ path: '/', roles: ['*'], ...condition }])
    await second()
    assert.ok(closed.has(name), name)
  }
})
