// The tests of the OpenID Foundation for relying parties, plan for refresh tokens (oidcc-client-refreshtoken-test-plan); and
// when a token is due with a provider other than the one of specification 7.1.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JWTPayload } from 'jose'
import { OIDC_SECRETS_OF_USER } from '../kit/oidc/strict-oidc-server.ts'
import { isIn, openRelyingParty } from './relying-party.ts'

test('oidcc-client-test-refresh-token', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  const user = await accepts()
  rp.passSeconds(7000)
  assert.ok(await isIn(user))
  assert.equal(op.callsTo('refresh').length, 1)
  assert.deepEqual(op.complaints, [])
  rp.passSeconds(6000)
  assert.ok(await isIn(user))
  assert.equal(op.callsTo('refresh').length, 1)
})

const WRONG: Record<string, (claims: JWTPayload) => JWTPayload> = {
  'oidcc-client-test-refresh-token-invalid-issuer': claims => ({ ...claims, iss: `${claims.iss}1` }),
  'oidcc-client-test-refresh-token-invalid-sub': claims => ({ ...claims, sub: `${claims.sub}1` }),
  'a refreshed id_token for another client': claims => ({ ...claims, aud: `${claims.aud}1` }),
  'a refreshed id_token with another nonce': claims => ({ ...claims, nonce: 'another' }),
  'a refreshed id_token with the hash of another access token': claims => ({ ...claims, at_hash: 'AAAA' }),
  'an expired refreshed id_token of another user': claims => ({
    ...claims,
    sub: `${claims.sub}1`,
    exp: (claims.iat ?? 0) - 61,
  }),
  'a refreshed id_token without sub': ({ sub: _, ...claims }) => claims,
}

for (const [name, bend] of Object.entries(WRONG))
  test(name, async t => {
    const { op, rp, accepts } = await openRelyingParty(t)
    const user = await accepts()
    op.bend.claims = bend
    rp.passSeconds(7000)
    const said = rp.lines.length
    const page = await user.get('/', { headers: { accept: 'text/html' } })
    assert.equal(page.headers.location, '/login')
    assert.ok(!(await isIn(user)))
    assert.equal(op.callsTo('refresh').length, 1)
    const told = JSON.stringify(rp.lines.slice(said))
    for (const secret of OIDC_SECRETS_OF_USER) assert.ok(!told.includes(secret), secret)
  })

test('a refreshed id_token of another user or issuer ends the session even with REFRESH_FAILURE=keep', async t => {
  const { op, rp, accepts } = await openRelyingParty(t, { REFRESH_FAILURE: 'keep' })
  for (const [name, bend] of Object.entries(WRONG).slice(0, 2)) {
    op.bend = {}
    const user = await accepts()
    op.bend.claims = bend
    rp.passSeconds(7000)
    assert.ok(!(await isIn(user)), name)
  }
})

test('a refresh without an id_token, or with one without a nonce, keeps the session', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  const user = await accepts()
  op.bend.refresh = ({ id_token: _, ...right }) => right
  rp.passSeconds(7000)
  assert.ok(await isIn(user))
  op.bend = {}
  rp.passSeconds(7000)
  assert.ok(await isIn(user))
  // The id_token of the sign-in is still what a later one is compared with.
  op.bend.claims = claims => ({ ...claims, sub: 'somebody-else' })
  rp.passSeconds(7000)
  assert.ok(!(await isIn(user)))
})

test('a token valid for 60 seconds is refreshed when 30 seconds are left, not at every request', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  op.expiresIn = 60
  const user = await accepts()
  for (const [seconds, refreshes] of [
    [0, 0],
    [29, 0],
    [1, 1],
    [29, 1],
    [1, 2],
  ] as const) {
    rp.passSeconds(seconds)
    for (let n = 0; n < 3; n++) assert.ok(await isIn(user))
    assert.equal(op.callsTo('refresh').length, refreshes)
  }
  assert.ok(!rp.lines.some(({ event }) => event === 'short_token_life'))
})
