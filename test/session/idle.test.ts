// SESSION_IDLE_MINUTES: a session without activity ends, exact to a quarter, never early, on every instance.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { recordKey } from '../../src/session/ticket.ts'
import { until } from '../kit/until.ts'
import { createEndScene, MINUTE } from './end-scene.ts'

const IDLE = 20
const IDLE_MS = IDLE * MINUTE
const QUARTER = IDLE_MS / 4

async function open(t: TestContext, idleMinutes = IDLE) {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ idleMinutes })
  return { scene, sessions, ...(await scene.signIn(sessions)) }
}

test('without activity a session lives for the setting, and has ended a quarter of it later, reported once', async t => {
  const { scene, sessions, ticket, key } = await open(t)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await sessions.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  assert.deepEqual(await Promise.all([sessions.getFresh(ticket), sessions.getFresh(ticket)]), [undefined, undefined])
  assert.equal(await sessions.get(ticket), undefined)
  assert.equal(sessions.getCached(ticket), undefined)
  assert.deepEqual(scene.ended(), [{ session: key.slice(0, 10), user: 'zhangsan', sub: '1', reason: 'idle', ended: 1 }])
  assert.equal(await sessions.takeEndReason(ticket), 'idle')
  assert.equal(await sessions.takeEndReason(ticket), undefined, 'it is told once')
})

test('whenever the last activity was, the session lives at least for the setting and at most a quarter longer', async t => {
  for (const last of [0, 1, QUARTER - 6000, QUARTER - 1, QUARTER, QUARTER + 1, 2.5 * QUARTER]) {
    const { scene, sessions, ticket } = await open(t)
    scene.pass(last)
    await scene.act(sessions, ticket, last >= QUARTER)
    scene.pass(IDLE_MS)
    assert.equal(typeof (await sessions.getFresh(ticket)), 'object', `${last}: early`)
    scene.pass(QUARTER)
    assert.equal(await sessions.getFresh(ticket), undefined, `${last}: late`)
  }
})

test('visits that do not count as activity, checks of streams and refreshes keep no session alive', async t => {
  const scene = createEndScene({ expiresIn: 600 })
  t.after(scene.close)
  const sessions = await scene.instance({ idleMinutes: IDLE })
  const { ticket } = await scene.signIn(sessions)
  const opened = await sessions.getFresh(ticket)
  assert.ok(typeof opened === 'object')
  let loaded = opened
  for (let minute = 0; minute < 24; minute++) {
    scene.pass(MINUTE)
    if (sessions.isCurrent(loaded)) continue
    const latest = await sessions.getFresh(ticket)
    assert.ok(typeof latest === 'object', `ended after ${minute} minutes`)
    loaded = latest
  }
  assert.ok(scene.events.some(({ event }) => event === 'session_refreshed'))
  scene.pass(MINUTE)
  assert.equal(sessions.isCurrent(loaded), false)
  assert.equal(await sessions.getFresh(ticket), undefined)
  assert.deepEqual(
    scene.ended().map(({ reason }) => reason),
    ['idle'],
  )
})

test('a user who is always active costs at most one write per quarter, and stays signed in', async t => {
  const { scene, sessions, ticket, key } = await open(t)
  for (let second = 0; second < 4 * (IDLE_MS / 1000); second += 5) {
    scene.pass(5000)
    await scene.act(sessions, ticket, false)
    await until(async () => scene.now() - (await seenAt(sessions, key)) < QUARTER)
  }
  assert.ok(scene.writes.length <= 16, `${scene.writes.length} writes in 16 quarters`)
  assert.ok(scene.writes.length >= 15)
})

async function seenAt(sessions: Awaited<ReturnType<typeof open>>['sessions'], key: string): Promise<number> {
  return (await sessions.getListed(key))?.summary?.seenAt ?? 0
}

test('activity at one instance counts at the other, and an end is reported by one of them', async t => {
  const { scene, sessions: one, ticket } = await open(t)
  const other = await scene.instance({ idleMinutes: IDLE })
  assert.equal(typeof (await other.getFresh(ticket)), 'object')
  scene.pass(IDLE_MS - MINUTE)
  await scene.act(one, ticket)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await other.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  await Promise.all([one.getFresh(ticket), other.getFresh(ticket), one.getFresh(ticket), other.getFresh(ticket)])
  assert.equal(scene.ended().length, 1)
  assert.equal(await other.takeEndReason(ticket), 'idle', 'told at any instance')
})

test('clocks of instances that differ by a few seconds end no session early', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const behind = await scene.instance({ idleMinutes: IDLE })
  const ahead = await scene.instance({ idleMinutes: IDLE, aheadMs: 4000 })
  const { ticket } = await scene.signIn(behind)
  // The longest activity that is not written.
  scene.pass(QUARTER - 5001)
  await scene.act(behind, ticket, false)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await ahead.getFresh(ticket)), 'object')
})

test('activity that cannot be written counts here, is written later, and its failure is reported once', async t => {
  const { scene, sessions, ticket } = await open(t)
  scene.outage.writes = true
  scene.pass(IDLE_MS)
  for (let n = 0; n < 3; n++) await scene.act(sessions, ticket, false)
  const failures = () => scene.events.filter(({ event }) => event === 'last_seen_not_saved').length
  await until(() => failures() > 0)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await sessions.getFresh(ticket)), 'object')
  assert.equal(failures(), 1)
  scene.outage.writes = false
  await until(() => scene.writes.length > 0)
  const restarted = await scene.instance({ idleMinutes: IDLE })
  scene.pass(QUARTER - 1)
  assert.equal(typeof (await restarted.getFresh(ticket)), 'object')
})

test('a late write never replaces a later activity of another instance', async t => {
  const { scene, sessions, ticket, key } = await open(t)
  const other = await scene.instance({ idleMinutes: IDLE })
  scene.outage.writes = true
  scene.pass(QUARTER)
  await scene.act(sessions, ticket, false)
  await until(() => scene.events.some(({ event }) => event === 'last_seen_not_saved'))
  scene.outage.writes = false
  scene.pass(2 * QUARTER)
  await scene.act(other, ticket)
  await until(async () => (await seenAt(other, key)) === scene.now())
  await sessions.settle()
  assert.equal(await seenAt(other, key), scene.now())
})

test('many active sessions are all written, in turns, before one of them could end', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ idleMinutes: IDLE })
  const opened = await Promise.all(Array.from({ length: 500 }, (_, n) => scene.signIn(sessions, `user-${n}`)))
  scene.pass(QUARTER)
  for (const { ticket } of opened) await scene.act(sessions, ticket, false)
  await until(() => scene.writes.length === opened.length)
  const seen = await Promise.all(opened.map(({ key }) => seenAt(sessions, key)))
  assert.ok(seen.every(at => at === scene.now()))
})

test('a session that no one asks for is ended and reported too', async t => {
  const { scene, sessions, key } = await open(t)
  const other = await scene.instance({ idleMinutes: IDLE })
  scene.pass(IDLE_MS + QUARTER)
  assert.deepEqual((await other.newest({ limit: 10 })).sessions, [], 'the console does not list it in between')
  await until(() => scene.ended().length > 0)
  assert.equal(await scene.store.read(key), undefined)
  assert.equal(await sessions.count(), 0)
})

test('after a restart the idle time goes on where it was', async t => {
  const { scene, ticket } = await open(t)
  scene.pass(IDLE_MS)
  const restarted = await scene.instance({ idleMinutes: IDLE })
  assert.equal(typeof (await restarted.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  assert.equal(await restarted.getFresh(ticket), undefined)
})

test('turned on by a reload, or made shorter by a restart, it counts from that moment at the earliest', async t => {
  const { scene, sessions, ticket } = await open(t, 0)
  scene.pass(2 * IDLE_MS)
  sessions.useSettings({ SESSION_IDLE_MINUTES: IDLE, SESSIONS_PER_USER: 0 })
  scene.pass(IDLE_MS)
  assert.equal(typeof (await sessions.getFresh(ticket)), 'object')
  const shorter = await scene.instance({ idleMinutes: 1 })
  scene.pass(MINUTE)
  assert.equal(typeof (await shorter.getFresh(ticket)), 'object')
  scene.pass(MINUTE / 4)
  assert.equal(await shorter.getFresh(ticket), undefined)
})

test('turned off by a reload, a session ends no more for want of activity', async t => {
  const { scene, sessions, ticket } = await open(t)
  scene.pass(IDLE_MS)
  sessions.useSettings({ SESSION_IDLE_MINUTES: 0, SESSIONS_PER_USER: 0 })
  scene.pass(10 * IDLE_MS)
  const loaded = await sessions.getFresh(ticket)
  assert.ok(typeof loaded === 'object')
  assert.equal(sessions.idleEndOf(loaded), undefined)
  assert.equal(await scene.store.read('idle'), undefined)
})

test('a clock that is set back ends nothing, and counts from the new time on', async t => {
  const { scene, sessions, ticket } = await open(t)
  scene.pass(-3 * IDLE_MS)
  await scene.act(sessions, ticket)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await sessions.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  assert.equal(await sessions.getFresh(ticket), undefined)
})

test('a reason is shown only to the holder of the ticket, and is kept no longer than the session would have been', async t => {
  const { scene, sessions, ticket, key } = await open(t)
  scene.pass(IDLE_MS + QUARTER)
  await sessions.getFresh(ticket)
  assert.equal(await sessions.takeEndReason(key), undefined, 'the key of the record is not a ticket')
  const stored = await scene.store.read(`ended:${recordKey(ticket)}`)
  assert.ok(stored)
  assert.doesNotMatch(Buffer.from(stored.value).toString('latin1'), /reason|idle/)
  scene.pass(100 * 3600_000)
  assert.equal(await sessions.takeEndReason(ticket), undefined)
})

test('a session that a process with a clock ahead has ended is gone for one that is behind, and not unreadable', async t => {
  const scene = createEndScene()
  t.after(() => scene.close())
  const [ahead, behind] = [
    await scene.instance({ idleMinutes: 20, aheadMs: 2000 }),
    await scene.instance({ idleMinutes: 20 }),
  ]
  const { ticket } = await scene.signIn(ahead)
  scene.pass(25 * MINUTE)
  assert.equal(await ahead.getFresh(ticket), undefined)
  assert.equal(await behind.getFresh(ticket), undefined)
  assert.ok(!scene.events.some(({ event }) => event === 'record_unreadable'))
})
