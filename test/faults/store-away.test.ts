// The store goes away and comes back: nobody is let in meanwhile, nobody is signed out by it, and everybody is still
// signed in afterwards.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient, type Response } from '../kit/client.ts'
import { type Instance, isReady, isSentToLogin, isServed, setUpInstances, signedIn } from '../kit/instance.ts'
import { startRedis } from '../kit/redis-server.ts'
import { until } from '../kit/until.ts'

const BURST = 100

const isUnavailable = ({ status, headers, text, setCookies }: Response) =>
  status === 503 && Number(headers['retry-after']) > 0 && !text.includes('zhangsan') && setCookies.length === 0

test('two instances on one Redis behave as one, even while Redis hangs', async t => {
  const redis = await startRedis()
  t.after(() => redis.stop())
  const { provider, start, dueUser } = await setUpInstances(t, {
    STORE: `redis://${redis.host}`,
    PROVIDER_TIMEOUT_MS: '2000',
  })
  const both = await Promise.all([start(), start()])
  const [one, other] = both
  const user = await signedIn(one, provider)
  for (const instance of both) assert.ok(isServed(await user.get(instance)))

  for (const delay of [0, 1000])
    await t.test(
      `${BURST} concurrent requests for a due session cause one refresh at a provider that takes ${delay} ms`,
      async () => {
        const due = await dueUser(one)
        const before = provider.callsTo('refresh').length
        provider.answer('refresh', { kind: 'delay', ms: delay }, 'once')
        const pages = await Promise.all(Array.from({ length: BURST }, (_, n) => due.get(both[n % 2] as Instance)))
        assert.equal(pages.filter(isServed).length, BURST)
        assert.equal(provider.callsTo('refresh').length - before, 1)
        assert.equal(provider.reuses, 0)
      },
    )

  await t.test('a sign-out in one instance takes effect in the other immediately', async () => {
    for (let round = 0; round < 20; round++) {
      const leaving = await signedIn(one, provider)
      assert.ok(isServed(await leaving.get(other)))
      await leaving.signOut(round % 2 ? one : other)
      assert.ok(isSentToLogin(await leaving.get(one)))
      assert.ok(isSentToLogin(await leaving.get(other)))
    }
  })

  await t.test(
    'while Redis hangs, pages and ready return 503 and health 200, and afterwards users are still signed in',
    async () => {
      const due = await dueUser(one)
      redis.pause()
      t.after(() => redis.resume())
      // What was read a moment ago counts for that moment.
      for (const { url } of both) await until(async () => !(await isReady(url)))
      const visits = both.flatMap(instance => [
        user.get(instance),
        due.get(instance),
        user.get(instance, '/_menshen/me'),
      ])
      const check = user.get(one, '/_menshen/check')
      for (const page of await Promise.all(visits)) assert.ok(isUnavailable(page), `${page.status}`)
      const { status, setCookies } = await check
      assert.ok(status >= 500 && setCookies.length === 0, `${status}`)
      for (const { url } of both) {
        assert.equal((await createClient(url).get('/_menshen/health')).status, 200)
        assert.equal((await createClient(url).get('/_menshen/ready')).status, 503)
      }
      redis.resume()
      for (const { url } of both) await until(() => isReady(url))
      for (const instance of both)
        for (const who of [user, due]) assert.ok(isServed(await who.get(instance)), 'everybody is still signed in')
      assert.equal(provider.reuses, 0)
    },
  )

  await t.test('tokens received while Redis hangs are not lost', async () => {
    const due = await dueUser(one)
    const before = provider.callsTo('refresh').length
    const release = provider.hold('refresh')
    const visit = due.get(one)
    await provider.called('refresh', before + 1)
    redis.pause()
    release()
    // Longer than a store that only blinks.
    await Promise.race([visit, pause(5000)])
    redis.resume()
    await visit
    for (const { url } of both) await until(() => isReady(url))
    const page = await due.get(other)
    assert.ok(isServed(page), `${page.status} ${page.headers.location}`)
    assert.equal(provider.reuses, 0)
  })
})
