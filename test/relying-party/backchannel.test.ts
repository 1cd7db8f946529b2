// The tests of the OpenID Foundation for relying parties, plan "Back-channel logout" (oidcc-client-back-channel-logout-rp-basic).
// The address of the keys and the issuer come from the metadata alone.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { JWTPayload } from 'jose'
import { createClient } from '../kit/client.ts'
import { newSigningKey, publicPem, signedWithSecret, signWith, unsigned } from '../kit/oidc/oidc-keys.ts'
import { OIDC_CLIENT, OIDC_USER } from '../kit/oidc/strict-oidc-server.ts'
import { isIn, openRelyingParty, type RelyingParty } from './relying-party.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

function logoutClaims({ op, rp }: RelyingParty): JWTPayload {
  const iat = Math.floor(rp.now() / 1000)
  const who = { iss: op.issuer, aud: OIDC_CLIENT.id, sub: OIDC_USER.sub }
  return { ...who, iat, exp: iat + 120, jti: randomUUID(), events: { [EVENT]: {} } }
}

const tell = ({ rp }: RelyingParty, token: string) =>
  createClient(rp.url).post('/_menshen/backchannel-logout', { logout_token: token })

test('oidcc-client-test-rp-backchannel-rpinitlogout', async t => {
  const scene = await openRelyingParty(t)
  const [user, device] = [await scene.accepts(), await scene.accepts()]
  const away = await user.post('/logout', '', { headers: { origin: scene.rp.url } })
  const { status, headers } = await tell(scene, await scene.op.sign(logoutClaims(scene), { typ: 'logout+jwt' }))
  assert.equal(status, 200)
  assert.equal(headers['cache-control'], 'no-store')
  assert.ok(!(await isIn(device)))
  assert.equal((await user.follow(await user.follow(away))).status, 200)
  assert.deepEqual(scene.op.complaints, [])
})

const WRONG: Record<string, (claims: JWTPayload, scene: RelyingParty) => string | Promise<string>> = {
  'alg-none': claims => unsigned(claims),
  'no-event': ({ events: _, ...claims }, { op }) => op.sign(claims),
  'with-nonce': (claims, { op }) => op.sign({ ...claims, nonce: 'n' }),
  'wrong-alg': claims => signedWithSecret(claims, OIDC_CLIENT.secret, 'key-1'),
  'wrong-aud': (claims, { op }) => op.sign({ ...claims, aud: `${claims.aud}1` }),
  'wrong-event': (claims, { op }) => op.sign({ ...claims, events: { [`${EVENT}1`]: {} } }),
  'wrong-iss': (claims, { op }) => op.sign({ ...claims, iss: `${claims.iss}1` }),
}

for (const [name, make] of Object.entries(WRONG))
  test(`oidcc-client-test-rp-backchannel-rpinitlogout-${name}`, async t => {
    const scene = await openRelyingParty(t)
    const user = await scene.accepts()
    assert.equal((await tell(scene, await make(logoutClaims(scene), scene))).status, 400)
    assert.ok(await isIn(user))
  })

test('a logout token with an unlisted algorithm, or signed with the public key as a secret, is refused', async t => {
  const scene = await openRelyingParty(t)
  const user = await scene.accepts()
  const ec = await newSigningKey('e1', 'ES256')
  scene.op.published = [...scene.op.published, ec]
  for (const token of [
    await signWith(ec, logoutClaims(scene)),
    signedWithSecret(logoutClaims(scene), publicPem(scene.op.key), 'key-1'),
  ])
    assert.equal((await tell(scene, token)).status, 400)
  assert.ok(await isIn(user))
})

test('an id_token is not accepted as a logout token', async t => {
  const scene = await openRelyingParty(t)
  let idToken = ''
  scene.op.bend.token = right => {
    idToken = String(right.id_token)
    return right
  }
  const user = await scene.accepts()
  assert.equal((await tell(scene, idToken)).status, 400)
  assert.ok(await isIn(user))
})

test('thirty made-up logout tokens cause at most ten key fetches, even while the keys are unavailable', async t => {
  for (const isAway of [false, true]) {
    const scene = await openRelyingParty(t)
    if (isAway) scene.op.answer('keys', { kind: 'json', status: 500, body: {} })
    for (let n = 0; n < 30; n++) {
      const token = await scene.op.sign(logoutClaims(scene), { kid: `made-up-${n}` })
      assert.equal((await tell(scene, token)).status, 400)
    }
    assert.ok(scene.op.callsTo('keys').length <= 10, String(scene.op.callsTo('keys').length))
    scene.op.answer('keys', { kind: 'normal' })
    scene.rp.passSeconds(2)
    await scene.accepts()
  }
})

test('a logout token without exp is accepted only if its iat is recent and its jti is new', async t => {
  const scene = await openRelyingParty(t)
  const [user, later] = [await scene.accepts(), await scene.accepts()]
  const { exp: _, ...claims } = logoutClaims(scene)
  const token = await scene.op.sign(claims)
  assert.equal((await tell(scene, token)).status, 200)
  assert.ok(!(await isIn(user)) && !(await isIn(later)))
  const again = await scene.accepts()
  assert.equal((await tell(scene, token)).status, 400)
  const old = { ...claims, jti: randomUUID(), iat: Number(claims.iat) - 301 }
  assert.equal((await tell(scene, await scene.op.sign(old))).status, 400)
  assert.ok(await isIn(again))
})

function without(claims: JWTPayload, name: string): JWTPayload {
  return Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name))
}

const WRONG_CLAIMS: [claim: string, make: (claims: JWTPayload, scene: RelyingParty) => string | Promise<string>][] = [
  ['jti', (claims, { op }) => op.sign(without(claims, 'jti'))],
  ['iss', (claims, { op }) => op.sign({ ...claims, iss: 'https://somebody.else' })],
  ['aud', (claims, { op }) => op.sign({ ...claims, aud: 'another' })],
  ['iat', (claims, { op }) => op.sign({ ...claims, iat: Number(claims.iat) - 400 })],
  ['iat', (claims, { op }) => op.sign({ ...claims, iat: Number(claims.iat) + 90 })],
  ['exp', (claims, { op }) => op.sign({ ...claims, exp: Number(claims.iat) - 90 })],
  ['events', (claims, { op }) => op.sign({ ...claims, events: {} })],
  ['nonce', (claims, { op }) => op.sign({ ...claims, nonce: 'n' })],
  ['sub', (claims, { op }) => op.sign(without(claims, 'sub'))],
  ['typ', (claims, { op }) => op.sign(claims, { typ: 'at+jwt' })],
  ['alg', claims => unsigned(claims)],
]

test('the log names the wrong claim of a rejected logout token', async t => {
  const scene = await openRelyingParty(t)
  const refused = async (claim: string, token: string) => {
    const before = scene.rp.lines.length
    assert.equal((await tell(scene, token)).status, 400, claim)
    const line = scene.rp.lines.slice(before).find(({ event }) => event === 'logout_token_refused')
    assert.equal(line?.fields.claim, claim, JSON.stringify(scene.rp.lines.slice(before)))
    assert.match(String(line?.fields.detail), /^the logout token is invalid: /)
    // After a few of the same kind, the log would count the rest.
    scene.rp.passSeconds(60)
  }
  const used = await scene.op.sign(logoutClaims(scene))
  await tell(scene, used)
  await refused('jti', used)
  for (const [claim, make] of WRONG_CLAIMS) await refused(claim, await make(logoutClaims(scene), scene))
})

test('a logout token for one device keeps personal keys, and one for the user on all devices revokes them', async t => {
  const scene = await openRelyingParty(t, {}, { rules: [{ path: '/', roles: ['*'], keys: 'personal' }] })
  const user = await scene.accepts()
  const headers = { origin: scene.rp.url }
  const { text } = await user.post('/_menshen/account/keys', { name: 'laptop', days: '30' }, { headers })
  const [key = ''] = /mk_[\w-]{43}/.exec(text) ?? []
  // There is no application: what is admitted is not found.
  const bring = async () => (await scene.visitor().get('/x', { headers: { 'x-menshen-key': key } })).status
  assert.equal(await bring(), 404)
  const sid = 'another'
  assert.equal(
    (await tell(scene, await scene.op.sign({ ...logoutClaims(scene), sid }, { typ: 'logout+jwt' }))).status,
    200,
  )
  assert.equal(await bring(), 404)
  assert.equal((await tell(scene, await scene.op.sign(logoutClaims(scene), { typ: 'logout+jwt' }))).status, 200)
  assert.equal(await bring(), 401)
})
