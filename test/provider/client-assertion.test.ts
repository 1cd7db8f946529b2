// The proof of private_key_jwt: whom it names, by which key and algorithm it is signed, and which keys are refused.
import assert from 'node:assert/strict'
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { readSettings } from '../../src/config/read.ts'
import { requestAsClient } from '../../src/provider/client-auth.ts'
import type { Metadata } from '../../src/provider/discovery.ts'
import { planNamedProvider, planProvider } from '../../src/provider/plan.ts'
import { takeRsaPair } from '../kit/rsa-keys.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority } from '../proxies/certificates.ts'

const ISSUER = 'https://idp.example.com'
const TOKEN_URL = `${ISSUER}/token`
const NOW = Date.parse('2026-03-01T08:00:00Z')
const KNOWN: Metadata = { issuer: ISSUER, endpoints: { token: TOKEN_URL }, sendsIssuer: false }

const rsa = takeRsaPair().privateKey
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
const ed25519 = generateKeyPairSync('ed25519').privateKey
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

function fileWith(t: TestContext, text: string): string {
  const file = join(tempFolder(t), 'key')
  writeFileSync(file, text)
  return file
}

/** What the provider gets to see, verified as it would. */
async function proof(key: KeyObject, config: ProviderConfig, known: Partial<Metadata> = {}, url = TOKEN_URL) {
  const plan = planNamedProvider('p', { preset: 'oidc', issuer: ISSUER, clientId: 'app-1', ...config })
  let sent = new URLSearchParams()
  const fetch = async (_url: string, init: { body?: URLSearchParams | string } = {}) => {
    sent = new URLSearchParams(String(init.body))
    return new Response('{}')
  }
  await requestAsClient({ plan, now: () => NOW, fetch }, { ...KNOWN, ...known }, url, { grant_type: 'x' })
  const assertion = sent.get('client_assertion') ?? ''
  assert.equal(sent.get('client_assertion_type'), 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  const { payload } = await jwtVerify(assertion, createPublicKey(key), { currentDate: new Date(NOW) })
  assert.deepEqual([payload.iss, payload.sub, typeof payload.jti], ['app-1', 'app-1', 'string'])
  return { header: decodeProtectedHeader(assertion), aud: payload.aud }
}

test('the audience of a client assertion is the issuer, the token endpoint or both, depending on the setting and the preset', async t => {
  const clientKeyFile = fileWith(t, pem(rsa))
  assert.equal((await proof(rsa, { clientKeyFile })).aud, ISSUER)
  const wanted = (clientAssertionAudience: 'issuer' | 'token_endpoint' | 'both') =>
    proof(rsa, { clientKeyFile, clientAssertionAudience })
  assert.equal((await wanted('token_endpoint')).aud, TOKEN_URL)
  assert.deepEqual((await wanted('both')).aud, [ISSUER, TOKEN_URL])
  const preset = (preset: string, vars = {}) =>
    proof(rsa, { preset, clientKeyFile, vars: { auth_url: ISSUER, ...vars } }, {}, `${ISSUER}/revoke`)
  assert.equal((await preset('okta')).aud, TOKEN_URL)
  // Where no issuer is known, the address is all that there is.
  const { issuer: _, ...unnamed } = KNOWN
  const config = { preset: 'oauth2', clientKeyFile, tokenUrl: TOKEN_URL, authorizationUrl: `${ISSUER}/a` }
  const plan = planNamedProvider('p', { ...config, clientId: 'app-1' })
  let body = ''
  const fetch = async (_url: string, init: { body?: URLSearchParams | string } = {}) => {
    body = String(init.body)
    return new Response('{}')
  }
  await requestAsClient({ plan, now: () => NOW, fetch }, unnamed, TOKEN_URL, {})
  const { payload } = await jwtVerify(new URLSearchParams(body).get('client_assertion') ?? '', createPublicKey(rsa), {
    currentDate: new Date(NOW),
  })
  assert.equal(payload.aud, TOKEN_URL)
})

test('the algorithm of a client assertion depends on the key, the provider’s supported algorithms and the operator’s setting', async t => {
  const algorithm = async (key: KeyObject, config: ProviderConfig = {}, taken?: string[]) => {
    const known = taken ? { assertionAlgorithms: taken } : {}
    return (await proof(key, { clientKeyFile: fileWith(t, pem(key)), ...config }, known)).header.alg
  }
  assert.equal(await algorithm(rsa), 'RS256')
  assert.equal(await algorithm(p256), 'ES256')
  assert.equal(await algorithm(p384), 'ES384')
  assert.equal(await algorithm(ed25519), 'EdDSA')
  assert.equal(await algorithm(rsa, {}, ['PS256', 'ES256']), 'PS256')
  assert.equal(await algorithm(ed25519, {}, ['Ed25519']), 'Ed25519')
  assert.equal(await algorithm(rsa, { clientAssertionAlgorithm: 'PS512' }, ['RS256']), 'PS512')
  const entra = { preset: 'entra', vars: { tenant: 't' } }
  assert.equal(await algorithm(rsa, entra), 'PS256')
  assert.equal(await algorithm(p256, entra), 'ES256')
})

test('the kid of a client assertion comes from the key file or a setting, and a certificate adds its thumbprint', async t => {
  const jwk = fileWith(t, JSON.stringify({ ...p256.export({ format: 'jwk' }), kid: 'from-jwk', alg: 'ES256' }))
  assert.equal((await proof(p256, { clientKeyFile: jwk })).header.kid, 'from-jwk')
  assert.equal((await proof(p256, { clientKeyFile: jwk, clientKeyId: 'mine' })).header.kid, 'mine')
  const zitadel = fileWith(t, JSON.stringify({ type: 'application', keyId: '2398', key: pkcs1(rsa), appId: '1' }))
  assert.equal((await proof(rsa, { clientKeyFile: zitadel })).header.kid, '2398')
  const plain = await proof(rsa, { clientKeyFile: fileWith(t, pem(rsa)) })
  assert.deepEqual([plain.header.kid, plain.header['x5t#S256']], [undefined, undefined])

  const { certFile, keyFile } = makeAuthority(tempFolder(t))
  const { raw } = new X509Certificate(readFileSync(certFile))
  const { header } = await proof(createPrivateKey(readFileSync(keyFile)), {
    clientKeyFile: keyFile,
    clientCertFile: certFile,
  })
  assert.equal(header['x5t#S256'], createHash('sha256').update(raw).digest('base64url'))
})

const pkcs1 = (key: KeyObject) => key.export({ type: 'pkcs1', format: 'pem' }).toString()

test('an unusable client key is refused before any sign-in, and a usable one replaces the preset’s client authentication', t => {
  const { certFile } = makeAuthority(tempFolder(t))
  const refused = (config: ProviderConfig, says: RegExp) =>
    assert.throws(() => planNamedProvider('p', { preset: 'oidc', issuer: ISSUER, clientId: 'a', ...config }), says)
  refused({ clientKeyFile: fileWith(t, 'garbage') }, /CLIENT_KEY_FILE contains no private key/)
  refused({ clientKeyFile: fileWith(t, '{"kty":"EC"}') }, /CLIENT_KEY_FILE contains no private key/)
  refused({ clientKeyFile: fileWith(t, '-----BEGIN PRIVATE KEY-----\nAA==') }, /contains a broken key/)
  const x25519 = generateKeyPairSync('x25519').privateKey
  refused({ clientKeyFile: fileWith(t, pem(x25519)) }, /contains another kind of key/)
  const clientKeyFile = fileWith(t, pem(rsa))
  refused({ clientKeyFile, clientCertFile: certFile }, /do not match/)
  refused({ clientKeyFile, clientCertFile: clientKeyFile }, /CLIENT_CERT_FILE contains no certificate/)
  refused({ clientKeyFile, clientAssertionAlgorithm: 'ES256' }, /CLIENT_ASSERTION_ALGORITHM is ES256.*expected RS256/)
  const entra = planNamedProvider('p', { preset: 'entra', vars: { tenant: 't' }, clientId: 'a', clientKeyFile })
  assert.deepEqual([entra.clientAuth, entra.missing], ['private_key_jwt', []])
})

test('client assertion settings can be given as environment variables', t => {
  const { certFile, keyFile } = makeAuthority(tempFolder(t))
  const settings = readSettings({
    PROVIDER: 'oidc',
    AUTH_URL: ISSUER,
    CLIENT_ID: 'a',
    CLIENT_KEY_FILE: keyFile,
    CLIENT_CERT_FILE: certFile,
    CLIENT_KEY_ID: 'k',
    CLIENT_ASSERTION_AUDIENCE: 'both',
    CLIENT_ASSERTION_ALGORITHM: 'ES256',
  })
  const { assertion } = planProvider(undefined, settings)
  assert.deepEqual([assertion.keyId, assertion.audience, assertion.algorithm], ['k', 'both', 'ES256'])
  assert.match(assertion.thumbprint ?? '', /^[\w-]{43}$/)
})
