// The id_token: each of its checks, and what an attacker would send instead of a right one.
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { exportJWK, exportSPKI, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose'
import type { Metadata } from '../../src/provider/discovery.ts'
import {
  checkIdToken,
  matchesIssuer,
  type TokenChecks,
  unverifiedClaims,
  verifySigned,
} from '../../src/provider/id-token.ts'
import { createProviderKeys } from '../../src/provider/jwks.ts'
import { signText } from '../kit/oidc/oidc-keys.ts'
import { takeRs256Pair } from '../kit/rsa-keys.ts'

const NOW = Date.UTC(2026, 10, 15)
const SECONDS = NOW / 1000
const ISSUER = 'https://idp.example.com'
const CLIENT_ID = 'app-1'
const rsa = takeRs256Pair()
const other = takeRs256Pair()
const ec = await generateKeyPair('ES256')
const RSA_JWK = { ...(await exportJWK(rsa.publicKey)), kid: 'k1' }
const EC_JWK = { ...(await exportJWK(ec.publicKey)), kid: 'e1' }
const OTHER_JWK = { ...(await exportJWK(other.publicKey)), kid: 'k2' }

const CLAIMS = { iss: ISSUER, aud: CLIENT_ID, sub: 'u-1', iat: SECONDS, exp: SECONDS + 300, nonce: 'n' }
const METADATA: Metadata = {
  endpoints: {},
  issuer: ISSUER,
  sendsIssuer: false,
  signingAlgorithms: ['RS256', 'ES256', 'HS256', 'none'],
}

function checks(keys: object[] = [RSA_JWK, EC_JWK], alsoIssuers: string[] = []): TokenChecks {
  const fetch = async () => Response.json({ keys })
  return {
    plan: { clientId: CLIENT_ID, alsoIssuers },
    keys: createProviderKeys({ url: async () => 'https://idp.example.com/keys', fetch, now: () => NOW }),
    now: () => NOW,
  }
}

function sign(claims: object = {}, header: Partial<JWTHeaderParameters> = {}, key = rsa.privateKey): Promise<string> {
  const given = Object.entries({ ...CLAIMS, ...claims }).filter(([, value]) => value !== undefined)
  return new SignJWT(Object.fromEntries(given)).setProtectedHeader({ alg: 'RS256', kid: 'k1', ...header }).sign(key)
}

function check(token: string, keys = checks(), metadata = METADATA) {
  return checkIdToken(keys, metadata, token, { isNonce: given => given === 'n', accessToken: 'at' })
}

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const refused = { code: 'provider_answer' }

test('a valid id_token returns its claims', async () => {
  assert.equal((await check(await sign())).sub, 'u-1')
  assert.equal((await check(await sign({}, { alg: 'ES256', kid: 'e1' }, ec.privateKey))).sub, 'u-1')
  assert.equal((await check(await sign({ aud: [CLIENT_ID] }))).sub, 'u-1')
  assert.equal((await check(await sign({ aud: [CLIENT_ID, 'x'], azp: CLIENT_ID }))).sub, 'u-1')
})

test('an integer that a number cannot hold keeps every digit, and times stay numbers', async () => {
  const text = JSON.stringify({ ...CLAIMS, id: 7, auth_time: SECONDS })
  const payload = text.replace('"id":7', '"id":1234567890123456781,"nested":{"ids":[9007199254740993,8]}')
  const key = { kid: 'k1', alg: 'RS256', privateKey: rsa.privateKey, jwk: RSA_JWK }
  const token = await signText(key, payload)
  const ids = { id: '1234567890123456781', nested: { ids: ['9007199254740993', 8] } }
  const expected = { ...CLAIMS, auth_time: SECONDS, ...ids }
  assert.deepEqual(await verifySigned(checks(), METADATA, token, ['sub']), expected)
  assert.deepEqual(unverifiedClaims(token), expected)
  const endless = await signText(key, text.replace(`"exp":${CLAIMS.exp}`, '"exp":90071992547409930'))
  assert.equal((await verifySigned(checks(), METADATA, endless, ['exp'])).exp, Number('90071992547409930'))
  const numeric = await signText(key, text.replace('"sub":"u-1"', '"sub":1234567890123456781'))
  await assert.rejects(check(numeric), refused)
})

test('an id_token is refused for each wrong or missing claim', async () => {
  for (const wrong of [
    { iss: `${ISSUER}1` },
    { iss: `${ISSUER}/` },
    { iss: undefined },
    { iss: [ISSUER] },
    { aud: `${CLIENT_ID}1` },
    { aud: [] },
    { aud: undefined },
    { aud: [CLIENT_ID, 'other'] },
    { azp: 'other' },
    { aud: [CLIENT_ID, 'other'], azp: 'other' },
    { sub: undefined },
    { sub: '' },
    { sub: 7 },
    { sub: 'x'.repeat(256) },
    { nonce: 'n1' },
    { nonce: undefined },
    { exp: SECONDS - 61 },
    { exp: undefined },
    { exp: 'later' },
    { iat: undefined },
    { iat: SECONDS + 61 },
    { iat: 'now' },
    { nbf: SECONDS + 61 },
    { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' },
    { at_hash: 7 },
  ])
    await assert.rejects(check(await sign(wrong)), refused, JSON.stringify(wrong))
})

test('an id_token is accepted if the clocks differ by 59 seconds, and refused if they differ by 61', async () => {
  const tokens = [
    (by: number) => ({ exp: SECONDS - by }),
    (by: number) => ({ iat: SECONDS + by }),
    (by: number) => ({ nbf: SECONDS + by }),
  ]
  for (const times of tokens) {
    await check(await sign(times(59)))
    await assert.rejects(check(await sign(times(61))), refused)
  }
})

test('at_hash must be the left half of the access token’s hash, by the hash function of the signature algorithm', async () => {
  const half = (algorithm: string) => {
    const digest = createHash(algorithm).update('at').digest()
    return digest.subarray(0, digest.length / 2).toString('base64url')
  }
  await check(await sign({ at_hash: half('sha256') }))
  await assert.rejects(check(await sign({ at_hash: half('sha512') })), refused)
})

test('an id_token that is unsigned, malformed, signed by another key or with the public key as a secret is refused', async () => {
  const body = encoded(CLAIMS)
  const pem = await exportSPKI(rsa.publicKey)
  const hmac = (secret: string | Buffer, kid = 'k1') => {
    const head = encoded({ alg: 'HS256', kid })
    return `${head}.${body}.${createHmac('sha256', secret).update(`${head}.${body}`).digest('base64url')}`
  }
  const right = await sign()
  const [head = '', , signature = ''] = right.split('.')
  for (const [name, token] of Object.entries({
    'alg none': `${encoded({ alg: 'none' })}.${body}.`,
    'alg NoNe': `${encoded({ alg: 'NoNe', kid: 'k1' })}.${body}.`,
    'no signature': `${head}.${body}.`,
    'another body': `${head}.${encoded({ ...CLAIMS, sub: 'admin' })}.${signature}`,
    'public key as PEM secret': hmac(pem),
    'public key as JWK secret': hmac(JSON.stringify(RSA_JWK)),
    'modulus as secret': hmac(Buffer.from(RSA_JWK.n ?? '', 'base64url')),
    'empty secret': hmac(''),
    "another's key": await sign({}, {}, other.privateKey),
    'its own key in the header': await sign({}, { jwk: OTHER_JWK, jku: 'https://evil.example' }, other.privateKey),
    'algorithm of another key': await sign({}, { alg: 'ES256', kid: 'k1' }, ec.privateKey),
    'unknown critical header': await sign({}, { crit: ['x'], x: 1 }).catch(
      () => `${encoded({ alg: 'RS256', crit: ['x'], x: 1 })}.${body}.AA`,
    ),
    empty: '',
    'two parts': 'a.b',
    'no JSON': 'a.b.c',
    'an array': `${head}.${Buffer.from('[]').toString('base64url')}.${signature}`,
    '1 MB': `${head}.${'A'.repeat(1_000_000)}.${signature}`,
    '1 MB and right': await sign({ x: 'y'.repeat(1_000_000) }),
  }))
    await assert.rejects(check(token), refused, name)
})

test('an id_token with a signature algorithm that the metadata does not list is refused', async () => {
  const es256 = await sign({}, { alg: 'ES256', kid: 'e1' }, ec.privateKey)
  await assert.rejects(check(es256, checks(), { ...METADATA, signingAlgorithms: ['RS256'] }), refused)
  await assert.rejects(check(await sign(), checks(), { ...METADATA, signingAlgorithms: ['HS256'] }), refused)
  // A provider without metadata promises nothing: what only it can sign with is right.
  const { signingAlgorithms: _, ...silent } = METADATA
  await check(es256, checks(), silent)
})

test('an id_token without a kid is accepted with one matching key and refused with several', async () => {
  const token = await sign({}, { kid: undefined as unknown as string })
  await check(token, checks([RSA_JWK, EC_JWK]))
  await assert.rejects(check(token, checks([RSA_JWK, OTHER_JWK])), refused)
})

test('an alternative issuer name is accepted only if alsoIssuers lists it', async () => {
  const token = await sign({ iss: 'accounts.example.com' })
  await assert.rejects(check(token), refused)
  await check(token, checks(undefined, ['accounts.example.com']))
})

test('the tenant placeholder in an issuer matches only the tenant of the token', async () => {
  const template = 'https://login.example.com/{tenantid}/v2.0'
  const metadata = { ...METADATA, issuer: template }
  const keys = checks(undefined, [template])
  await check(await sign({ iss: 'https://login.example.com/t-1/v2.0', tid: 't-1' }), keys, metadata)
  for (const wrong of [
    { iss: 'https://login.example.com/t-2/v2.0', tid: 't-1' },
    { iss: 'https://login.example.com/t-1/v2.0' },
    { iss: template, tid: '{tenantid}' },
    { iss: template },
    { iss: 'https://login.example.com/a/b/v2.0', tid: 'a/b' },
    { iss: 'https://login.example.com/$&/v2.0', tid: '$&' },
  ])
    await assert.rejects(check(await sign(wrong), keys, metadata), refused, JSON.stringify(wrong))
  assert.ok(matchesIssuer('https://login.example.com/t-9/v2.0', template, []))
  for (const name of [
    template,
    'https://login.example.com//v2.0',
    'https://login.example.com/a/b/v2.0',
    'https://evil.example/t/v2.0',
  ])
    assert.ok(!matchesIssuer(name, template, []), name)
})

test('verifySigned accepts a token for another audience only if that audience is given', async () => {
  const token = await sign({ aud: 'https://api.example.com' })
  await assert.rejects(verifySigned(checks(), METADATA, token, ['sub']), refused)
  const claims = await verifySigned(checks(), METADATA, token, ['sub'], { audience: ['https://api.example.com'] })
  assert.equal(claims.sub, 'u-1')
})
