// The tests of the OpenID Foundation for relying parties, plan "Basic RP" (oidcc-client-basic-certification-test-plan), each
// by its name. A rejection means that user info is not asked for.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSigningKey, signWith, spoilt, unsigned } from '../kit/oidc/oidc-keys.ts'
import { OIDC_CLIENT, OIDC_USER } from '../kit/oidc/strict-oidc-server.ts'
import { openRelyingParty } from './relying-party.ts'

test('oidcc-client-test', async t => {
  const { op, accepts } = await openRelyingParty(t)
  const user = await accepts()
  // Two calls for a sign-in besides what is kept.
  assert.deepEqual(
    op.calls.map(({ endpoint }) => endpoint),
    ['discovery', 'authorize', 'token', 'keys', 'userinfo'],
  )
  const { userInfo } = (await user.get('/_menshen/me')).json<{ userInfo: Record<string, string> }>()
  assert.equal(userInfo.sub, OIDC_USER.sub)
  assert.equal(userInfo.username, OIDC_USER.preferred_username)
  await accepts()
  assert.deepEqual(
    op.calls.slice(5).map(({ endpoint }) => endpoint),
    ['authorize', 'token', 'userinfo'],
  )
})

test('oidcc-client-test-invalid-iss', async t => {
  const { op, rejects, accepts } = await openRelyingParty(t)
  op.bend.claims = claims => ({ ...claims, iss: `${claims.iss}1` })
  await rejects()
  op.bend = {}
  await accepts()
})

test('oidcc-client-test-missing-sub', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.claims = ({ sub: _, ...claims }) => claims
  await rejects()
})

test('oidcc-client-test-invalid-aud', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.claims = claims => ({ ...claims, aud: `${claims.aud}1` })
  await rejects()
})

test('oidcc-client-test-missing-iat', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.claims = ({ iat: _, ...claims }) => claims
  await rejects()
})

test('oidcc-client-test-kid-absent-single-jwks', async t => {
  const { op, accepts } = await openRelyingParty(t)
  op.bend.sign = claims => op.sign(claims, { kid: undefined })
  await accepts()
})

test('oidcc-client-test-kid-absent-single-jwks, a key without a kid beside one for another algorithm', async t => {
  const { op, accepts } = await openRelyingParty(t)
  const other = await newSigningKey('e1', 'ES256')
  op.bend.keys = ({ keys }) => ({ keys: [{ ...keys[0], kid: undefined }, other.jwk] })
  op.bend.sign = claims => op.sign(claims, { kid: undefined })
  await accepts()
})

test('oidcc-client-test-kid-absent-multiple-jwks', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.published = [await newSigningKey('key-2'), op.key]
  op.bend.sign = claims => op.sign(claims, { kid: undefined })
  await rejects()
})

test('oidcc-client-test-idtoken-sig-rs256', async t => {
  const { op, accepts } = await openRelyingParty(t)
  assert.equal(op.key.alg, 'RS256')
  await accepts()
})

test('oidcc-client-test-idtoken-sig-none', async t => {
  const { op, rejects } = await openRelyingParty(t)
  // Not even if the metadata promises it.
  op.bend.discovery = right => ({ ...right, id_token_signing_alg_values_supported: ['RS256', 'none'] })
  op.bend.sign = claims => unsigned(claims)
  await rejects()
})

test('oidcc-client-test-invalid-sig-rs256', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.sign = async claims => spoilt(await op.sign(claims))
  await rejects()
  const stranger = await newSigningKey(op.key.kid)
  op.bend.sign = claims => signWith(stranger, claims)
  await rejects()
})

test('oidcc-client-test-userinfo-invalid-sub', async t => {
  const { op, refuses } = await openRelyingParty(t)
  op.bend.userinfo = right => ({ ...right, sub: `${right.sub}1` })
  await refuses('userinfo_error')
  assert.equal(op.callsTo('userinfo').length, 1)
  op.bend.userinfo = ({ sub: _, ...right }) => right
  await refuses('userinfo_error')
})

test('oidcc-client-test-nonce-invalid', async t => {
  const { op, rejects } = await openRelyingParty(t)
  op.bend.claims = claims => ({ ...claims, nonce: `${claims.nonce}1` })
  await rejects()
  op.bend.claims = ({ nonce: _, ...claims }) => claims
  await rejects('token_error', 'without a nonce')
})

test('oidcc-client-test-scope-userinfo-claims', async t => {
  const { op, accepts } = await openRelyingParty(t)
  const user = await accepts()
  const scope = op.callsTo('authorize')[0]?.query.get('scope')?.split(' ')
  assert.deepEqual(scope, ['openid', 'profile', 'email'])
  const { userInfo } = (await user.get('/_menshen/me')).json<{ userInfo: Record<string, string> }>()
  assert.equal(userInfo.email, OIDC_USER.email)
  assert.equal(userInfo.nickname, OIDC_USER.name)
  assert.equal(userInfo.phone_number, OIDC_USER.phone_number)
})

test('oidcc-client-test-client-secret-basic', async t => {
  const { op, accepts } = await openRelyingParty(t)
  await accepts()
  const [call] = op.callsTo('token')
  const given = Buffer.from(`${OIDC_CLIENT.id}:${OIDC_CLIENT.secret}`).toString('base64')
  assert.equal(call?.headers.authorization, `Basic ${given}`)
  assert.ok(!call?.form.has('client_secret'))
})
