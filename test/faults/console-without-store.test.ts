// During a store outage the developers whose sessions were confirmed last can read what is wrong, and nothing else.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { MenshenError } from '../../src/errors.ts'
import { recordKey } from '../../src/session/ticket.ts'
import type { Store } from '../../src/stores/store.ts'
import type { Client } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { createScene, signedIn, tokens } from './doubles.ts'

const OVERVIEW = '/_menshen/console'
const HEALTH = '/_menshen/console/health'
const NOTICE = 'your session could not be verified'

async function openWithRedis(t: TestContext) {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const scene = await setUp(t, { env: { STORE: `redis://${redis.host}`, PAGE_LANGUAGE: 'en' } })
  return { redis, scene }
}

async function stopped(scene: Scene, redis: { kill(): Promise<void> }): Promise<void> {
  await redis.kill()
  await until(async () => (await scene.visitor().get('/_menshen/ready')).status === 503)
}

const statusOf = async (client: Client, path: string) => (await client.get(path)).status

test('while Redis is stopped, a developer can read Overview and Health with a notice, and nothing else', async t => {
  const { redis, scene } = await openWithRedis(t)
  const developer = await scene.user('admin')
  const user = await scene.user('zhangsan')
  for (const client of [developer, user]) await client.get('/')
  assert.ok(!(await developer.get(OVERVIEW)).text.includes(NOTICE))
  await stopped(scene, redis)
  // What was shown before is shown for another moment.
  scene.passSeconds(5)

  const overview = await developer.get(OVERVIEW)
  assert.equal(overview.status, 200)
  assert.ok(overview.text.includes(NOTICE))
  assert.ok(overview.text.includes('The store is unavailable. Only data from this process is shown.'))
  assert.ok(overview.text.includes('aria-label="Sessions unavailable"'))
  const health = await developer.get(HEALTH)
  assert.equal(health.status, 200)
  assert.ok(health.text.includes(NOTICE))
  assert.match(health.text, /title="store"[\s\S]{0,200}class="tag failure"/)
  assert.ok(health.text.includes('listed here once it is back'))
  for (const { text, setCookies } of [overview, health]) {
    assert.ok(!text.includes('<form'), 'a page that can only be read has no form')
    assert.deepEqual(setCookies, [])
  }

  const tabs = ['sessions', 'audit', 'audit.csv', 'rules', 'settings', 'live', 'session?id=x', 'sessions/end?id=x']
  for (const path of ['/', '/_menshen/account', '/_menshen/me', ...tabs.map(tab => `${OVERVIEW}/${tab}`)])
    assert.equal(await statusOf(developer, path), 503, path)
  const headers = { origin: scene.baseUrl }
  for (const path of ['/_menshen/console/end', '/_menshen/account/end'])
    assert.equal((await developer.post(path, { session: 'x' }, { headers })).status, 503, path)
  for (const path of [OVERVIEW, HEALTH]) {
    assert.equal((await developer.post(path, '', { headers })).status, 405)
    assert.equal(await statusOf(user, path), 503, 'another role')
    const forged = { cookie: `menshen_session=${'a'.repeat(43)}` }
    assert.equal((await scene.visitor().get(path, { headers: forged })).status, 503, 'an unknown ticket')
    assert.equal(await statusOf(scene.visitor(), path), 302, 'no ticket')
  }
  assert.ok(scene.lines.some(({ event, fields }) => event === 'console_without_store' && fields.user === 'admin'))

  scene.passSeconds(594)
  assert.equal(await statusOf(developer, OVERVIEW), 200, 'for ten minutes after the last confirmation')
  scene.passSeconds(2)
  assert.equal(await statusOf(developer, OVERVIEW), 503, 'its own pages do not confirm a session')
})

test('a session that this process ended before or during a Redis outage does not open the console', async t => {
  const { redis, scene } = await openWithRedis(t)
  const [ended, ending, leaving] = [await scene.user('admin'), await scene.user('admin'), await scene.user('admin')]
  for (const client of [ended, ending, leaving]) assert.equal(await statusOf(client, OVERVIEW), 200)
  const list = (await ending.get(`${OVERVIEW}/sessions`)).text
  const session = recordKey(ended.cookies.get('menshen_session') ?? '')
  assert.ok(list.includes(session))
  const headers = { origin: scene.baseUrl }
  assert.equal((await ending.post('/_menshen/console/end', { session }, { headers })).status, 303)
  await stopped(scene, redis)
  assert.equal(await statusOf(ended, OVERVIEW), 503)
  assert.equal(await statusOf(ending, OVERVIEW), 200)
  await leaving.post('/logout', '', { headers })
  assert.equal(await statusOf(leaving, OVERVIEW), 503, 'a sign-out that the store did not hear of')
})

test('a developer session that the store did not confirm in the last ten minutes does not open the console', async t => {
  const { redis, scene } = await openWithRedis(t)
  const developer = await scene.user('admin')
  await developer.get(OVERVIEW)
  scene.passSeconds(601)
  await stopped(scene, redis)
  assert.equal(await statusOf(developer, OVERVIEW), 503)
})

/** A store that fails at every call while `outage.isOn`. */
function failing(outage: { isOn: boolean }) {
  const away = () => new MenshenError('store_unavailable', 'the disk is away')
  return (store: Store): Store => ({
    ...store,
    isCurrent: (key, version, proof) => !outage.isOn && store.isCurrent(key, version, proof),
    read: async key => {
      if (outage.isOn) throw away()
      return store.read(key)
    },
    take: async key => {
      if (outage.isOn) throw away()
      return store.take(key)
    },
    replace: async (key, entry, version) => {
      if (outage.isOn) throw away()
      return store.replace(key, entry, version)
    },
  })
}

async function openScene() {
  const outage = { isOn: false }
  const scene = createScene({ through: failing(outage) })
  const sessions = scene.instance('one')
  const { ticket, loaded } = await sessions.open(signedIn(tokens('first', scene.now())))
  return { outage, scene, sessions, ticket, key: loaded.key }
}

test('the ten minutes of an unconfirmed session begin with the last confirmation, not with the sign-in', async () => {
  const { outage, scene, sessions, ticket } = await openScene()
  scene.pass(30 * 60_000)
  assert.ok(sessions.getCached(ticket))
  outage.isOn = true
  scene.pass(10 * 60_000)
  assert.equal(sessions.getCached(ticket), undefined)
  assert.ok(sessions.getUnconfirmed(ticket))
  scene.pass(1)
  assert.equal(sessions.getUnconfirmed(ticket), undefined)
})

test('a session ended by its key, by its user or without a response from the store is not used unconfirmed', async () => {
  const ends = {
    'by its key': async ({ sessions, key }) => void (await sessions.end(key)),
    'by its user': async ({ sessions, ticket }) => void (await sessions.close(ticket)),
    'without an answer': async ({ outage, sessions, key }) => {
      outage.isOn = true
      await assert.rejects(sessions.end(key))
    },
  } satisfies Record<string, (opened: Awaited<ReturnType<typeof openScene>>) => Promise<void>>
  for (const [how, end] of Object.entries(ends)) {
    const opened = await openScene()
    assert.ok(opened.sessions.getUnconfirmed(opened.ticket))
    await end(opened)
    opened.outage.isOn = true
    assert.equal(opened.sessions.getUnconfirmed(opened.ticket), undefined, how)
  }
})

test('a session is not used unconfirmed after the clock was set back', async () => {
  const { outage, scene, sessions, ticket, key } = await openScene()
  scene.pass(-3_600_000)
  await sessions.end(key)
  outage.isOn = true
  assert.equal(sessions.getUnconfirmed(ticket), undefined)
})

test('a session that could not be ended is used again once the store confirms it', async () => {
  const { outage, scene, sessions, ticket, key } = await openScene()
  outage.isOn = true
  await assert.rejects(sessions.end(key))
  outage.isOn = false
  scene.pass(1)
  assert.ok(sessions.getCached(ticket))
  outage.isOn = true
  assert.ok(sessions.getUnconfirmed(ticket))
})

test('an expired session is not used unconfirmed', async () => {
  const { outage, scene, sessions, ticket } = await openScene()
  const life = 7200_000
  scene.pass(life - 1000)
  assert.ok(await sessions.get(ticket))
  outage.isOn = true
  assert.ok(sessions.getUnconfirmed(ticket))
  scene.pass(2000)
  assert.equal(sessions.getUnconfirmed(ticket), undefined)
})
