// `key_used`: the audit trail shows that a key is in use, once per key and day.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from '../../src/index.ts'
import { keySha256, newKey } from '../../src/util/key-form.ts'
import { createClient } from '../kit/client.ts'
import { startRedis } from '../kit/redis-server.ts'
import { scrape } from '../kit/scrape.ts'
import { openGateway, type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'

const KEY = newKey()
const OTHER = newKey()
const config: Config = {
  machines: [
    { name: 'backup', keySha256: keySha256(KEY) },
    { name: 'other', keySha256: keySha256(OTHER) },
  ],
  rules: [{ path: '/', roles: ['*'], keys: true }],
}

type Used = Pick<Scene, 'url'>
const use = ({ url }: Used, key = KEY) => createClient(url).get('/', { headers: { authorization: `Bearer ${key}` } })
const usesOf = ({ eventsOf }: Pick<Scene, 'eventsOf'>) => eventsOf('key_used')

test('a machine key is audited on its first use each day, and further requests write nothing', async t => {
  const scene = await setUp(t, { config })
  const written = async () => (await scrape(scene.url)).value('menshen_store_seconds_count{verb="create",result="ok"}')
  assert.equal((await use(scene)).status, 200)
  await until(() => usesOf(scene).length === 1)
  const before = await written()
  for (let n = 0; n < 20; n++) await use(scene)
  assert.equal(await written(), before)
  await use(scene, OTHER)
  await until(() => usesOf(scene).length === 2)
  scene.passSeconds(24 * 3600)
  await use(scene)
  await until(() => usesOf(scene).length === 3)
  const told = usesOf(scene).map(({ user, key, requestId }) => [user, key, typeof requestId])
  assert.deepEqual(told, [
    ['machine:backup', 'machine', 'string'],
    ['machine:other', 'machine', 'string'],
    ['machine:backup', 'machine', 'string'],
  ])
  assert.doesNotMatch(JSON.stringify(scene.lines), /mk_/)
})

test('two instances together audit a key only once', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const env = { STORE: `redis://${redis.host}` }
  const one = await setUp(t, { config, env, now: Date.now() })
  const settings = { ...one.provider.settings, UPSTREAM: one.upstream.url, ...env }
  const other = await openGateway(t, settings, { config, now: Date.now() })
  await Promise.all([one, other, one, other].map(each => use(each)))
  await until(() => usesOf(one).length + usesOf(other).length > 0)
  // Both have asked the store before they close.
  await Promise.all([one.close(), other.close()])
  assert.equal(usesOf(one).length + usesOf(other).length, 1)
})

test('a request with a key succeeds while the store is not writable, and the use is audited later', async t => {
  const redis = await startRedis({ settings: ['--maxmemory-policy', 'noeviction'] })
  t.after(() => redis.stop())
  const scene = await setUp(t, { config, env: { STORE: `redis://${redis.host}` }, now: Date.now() })
  // The keys for assertions are made with the first page.
  await use(scene, OTHER)
  await until(() => usesOf(scene).length === 1)
  await redis.command('CONFIG', 'SET', 'maxmemory', '1')
  assert.equal((await use(scene)).status, 200)
  await until(() => scene.lines.some(({ event }) => event === 'store_not_writable'))
  await redis.command('CONFIG', 'SET', 'maxmemory', '0')
  scene.passSeconds(11)
  await use(scene)
  await until(() => usesOf(scene).length === 2)
})
