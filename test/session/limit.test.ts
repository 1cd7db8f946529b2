// SESSIONS_PER_USER: a sign-in beyond the limit ends the oldest sessions of its user, and exactly those.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openRedisStore } from '../../src/stores/redis/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Store } from '../../src/stores/store.ts'
import { type RedisServer, startRedis } from '../kit/redis-server.ts'
import { tempFolder } from '../kit/temp.ts'
import { createEndScene, MINUTE } from './end-scene.ts'

test('a sign-in beyond SESSIONS_PER_USER ends the oldest session of the user, and its end reason is shown once', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ perUser: 2 })
  const first = await scene.signIn(sessions)
  scene.pass(1000)
  const second = await scene.signIn(sessions)
  scene.pass(1000)
  const third = await scene.signIn(sessions)
  assert.equal(await sessions.get(first.ticket), undefined)
  assert.ok(await sessions.get(second.ticket))
  assert.ok(await sessions.get(third.ticket))
  assert.deepEqual(scene.ended(), [
    { session: first.key.slice(0, 10), user: 'zhangsan', sub: '1', reason: 'session_limit', ended: 1 },
  ])
  assert.equal(await sessions.takeEndReason(second.ticket), undefined)
  assert.equal(await sessions.takeEndReason(first.ticket), 'session_limit')
  assert.equal(await sessions.takeEndReason(first.ticket), undefined)
})

test('the session with the oldest sign-in ends first, even if it was refreshed since', async t => {
  const scene = createEndScene({ expiresIn: 3600 })
  t.after(scene.close)
  const sessions = await scene.instance({ perUser: 2 })
  const first = await scene.signIn(sessions)
  scene.pass(58 * MINUTE)
  const second = await scene.signIn(sessions)
  assert.equal(typeof (await sessions.getFresh(first.ticket)), 'object')
  assert.ok(scene.events.some(({ event }) => event === 'session_refreshed'))
  await scene.signIn(sessions)
  assert.equal(await sessions.get(first.ticket), undefined)
  assert.ok(await sessions.get(second.ticket))
})

test('for SESSIONS_PER_USER, the same sub and username at another provider is a different user', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ perUser: 1 })
  const staff = await scene.signIn(sessions, 'zhangsan', 'staff')
  const partner = await scene.signIn(sessions, 'zhangsan', 'partners')
  assert.ok(await sessions.get(staff.ticket))
  assert.ok(await sessions.get(partner.ticket))
  assert.deepEqual(scene.ended(), [])
})

test('a new session survives even if older sessions are dated later because a clock was ahead or was set back', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const ahead = await scene.instance({ perUser: 1, aheadMs: 5000 })
  const sessions = await scene.instance({ perUser: 1 })
  scene.pass(3600_000)
  const former = await scene.signIn(ahead)
  scene.pass(-3600_000)
  for (let n = 0; n < 3; n++) {
    const latest = await scene.signIn(sessions)
    assert.ok(await sessions.get(latest.ticket))
    assert.equal(await sessions.get(former.ticket), undefined)
  }
  assert.equal(await sessions.count(), 1)
})

test('a session that expired for inactivity does not use up SESSIONS_PER_USER', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance({ perUser: 2, idleMinutes: 20 })
  const used = await scene.signIn(sessions)
  await scene.signIn(sessions)
  scene.pass(20 * MINUTE)
  await scene.act(sessions, used.ticket)
  scene.pass(5 * MINUTE)
  await scene.signIn(sessions)
  assert.ok(await sessions.get(used.ticket))
  assert.deepEqual(
    scene.ended().map(({ reason }) => reason),
    ['idle'],
  )
})

test('without SESSIONS_PER_USER and within it no session ends, and a limit set or lowered by a reload applies at the next sign-in', async t => {
  const scene = createEndScene()
  t.after(scene.close)
  const sessions = await scene.instance()
  for (let n = 0; n < 5; n++) await scene.signIn(sessions)
  assert.equal(await sessions.count(), 5)
  sessions.useSettings({ SESSION_IDLE_MINUTES: 0, SESSIONS_PER_USER: 7 })
  for (let n = 0; n < 2; n++) await scene.signIn(sessions)
  assert.equal(await sessions.count(), 7)
  assert.deepEqual(scene.ended(), [])
  for (const limit of [6, 3]) {
    const before = await sessions.count()
    sessions.useSettings({ SESSION_IDLE_MINUTES: 0, SESSIONS_PER_USER: limit })
    assert.equal(await sessions.count(), before)
    await scene.signIn(sessions)
    assert.equal(await sessions.count(), limit)
  }
})

describe('a hundred parallel sign-ins on two instances leave exactly SESSIONS_PER_USER sessions', () => {
  let redis: RedisServer
  before(async () => {
    redis = await startRedis()
  })
  after(() => redis?.stop())

  for (const perUser of [1, 3]) {
    test(`in memory, with a limit of ${perUser}`, async t => {
      const scene = createEndScene()
      t.after(scene.close)
      await signInAtOnce(scene, perUser)
    })

    test(`in SQLite, with a limit of ${perUser}`, async t => {
      const scene = createEndScene()
      const folder = tempFolder(t)
      const open = () => openSqliteStore({ file: join(folder, 'menshen.db'), now: scene.now })
      const stores = [await open(), await open()] as const
      t.after(async () => {
        await scene.close()
        await Promise.all(stores.map(store => store.close()))
      })
      await signInAtOnce(scene, perUser, stores)
    })

    test(`in Redis, with a limit of ${perUser}`, async t => {
      const scene = createEndScene()
      await redis.command('FLUSHALL')
      const open = () => openRedisStore({ address: `redis://${redis.host}`, now: scene.now, report: () => {} })
      const stores = [await open(), await open()] as const
      t.after(async () => {
        await scene.close()
        await Promise.all(stores.map(store => store.close()))
      })
      await signInAtOnce(scene, perUser, stores)
    })
  }

  async function signInAtOnce(
    scene: ReturnType<typeof createEndScene>,
    perUser: number,
    [one, other]: readonly [Store, Store] = [scene.store, scene.store],
  ): Promise<void> {
    const instances = [
      await scene.instance({ perUser, store: one }),
      await scene.instance({ perUser, aheadMs: 2000, store: other }),
    ] as const
    const opened = await Promise.all(
      Array.from({ length: 50 }).flatMap(() => instances.map(sessions => scene.signIn(sessions))),
    )
    const [sessions] = instances
    const alive = await Promise.all(opened.map(({ ticket }) => sessions.get(ticket)))
    assert.equal(alive.filter(Boolean).length, perUser)
    assert.equal(scene.ended().length, 100 - perUser, 'each end is reported once')
  }
})
