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

test('without activity, a session lives for SESSION_IDLE_MINUTES and ends within a quarter more, with one log event', async t => {
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

test('after its last activity, a session lives at least SESSION_IDLE_MINUTES and at most a quarter longer', async t => {
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

test('requests that are not activity, stream checks and token refreshes do not keep a session alive', async t => {
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

test('a constantly active user causes at most one write per quarter of the idle time and stays signed in', async t => {
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

test('activity on one instance keeps the session alive on another, and only one of them reports its end', async t => {
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

test('a clock difference of 4 seconds between instances does not end an idle session early', async t => {
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

test('activity that cannot be written still applies locally, is written later, and its failure is reported once', async t => {
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

test('a delayed write of activity does not overwrite later activity from another instance', async t => {
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

test('the activity of 500 sessions at the same time is written for every session, and none ends early on another instance', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ idleMinutes: IDLE })
  const opened = await Promise.all(Array.from({ length: 500 }, (_, n) => scene.signIn(sessions, `user-${n}`)))
  scene.pass(QUARTER)
  for (const { ticket } of opened) await scene.act(sessions, ticket, false)
  await until(() => scene.writes.length === opened.length)
  const seen = await Promise.all(opened.map(({ key }) => seenAt(sessions, key)))
  assert.ok(seen.every(at => at === scene.now()))
  scene.pass(IDLE_MS)
  const other = await scene.instance({ idleMinutes: IDLE })
  for (const { ticket } of opened) assert.equal(typeof (await other.getFresh(ticket)), 'object')
})

test('an idle session without further requests is no longer listed, and is ended and reported', async t => {
  const { scene, sessions, key } = await open(t)
  const other = await scene.instance({ idleMinutes: IDLE })
  scene.pass(IDLE_MS + QUARTER)
  assert.deepEqual((await other.newest({ limit: 10 })).sessions, [], 'the console does not list it in between')
  await until(() => scene.ended().length > 0)
  assert.equal(await scene.store.read(key), undefined)
  assert.equal(await sessions.count(), 0)
})

test('the idle time of a session continues across a restart', async t => {
  const { scene, ticket } = await open(t)
  scene.pass(IDLE_MS)
  const restarted = await scene.instance({ idleMinutes: IDLE })
  assert.equal(typeof (await restarted.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  assert.equal(await restarted.getFresh(ticket), undefined)
})

test('an idle limit that a reload enables or a restart shortens applies from that moment at the earliest', async t => {
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

test('after a reload turns the idle limit off, sessions no longer expire for inactivity', async t => {
  const { scene, sessions, ticket } = await open(t)
  scene.pass(IDLE_MS)
  sessions.useSettings({ SESSION_IDLE_MINUTES: 0, SESSIONS_PER_USER: 0 })
  scene.pass(10 * IDLE_MS)
  const loaded = await sessions.getFresh(ticket)
  assert.ok(typeof loaded === 'object')
  assert.equal(sessions.idleEndOf(loaded), undefined)
  assert.equal(await scene.store.read('idle'), undefined)
})

test('setting the clock back does not end a session, and its idle time is measured from the new time', async t => {
  const { scene, sessions, ticket } = await open(t)
  scene.pass(-3 * IDLE_MS)
  await scene.act(sessions, ticket)
  scene.pass(IDLE_MS)
  assert.equal(typeof (await sessions.getFresh(ticket)), 'object')
  scene.pass(QUARTER)
  assert.equal(await sessions.getFresh(ticket), undefined)
})

test('the end reason of a session is readable only with its ticket, and only until the session would have expired', async t => {
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

test('a session ended by a process whose clock is ahead is absent, not unreadable, for one whose clock is behind', async t => {
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

test('a session that was idle ends once, also for a clock that is behind or was set back', async t => {
  const scene = createEndScene()
  t.after(() => scene.close())
  const ahead = await scene.instance({ idleMinutes: 20, aheadMs: 2000 })
  const behind = await scene.instance({ idleMinutes: 20 })
  const { ticket, key } = await scene.signIn(ahead)
  scene.pass(25 * MINUTE)
  assert.equal(await ahead.getFresh(ticket), undefined)
  assert.equal(await behind.end(key), false)
  scene.pass(-60 * MINUTE)
  assert.equal(await ahead.end(key), false)
  assert.equal(await ahead.takeEndReason(ticket), 'idle')
})
