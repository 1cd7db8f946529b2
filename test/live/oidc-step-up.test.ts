// Step-up with oidc-provider, the certified one: what it does with max_age and acr_values, and what comes of it.

import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../src/index.ts'
import { setUpLive } from '../kit/live/live-set-up.ts'
import { startUpstream } from '../kit/upstream.ts'

const config: Config = {
  rules: [
    { path: '/pay', roles: ['*'], maxAge: 1 },
    { path: '/vault', roles: ['*'], acr: ['gold'] },
    { path: '/keys', roles: ['*'], amr: ['mfa'] },
  ],
}

test('oidc-provider asks for the password again because of max_age, and its new auth_time satisfies the rule', async t => {
  const upstream = await startUpstream(t)
  const { provider, person, url, passSeconds, events } = await setUpLive(t, { config, env: { UPSTREAM: upstream.url } })
  const alice = person()
  await alice.signIn()
  // Without max_age it tells no auth_time: the first visit is a step-up, too.
  assert.equal((await alice.open('/pay')).status, 200)
  // For the gateway the sign-in is old, while the clock of the provider has to pass max_age.
  passSeconds(40)
  const away = await alice.get('/pay?x=1')
  assert.equal(new URL(String(away.headers.location)).searchParams.get('max_age'), '1')
  passSeconds(-40)
  await pause(2100)
  alice.opened.length = 0
  const back = await alice.finish(away)
  assert.deepEqual([back.url, back.status], [`${url}/pay?x=1`, 200])
  assert.ok(
    alice.opened.some(address => address.includes('/interaction/')),
    'the password was asked for',
  )
  assert.equal(events().filter(event => event === 'step_up').length, 2)
  assert.deepEqual(provider.failures, [])
})

test('a rule whose acr or amr oidc-provider does not return leads to 403 and step_up_failed after one round trip', async t => {
  const configuration = { acrValues: ['gold'] }
  const { person, events, url } = await setUpLive(t, { config, configuration })
  const alice = person()
  await alice.signIn()
  for (const path of ['/vault', '/keys']) {
    const refused = await alice.finish(await alice.get(path))
    assert.deepEqual([refused.url, refused.status], [url + path, 403])
    assert.equal((await alice.get(path)).status, 403)
  }
  assert.equal(events().filter(event => event === 'step_up_started').length, 2)
  assert.equal(events().filter(event => event === 'step_up_failed').length, 2)
})
