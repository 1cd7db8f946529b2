// The tests of the OpenID Foundation for relying parties, plan "Config RP" (oidcc-client-config-certification-test-plan).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSigningKey, signWith, unsigned } from '../kit/oidc/oidc-keys.ts'
import { openRelyingParty } from './relying-party.ts'

test('oidcc-client-test-discovery-openid-config', async t => {
  const { op, accepts } = await openRelyingParty(t)
  await accepts()
  assert.equal(op.calls[0]?.url, '/.well-known/openid-configuration')
  await accepts()
  assert.equal(op.callsTo('discovery').length, 1)
})

test('oidcc-client-test-discovery-jwks-uri-keys', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  await accepts()
  assert.equal(op.callsTo('keys').length, 1)
  // Kept for an hour, then looked at anew.
  rp.passSeconds(3700)
  await accepts()
  assert.equal(op.callsTo('keys').length, 2)
})

test('oidcc-client-test-discovery-issuer-mismatch', async t => {
  const { op, rp, visitor } = await openRelyingParty(t)
  op.bend.discovery = right => ({ ...right, issuer: `${right.issuer}1` })
  const { status, headers } = await visitor().post('/login')
  assert.equal(status, 303)
  assert.equal(headers.location, '/login?error=temporarily_unavailable')
  assert.deepEqual(
    op.calls.map(({ endpoint }) => endpoint),
    ['discovery'],
  )
  assert.match(JSON.stringify(rp.lines), /metadata_unavailable.*another issuer/)
  // As soon as it is right, people can sign in.
  op.bend = {}
  rp.passSeconds(2)
  assert.equal(new URL(String((await visitor().post('/login')).headers.location)).origin, op.issuer)
})

test('oidcc-client-test-idtoken-sig-none, with none as the only algorithm in the metadata', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.discovery = right => ({ ...right, id_token_signing_alg_values_supported: ['none'] })
  op.bend.sign = claims => unsigned(claims)
  await rejects()
})

test('oidcc-client-test-signing-key-rotation', async t => {
  const { op, accepts } = await openRelyingParty(t)
  await accepts()
  op.key = await newSigningKey('key-2')
  op.published = [op.key]
  await accepts()
  await accepts()
  assert.equal(op.callsTo('keys').length, 2)
})

test('oidcc-client-test-signing-key-rotation-just-before-signing', async t => {
  const { op, accepts } = await openRelyingParty(t)
  await accepts()
  const next = await newSigningKey('key-2')
  op.bend.sign = claims => {
    op.key = next
    op.published = [...op.published, next]
    op.bend = {}
    return op.sign(claims)
  }
  await accepts()
  assert.equal(op.callsTo('keys').length, 2)
})

test('a key replaced under its old kid is found at once, and forged signatures cause only a few key fetches', async t => {
  const { op, rp, accepts, rejects } = await openRelyingParty(t, { RATE_LIMIT_PER_MINUTE: '0' })
  await accepts()
  const first = op.key
  op.key = await newSigningKey(first.kid)
  op.published = [op.key]
  await accepts()
  assert.equal(op.callsTo('keys').length, 2)
  op.bend.sign = claims => signWith(first, claims)
  for (let n = 0; n < 20; n++) await rejects()
  assert.ok(op.callsTo('keys').length <= 6, String(op.callsTo('keys').length))
  // They have not used up the looks for a key of another name.
  op.bend = {}
  op.key = await newSigningKey('key-9')
  op.published = [op.key]
  await accepts()
  rp.passSeconds(30)
  op.key = await newSigningKey('key-9')
  op.published = [op.key]
  await accepts()
})
