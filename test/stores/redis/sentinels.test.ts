// Sentinels that disagree about which server is the primary. Two servers without a replica are the former and the new primary, so
// that no sentinel corrects another.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openRedisStore } from '../../../src/stores/redis/store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { freePort } from '../../kit/free-port.ts'
import { PRIMARY_NAME, type RedisServer, startRedis, startSentinel } from '../../kit/redis-server.ts'
import { until } from '../../kit/until.ts'

const PASSWORD = 'secret'

test('a store leaves a former primary that still answers, and a sentinel that still names it does not take the store back', async t => {
  const { former, next, behind, latePort, startLate } = await setUpSentinels(t)
  const { store, events } = await open(t, [behind.host, `127.0.0.1:${latePort}`])
  await store.create('session', entry())
  await untilWritten(store, 'session', former)
  assert.ok(await store.read('session'))

  await startLate()
  await until(async () => (await store.read('session').catch(() => 'unavailable')) === undefined)
  assert.deepEqual(events, ['store_unreachable', 'store_reachable'])

  for (let n = 0; n < 10; n++) {
    // Each new connection takes the answer of the first sentinel that is not behind.
    await next.command('CLIENT', 'KILL', 'TYPE', 'normal')
    await until(async () => (await store.create(`session${n}`, entry()).catch(() => undefined)) !== undefined)
    assert.equal(await hasRecord(next, `session${n}`), true)
  }
})

test('a store connects again when all sentinels were set up again and count failovers from the beginning', async t => {
  const { former, next, behind, latePort, startLate } = await setUpSentinels(t)
  const late = await startLate()
  const { store } = await open(t, [`127.0.0.1:${latePort}`, behind.host])
  await untilWritten(store, 'before', next)
  await Promise.all([late.kill(), next.kill()])
  await untilWritten(store, 'after', former)
})

/** The sentinel `behind` names the former primary. The one that starts late names the next one, of a later failover. */
async function setUpSentinels(t: TestContext) {
  const [former, next] = [await startRedis({ password: PASSWORD }), await startRedis({ password: PASSWORD })]
  const behind = await startSentinel(former, PASSWORD, { epoch: 1 })
  t.after(() => Promise.all([former, next, behind].map(server => server.stop())))
  const latePort = await freePort()
  async function startLate(): Promise<RedisServer> {
    const late = await startSentinel(next, PASSWORD, { port: latePort, epoch: 2 })
    t.after(() => late.stop())
    return late
  }
  return { former, next, behind, latePort, startLate }
}

async function open(t: TestContext, sentinels: readonly string[]) {
  const events: string[] = []
  const store = await openRedisStore({
    address: `redis+sentinel://:${PASSWORD}@${sentinels.join(',')}/${PRIMARY_NAME}`,
    now: Date.now,
    report: event => void events.push(event),
  })
  t.after(() => store.close())
  return { store, events }
}

function entry() {
  return { value: new Uint8Array(1), expiresAt: Date.now() + 600_000, labels: [] }
}

async function hasRecord(server: RedisServer, key: string): Promise<boolean> {
  return (await server.command('EXISTS', `menshen:record:${key}`)) === '1'
}

async function untilWritten(store: Store, key: string, server: RedisServer): Promise<void> {
  await until(async () => {
    await store.create(key, entry()).catch(() => {})
    return hasRecord(server, key)
  })
}
