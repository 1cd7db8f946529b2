// A store that can be read and not written: users stay signed in, nobody can sign in, and every place where operators look says so.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { type Client, signIn } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { scrape } from '../kit/scrape.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

/** A problem of the overview is over after ten minutes without it; slots are those of minutes. */
const OVER_AFTER_SECONDS = 11 * 60

/** Longer than a view of the overview is kept. */
const OVERVIEW_SECONDS = 5

async function ready({ visitor }: Scene): Promise<{ status: number; reason?: string; code?: string }> {
  const { status, text } = await visitor().get('/_menshen/ready')
  const { reason, code } = JSON.parse(text)
  return { status, reason, code }
}

/** Also in the overview, where a problem is over after ten minutes without it, and in the metrics, which add no more failures. */
async function assertRecovery(scene: Scene, admin: Client): Promise<void> {
  await until(async () => (await ready(scene)).status === 200)
  assert.equal(scene.eventsOf('store_writable').length, 1)
  const read = async () => {
    const { value } = await scrape(scene.url)
    const created = (result: string) => value(`menshen_store_seconds_count{verb="create",result="${result}"}`)
    return {
      reports: value('menshen_events_total{event="store_not_writable",level="error"}'),
      failed: created('store_unavailable'),
      created: created('ok'),
    }
  }
  const before = await read()
  assert.equal((await signIn(scene.visitor(), scene.provider)).headers.location, '/')
  const after = await read()
  assert.deepEqual([after.reports, after.failed], [before.reports, before.failed])
  assert.ok(after.created > before.created)
  assert.deepEqual(await severities(admin), ['degraded'])
  scene.passSeconds(OVER_AFTER_SECONDS)
  // The page has the findings of the doctor that are at hand, and loads new ones.
  await until(async () => {
    scene.passSeconds(OVERVIEW_SECONDS)
    return (await severities(admin)).join() === 'recovered'
  })
}

/** How the overview shows that the store could not be written to. */
async function severities(admin: Client): Promise<string[]> {
  const { text } = await admin.get('/_menshen/console')
  return [...text.matchAll(/<article class="problem (\w+)">(.*?)<\/article>/gs)].flatMap(
    ([, severity = '', content]) => (content?.includes('store_not_writable') ? [severity] : []),
  )
}

for (const [name, reason, code, breakIt, mend] of [
  ['has no memory left', 'store_full', 'OOM', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
  [
    'has too few replicas to accept writes',
    'store',
    'NOREPLICAS',
    ['CONFIG', 'SET', 'min-replicas-to-write', '3'],
    ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
  ],
] as const)
  test(`a Redis that ${name} is reported by ready, log, overview and metrics, and so is its recovery`, async t => {
    const redis = await startRedis({ settings: ['--maxmemory-policy', 'noeviction'] })
    t.after(() => redis.stop())
    const scene = await setUp(t, { env: { STORE: `redis://${redis.host}` }, now: Date.now() })
    const admin = await scene.user('admin')
    // The first page of a user makes the keys for assertions.
    assert.equal((await admin.get('/')).status, 200)
    assert.equal((await ready(scene)).status, 200)
    await redis.command(...breakIt)
    const refused = await signIn(scene.visitor(), scene.provider).catch(error => error)
    assert.notEqual(refused.headers?.location, '/')
    assert.deepEqual(await ready(scene), { status: 503, reason, code })
    assert.equal((await admin.get('/')).status, 200, 'users stay signed in')
    const logged = scene.lines.find(({ event }) => event === 'store_not_writable')
    assert.equal(logged?.fields.code, code)
    assert.match((await admin.get('/_menshen/console')).text, /store_not_writable/)
    const { value } = await scrape(scene.url)
    assert.ok(value('menshen_events_total{event="store_not_writable",level="error"}') >= 1)
    await redis.command(...mend)
    await assertRecovery(scene, admin)
  })

test('with a Redis that became a replica, ready reports store_read_only until it is a primary again', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const scene = await setUp(t, { env: { STORE: `redis://${redis.host}` }, now: Date.now() })
  await scene.user()
  await redis.command('REPLICAOF', '127.0.0.1', '1')
  await until(async () => (await ready(scene)).reason === 'store_read_only')
  assert.equal((await ready(scene)).code, 'READONLY')
  await redis.command('REPLICAOF', 'NO', 'ONE')
  await until(async () => (await ready(scene)).status === 200)
})

test('a full disk is reported by ready, log, overview and metrics, and so is its recovery', async t => {
  if (process.getuid?.() !== 0) return t.skip('a file system of its own needs root')
  const folder = mkdtempSync(join(tmpdir(), 'menshen-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder])
  let scene: Scene | undefined
  t.after(async () => {
    // A store that is open would make its folder again.
    await scene?.close()
    execFileSync('umount', [folder])
    rmdirSync(folder)
  })
  scene = await setUp(t, { env: { STORE: `sqlite:${folder}/menshen.db` }, now: Date.now() })
  const admin = await scene.user('admin')
  assert.equal((await admin.get('/')).status, 200)
  assert.equal((await ready(scene)).status, 200)
  const filler = join(folder, 'filler')
  fill(filler)
  // What is free in the database's own files is used up first.
  await until(async () => {
    await signIn(scene.visitor(), scene.provider)
    return (await ready(scene)).status === 503
  })
  assert.deepEqual(await ready(scene), { status: 503, reason: 'store_full', code: 'SQLITE_FULL' })
  assert.equal((await admin.get('/')).status, 200, 'users stay signed in')
  assert.equal(scene.lines.find(({ event }) => event === 'store_not_writable')?.fields.code, 'SQLITE_FULL')
  assert.match((await admin.get('/_menshen/console')).text, /store_not_writable/)
  const { value } = await scrape(scene.url)
  assert.ok(value('menshen_store_seconds_count{verb="create",result="store_unavailable"}') >= 1)
  rmSync(filler)
  await assertRecovery(scene, admin)
})

/** Writes until there is no room. */
function fill(file: string): void {
  const handle = openSync(file, 'w')
  try {
    for (;;) writeSync(handle, Buffer.alloc(4096))
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  } finally {
    closeSync(handle)
  }
}
