// What somebody would send in place of a right id_token: each is a token_error, user info is not asked for, and nothing of it
// is in the log.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JWTPayload } from 'jose'
import { newSigningKey, publicPem, signedWithSecret, signText, signWith, unsigned } from '../kit/oidc/oidc-keys.ts'
import { OIDC_CLIENT, type StrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openRelyingParty } from './relying-party.ts'

const NO_LIMIT = { RATE_LIMIT_PER_MINUTE: '0' }
const ec = await newSigningKey('e1', 'ES256')
const stranger = await newSigningKey('key-1')

type Make = (claims: JWTPayload, op: StrictOidcServer) => string | Promise<string>

const FORGED: Record<string, Make> = {
  'HS256 with the public key as PEM': (claims, { key }) => signedWithSecret(claims, publicPem(key), 'key-1'),
  'HS256 with the public key as JWK': (claims, { key }) => signedWithSecret(claims, JSON.stringify(key.jwk), 'key-1'),
  'HS256 with the modulus': (claims, { key }) => signedWithSecret(claims, String(key.jwk.n), 'key-1'),
  'HS256 with the client secret': claims => signedWithSecret(claims, OIDC_CLIENT.secret, 'key-1'),
  'HS256 with an empty secret': claims => signedWithSecret(claims, '', 'key-1'),
  'alg none': claims => unsigned(claims),
  'alg None': claims => unsigned(claims, { alg: 'None', kid: 'key-1' }),
  'alg nOnE': claims => unsigned(claims, { alg: 'nOnE' }),
  'alg empty': claims => unsigned(claims, { alg: '' }),
  'alg null': claims => unsigned(claims, { alg: null }),
  'alg as a list': claims => unsigned(claims, { alg: ['RS256'] }),
  'no alg': claims => unsigned(claims, {}),
  'RS256 without a signature': claims => unsigned(claims, { alg: 'RS256', kid: 'key-1' }),
  'a key in the token’s own header': claims => signWith(stranger, claims, { jwk: stranger.jwk }),
  'a key at an address in the token’s own header': (claims, { issuer }) =>
    signWith(stranger, claims, { jku: `${issuer}/evil`, x5u: `${issuer}/evil`, kid: `${issuer}/evil` }),
  'an algorithm that the metadata does not list': claims => signWith(ec, claims),
  'an unknown critical extension': async (claims, op) => {
    const [, payload, signature] = (await op.sign(claims)).split('.')
    return `${Buffer.from('{"alg":"RS256","kid":"key-1","crit":["x"],"x":1}').toString('base64url')}.${payload}.${signature}`
  },
  'another payload with the signature of a valid token': async (claims, op) => {
    const [head, , signature] = (await op.sign({ ...claims, sub: 'somebody' })).split('.')
    return `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
  },
  'five parts, as if encrypted': () =>
    'eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA',
  'four parts': async (claims, op) => `${await op.sign(claims)}.x`,
  'a line break in it': async (claims, op) => `${await op.sign(claims)}\n`,
  '1 MB': async (claims, op) => op.sign({ ...claims, x: 'y'.repeat(700_000) }),
  '1 MB of dots': () => '.'.repeat(1_000_000),
  'a sub that is 20,000 levels deep': (claims, { key }) => signText(key, withDeep(claims, 'sub')),
  'claims that are a list': (claims, { key }) => signText(key, JSON.stringify([claims])),
  'claims that are not JSON': (_claims, { key }) => signText(key, 'sub=u'),
  'claims in __proto__': (claims, { key }) => signText(key, `{"__proto__":${JSON.stringify(claims)}}`),
}

const LEVELS = 20_000

function withDeep(claims: JWTPayload, name: string): string {
  const { [name]: _, ...others } = claims
  return JSON.stringify(others).replace('{', `{"${name}":${'['.repeat(LEVELS)}${']'.repeat(LEVELS)},`)
}

for (const [name, make] of Object.entries(FORGED))
  test(`an invalid id_token is refused: ${name}`, async t => {
    const { op, rejects, accepts } = await openRelyingParty(t)
    op.published = [op.key, ec]
    op.bend.sign = claims => make(claims, op)
    await rejects()
    op.bend = {}
    await accepts()
    assert.deepEqual(op.callsTo('unknown'), [])
  })

test('an id_token with claims of wrong types or values is refused', async t => {
  const { op, rp, rejects, accepts } = await openRelyingParty(t, NO_LIMIT)
  const now = Math.floor(rp.now() / 1000)
  const { id } = OIDC_CLIENT
  for (const wrong of [
    { iss: undefined },
    { iss: [op.issuer] },
    { iss: `${op.issuer}/` },
    { iss: op.issuer.toUpperCase() },
    { aud: undefined },
    { aud: [] },
    { aud: [`${id}1`] },
    { aud: { [id]: true } },
    { aud: [id, 'another'] },
    { aud: [id, 'another'], azp: 'another' },
    { azp: 'another' },
    { azp: [id] },
    { azp: null },
    { sub: '' },
    { sub: 7 },
    { sub: null },
    { sub: ['u'] },
    { sub: 'x'.repeat(256) },
    { nonce: null },
    { nonce: ['n'] },
    { exp: undefined },
    { exp: String(now + 600) },
    { exp: now - 60 },
    { iat: String(now) },
    { iat: now + 61 },
    { nbf: now + 61 },
    { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' },
    { at_hash: '' },
    { at_hash: null },
  ]) {
    op.bend.claims = claims => ({ ...claims, ...(wrong as JWTPayload) })
    await rejects('token_error', JSON.stringify(wrong))
  }
  for (const right of [
    { exp: now - 59 },
    { iat: now + 60 },
    { iat: now - 86_400 },
    { aud: [id] },
    { aud: [id, 'another'], azp: id },
    { azp: id },
    { at_hash: undefined },
    { sub: 'sub-248289761001', extra: { __proto__: null, deep: [[[]]] } },
  ]) {
    op.bend.claims = claims => ({ ...claims, ...(right as JWTPayload) })
    await accepts(JSON.stringify(right))
  }
})

test('a deeply nested claim that is not used does not prevent the sign-in', async t => {
  const { op, accepts } = await openRelyingParty(t)
  op.bend.sign = claims => signText(op.key, withDeep(claims, 'extra'))
  await accepts()
})

test('a token response with a missing or invalid id_token is refused', async t => {
  const { op, rejects } = await openRelyingParty(t, NO_LIMIT)
  for (const odd of [undefined, null, '', 7, true, [], {}, ['a.b.c'], 'a', 'a.b', 'a.b.c', '..', ' ']) {
    op.bend.token = right => ({ ...right, id_token: odd })
    await rejects('token_error', JSON.stringify(odd))
  }
})

test('thirty made-up key IDs cause at most ten fetches, and a new key is accepted a minute later', async t => {
  const { op, rp, accepts, rejects } = await openRelyingParty(t, NO_LIMIT)
  await accepts()
  for (let n = 0; n < 30; n++) {
    op.bend.sign = claims => op.sign(claims, { kid: `made-up-${n}` })
    await rejects('token_error', String(n))
    op.bend = {}
    if (n % 10 === 0) await accepts()
  }
  assert.ok(op.callsTo('keys').length <= 10, String(op.callsTo('keys').length))
  // Whoever made them up keeps nobody else out for long.
  op.key = await newSigningKey('key-2')
  op.published = [op.key]
  rp.passSeconds(60)
  await accepts()
})

test('an id_token with a manipulated kid is refused, and no unknown address is requested', async t => {
  const { op, accepts, rejects } = await openRelyingParty(t, NO_LIMIT)
  for (const kid of [
    '../../etc/passwd',
    '__proto__',
    'constructor',
    '',
    'key-1\u0000',
    'KEY-1',
    '0',
    'x'.repeat(20_000),
  ]) {
    op.bend.sign = claims => op.sign(claims, { kid })
    await rejects('token_error', kid.slice(0, 20))
  }
  for (const kid of [1, null, ['key-1'], {}, true]) {
    op.bend.sign = claims => op.sign(claims, { kid })
    await rejects('token_error', JSON.stringify(kid))
  }
  op.bend = {}
  await accepts()
  assert.deepEqual(op.callsTo('unknown'), [])
})

const CAUSES: Record<string, readonly [Make, RegExp]> = {
  'an encrypted id_token': [
    () => 'eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA',
    /form \(encrypted.*turn encryption off/,
  ],
  HS256: [
    claims => signedWithSecret(claims, OIDC_CLIENT.secret, 'key-1'),
    /alg \(signed with HS256.*set RS256 or ES256 for this client/,
  ],
  'no signature': [claims => unsigned(claims), /alg \(not signed/],
  'another algorithm': [claims => signWith(ec, claims), /alg \(signed with ES256, which/],
  'a key that is not published': [
    claims => signWith(stranger, claims, { kid: 'other' }),
    /key \(the provider does not publish/,
  ],
  'a signature by another key': [
    claims => signWith(stranger, claims),
    /signature \(it does not match the published keys\)/,
  ],
  'a local clock that is ahead': [
    (claims, op) => op.sign({ ...claims, exp: Number(claims.iat) - 90 }),
    /exp \(expired 90 s ago: this machine's clock is ahead/,
  ],
  'a local clock that is behind': [
    (claims, op) => op.sign({ ...claims, iat: Number(claims.iat) + 90 }),
    /iat \(issued 90 s in the future: this machine's clock is behind/,
  ],
  'a claim that is missing': [({ sub: _, ...claims }, op) => op.sign(claims), /sub \(missing\)/],
}

for (const [name, [make, says]] of Object.entries(CAUSES))
  test(`the log names the cause of a rejected id_token without library error codes: ${name}`, async t => {
    const { op, rp, rejects } = await openRelyingParty(t)
    op.bend.sign = claims => make(claims, op)
    await rejects()
    const detail = String(rp.lines.find(({ event }) => event === 'sign_in_failed')?.fields.detail)
    assert.match(detail, says)
    assert.doesNotMatch(detail, /ERR_/)
  })
