// What goes to the authorization endpoint and what may come back from it: extra parameters, `max_age` with its `auth_time`,
// and `iss` (RFC 9207) where the metadata promises it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../kit/client.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { isIn, openRelyingParty } from './relying-party.ts'

test('max_age, acr_values, prompt, login_hint and ui_locales of authorizationParams reach the provider', async t => {
  const extras = { max_age: '600', acr_values: 'mfa', prompt: 'login', login_hint: 'zhang@san', ui_locales: 'zh-CN en' }
  const { op, accepts } = await openRelyingParty(t, {}, { provider: { authorizationParams: extras } })
  await accepts()
  const sent = Object.fromEntries(op.callsTo('authorize')[0]?.query ?? [])
  assert.deepEqual({ ...sent, ...extras }, sent)
})

test('with max_age, a provider sign-in that is older or of unknown age is refused before user info is requested', async t => {
  const { op, rejects, accepts } = await openRelyingParty(
    t,
    {},
    { provider: { authorizationParams: { max_age: '100' } } },
  )
  const aged = (seconds: number) => {
    op.bend.claims = claims => ({ ...claims, auth_time: (claims.iat ?? 0) - seconds })
  }
  for (const fits of [0, 100, 159]) {
    aged(fits)
    await accepts(String(fits))
  }
  for (const old of [161, 3600]) {
    aged(old)
    await rejects('token_error', String(old))
  }
  aged(-61)
  await rejects('token_error', 'in the future')
  for (const odd of ['now', null, '1772352000', [1772352000]]) {
    op.bend.claims = claims => ({ ...claims, auth_time: odd })
    await rejects('token_error', String(odd))
  }
  op.bend.claims = ({ auth_time: _, ...claims }) => claims
  await rejects('token_error', 'without auth_time')
})

test('max_age is measured from the start of the sign-in, so a user who takes long at the provider is not refused', async t => {
  const config = { provider: { authorizationParams: { max_age: '0' } } }
  const { op, rp, visitor, comeBack } = await openRelyingParty(t, {}, config)
  const client = visitor()
  const answer = await comeBack(client)
  const signedInAt = rp.now() / 1000
  op.bend.claims = claims => ({ ...claims, auth_time: signedInAt })
  rp.passSeconds(300)
  assert.equal((await client.follow(answer)).headers.location, '/')
})

test('auth_time is not checked without max_age, nor at a refresh', async t => {
  const plain = await openRelyingParty(t)
  plain.op.bend.claims = claims => ({ ...claims, auth_time: 1 })
  await plain.accepts()
  const aged = await openRelyingParty(t, {}, { provider: { authorizationParams: { max_age: '100' } } })
  const user = await aged.accepts()
  const signedInAt = aged.rp.now() / 1000
  aged.op.bend.claims = claims => ({ ...claims, auth_time: signedInAt })
  aged.rp.passSeconds(7000)
  assert.ok(await isIn(user))
})

const PROMISED = { authorization_response_iss_parameter_supported: true }

test('iss is required if the metadata promises it, and a missing, wrong or repeated one does not use up the attempt', async t => {
  const { op, visitor, comeBack } = await openRelyingParty(t)
  op.bend.discovery = right => ({ ...right, ...PROMISED })
  const client = visitor()
  const back = new URL(String((await comeBack(client)).headers.location))
  const asked = op.calls.length
  const come = (given: string[], who: Client = client) => {
    const query = new URLSearchParams(back.searchParams)
    for (const iss of given) query.append('iss', iss)
    return who.get(`/callback?${query}`)
  }
  for (const given of [
    [],
    [''],
    [`${op.issuer}1`],
    [`${op.issuer}/`],
    [op.issuer, op.issuer],
    [op.issuer, 'evil'],
    ['evil', op.issuer],
  ]) {
    assert.equal((await come(given)).headers.location, '/login?error=callback_error', String(given))
    assert.ok(!client.cookies.has('menshen_session'))
  }
  assert.equal(op.calls.length, asked, 'nothing was sent before the check')
  assert.equal((await come([op.issuer], visitor())).status, 303, 'another browser starts an attempt of its own')
  assert.equal((await come([op.issuer])).headers.location, '/')
})

test('an instance that has not read the metadata yet reads it before it checks iss', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const { op, rp, visitor, comeBack } = await openRelyingParty(t, { STORE })
  op.bend.discovery = right => ({ ...right, ...PROMISED })
  const other = await openGateway(t, { ...op.settings, STORE, BASE_URL: rp.url })
  const client = visitor()
  const { pathname, search } = new URL(String((await comeBack(client)).headers.location))
  const headers = { cookie: `menshen_attempt=${client.cookies.get('menshen_attempt')}` }
  const come = (more = '') => other.visitor().get(pathname + search + more, { headers })
  assert.equal((await come()).headers.location, '/login?error=callback_error')
  assert.equal(op.callsTo('token').length, 0)
  assert.equal((await come(`&iss=${encodeURIComponent(op.issuer)}`)).headers.location, '/')
})

test('while an instance cannot read the metadata, a callback gives token_error and does not use up the attempt', async t => {
  const STORE = `sqlite:${tempFolder(t)}/menshen.db`
  const { op, rp, visitor, comeBack } = await openRelyingParty(t, { STORE })
  const client = visitor()
  const { pathname, search } = new URL(String((await comeBack(client)).headers.location))
  op.answer('discovery', { kind: 'json', status: 503, body: {} })
  const other = await openGateway(t, { ...op.settings, STORE, BASE_URL: rp.url })
  const headers = { cookie: `menshen_attempt=${client.cookies.get('menshen_attempt')}` }
  const come = () => other.visitor().get(pathname + search, { headers })
  assert.equal((await come()).headers.location, '/login?error=token_error')
  assert.equal(op.callsTo('token').length, 0)
  op.answer('discovery', { kind: 'normal' })
  other.passSeconds(2)
  assert.equal((await come()).headers.location, '/')
})

test('if the metadata does not promise iss, it can be missing, but a wrong one is refused', async t => {
  const { op, accepts, rejects } = await openRelyingParty(t)
  await accepts()
  op.bend.callback = params => params.set('iss', op.issuer)
  await accepts()
  op.bend.callback = params => params.set('iss', `${op.issuer}1`)
  await rejects('callback_error')
})
