// Rate limits on Redis: all instances count together, and a Redis that is away blocks nobody.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { ProxyRequest } from '../../../src/http/caller.ts'
import { createRateLimit } from '../../../src/http/rate-limit.ts'
import { openLimitClient } from '../../../src/stores/redis/connection.ts'
import { startRedis } from '../../kit/redis-server.ts'
import { openScriptedProvider } from '../../kit/scripted-provider.ts'
import { openGateway } from '../../kit/set-up.ts'
import { until } from '../../kit/until.ts'

test('two instances on one Redis share the rate limit for sign-in requests', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const provider = await openScriptedProvider(t)
  const env = {
    ...provider.settings,
    STORE: `redis://${redis.host}`,
    RATE_LIMIT_PER_MINUTE: '10',
    TRUSTED_PROXIES: '127.0.0.1',
  }
  const gateways = await Promise.all([openGateway(t, env), openGateway(t, env)])
  const statusesFor = async (address: string) => {
    const statuses: number[] = []
    for (let n = 0; n < 12; n++) {
      const visitor = gateways[n % 2]?.visitor() ?? assert.fail()
      statuses.push((await visitor.post('/login', '', { headers: { 'x-forwarded-for': address } })).status)
    }
    return statuses
  }
  const together = [...Array(10).fill(303), 429, 429]
  // An instance that has to wait for Redis, as on a busy machine, counts for itself.
  let statuses: number[] = []
  for (let tries = 1; tries <= 10 && !isDeepStrictEqual(statuses, together); tries++)
    statuses = await statusesFor(`192.0.2.${tries}`)
  assert.deepEqual(statuses, together)
})

test('while Redis is unavailable, each instance enforces the rate limit alone', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const provider = await openScriptedProvider(t)
  const env = { ...provider.settings, STORE: `redis://${redis.host}`, RATE_LIMIT_PER_MINUTE: '3' }
  const gateways = await Promise.all([openGateway(t, env), openGateway(t, env)])
  await redis.kill()
  for (const { visitor } of gateways) {
    const statuses: number[] = []
    for (let n = 0; n < 5; n++) statuses.push((await visitor().post('/login')).status)
    assert.deepEqual(statuses, [303, 303, 303, 429, 429])
  }
})

const requestFrom = (address: string): ProxyRequest => ({
  method: 'GET',
  path: '/',
  search: '',
  headers: {},
  address,
  observed: { requestId: 'a-request', startedAt: 0, method: 'GET', path: '/', outcome: 'own', address },
})

test('requests that Redis has counted are not counted again by the process, immediately or a second later', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const limits = openLimitClient(`redis://${redis.host}`)
  t.after(() => limits?.close())
  const limit = createRateLimit({ perMinute: 3, shared: limits, report() {} })
  const counts = async (address: string) => (await redis.command('get', `menshen:limit:sign-in ${address}`)) || '0'
  // Until the connection stands, this process counts for itself.
  await until(
    async () => (await limit.admits('sign-in', requestFrom('192.0.2.1'))) && (await counts('192.0.2.1')) !== '0',
  )

  for (let n = 0; n < 3; n++) assert.equal(await limit.admits('sign-in', requestFrom('192.0.2.2')), true)
  assert.equal(await counts('192.0.2.2'), '3')
  // Longer than Redis may take to answer.
  await pause(1200)
  await redis.kill()
  const answers = []
  for (let n = 0; n < 4; n++) answers.push(await limit.admits('sign-in', requestFrom('192.0.2.2')))
  assert.deepEqual(answers, [true, true, true, false], 'this process had counted none of them')
})

test('requests are not counted twice if Redis hangs and then disconnects', async () => {
  const breakOff: (() => void)[] = []
  const hanging = {
    isReady: true,
    evalSha: () => new Promise((_, reject) => breakOff.push(() => reject(new Error('gone')))),
    eval: () => new Promise((_, reject) => breakOff.push(() => reject(new Error('gone')))),
  }
  const limit = createRateLimit({
    perMinute: 4,
    shared: { client: hanging, prefix: 'menshen' },
    report() {},
  })
  const ask = () => limit.admits('sign-in', requestFrom('192.0.2.3'))
  assert.deepEqual(await Promise.all([ask(), ask()]), [true, true], 'by this process, when Redis is late')
  for (const end of breakOff) end()
  await new Promise(setImmediate)
  assert.deepEqual(await Promise.all([ask(), ask(), ask()]), [true, true, false])
})
