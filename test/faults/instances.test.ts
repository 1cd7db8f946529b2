// Two instances on one folder: one refresh for each session, whoever asks, and whatever ends whenever.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Instance, isSentToLogin, isServed, setUpInstances, signedIn } from '../kit/instance.ts'
import { until } from '../kit/until.ts'

const BURST = 100

test('two instances on one folder behave as one', async t => {
  const { provider, start, dueUser } = await setUpInstances(t)
  const both = await Promise.all([start(), start()])
  const [one, other] = both

  for (const delay of [0, 1000])
    await t.test(
      `${BURST} concurrent requests for a due session cause one refresh at a provider that takes ${delay} ms`,
      async () => {
        const user = await dueUser(one)
        const before = provider.callsTo('refresh').length
        provider.answer('refresh', { kind: 'delay', ms: delay }, 'once')
        const pages = await Promise.all(Array.from({ length: BURST }, (_, n) => user.get(both[n % 2] as Instance)))
        assert.equal(pages.filter(isServed).length, BURST)
        assert.equal(provider.callsTo('refresh').length - before, 1)
        assert.equal(provider.reuses, 0)
        assert.ok(pages.every(({ setCookies }) => setCookies.some(given => given.startsWith(user.cookie))))
      },
    )

  await t.test('a sign-out in one instance takes effect in the other immediately', async () => {
    for (let round = 0; round < 10; round++) {
      const user = await signedIn(one, provider)
      assert.ok(isServed(await user.get(other)))
      await user.signOut(round % 2 ? one : other)
      assert.ok(isSentToLogin(await user.get(one)))
      assert.ok(isSentToLogin(await user.get(other)))
    }
  })

  await t.test('a sign-out in one instance while the other refreshes wins in both', async () => {
    const user = await dueUser(one)
    const before = provider.callsTo('refresh').length
    const release = provider.hold('refresh')
    const pending = user.get(one)
    await provider.called('refresh', before + 1)
    const waiting = user.get(other)
    await user.signOut(other)
    assert.ok(isSentToLogin(await waiting), 'whoever waits need not wait any longer')
    release()
    assert.ok(isSentToLogin(await pending))
    for (const instance of both) assert.ok(isSentToLogin(await user.get(instance)))
    assert.equal(provider.callsTo('refresh').length - before, 1)
  })

  await t.test('a refused refresh ends the session in both instances', async () => {
    const user = await dueUser(one)
    provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } }, 'once')
    const pages = await Promise.all(both.map(instance => user.get(instance)))
    assert.ok(pages.every(isSentToLogin))
  })
})

test('after kill -9 of an instance another one takes over', { concurrency: true }, async t => {
  const { provider, start, dueUser } = await setUpInstances(t, { PROVIDER_TIMEOUT_MS: '500' })
  const other = await start({ PROVIDER_TIMEOUT_MS: '5000' })
  const [asking, answered] = await Promise.all([start(), start()])
  const [first, second] = [await dueUser(other), await dueUser(other)]
  const neighbour = await signedIn(other, provider, 'lisi')

  provider.answer('refresh', { kind: 'hang' }, 'once')
  const firstVisit = first.get(asking).catch(() => 'cut off')
  await provider.called('refresh', 1)
  await asking.kill('SIGKILL')
  // The old token is spent, and the new one is on its way.
  provider.answer('refresh', { kind: 'drip' }, 'once')
  const secondVisit = second.get(answered).catch(() => 'cut off')
  await provider.called('refresh', 2)
  await answered.kill('SIGKILL')
  assert.deepEqual([await firstVisit, await secondVisit], ['cut off', 'cut off'])

  await Promise.all([
    t.test(
      'after kill -9 during a refresh call, the other instance takes over once the lease has expired',
      async () => {
        const pages = await Promise.all(Array.from({ length: 20 }, () => first.get(other)))
        assert.ok(pages.every(isServed))
        const sent = provider.callsTo('refresh').map(({ form }) => form.get('refresh_token'))
        assert.equal(sent.filter(token => token === sent[0]).length, 2)
      },
    ),
    t.test('after kill -9 between the provider’s response and the save, the user has to sign in again', async () => {
      const page = await second.get(other)
      assert.ok(isSentToLogin(page), `${page.status}`)
      const isCleared = page.setCookies.some(given => given.startsWith('menshen_session=;'))
      assert.ok(isCleared, 'the cookie is of no more use')
      assert.ok(isServed(await (await signedIn(other, provider)).get(other)))
    }),
    t.test('kill -9 of an instance does not affect other users', async () => {
      assert.ok(isServed(await neighbour.get(other)))
    }),
  ])
  assert.ok(isServed(await neighbour.get(other)))
})

test('with REFRESH_FAILURE=keep two instances keep a session until its token expires, with at most 5 refresh calls', async t => {
  const { provider, start, dueUser } = await setUpInstances(t, { REFRESH_FAILURE: 'keep' })
  const both = await Promise.all([start(), start()])
  const user = await dueUser(both[0], 4)
  provider.answer('refresh', { kind: 'json', status: 503, body: {} })
  const end = performance.now() + 2500
  let pages = 0
  for (; performance.now() < end; pages++) {
    assert.ok(isServed(await user.get(both[pages % 2] as Instance)))
    await pause(10)
  }
  const calls = provider.callsTo('refresh').length
  assert.ok(calls >= 2 && calls <= 5, `${calls} calls for ${pages} pages`)
  for (const instance of both) await until(async () => isSentToLogin(await user.get(instance)))
})
