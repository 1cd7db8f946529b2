// Rate limits on Redis: all instances count together, and a Redis that is away blocks nobody.
import assert from 'node:assert/strict'
import test from 'node:test'
import { openMenshen } from '../kit/menshen.ts'
import { startRedis } from '../kit/redis-server.ts'
import { startScriptedProvider } from '../kit/scripted-provider.ts'

test('two instances on one Redis count sign-in requests together', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const provider = await startScriptedProvider()
  t.after(() => provider.close())
  const env = { ...provider.settings, STORE: `redis://${redis.host}`, RATE_LIMIT_PER_MINUTE: '10' }
  const gateways = await Promise.all([openMenshen(env), openMenshen(env)])
  t.after(() => Promise.all(gateways.map(gateway => gateway.close())))
  const statuses: number[] = []
  for (let n = 0; n < 12; n++) {
    const gateway = gateways[n % 2]
    if (gateway) statuses.push((await gateway.visitor().post('/login')).status)
  }
  assert.deepEqual(statuses, [...Array(10).fill(303), 429, 429])
})

test('while Redis is away each instance counts for itself', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const provider = await startScriptedProvider()
  t.after(() => provider.close())
  const gateway = await openMenshen({
    ...provider.settings,
    STORE: `redis://${redis.host}`,
    RATE_LIMIT_PER_MINUTE: '3',
  })
  t.after(() => gateway.close())
  await redis.kill()
  const statuses: number[] = []
  for (let n = 0; n < 5; n++) statuses.push((await gateway.visitor().post('/login')).status)
  assert.deepEqual(statuses, [303, 303, 303, 429, 429])
})
