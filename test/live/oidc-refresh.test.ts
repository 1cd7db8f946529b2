// Refresh tokens that count once: oidc-provider rotates them, and whoever spends one twice loses all.
import assert from 'node:assert/strict'
import test from 'node:test'
import { OFFLINE, openLiveScene } from '../kit/live/live-scene.ts'
import { DUE_SECONDS, TOKEN_SECONDS } from '../kit/live/oidc-provider.ts'

const REQUESTS = 100

test('a hundred requests at the due moment are one refresh, again and again, and nobody is signed out', async t => {
  const { provider, person, passSeconds } = await openLiveScene(t, OFFLINE)
  const alice = person()
  await alice.signIn()
  for (const round of ['with the first refresh token', 'with the one that took its place', 'and with the third']) {
    provider.calls.take()
    passSeconds(DUE_SECONDS)
    const pages = await Promise.all(Array.from({ length: REQUESTS }, () => alice.get('/')))
    assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([200]), round)
    assert.deepEqual(provider.calls.take(), ['POST /token'], round)
  }
  assert.deepEqual(provider.revoked, [])
  assert.deepEqual(provider.failures, [])
})

test('whose consent was withdrawn at the provider is signed out when the next refresh is due', async t => {
  const { provider, person, passSeconds, lines } = await openLiveScene(t, OFFLINE)
  const alice = person()
  await alice.signIn()
  await provider.withdrawGrants()
  assert.equal((await alice.get('/')).status, 200)
  passSeconds(DUE_SECONDS)
  assert.equal((await alice.get('/')).headers.location, '/login')
  assert.ok(lines.some(({ event, facts }) => event === 'session_refresh_failed' && 'outcome' in facts))
})

test('without a refresh token a session lasts as long as its access token', async t => {
  const { provider, person, passSeconds } = await openLiveScene(t)
  const alice = person()
  await alice.signIn()
  provider.calls.take()
  passSeconds(TOKEN_SECONDS - 1)
  assert.equal((await alice.get('/')).status, 200)
  passSeconds(2)
  assert.equal((await alice.get('/')).headers.location, '/login')
  assert.deepEqual(provider.calls.take(), [])
})
