// oidc-provider with what FAPI 2.0 asks for: pushed authorization requests, mutual TLS, and DPoP with nonces; each alone and all
// at once, from the sign-in to the sign-out.

import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { remedyForFailure } from '../../src/doctor/sign-in-remedy.ts'
import { InvalidToken } from '../../src/provider/id-token.ts'
import { phraseIn } from '../../src/text/text.ts'
import { freePort } from '../kit/free-port.ts'
import { type Environment, startInstance } from '../kit/instance.ts'
import { type LiveSetUpOptions, OFFLINE, setUpLive } from '../kit/live/live-set-up.ts'
import { ALICE, CLIENT_KEY_PEM, CLIENTS, DUE_SECONDS, startOidcProvider } from '../kit/live/oidc-provider.ts'
import { createPerson } from '../kit/live/person.ts'
import { takeRsaPair } from '../kit/rsa-keys.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const SECRET = 'a text of thirty-two characters or more'
type Features = NonNullable<Configuration['features']>

const PAR: Features = { pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true } }
const DPOP: Features = { dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true } }
const MTLS: Features = {
  mTLS: {
    enabled: true,
    certificateBoundAccessTokens: true,
    selfSignedTlsClientAuth: true,
    tlsClientAuth: true,
    getCertificate: ({ req }) => {
      const { raw } = (req.socket as TLSSocket).getPeerCertificate()
      return raw && new X509Certificate(raw).toString()
    },
    certificateAuthorized: ({ req }) => (req.socket as TLSSocket).authorized,
    certificateSubjectMatches: ({ req }, property, expected) =>
      property === 'tls_client_auth_subject_dn' &&
      (req.socket as TLSSocket).getPeerCertificate().subject.CN === expected,
  },
}
const METHODS: NonNullable<Configuration['clientAuthMethods']> = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
  'none',
]
const FAPI = { id: 'gw-fapi' }
const BOUND_TO_KEY = { client_id: FAPI.id, client_secret: 'fapi-secret', dpop_bound_access_tokens: true }

/** A provider with https whose authority this process trusts, and the certificate of a client. */
function withTls(t: TestContext) {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const server = makeCertificate(folder, 'server', ca)
  const client = makeCertificate(folder, 'gateway', ca)
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, readFileSync(ca.certFile, 'utf8')])
  t.after(() => setDefaultCACertificates(before))
  const tls = {
    cert: readFileSync(server.certFile),
    key: readFileSync(server.keyFile),
    ca: readFileSync(ca.certFile),
    requestCert: true,
    rejectUnauthorized: false,
  }
  const env = { CLIENT_CERT_FILE: client.certFile, CLIENT_KEY_FILE: client.keyFile, SECRET }
  return { tls, env, certFile: client.certFile, folder, ca }
}

const BY_AUTHORITY: ClientMetadata = {
  client_id: FAPI.id,
  token_endpoint_auth_method: 'tls_client_auth',
  tls_client_auth_subject_dn: 'gateway',
  tls_client_certificate_bound_access_tokens: true,
}

function selfSigned(certFile: string): ClientMetadata {
  const certificate = new X509Certificate(readFileSync(certFile))
  const jwk = { ...certificate.publicKey.export({ format: 'jwk' }), x5c: [certificate.raw.toString('base64')] }
  return {
    client_id: FAPI.id,
    token_endpoint_auth_method: 'self_signed_tls_client_auth',
    tls_client_certificate_bound_access_tokens: true,
    jwks: { keys: [jwk] } as NonNullable<ClientMetadata['jwks']>,
  }
}

function keyFile(t: TestContext): string {
  const file = join(tempFolder(t), 'client.pem')
  writeFileSync(file, CLIENT_KEY_PEM)
  return file
}

const PROFILES: Record<string, (t: TestContext) => LiveSetUpOptions> = {
  'pushed authorization requests, which the metadata demands': () => ({ configuration: { features: PAR } }),
  'pushed authorization requests with a client that signs': t => ({
    configuration: { features: PAR },
    client: CLIENTS.key,
    env: { CLIENT_KEY_FILE: keyFile(t), SECRET },
  }),
  'DPoP with a nonce in every proof': () => ({
    configuration: { features: DPOP },
    registered: { ...BOUND_TO_KEY, token_endpoint_auth_method: 'client_secret_basic' },
    client: { ...FAPI, secret: BOUND_TO_KEY.client_secret },
    env: { DPOP: 'on' },
  }),
  'DPoP with a public client, whose refresh tokens are bound to the key too': () => ({
    configuration: { features: DPOP },
    registered: { client_id: FAPI.id, dpop_bound_access_tokens: true },
    client: FAPI,
    env: { DPOP: 'on', CLIENT_AUTH: 'none', SECRET },
  }),
  'mutual TLS by a certificate of an authority, to which the tokens are bound': t => {
    const { tls, env } = withTls(t)
    return {
      configuration: { features: MTLS, clientAuthMethods: METHODS },
      tls,
      registered: BY_AUTHORITY,
      client: FAPI,
      env: { ...env, CLIENT_AUTH: 'tls_client_auth' },
    }
  },
  'mutual TLS by a certificate that is registered': t => {
    const { tls, env, certFile } = withTls(t)
    return {
      configuration: { features: MTLS, clientAuthMethods: METHODS },
      tls,
      registered: selfSigned(certFile),
      client: FAPI,
      env: { ...env, CLIENT_AUTH: 'self_signed_tls_client_auth' },
    }
  },
  'all three at once': t => {
    const { tls, env } = withTls(t)
    const { tls_client_certificate_bound_access_tokens: _, ...client } = BY_AUTHORITY
    return {
      configuration: { features: { ...PAR, ...DPOP, ...MTLS } as Features, clientAuthMethods: METHODS },
      tls,
      registered: { ...client, dpop_bound_access_tokens: true },
      client: FAPI,
      env: { ...env, CLIENT_AUTH: 'tls_client_auth', PAR: 'on', DPOP: 'on' },
    }
  },
}

for (const [profile, wishes] of Object.entries(PROFILES))
  test(`sign-in, refresh with rotation and sign-out work with ${profile}`, async t => {
    const { env, ...rest } = wishes(t)
    const scene = await setUpLive(t, { ...OFFLINE, ...rest, env: { ...OFFLINE.env, ...env } })
    const { provider, person, passSeconds, lines } = scene
    const alice = person()
    const page = await alice.signIn()
    assert.equal(page.status, 200, JSON.stringify(lines))
    assert.match(page.text, /Alice Example/, JSON.stringify(lines))
    const away = alice.opened.find(address => address.startsWith(`${provider.issuer}/auth?`)) ?? ''
    const asked = [...new URL(away).searchParams.keys()].sort()
    if (/pushed|three/.test(profile)) assert.deepEqual(asked, ['client_id', 'request_uri'])
    else assert.ok(asked.includes('state'))
    provider.calls.take()
    for (let n = 0; n < 2; n++) {
      passSeconds(DUE_SECONDS)
      assert.equal((await alice.get('/')).status, 200)
      assert.deepEqual(provider.calls.take(), ['POST /token', 'GET /me'], 'the nonce of the last answer is used')
    }
    assert.equal(new URL((await alice.signOut()).url).pathname, '/login')
    assert.deepEqual(provider.calls.take(), ['POST /token/revocation'])
    assert.deepEqual(provider.revoked, ['refresh token'])
    assert.equal((await alice.get('/')).headers.location, '/login')
    assert.deepEqual(provider.failures, [])
  })

test('a client with a certificate calls the mtls_endpoint_aliases of the provider metadata', async t => {
  const { tls, env } = withTls(t)
  const port = await freePort()
  const aliasOrigin = `https://127.0.0.1:${port}`
  const paths = { token_endpoint: '/token', userinfo_endpoint: '/me', revocation_endpoint: '/token/revocation' }
  const aliases = Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, aliasOrigin + path]))
  const { provider, person, lines } = await setUpLive(t, {
    configuration: { features: MTLS, clientAuthMethods: METHODS, discovery: { mtls_endpoint_aliases: aliases } },
    tls: { ...tls, requestCert: false },
    registered: BY_AUTHORITY,
    client: FAPI,
    env: { ...env, CLIENT_AUTH: 'tls_client_auth' },
  })
  const asked: string[] = []
  const alias = createServer(tls, (request, response) => {
    asked.push(`${request.method} ${request.url}`)
    return provider.listener(request, response)
  }).listen(port, '127.0.0.1')
  t.after(() => alias.close())
  const alice = person()
  assert.match((await alice.signIn()).text, /Alice Example/, JSON.stringify(lines))
  await alice.signOut()
  assert.deepEqual(asked, ['POST /token', 'GET /me', 'POST /token/revocation'])
})

test('a new client certificate applies after a reload; one that does not match its key is refused, and the one before it stays in use', async t => {
  const { tls, env, folder, ca } = withTls(t)
  const port = await freePort()
  const provider = await startOidcProvider({
    gateway: `http://localhost:${port}`,
    configuration: { features: MTLS, clientAuthMethods: METHODS },
    tls,
    registered: BY_AUTHORITY,
  })
  t.after(() => provider.close())
  const stranger = makeCertificate(folder, 'stranger', ca)
  const CLIENT_CERT_FILE = join(folder, 'now.crt')
  const CLIENT_KEY_FILE = join(folder, 'now.key')
  copyFileSync(stranger.certFile, CLIENT_CERT_FILE)
  copyFileSync(stranger.keyFile, CLIENT_KEY_FILE)
  const instance = await startInstance({
    ...{
      PORT: String(port),
      PROVIDER: 'oidc',
      AUTH_URL: provider.issuer,
      CLIENT_ID: FAPI.id,
      SECRET,
      STORE: 'memory:',
    },
    ...{ CLIENT_AUTH: 'tls_client_auth', CLIENT_CERT_FILE, CLIENT_KEY_FILE, NODE_EXTRA_CA_CERTS: ca.certFile },
  })
  t.after(() => instance.stop())
  const end = async () => new URL((await createPerson(instance.url, ALICE).signIn()).url).search
  assert.equal(await end(), '?error=token_error')
  const { detail } = await instance.said(({ event }) => event === 'sign_in_failed')
  assert.match(String(detail), /does not accept the certificate in CLIENT_CERT_FILE/)
  copyFileSync(env.CLIENT_CERT_FILE, CLIENT_CERT_FILE)
  copyFileSync(env.CLIENT_KEY_FILE, CLIENT_KEY_FILE)
  instance.kill('SIGHUP')
  await instance.said(({ event }) => event === 'config_reloaded')
  assert.equal(await end(), '')
  copyFileSync(stranger.certFile, CLIENT_CERT_FILE)
  instance.kill('SIGHUP')
  const refused = await instance.said(({ event }) => event === 'config_refused')
  assert.match(JSON.stringify(refused), /CLIENT_CERT_FILE and CLIENT_KEY_FILE do not match/)
  assert.equal(await end(), '')
})

interface Check {
  readonly name: string
  readonly level: string
  readonly seen: string
  readonly remedy: string
}

async function diagnose(environment: Environment): Promise<(name: string) => Check | undefined> {
  const { text } = await runDoctorCommand(['--json'], { environment, now: Date.now, paint: createPaint(false) })
  const { checks } = JSON.parse(text) as { checks: Check[] }
  return name => checks.find(check => check.name === name)
}

test('menshen doctor distinguishes a correct client, a rejected certificate and missing pushed authorization requests', async t => {
  const { tls, env, folder, ca } = withTls(t)
  const BASE_URL = `http://localhost:${await freePort()}`
  const { tls_client_certificate_bound_access_tokens: _, ...client } = BY_AUTHORITY
  const provider = await startOidcProvider({
    gateway: BASE_URL,
    configuration: { features: { ...PAR, ...DPOP, ...MTLS } as Features, clientAuthMethods: METHODS },
    tls,
    registered: { ...client, dpop_bound_access_tokens: true },
  })
  t.after(() => provider.close())
  const right = {
    ...{ PROVIDER: 'oidc', AUTH_URL: provider.issuer, CLIENT_ID: FAPI.id, BASE_URL, STORE: 'memory:' },
    ...{ ...env, CLIENT_AUTH: 'tls_client_auth', DPOP: 'on' },
  }
  const good = await diagnose(right)
  for (const name of ['demands', 'client', 'pushed request', 'redirect address'])
    assert.equal(good(`provider ${name}`)?.level, 'good', JSON.stringify(good(`provider ${name}`)))
  assert.match(good('provider client certificate')?.seen ?? '', /expires on/)

  const stranger = makeCertificate(folder, 'stranger', ca)
  const wrong = await diagnose({ ...right, CLIENT_CERT_FILE: stranger.certFile, CLIENT_KEY_FILE: stranger.keyFile })
  for (const name of ['provider client', 'provider pushed request']) {
    const { level, seen, remedy } = wrong(name) ?? assert.fail(name)
    assert.equal(level, 'failure')
    assert.match(seen, /invalid_client: the provider does not accept the certificate in CLIENT_CERT_FILE/)
    assert.match(remedy, /Register this certificate/)
  }
  const off = await diagnose({ ...right, PAR: 'off' })
  assert.match(off('provider demands')?.seen ?? '', /requires pushed authorization requests \(PAR\), which are off/)
  assert.match(off('provider demands')?.remedy ?? '', /Set PAR=on/)
})

test('menshen doctor suggests a rejected client certificate if the token endpoint breaks off the connection', async t => {
  const { tls, env, folder } = withTls(t)
  const other = makeAuthority(mkdtempSync(join(folder, 'other-')))
  const BASE_URL = `http://localhost:${await freePort()}`
  const port = await freePort()
  const provider = await startOidcProvider({
    gateway: BASE_URL,
    configuration: {
      features: MTLS,
      clientAuthMethods: METHODS,
      discovery: { mtls_endpoint_aliases: { token_endpoint: `https://127.0.0.1:${port}/token` } },
    },
    tls: { ...tls, requestCert: false },
    registered: BY_AUTHORITY,
  })
  t.after(() => provider.close())
  const strict = createServer({ ...tls, ca: readFileSync(other.certFile), rejectUnauthorized: true }, provider.listener)
  strict.listen(port, '127.0.0.1')
  t.after(() => strict.close())
  const check = await diagnose({
    ...{ PROVIDER: 'oidc', AUTH_URL: provider.issuer, CLIENT_ID: FAPI.id, BASE_URL, STORE: 'memory:' },
    ...{ ...env, CLIENT_AUTH: 'tls_client_auth' },
  })
  const { level, seen, remedy } = check('provider client') ?? assert.fail()
  assert.equal(level, 'failure')
  assert.match(seen, /perhaps the provider does not accept the certificate in CLIENT_CERT_FILE/)
  assert.match(remedy, /Register this certificate/)
})

const { publicKey } = takeRsaPair()
const ENCRYPTED = {
  alg: 'RSA-OAEP-256' as const,
  jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }), use: 'enc' }] },
}

for (const [what, error, registered] of [
  ['id_token', 'token_error', { id_token_encrypted_response_alg: ENCRYPTED.alg }],
  [
    'user info',
    'userinfo_error',
    { userinfo_encrypted_response_alg: ENCRYPTED.alg, userinfo_signed_response_alg: 'RS256' },
  ],
] as const)
  test(`sign-in fails if the provider encrypts the ${what}, and the message says to turn encryption off`, async t => {
    const { person, lines } = await setUpLive(t, {
      configuration: {
        features: { encryption: { enabled: true } },
        enabledJWA: { idTokenEncryptionAlgValues: [ENCRYPTED.alg], userinfoEncryptionAlgValues: [ENCRYPTED.alg] },
      },
      registered: {
        client_id: FAPI.id,
        jwks: ENCRYPTED.jwks as NonNullable<ClientMetadata['jwks']>,
        ...registered,
      },
      client: FAPI,
      env: { CLIENT_AUTH: 'none', SECRET },
    })
    assert.equal(new URL((await person().signIn()).url).search, `?error=${error}`, JSON.stringify(lines))
    const { fields } = lines.find(({ event }) => event === 'sign_in_failed') ?? assert.fail()
    assert.match(
      String(fields.detail),
      /encrypted, which Menshen does not support: turn encryption off for this client/,
    )
    const remedy = remedyForFailure(new InvalidToken(what, 'form'), { pkce: true }, 'http://localhost/callback')
    assert.match(phraseIn('en', remedy), /Turn off encryption of id_tokens and user info/)
  })
