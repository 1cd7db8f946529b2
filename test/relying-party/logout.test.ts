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
  const scene = await openRelyingParty(t, { REVOKE: 'always' })
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
  'a logout that returns with two states is logged as unconfirmed': params => params.append('state', 'another'),
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

test('an unexpected state on the login page is ignored', async t => {
  const scene = await openRelyingParty(t)
  assert.equal((await scene.visitor().get('/login?state=x')).status, 200)
  const user = await scene.accepts()
  assert.equal((await user.get('/login?state=x')).status, 200)
  assert.ok(await isIn(user))
  assert.ok(!events(scene).includes(ODD))
})

test('a provider that does not answer the revocation does not prevent the sign-out', async t => {
  const scene = await openRelyingParty(t, { PROVIDER_TIMEOUT_MS: '300', REVOKE: 'always' })
  const user = await scene.accepts()
  scene.op.answer('revoke', { kind: 'hang' })
  assert.match((await leave(scene, user)).text, /您已安全退出登录/)
  assert.ok(events(scene).includes('provider_not_told'))
})

test('a sign-out by default or with REVOKE=never revokes no token, but calls the end-session endpoint', async t => {
  for (const env of [{}, { REVOKE: 'never' }]) {
    const scene = await openRelyingParty(t, env)
    await leave(scene, await scene.accepts())
    assert.equal(scene.op.callsTo('revoke').length, 0)
    assert.equal(scene.op.callsTo('end_session').length, 1, 'the session of this browser ends there too')
    assert.ok(!events(scene).includes('provider_not_told'))
  }
})

test('a refused revocation is logged, and is not counted as a success', async t => {
  for (const answer of [
    { kind: 'json', body: { error: 'unsupported_token_type' }, status: 400 },
    { kind: 'json', body: {}, status: 503 },
  ] as const) {
    const scene = await openRelyingParty(t, { REVOKE: 'always' })
    const user = await scene.accepts()
    scene.op.answer('revoke', answer)
    assert.match((await leave(scene, user)).text, /您已安全退出登录/)
    const told = scene.rp.lines.find(({ event }) => event === 'provider_not_told')
    assert.match(JSON.stringify(told), new RegExp(`the revocation was answered with ${answer.status}`))
    const metrics = (await scene.visitor().get('/_menshen/metrics')).text
    const counted = (result: string) =>
      metrics
        .split('\n')
        .find(line => line.startsWith(`menshen_provider_seconds_count{call="sign_out",result="${result}"}`))
    assert.deepEqual([counted('ok')?.at(-1), counted('provider_answer')?.at(-1)], ['0', '1'])
  }
})

test('a sign-out with LOGOUT_STYLE=browser and no end_session_endpoint redirects to the login page and is logged', async t => {
  const scene = await openRelyingParty(t, { LOGOUT_STYLE: 'browser' })
  scene.op.bend.discovery = right => ({ ...right, end_session_endpoint: undefined })
  const user = await scene.accepts()
  const away = await user.post('/logout', '', { headers: { origin: scene.rp.url } })
  assert.equal(away.headers.location, '/login')
  assert.ok(events(scene).includes('provider_not_told'))
})

test('an id_token that is too long for a URL is left out of the sign-out, which still succeeds', async t => {
  const scene = await openRelyingParty(t)
  scene.op.bend.claims = claims => ({ ...claims, groups: Array(500).fill('a-group-of-many') })
  const user = await scene.accepts()
  assert.match((await leave(scene, user)).text, /您已安全退出登录/)
  assert.deepEqual(scene.op.complaints, ['end_session: the id_token as a hint'])
})
