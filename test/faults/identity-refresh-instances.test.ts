// Two instances on one folder ask once who a user is now, and a process that is killed in between loses no tokens.
import assert from 'node:assert/strict'
import test from 'node:test'
import { type Instance, isSentToLogin, isServed, setUpInstances } from '../kit/instance.ts'

const BURST = 50

test('two instances fetch user info once per refresh, a kill loses no tokens, and the next refresh catches up', async t => {
  const { provider, start, dueUser } = await setUpInstances(t, { IDENTITY_REFRESH: 'always' })
  const both = await Promise.all([start(), start()])
  const [one, other] = both
  const says = (nickname: string) =>
    provider.answer('userinfo', {
      kind: 'json',
      body: { success: true, code: '200', data: { sub: 'sub-zhangsan', username: 'zhangsan', nickname } },
    })
  const nickname = async (user: Awaited<ReturnType<typeof dueUser>>, instance: Instance) =>
    (await user.get(instance, '/_menshen/me')).json<{ userInfo: { nickname: string } }>().userInfo.nickname
  const calls = () => [provider.callsTo('refresh').length, provider.callsTo('userinfo').length]

  await t.test('all requests see the new identity, and both instances together ask once', async () => {
    const user = await dueUser(one)
    const before = calls()
    says('new')
    const pages = await Promise.all(Array.from({ length: BURST }, (_, n) => user.get(both[n % 2] as Instance)))
    assert.ok(pages.every(isServed))
    for (const instance of both) assert.equal(await nickname(user, instance), 'new')
    assert.deepEqual(
      calls().map((count, n) => count - (before[n] ?? 0)),
      [1, 1],
    )
    assert.equal(provider.reuses, 0)
  })

  await t.test('a sign-out in the other instance during the user info call wins in both', async () => {
    provider.answer('userinfo', { kind: 'normal' })
    const user = await dueUser(one)
    says('newer')
    const [, asked = 0] = calls()
    const release = provider.hold('userinfo')
    const pending = user.get(one)
    await provider.called('userinfo', asked + 1)
    await user.signOut(other)
    release()
    assert.ok(isSentToLogin(await pending))
    for (const instance of both) assert.ok(isSentToLogin(await user.get(instance)))
  })

  await t.test('a process that is killed during the user info call has already saved the tokens', async () => {
    provider.answer('userinfo', { kind: 'normal' })
    const user = await dueUser(one)
    says('newest')
    const [, asked = 0] = calls()
    const release = provider.hold('userinfo')
    // The tokens of this refresh are due again soon.
    provider.behaviour.expiresIn = 200
    const pending = user.get(one).catch(() => undefined)
    await provider.called('userinfo', asked + 1)
    await one.kill('SIGKILL')
    await pending
    release()
    provider.behaviour.expiresIn = 7200
    assert.ok(isServed(await user.get(other)))
    assert.equal(await nickname(user, other), 'newest')
    assert.equal(provider.reuses, 0)
  })
})
