// The audit trail from outside: what happens over HTTP is in the store, sealed, and `menshen audit` reads it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { createClient, type Response, signIn } from '../kit/client.ts'
import { type Instance, setUpInstances, signedIn } from '../kit/instance.ts'
import { startRedis } from '../kit/redis-server.ts'
import { bytesOf } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { type AuditLine, auditOf } from './audit-lines.ts'

const HOSTILE = 'x"\n{"event":"sign_out"}\u001b[31m=HYPERLINK("http://evil")'
const AGENT = 'Agent/1 \u009b31m'
const codes = (events: readonly AuditLine[]) => events.map(({ event }) => event)
const idOf = ({ headers }: Response) => String(headers['x-request-id'])

/** Signs in, is refused, signs out, and fails to sign in. */
async function playScene(instance: Instance, provider: Parameters<typeof signIn>[1], username: string) {
  const client = createClient(instance.url)
  const came = await signIn(client, provider, { username })
  const refused = await client.get('/_menshen/console', {
    headers: { 'user-agent': Buffer.from(AGENT).toString('latin1') },
  })
  const left = await client.post('/logout')
  const failed = await client.get('/callback?error=access_denied')
  assert.deepEqual([came.headers.location, refused.status, left.status], ['/', 403, 303])
  return [came, refused, left, failed].map(idOf)
}

const SCENE = ['sign_in', 'refused', 'sign_out', 'sign_in_failed']

async function keepsAll(t: TestContext, env: Record<string, string>, readStore: (folder: string) => Promise<string>) {
  const { provider, folder, start } = await setUpInstances(t, env)
  const first = await start()
  const settings = { ...provider.settings, STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`, ...env }
  const audit = (...args: string[]) => auditOf(folder, settings, ...args)
  const ids = await playScene(first, provider, 'zhangsan')
  await until(async () => (await audit()).length === SCENE.length)

  await t.test('the events of a running instance are in order and have the fields of the log', async () => {
    const events = await audit()
    assert.deepEqual(codes(events), SCENE)
    assert.deepEqual(
      events.map(({ requestId }) => requestId),
      ids,
    )
    const [came, refused, left, failed] = events
    for (const { user, address, sub } of [came, refused, left] as AuditLine[])
      assert.deepEqual([user, address, typeof sub], ['zhangsan', '127.0.0.1', 'string'])
    assert.equal(came?.role, 'common')
    assert.deepEqual([refused?.method, refused?.path, refused?.role], ['GET', '/_menshen/console', 'common'])
    assert.equal(failed?.reason, 'access_denied')
    assert.match(String(came?.session), /^[\w-]{10}$/)
    assert.deepEqual([came?.session, came?.session], [refused?.session, left?.session])
    for (const { event, time, level } of events) {
      const line = first.lines.find(logged => logged.event === event)
      assert.equal(level, line?.level)
      assert.ok(Math.abs(Date.parse(time) - Date.parse(String(line?.time))) < 5000)
    }
  })

  await t.test('the store has no user name, address, event or reason in plain text', async () => {
    const kept = await readStore(folder)
    assert.doesNotMatch(kept, /zhangsan|access_denied|sign_in|127\.0\.0\.1/)
  })

  await t.test('a hostile user name is stored as one event, and only the exact name finds it', async () => {
    await signedIn(first, provider, HOSTILE)
    await until(async () => (await audit()).length > SCENE.length)
    const found = await audit('--user', HOSTILE)
    assert.deepEqual(codes(found), ['sign_in'])
    assert.equal(found[0]?.user, HOSTILE)
    assert.deepEqual(await audit('--user', 'zhangs'), [])
  })

  await t.test('kill -9 loses no event that was written, and a normal shutdown loses no event', async () => {
    await first.killAll('SIGKILL')
    const second = await start()
    const before = [...SCENE, 'sign_in']
    assert.deepEqual(codes(await audit()), before)
    await Promise.all(Array.from({ length: 20 }, () => createClient(second.url).get('/callback?error=access_denied')))
    await second.killAll('SIGTERM')
    const after = (await audit()).slice(before.length)
    assert.deepEqual(codes(after), Array(11).fill('sign_in_failed'), 'repeats of a minute are counted')
    assert.equal(
      after.reduce((sum, { count = 1 }) => sum + Number(count), 0),
      20,
    )
  })
}

suite('the audit trail', { concurrency: 2 }, () => {
  test('the audit trail is kept in SQLite', async t => {
    await keepsAll(t, {}, async folder => bytesOf(join(folder, 'data')))
  })

  test('the audit trail is kept in Redis', async t => {
    const redis = await startRedis()
    t.after(() => redis.stop())
    await keepsAll(t, { STORE: `redis://${redis.host}` }, async () => {
      const keys = (await redis.command('KEYS', '*')).split('\n')
      const dumps = await Promise.all(keys.map(key => redis.command('DUMP', key)))
      return [...keys, ...dumps].join('\n')
    })
  })

  test('requests succeed while the store hangs, and it receives the missed events when it responds again', async t => {
    const redis = await startRedis()
    t.after(() => redis.stop())
    const STORE = `redis://${redis.host}`
    const { provider, folder, start } = await setUpInstances(t, { STORE })
    const instance = await start()
    redis.pause()
    t.after(() => redis.resume())
    for (let n = 0; n < 50; n++)
      assert.equal((await createClient(instance.url).get('/callback?error=access_denied')).status, 302)
    const { to, count } = await instance.said(({ event }) => event === 'audit_not_written')
    assert.equal(to, 'store')
    assert.ok(Number(count) > 0)
    redis.resume()
    await instance.said(({ event }) => event === 'audit_written_again')
    await instance.killAll('SIGTERM')
    const events = await auditOf(folder, { ...provider.settings, STORE })
    assert.deepEqual([...new Set(codes(events))], ['sign_in_failed'])
    assert.equal(
      events.reduce((sum, { count = 1 }) => sum + Number(count), 0),
      50,
    )
  })

  test('two workers share one audit trail and AUDIT_KEEP, and each event names its worker', async t => {
    const { provider, folder, start } = await setUpInstances(t, { WORKERS: '2', AUDIT_KEEP: '30' })
    const instance = await start()
    const user = await signedIn(instance, provider, 'lisi')
    await Promise.all(Array.from({ length: 60 }, () => user.get(instance, '/_menshen/console')))
    await instance.killAll('SIGTERM')
    const events = await auditOf(folder, {
      ...provider.settings,
      STORE: `sqlite:${join(folder, 'data', 'menshen.db')}`,
    })
    assert.deepEqual(codes(events), ['sign_in', ...Array(29).fill('refused')], 'AUDIT_KEEP is for all of them together')
    for (const { worker } of events) assert.ok(worker === 1 || worker === 2)
  })
})
