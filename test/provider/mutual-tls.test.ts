// Mutual TLS (RFC 8705): certificates that cannot be used, the endpoints for clients that have one, and addresses without TLS.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { readSettings } from '../../src/config/read.ts'
import { createMetadata } from '../../src/provider/discovery.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { planProviders } from '../../src/provider/providers.ts'
import type { Environment } from '../kit/instance.ts'
import { answerOf, startOidcServer } from '../kit/oidc-server.ts'
import { takeRsaPair } from '../kit/rsa-keys.ts'
import { openGateway } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const SECRET = 'a text of thirty-two characters or more'
/** An address of the open network that needs no name server. */
const OPEN = 'https://1.1.1.1'

function files(t: TestContext) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'gateway', makeAuthority(folder))
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  return { certFile, keyFile, write }
}

test('an unusable client certificate or key is refused before any sign-in, with a one-line error', t => {
  const { certFile, keyFile, write } = files(t)
  const { privateKey } = takeRsaPair()
  const locked = { cipher: 'aes-256-cbc', passphrase: 'secret-CANARY', format: 'pem' } as const
  const pkcs8 = write('pkcs8.pem', privateKey.export({ ...locked, type: 'pkcs8' }).toString())
  const pkcs1 = write('pkcs1.pem', privateKey.export({ ...locked, type: 'pkcs1' }).toString())
  const other = write('other.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  const provider = { PROVIDER: 'oidc', AUTH_URL: OPEN, CLIENT_ID: 'a', SECRET }
  const plan = (env: Environment) => planProviders({}, readSettings({ ...provider, ...env }))
  const pair = (CLIENT_CERT_FILE: string, CLIENT_KEY_FILE: string) => ({ CLIENT_CERT_FILE, CLIENT_KEY_FILE })
  for (const CLIENT_AUTH of ['tls_client_auth', 'self_signed_tls_client_auth']) {
    const rows: [env: Environment, says: RegExp][] = [
      [
        {},
        /^MenshenError: CLIENT_AUTH is ".*", which needs a certificate and its key; expected both CLIENT_CERT_FILE and CLIENT_KEY_FILE\.$/,
      ],
      [{ CLIENT_CERT_FILE: certFile }, /expected both CLIENT_CERT_FILE and CLIENT_KEY_FILE/],
      [{ CLIENT_KEY_FILE: keyFile }, /expected both CLIENT_CERT_FILE and CLIENT_KEY_FILE/],
      [{ CLIENT_SECRET: 'b' }, /needs a certificate and its key/],
      [pair(certFile, '/nowhere/key.pem'), /CLIENT_KEY_FILE is "\/nowhere\/key\.pem"/],
      [pair('/nowhere/cert.pem', keyFile), /CLIENT_CERT_FILE is "\/nowhere\/cert\.pem"/],
      [pair(certFile, pkcs8), /^MenshenError: CLIENT_KEY_FILE contains an encrypted key; expected a key in PEM/],
      [pair(certFile, pkcs1), /^MenshenError: CLIENT_KEY_FILE contains an encrypted key;/],
      [pair(certFile, other), /CLIENT_CERT_FILE and CLIENT_KEY_FILE do not match/],
      [pair(certFile, certFile), /CLIENT_KEY_FILE contains no private key/],
      [pair(keyFile, keyFile), /CLIENT_CERT_FILE contains no certificate/],
    ]
    for (const [env, says] of rows) {
      assert.throws(() => plan({ CLIENT_AUTH, ...env }), says, JSON.stringify(env))
      assert.throws(
        () => plan({ CLIENT_AUTH, ...env }),
        ({ message }) => !/CANARY|\n/.test(message),
      )
    }
    const [{ certificate, missing }] = plan({ CLIENT_AUTH, ...pair(certFile, keyFile) })
    assert.deepEqual(missing, [], 'no secret is needed')
    assert.ok(certificate)
    assert.doesNotMatch(JSON.stringify(certificate), /BEGIN/)
  }
  assert.equal(plan({ CLIENT_AUTH: 'private_key_jwt', ...pair(certFile, keyFile) })[0].certificate, undefined)
  const named = { preset: 'oidc', issuer: OPEN, clientId: 'a', clientAuth: 'tls_client_auth' as const }
  assert.throws(
    () => planProviders({ providers: { x: named } }, readSettings({ SECRET })),
    /providers\.x\.clientAuth is "tls_client_auth".*expected both providers\.x\.clientCertFile and providers\.x\.clientKeyFile/,
  )
  const config = { ...named, clientCertFile: certFile, clientKeyFile: keyFile }
  assert.ok(planProviders({ providers: { x: config } }, readSettings({ SECRET }))[0].certificate)
})

const DOCUMENT = {
  issuer: OPEN,
  authorization_endpoint: `${OPEN}/authorize`,
  token_endpoint: `${OPEN}/token`,
  userinfo_endpoint: `${OPEN}/userinfo`,
  jwks_uri: `${OPEN}/keys`,
  end_session_endpoint: `${OPEN}/end`,
  pushed_authorization_request_endpoint: `${OPEN}/par`,
  revocation_endpoint: `${OPEN}/revoke`,
  introspection_endpoint: `${OPEN}/introspect`,
}
const MTLS = 'https://1.0.0.1'
const ALIASES = {
  token_endpoint: `${MTLS}/token`,
  userinfo_endpoint: `${MTLS}/userinfo`,
  pushed_authorization_request_endpoint: `${MTLS}/par`,
  revocation_endpoint: `${MTLS}/revoke`,
  introspection_endpoint: `${MTLS}/introspect`,
  authorization_endpoint: `${MTLS}/never`,
}

test('a client with a certificate uses the mutual TLS endpoints, and every other client the usual ones', async t => {
  const { certFile, keyFile } = files(t)
  const client = { preset: 'oidc', issuer: OPEN, clientId: 'a' }
  const mutual = { ...client, clientAuth: 'tls_client_auth', clientCertFile: certFile, clientKeyFile: keyFile } as const
  const secret = { ...client, clientSecret: 's' }
  const endpoints = async (config: Parameters<typeof planNamedProvider>[1], mtls_endpoint_aliases: unknown) => {
    const fetch = async () => Response.json({ ...DOCUMENT, mtls_endpoint_aliases })
    const metadata = createMetadata(planNamedProvider('p', config), { fetch, now: () => 0, report: () => {} })
    return (await metadata.get()).endpoints
  }
  const usual = await endpoints(secret, ALIASES)
  assert.deepEqual([usual.token, usual.par, usual.userInfo], [`${OPEN}/token`, `${OPEN}/par`, `${OPEN}/userinfo`])
  const { token, par, userInfo, revocation, introspection, ...rest } = await endpoints(mutual, ALIASES)
  assert.deepEqual(
    [token, par, userInfo, revocation, introspection],
    ['token', 'par', 'userinfo', 'revoke', 'introspect'].map(path => `${MTLS}/${path}`),
  )
  assert.deepEqual(
    [rest.authorization, rest.jwks, rest.logout],
    ['authorize', 'keys', 'end'].map(path => `${OPEN}/${path}`),
  )
  const some = await endpoints(mutual, { token_endpoint: `${MTLS}/token` })
  assert.deepEqual([some.token, some.userInfo], [`${MTLS}/token`, `${OPEN}/userinfo`])
  const own = await endpoints({ ...mutual, tokenUrl: `${OPEN}/own` }, ALIASES)
  assert.equal(own.token, `${OPEN}/own`, 'what the operator says comes first')
  assert.equal((await endpoints(mutual, undefined)).token, `${OPEN}/token`)

  const traps: Record<string, unknown> = {
    'a private network': { token_endpoint: 'https://10.0.0.1/token' },
    'plain http': { token_endpoint: 'http://1.0.0.1/token' },
    'no address': { token_endpoint: 'nowhere' },
    'no object': 'https://1.0.0.1',
  }
  for (const [trap, aliases] of Object.entries(traps)) {
    await assert.rejects(endpoints(mutual, aliases), { code: 'provider_answer' }, trap)
    assert.equal((await endpoints(secret, aliases)).token, `${OPEN}/token`, `${trap} is nobody else's concern`)
  }
})

test('with tls_client_auth, no token request is sent to a plain http address', async t => {
  const { certFile, keyFile } = files(t)
  const op = await startOidcServer(t)
  const { CLIENT_SECRET: _, ...settings } = op.settings
  const env = {
    ...settings,
    SECRET,
    CLIENT_AUTH: 'tls_client_auth',
    CLIENT_CERT_FILE: certFile,
    CLIENT_KEY_FILE: keyFile,
  }
  const { client, lines, now } = await openGateway(t, env)
  op.now = now
  assert.equal((await client.get(await answerOf(client))).headers.location, '/login?error=token_error')
  assert.deepEqual(op.callsTo('/token'), [])
  assert.match(String(lines.at(-1)?.fields.detail), /requires https, but the provider has an http address/)
  const [, secret = 'BEGIN'] = readFileSync(keyFile, 'utf8').split('\n')
  assert.ok(!JSON.stringify(lines).includes(secret))
})
