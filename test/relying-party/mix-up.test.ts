// Two providers at once (S66, RFC 9700 4.4): the answer of one does not count for an attempt at the other, and spends nothing.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Client, createClient } from '../kit/client.ts'
import { OIDC_CLIENT, OIDC_USER, startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openGateway } from '../kit/set-up.ts'

async function openTwo(t: TestContext, more: object = {}) {
  const [staff, guests] = [await startStrictOidcServer(t), await startStrictOidcServer(t)]
  const client = { preset: 'oidc', clientId: OIDC_CLIENT.id, clientSecret: OIDC_CLIENT.secret }
  const providers = { staff: { ...client, issuer: staff.issuer }, guests: { ...client, issuer: guests.issuer } }
  const rp = await openGateway(t, {}, { config: { providers } })
  for (const [id, op] of Object.entries({ staff, guests })) {
    op.client = { baseUrl: rp.url, now: rp.now, callbackPath: `/callback/${id}` }
    op.bend.discovery = right => ({ ...right, ...more })
    op.bend.callback = params => params.set('iss', op.issuer)
  }
  /** Goes to this provider and comes back, up to its redirect to its own /callback/<id>. */
  async function comeBack(visitor: Client, provider: 'staff' | 'guests'): Promise<URL> {
    const answer = await visitor.follow(await visitor.post('/login', { provider }))
    return new URL(String(answer.headers.location))
  }
  const calls = () => [...staff.callsTo('token'), ...guests.callsTo('token')].length
  return { staff, guests, rp, comeBack, calls }
}

test('a response that names another provider is refused without using up the attempt', async t => {
  const { staff, guests, rp, comeBack, calls } = await openTwo(t)
  const visitor = createClient(rp.url, rp.now)
  const { pathname, searchParams } = await comeBack(visitor, 'staff')
  const come = (iss: string) => {
    searchParams.set('iss', iss)
    return visitor.get(`${pathname}?${searchParams}`)
  }
  assert.equal((await come(guests.issuer)).headers.location, '/login?error=callback_error')
  assert.equal(calls(), 0)
  assert.equal((await come(staff.issuer)).headers.location, '/')
  assert.deepEqual(staff.complaints, [])
})

test('if both providers promise iss, a response without it is refused without using up the attempt', async t => {
  const { rp, comeBack, calls } = await openTwo(t, { authorization_response_iss_parameter_supported: true })
  const visitor = createClient(rp.url, rp.now)
  const { pathname, searchParams } = await comeBack(visitor, 'guests')
  const right = `${pathname}?${searchParams}`
  searchParams.delete('iss')
  assert.equal((await visitor.get(`${pathname}?${searchParams}`)).headers.location, '/login?error=callback_error')
  assert.equal(calls(), 0)
  assert.equal((await visitor.get(right)).headers.location, '/')
})

test('a swapped code is redeemed only at the provider of its attempt, and the sign-in fails', async t => {
  const { staff, guests, rp, comeBack } = await openTwo(t)
  const visitor = createClient(rp.url, rp.now)
  const [one, other] = [await comeBack(visitor, 'staff'), await comeBack(visitor, 'guests')]
  const code = other.searchParams.get('code') ?? ''
  one.searchParams.set('code', code)
  assert.equal((await visitor.get(one.pathname + one.search)).headers.location, '/login?error=token_error')
  assert.deepEqual(
    [staff, guests].map(op => op.callsTo('token').map(({ form }) => form.get('code'))),
    [[code], []],
  )
  assert.ok(!visitor.cookies.has('menshen_session'))
})

test('an id_token of the other provider is refused, although both providers know the user', async t => {
  const { staff, guests, rp, comeBack } = await openTwo(t)
  const visitor = createClient(rp.url, rp.now)
  // The other one's key and name: only what is signed by the attempt's own provider in its own name counts.
  for (const bend of [
    () => {
      staff.bend.claims = claims => ({ ...claims, iss: guests.issuer })
    },
    () => {
      staff.bend.sign = claims => guests.sign({ ...claims, iss: guests.issuer })
    },
  ]) {
    bend()
    const { pathname, search } = await comeBack(visitor, 'staff')
    assert.equal((await visitor.get(pathname + search)).headers.location, '/login?error=token_error')
    assert.equal(staff.callsTo('userinfo').length, 0)
  }
})

test('a logout token of one provider is accepted while the other cannot be reached', async t => {
  const { staff, guests, rp, comeBack } = await openTwo(t)
  staff.answer('discovery', { kind: 'json', status: 503, body: {} })
  const visitor = createClient(rp.url, rp.now)
  const { pathname, search } = await comeBack(visitor, 'guests')
  assert.equal((await visitor.get(pathname + search)).headers.location, '/')
  const iat = Math.floor(rp.now() / 1000)
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
  const who = { iss: guests.issuer, aud: OIDC_CLIENT.id, sub: OIDC_USER.sub }
  const token = await guests.sign({ ...who, iat, exp: iat + 120, jti: 'j-1', events })
  const answer = await createClient(rp.url).post('/_menshen/backchannel-logout', { logout_token: token })
  assert.equal(answer.status, 200)
  assert.equal((await visitor.get('/_menshen/me')).status, 401)
})
