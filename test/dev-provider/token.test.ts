// The token endpoint: codes are good once, refresh tokens rotate, and reuse is punished.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { assertError, start, tokensOf } from './harness.ts'

const VERIFIER = 'a-verifier-of-at-least-forty-three-characters'
const PKCE = {
  code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
  code_challenge_method: 'S256',
}

test('a code is exchanged for exactly the fields of specification 5.1', async t => {
  const { redeem, signIn } = await start(t)
  const response = await redeem(await signIn('admin'))
  assert.equal(response.headers.get('cache-control'), 'no-store')
  const { access_token, refresh_token, jti, ...rest } = (await response.json()) as Record<string, unknown>
  assert.deepEqual(rest, { token_type: 'bearer', expires_in: 7200, scope: 'read' })
  for (const value of [access_token, refresh_token, jti]) assert.match(String(value), /^\S{32,}$/)
  assert.equal(new Set([access_token, refresh_token, jti]).size, 3)
})

test('a second use of a code is refused and revokes the tokens issued from it', async t => {
  const { redeem, signIn, userInfo, refresh } = await start(t)
  const code = await signIn('lisi')
  const tokens = await tokensOf(await redeem(code))
  assert.equal((await userInfo(tokens.access_token)).status, 200)
  await assertError(await redeem(code), 400, 'invalid_grant')
  await assertError(await userInfo(tokens.access_token), 401, 'invalid_token')
  await assertError(await refresh(tokens.refresh_token), 400, 'invalid_grant')
})

test('a code is valid for just under sixty seconds', async t => {
  const { redeem, signIn, pass } = await start(t)
  const inTime = await signIn('admin')
  pass(59)
  const late = await signIn('admin')
  await tokensOf(await redeem(inTime))
  pass(60)
  await assertError(await redeem(late), 400, 'invalid_grant')
})

test('a wrong redirect_uri is refused and does not spend the code', async t => {
  const { redeem, signIn } = await start(t)
  const code = await signIn('admin')
  for (const redirect_uri of ['http://localhost:4000/other', '']) {
    await assertError(await redeem(code, { redirect_uri }), 400, 'invalid_grant')
  }
  await tokensOf(await redeem(code))
})

test('a wrong verifier spends the code', async t => {
  const { redeem, signIn } = await start(t)
  const code = await signIn('admin', PKCE)
  await assertError(await redeem(code, { code_verifier: `${VERIFIER}x` }), 400, 'invalid_grant')
  await assertError(await redeem(code, { code_verifier: VERIFIER }), 400, 'invalid_grant')
})

test('a code with a challenge requires its verifier, and a verifier without a challenge is refused', async t => {
  const { redeem, signIn } = await start(t)
  await tokensOf(await redeem(await signIn('admin', PKCE), { code_verifier: VERIFIER }))
  await assertError(await redeem(await signIn('admin', PKCE)), 400, 'invalid_grant')
  await assertError(await redeem(await signIn('admin'), { code_verifier: VERIFIER }), 400, 'invalid_grant')
})

test('wrong client credentials are refused and leave the code and the refresh token unspent', async t => {
  const { redeem, signIn, refresh } = await start(t)
  const code = await signIn('admin')
  for (const wrong of [{ client_secret: 'wrong' }, { client_secret: '' }, { client_id: 'other' }]) {
    await assertError(await redeem(code, wrong), 401, 'invalid_client')
  }
  const tokens = await tokensOf(await redeem(code))
  await assertError(await refresh(tokens.refresh_token, { client_secret: 'wrong' }), 401, 'invalid_client')
  await tokensOf(await refresh(tokens.refresh_token))
})

test('each refresh gives a new refresh token, and older access tokens stay valid until they expire', async t => {
  const { tokensFor, refresh, userInfo, pass } = await start(t)
  const first = await tokensFor('zhangsan')
  pass(7000)
  const second = await tokensOf(await refresh(first.refresh_token))
  assert.notEqual(second.refresh_token, first.refresh_token)
  assert.equal((await userInfo(first.access_token)).status, 200)
  pass(200)
  assert.equal((await userInfo(first.access_token)).status, 401)
  assert.equal((await userInfo(second.access_token)).status, 200)
})

test('reuse of an old refresh token revokes its whole token family and no other', async t => {
  const { tokensFor, refresh, userInfo } = await start(t)
  const bystander = await tokensFor('lisi')
  const first = await tokensFor('lisi')
  const second = await tokensOf(await refresh(first.refresh_token))
  await assertError(await refresh(first.refresh_token), 400, 'invalid_grant')
  await assertError(await refresh(second.refresh_token), 400, 'invalid_grant')
  assert.equal((await userInfo(second.access_token)).status, 401)
  await tokensOf(await refresh(bystander.refresh_token))
})

test('only one of five parallel refreshes with one token succeeds, and its token family is revoked', async t => {
  const { tokensFor, refresh, userInfo } = await start(t)
  const { refresh_token } = await tokensFor('admin')
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(refresh_token)))
  const winners = answers.filter(answer => answer.status === 200)
  assert.equal(winners.length, 1)
  for (const winner of winners) {
    assert.equal((await userInfo((await tokensOf(winner)).access_token)).status, 401)
  }
})

test('a refresh token that is not used for thirty days is rejected', async t => {
  const { tokensFor, refresh, pass } = await start(t)
  const { refresh_token } = await tokensFor('admin')
  pass(30 * 24 * 3600)
  await assertError(await refresh(refresh_token), 400, 'invalid_grant')
})

test('invalid token requests are refused with the matching OAuth error code', async t => {
  const { redeem, refresh, at } = await start(t)
  await assertError(await redeem('x', { grant_type: '' }), 400, 'invalid_request')
  await assertError(await redeem('x', { grant_type: 'password' }), 400, 'unsupported_grant_type')
  await assertError(await redeem(''), 400, 'invalid_request')
  await assertError(await redeem('x'), 400, 'invalid_grant')
  await assertError(await refresh(''), 400, 'invalid_request')
  await assertError(await refresh('x', { scope: 'write' }), 400, 'invalid_scope')

  const post = (body: string, type: string) =>
    fetch(at('/oauth/token'), { method: 'POST', body, headers: { 'content-type': type } })
  await assertError(await post('{"grant_type":"refresh_token"}', 'application/json'), 400, 'invalid_request')
  await assertError(await post('code=1&code=2', 'application/x-www-form-urlencoded'), 400, 'invalid_request')
})
