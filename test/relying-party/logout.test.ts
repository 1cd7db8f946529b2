// The tests of the OpenID Foundation for relying parties, plan "RP-initiated logout" (oidcc-client-rp-initiated-logout-rp-basic).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../kit/client.ts'
import { isIn, openRelyingParty, type RelyingParty } from './relying-party.ts'

/** Signs out through the provider, up to its redirect back to us. */
async function leave({ rp }: RelyingParty, user: Client) {
  const away = await user.post('/logout', '', { headers: { origin: rp.url } })
  assert.equal(away.status, 303)
  assert.ok(!(await isIn(user)))
  return user.follow(await user.follow(away))
}

const ODD = 'sign_out_unconfirmed'
const events = ({ rp }: RelyingParty) => rp.lines.map(({ event }) => event)

test('oidcc-client-test-rp-init-logout', async t => {
  const scene = await openRelyingParty(t)
  const user = await scene.accepts()
  const page = await leave(scene, user)
  assert.equal(page.status, 200)
  assert.match(page.text, /您已安全退出登录/)
  assert.equal(scene.op.callsTo('end_session').length, 1)
  assert.equal(scene.op.callsTo('revoke').length, 1)
  assert.deepEqual(scene.op.complaints, [])
  assert.ok(!events(scene).includes(ODD))
  // It was said once, and the state is of no more use.
  assert.doesNotMatch((await user.get('/login')).text, /您已安全退出登录/)
  assert.ok(!events(scene).includes(ODD))
})

const BENT: Record<string, (params: URLSearchParams) => void> = {
  'oidcc-client-test-rp-init-logout-other-state': params => params.set('state', `${params.get('state')}1`),
  'oidcc-client-test-rp-init-logout-no-state': params => params.delete('state'),
  'a logout that comes back with two states': params => params.append('state', 'another'),
}

for (const [name, bend] of Object.entries(BENT))
  test(name, async t => {
    const scene = await openRelyingParty(t)
    const user = await scene.accepts()
    scene.op.bend.returned = bend
    const page = await leave(scene, user)
    assert.equal(page.status, 200)
    // Nobody vouches for what happened at the provider; the session here has ended, and that is all that is said.
    assert.ok(!(await isIn(user)))
    assert.equal(events(scene).filter(event => event === ODD).length, 1)
    await user.get('/login?state=once-more')
    assert.equal(events(scene).filter(event => event === ODD).length, 1)
    scene.op.bend = {}
    assert.equal((await scene.signIn(user)).headers.location, '/')
  })

test('a state that nobody waits for is nothing', async t => {
  const scene = await openRelyingParty(t)
  assert.equal((await scene.visitor().get('/login?state=x')).status, 200)
  const user = await scene.accepts()
  assert.equal((await user.get('/login?state=x')).status, 200)
  assert.ok(await isIn(user))
  assert.ok(!events(scene).includes(ODD))
})

test('a provider that does not answer at its revocation does not stand in the way', async t => {
  const scene = await openRelyingParty(t, { PROVIDER_TIMEOUT_MS: '300' })
  const user = await scene.accepts()
  scene.op.answer('revoke', { kind: 'hang' })
  assert.match((await leave(scene, user)).text, /您已安全退出登录/)
  assert.ok(events(scene).includes('provider_not_told'))
})

test('an id_token that is too long for an address is left out, and the sign-out goes on', async t => {
  const scene = await openRelyingParty(t)
  scene.op.bend.claims = claims => ({ ...claims, groups: Array(500).fill('a-group-of-many') })
  const user = await scene.accepts()
  assert.match((await leave(scene, user)).text, /您已安全退出登录/)
  assert.deepEqual(scene.op.complaints, ['end_session: the id_token as a hint'])
})
