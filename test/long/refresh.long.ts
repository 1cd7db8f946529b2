// The moment of refresh, over and over: whatever the provider takes and however many processes ask, one refresh each.

import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { type Instance, isServed, setUpInstances } from '../kit/instance.ts'
import { startRedis } from '../kit/redis-server.ts'
import { until } from '../kit/until.ts'

const REQUESTS = 100
const ROUNDS = 20
const DELAYS_MS = [0, 3000, 8000]
const SLOWEST = { PROVIDER_TIMEOUT_MS: '10000' }

type Scene = Pick<Awaited<ReturnType<typeof setUpInstances>>, 'provider' | 'dueUser'> & { instances: Instance[] }

const SETUPS: Record<string, (t: TestContext) => Promise<Scene>> = {
  async 'one process'(t) {
    const scene = await setUpInstances(t, SLOWEST)
    return { ...scene, instances: [await scene.start()] }
  },
  async 'two workers'(t) {
    const scene = await setUpInstances(t, { ...SLOWEST, WORKERS: '2' })
    const menshen = await scene.start()
    await until(() => menshen.workers().length === 2)
    return { ...scene, instances: [menshen] }
  },
  async 'two instances on one folder'(t) {
    const scene = await setUpInstances(t, SLOWEST)
    return { ...scene, instances: [await scene.start(), await scene.start()] }
  },
  async 'two instances on one Redis'(t) {
    const redis = await startRedis()
    t.after(() => redis.stop())
    const scene = await setUpInstances(t, { ...SLOWEST, STORE: `redis://${redis.host}` })
    return { ...scene, instances: [await scene.start(), await scene.start()] }
  },
}

suite(`${REQUESTS} parallel requests when a refresh is due, ${ROUNDS} times`, { concurrency: 2 }, () => {
  for (const [name, setUp] of Object.entries(SETUPS)) {
    for (const delay of DELAYS_MS)
      test(`${name}: one refresh per round and every page served, with a provider that takes ${delay} ms`, {
        timeout: 900_000,
      }, async t => {
        const { provider, dueUser, instances } = await setUp(t)
        provider.answer('refresh', { kind: 'delay', ms: delay })
        let slowest = 0
        for (let round = 1; round <= ROUNDS; round++) {
          const user = await dueUser(instances[0] as Instance)
          const began = performance.now()
          const pages = await Promise.all(
            Array.from({ length: REQUESTS }, (_, n) => user.get(instances[n % instances.length] as Instance)),
          )
          slowest = Math.max(slowest, performance.now() - began - delay)
          assert.equal(pages.filter(isServed).length, REQUESTS, `round ${round}`)
          assert.equal(provider.callsTo('refresh').length, round)
        }
        assert.equal(provider.reuses, 0)
        t.diagnostic(
          `${name}, ${delay} ms: ${ROUNDS} refreshes, ${ROUNDS * REQUESTS} pages, 0 reuses, slowest round ${Math.round(slowest)} ms more than the provider`,
        )
      })
  }
})
