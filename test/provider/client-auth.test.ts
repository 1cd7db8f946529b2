// What providers do beyond one sign-in: tokens of a company, users of several accounts, refreshed id_tokens, user info left out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT, UnsecuredJWT } from 'jose'
import { isAccessTokenIssuer } from '../../src/provider/id-token.ts'
import { PRESETS } from '../../src/provider/presets/presets.ts'
import type { Provider } from '../../src/provider/provider.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'
import { startScripted } from './scripted.ts'
import { CLIENT_ID, CLIENT_SECRET, CODE, NONCE, type Sheet, STATE, VERIFIER } from './sheet.ts'
import { SHEETS } from './sheets/all-sheets.ts'

const sheetOf = (name: string): Sheet => {
  const sheet = SHEETS[name]
  assert.ok(sheet)
  return sheet
}

const pathsOf = (sent: readonly { call: string }[]) => sent.map(({ call }) => call.slice(call.lastIndexOf('/') + 1))
const signIn = async (provider: Provider) =>
  provider.fetchUser(await provider.redeem({ code: CODE, state: STATE, verifier: VERIFIER, nonce: NONCE }), CODE)

test('wecom: parallel and later sign-ins share one request for the company token', async t => {
  const { provider, sent } = await startScripted(t, 'wecom', sheetOf('wecom'))
  await Promise.all([signIn(provider), signIn(provider), signIn(provider)])
  await signIn(provider)
  assert.equal(pathsOf(sent()).filter(path => path === 'gettoken').length, 1)
})

test('wecom: a revoked company token is replaced, and the sign-in succeeds with the same code', async t => {
  const { provider, sent, next } = await startScripted(t, 'wecom', sheetOf('wecom'))
  await signIn(provider)
  sent()
  next({ body: { errcode: 40014, errmsg: 'invalid access_token' } })
  assert.equal((await signIn(provider)).userInfo.sub, 'lisi')
  assert.deepEqual(pathsOf(sent()), ['getuserinfo', 'gettoken', 'getuserinfo', 'get'])
})

test('wecom: after a rejected secret, the next sign-in requests the company token again', async t => {
  const { provider, next } = await startScripted(t, 'wecom', sheetOf('wecom'))
  next({ body: { errcode: 40001, errmsg: 'invalid credential' } })
  await assert.rejects(signIn(provider), { code: 'provider_answer' })
  assert.equal((await signIn(provider)).userInfo.sub, 'lisi')
})

test('bamboocloud: without a uid the only account becomes the user, and several or no accounts fail the sign-in', async t => {
  const sheet = sheetOf('bamboocloud')
  const withoutUid = { body: { access_token: 'at-1', expires_in: 7200 } }
  const replies = { ...sheet.replies, 'POST bam.example.edu.cn/idp/oauth2/getToken': withoutUid }
  const { provider, next } = await startScripted(t, 'bamboocloud', { ...sheet, replies })
  const tokens = await provider.redeem({ code: CODE, state: STATE })
  const as = (spRoleList: unknown) => {
    next({ body: { loginName: 'lisi', spRoleList } })
    return provider.fetchUser(tokens, CODE)
  }
  assert.equal((await as(['account-7'])).userInfo.sub, 'account-7')
  for (const list of [['a', 'b'], [], undefined, 'a']) await assert.rejects(as(list), { code: 'provider_answer' })
})

test('github: the e-mail address is empty if none is verified or the address list is missing or empty', async t => {
  const sheet = sheetOf('github')
  for (const reply of [
    { body: [{ email: 'claimed@e.cn', primary: true, verified: false }] },
    { body: { message: 'Not Found' }, status: 404 },
    { body: [] },
  ]) {
    const replies = { ...sheet.replies, 'GET api.github.com/user/emails': reply }
    const { provider } = await startScripted(t, 'github', { ...sheet, replies })
    assert.equal((await signIn(provider)).userInfo.email, '')
  }
})

test('no user info request is sent if userInfoFrom contains only id_token', async t => {
  const sheet = sheetOf('oidc')
  const config = { ...sheet.config, userInfoFrom: ['id_token' as const] }
  const { provider, sent } = await startScripted(t, 'oidc', { ...sheet, config })
  assert.equal((await signIn(provider)).userInfo.sub, 'u-1')
  assert.deepEqual(pathsOf(sent()), ['token'])
})

test('user info whose sub is missing or differs from the id_token fails the sign-in', async t => {
  const { provider, next } = await startScripted(t, 'oidc', sheetOf('oidc'))
  const tokens = await provider.redeem({ code: CODE, state: STATE, verifier: VERIFIER, nonce: NONCE })
  for (const body of [{ sub: 'u-11' }, { sub: 'U-1' }, { sub: ['u-1'] }, {}]) {
    next({ body: { preferred_username: 'admin', ...body } })
    await assert.rejects(provider.fetchUser(tokens, CODE), { code: 'provider_answer' })
  }
})

test('signed user info is accepted only with a signature of the provider', async t => {
  const { provider, next } = await startScripted(t, 'oidc', sheetOf('oidc'))
  const tokens = await provider.redeem({ code: CODE, state: STATE, verifier: VERIFIER, nonce: NONCE })
  const type = 'application/jwt; charset=utf-8'
  next({ type, body: '@id_token' })
  assert.equal((await provider.fetchUser(tokens, CODE)).userInfo.sub, 'u-1')
  const claims = { iss: String(tokens.claims?.iss), aud: CLIENT_ID, sub: 'u-1', preferred_username: 'admin' }
  const unsigned = new UnsecuredJWT(claims).encode()
  const stranger = takeRs256Pair()
  const foreign = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k1' }).sign(stranger.privateKey)
  const bySecret = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .sign(new TextEncoder().encode(CLIENT_SECRET.padEnd(32)))
  for (const body of [unsigned, foreign, bySecret, '@id_token-', '', 'a.b.c', JSON.stringify(claims)]) {
    next({ type, body })
    await assert.rejects(provider.fetchUser(tokens, CODE), { code: 'provider_answer' }, body)
  }
})

test('an invalid id_token fails the sign-in before user info is requested', async t => {
  const sheet = sheetOf('oidc')
  for (const claims of [
    { aud: 'other' },
    { nonce: 'other' },
    { iss: 'https://other.example.com' },
    { sub: undefined },
  ]) {
    const { provider, sent } = await startScripted(t, 'oidc', { ...sheet, claims: { ...sheet.claims, ...claims } })
    await assert.rejects(signIn(provider), { code: 'provider_answer' })
    assert.deepEqual(pathsOf(sent()), ['token'])
  }
  for (const id_token of [undefined, null, '', 'a.b.c', 7]) {
    // One of its own for each: a provider may still be told to revoke the tokens of the last one.
    const { provider, next } = await startScripted(t, 'oidc', sheet)
    next({ body: { access_token: 'at', token_type: 'Bearer', expires_in: 60, id_token } })
    await assert.rejects(signIn(provider), { code: 'provider_answer' }, String(id_token))
  }
})

test('a refreshed id_token of another user and issuer is refused, and a malformed one fails with provider_answer', async t => {
  const sheet = sheetOf('oidc')
  const { provider, next } = await startScripted(t, 'oidc', sheet)
  const { idToken } = await provider.redeem({ code: CODE, state: STATE, verifier: VERIFIER, nonce: NONCE })
  const held = { accessToken: 'at-1', refreshToken: 'rt-1', idToken }
  const tokens = { access_token: 'at-2', token_type: 'Bearer', expires_in: 60 }
  next({ body: tokens })
  assert.equal((await provider.refresh(held)).accessToken, 'at-2')
  for (const id_token of ['garbage', 'a.b.c', `a.${'b'.repeat(900_000)}.c`]) {
    next({ body: { ...tokens, id_token } })
    await assert.rejects(provider.refresh(held), { code: 'provider_answer' })
  }
  const unsigned = [{ alg: 'none' }, { sub: 'somebody-else', iss: 'x' }].map(part =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  await assert.rejects(provider.refresh({ ...held, idToken: `${unsigned.join('.')}.` }), { code: 'provider_refused' })
})

test('iss in a callback must match the issuer in the metadata, with any tenant in place of its placeholder', async t => {
  const { provider, asWritten } = await startScripted(t, 'entra', sheetOf('entra'))
  const start = await provider.authorizationUrl({ state: STATE })
  const host = start.slice(0, start.indexOf('/organizations'))
  assert.equal(asWritten(host), 'https://login.microsoftonline.com')
  assert.equal(await provider.acceptsCallbackIssuer([]), true)
  assert.equal(await provider.acceptsCallbackIssuer([`${host}/some-tenant/v2.0`]), true)
  for (const given of [['https://other.example.com'], [`${host}/a/b/v2.0`], [`${host}/t/v2.0`, `${host}/t/v2.0`]])
    assert.equal(await provider.acceptsCallbackIssuer(given), false, String(given))
})

test('feishu: an invalid, expired, revoked or used refresh token fails with provider_refused', async t => {
  for (const code of [20026, 20037, 20064, 20073]) {
    const { provider, next } = await startScripted(t, 'feishu', sheetOf('feishu'))
    next({ status: 400, body: { code, error: 'invalid_request', error_description: 'refresh token' } })
    const refreshed = provider.refresh({ accessToken: 'at-1', refreshToken: 'rt-1' })
    await assert.rejects(refreshed, { code: 'provider_refused' }, String(code))
  }
})

test('entra: version 1 access tokens are accepted only for the issuer’s tenant', () => {
  const { alsoIssuers = [], accessTokenIssuers = [] } = PRESETS.entra ?? {}
  const names = { alsoIssuers, accessTokenIssuers }
  const of = (tenant: string) => ({ issuer: `https://login.microsoftonline.com/${tenant}/v2.0` })
  const v1 = (tenant: string) => `https://sts.windows.net/${tenant}/`
  assert.equal(isAccessTokenIssuer(v1('ours'), of('ours'), names, 'ours'), true)
  assert.equal(isAccessTokenIssuer(v1('ours'), of('ours'), names), true)
  assert.equal(isAccessTokenIssuer(v1('theirs'), of('ours'), names, 'theirs'), false)
  assert.equal(isAccessTokenIssuer(v1('theirs'), of('ours'), names), false)
  assert.equal(isAccessTokenIssuer(v1('ours'), of('ours'), names, 'theirs'), false)
  assert.equal(isAccessTokenIssuer(v1('any'), of('{tenantid}'), names, 'any'), true, 'a registration for several')
  assert.equal(isAccessTokenIssuer(v1('any'), of('{tenantid}'), names, 'other'), false)
  for (const odd of [
    'https://sts.windows.net/',
    'https://sts.windows.net/a/b/',
    'https://sts.windows.net.evil/ours/',
    7,
  ])
    assert.equal(isAccessTokenIssuer(odd, of('ours'), names, 'ours'), false, String(odd))
  const none = { alsoIssuers: [], accessTokenIssuers: [] }
  assert.equal(isAccessTokenIssuer(v1('ours'), of('ours'), none, 'ours'), false)
})
