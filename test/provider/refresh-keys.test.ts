// A refresh token is spent only when its answer can be verified; and tokens that cannot be verified yet are kept, not thrown away.

import assert from 'node:assert/strict'
import test from 'node:test'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { createProvider } from '../../src/provider/provider.ts'
import { newSigningKey } from '../kit/oidc/oidc-keys.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { until } from '../kit/until.ts'
import { isIn, openRelyingParty } from '../relying-party/relying-party.ts'

const DUE = 7000

test('provider keys are fetched before a refresh token is used, and the token is not used if that fails', async t => {
  const op = await startOidcServer(t)
  const provider = createProvider(planNamedProvider('scene', op.config), {
    settings: {
      BASE_URL: 'http://localhost',
      LOGIN_PATH: '/login',
      PROVIDER_TIMEOUT_MS: 5000,
      PROVIDER_PARALLEL_CALLS: 4,
    },
    now: op.now,
    report: () => {},
  })
  t.after(() => provider.close())
  op.intercept = ({ path }, response) => path === '/jwks' && response.writeHead(503).end()
  await assert.rejects(provider.refresh({ accessToken: 'spent', refreshToken: 'precious' }), {
    code: 'provider_answer',
  })
  assert.equal(op.callsTo('/token').length, 0)
})

test('a new key that cannot be fetched ends no session: the rotated tokens are used, and verified when the keys are back', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  const user = await accepts()
  const nickname = async () =>
    (await user.get('/_menshen/me')).json<{ userInfo: { nickname: string } }>().userInfo.nickname
  const before = await nickname()
  op.key = await newSigningKey('key-2')
  op.published = [op.key]
  op.answer('keys', { kind: 'json', status: 503, body: {} })
  op.bend.userinfo = right => ({ ...right, name: '张三丰' })
  rp.passSeconds(DUE)
  assert.equal(await nickname(), before, 'who the user is waits for the id_token')
  assert.equal(op.callsTo('refresh').length, 1)
  assert.ok(rp.lines.some(({ event }) => event === 'id_token_unverified'))
  op.answer('keys', { kind: 'normal' })
  // Each look for a key costs one of a few, which come back with time.
  rp.passSeconds(150)
  await until(async () => (await nickname()) === '张三丰')
  rp.passSeconds(DUE)
  assert.ok(await isIn(user))
  assert.equal(op.callsTo('refresh').length, 2)
  assert.deepEqual(op.complaints, [], 'no refresh token was used twice')
})

test('an id_token that fails verification when the keys are back ends the session', async t => {
  const { op, rp, accepts } = await openRelyingParty(t)
  const user = await accepts()
  op.key = await newSigningKey('key-2')
  op.answer('keys', { kind: 'json', status: 503, body: {} })
  rp.passSeconds(DUE)
  assert.ok(await isIn(user))
  // Another key under the same name.
  op.published = [await newSigningKey('key-2')]
  op.answer('keys', { kind: 'normal' })
  // Each look for a key costs one of a few, which come back with time.
  rp.passSeconds(150)
  await until(() =>
    rp.lines.some(({ event, fields }) => event === 'session_ended' && fields.reason === 'refresh_failed'),
  )
  assert.ok(!(await isIn(user)))
})

for (const [name, hours] of Object.entries({ 'ahead of': 3, behind: -3 }))
  test(`a clock that is hours ${name} the provider's ends no session, and the user data changes when it is right again`, async t => {
    const { op, rp, accepts } = await openRelyingParty(t)
    const user = await accepts()
    const nickname = async () =>
      (await user.get('/_menshen/me')).json<{ userInfo: { nickname: string } }>().userInfo.nickname
    const before = await nickname()
    op.bend.userinfo = right => ({ ...right, name: '张三丰' })
    const shift = (time = 0) => time - hours * 3600
    op.bend.claims = claims => ({ ...claims, iat: shift(claims.iat), exp: shift(claims.exp) })
    for (const refreshes of [1, 2, 3]) {
      rp.passSeconds(DUE)
      assert.equal(await nickname(), before)
      assert.equal(op.callsTo('refresh').length, refreshes)
    }
    const unverified = rp.lines.filter(({ event }) => event === 'id_token_unverified')
    assert.equal(unverified.length, 3)
    assert.match(String(unverified[0]?.fields.detail), hours > 0 ? /exp.*expired/ : /iat.*future/)
    op.bend = { userinfo: op.bend.userinfo }
    rp.passSeconds(DUE)
    await until(async () => (await nickname()) === '张三丰')
    assert.deepEqual(op.complaints, [])
  })
