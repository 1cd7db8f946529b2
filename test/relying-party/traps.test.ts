// Metadata that leads elsewhere (S69): into a private network, from https to plain http, or to somebody else's certificate.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import tls from 'node:tls'
import { tempFolder } from '../kit/temp.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { AT_OPEN, inside, names, OPEN, PRIVATE } from './private-network.ts'
import { openRelyingParty, type RelyingParty } from './relying-party.ts'

const PLACES = [
  'authorization_endpoint',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
  'end_session_endpoint',
  'revocation_endpoint',
  'introspection_endpoint',
]

async function isUnavailable({ op, rp, visitor }: RelyingParty, place: string, url: string): Promise<void> {
  op.bend.discovery = right => ({ ...right, [place]: url })
  rp.passSeconds(2)
  const { headers } = await visitor().post('/login')
  assert.equal(headers.location, '/login?error=temporarily_unavailable', `${place} ${url}`)
  assert.ok(op.calls.every(({ endpoint }) => endpoint === 'discovery'))
}

test('metadata of a public issuer that names an address in a private network is refused', async t => {
  names(t, { 'idp.test': OPEN, 'inner.test': PRIVATE })
  const scene = await openRelyingParty(t, {}, {}, AT_OPEN)
  const { port } = new URL(scene.op.issuer)
  const seen = await inside(t, Number(port))
  for (const place of PLACES)
    for (const host of [
      '127.0.0.1',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '10.0.0.1',
      '169.254.169.254',
      '2130706433',
      'inner.test',
    ])
      await isUnavailable(scene, place, `http://${host}:${port}/x`)
  scene.op.bend = {}
  scene.rp.passSeconds(2)
  await scene.accepts()
  assert.deepEqual(seen, [])
})

test('a host name in the metadata that cannot be resolved does not delay a sign-in', async t => {
  names(t, { 'idp.test': OPEN })
  const scene = await openRelyingParty(t, { PROVIDER_TIMEOUT_MS: '600' }, {}, AT_OPEN)
  scene.op.bend.discovery = right => ({ ...right, introspection_endpoint: 'http://nowhere.test/introspect' })
  await scene.accepts()
})

test('a host name in the metadata that resolves only later is checked when a connection to it is opened', async t => {
  const leads = names(t, { 'idp.test': OPEN })
  const scene = await openRelyingParty(t, { PROVIDER_TIMEOUT_MS: '600' }, {}, AT_OPEN)
  const { port } = new URL(scene.op.issuer)
  const seen = await inside(t, Number(port))
  scene.op.bend.discovery = right => ({ ...right, userinfo_endpoint: `http://late.test:${port}/userinfo` })
  const client = scene.visitor()
  const away = await client.post('/login')
  assert.match(String(away.headers.location), /\/authorize\?/)
  leads['late.test'] = PRIVATE
  const { headers } = await client.follow(await client.follow(away))
  assert.equal(headers.location, '/login?error=userinfo_error')
  assert.deepEqual(seen, [])
  leads['late.test'] = OPEN
  await scene.accepts()
  assert.equal(scene.op.callsTo('userinfo').length, 1)
})

async function openSecure(t: TestContext, certifiedFor: string) {
  names(t, { 'idp.test': OPEN })
  const folder = tempFolder(t)
  const authority = makeAuthority(folder)
  const trusted = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...trusted, filesOf(authority).cert.toString()])
  t.after(() => tls.setDefaultCACertificates(trusted))
  const certificate = filesOf(makeCertificate(folder, 'idp', authority, certifiedFor))
  return openRelyingParty(t, {}, {}, { ...AT_OPEN, tls: certificate })
}

test('metadata of an https issuer that names a plain http address is refused', async t => {
  const scene = await openSecure(t, 'idp.test')
  for (const place of PLACES) await isUnavailable(scene, place, `http://idp.test/x`)
  scene.op.bend = {}
  scene.rp.passSeconds(2)
  await scene.accepts()
})

test('discovery fails at a server without a certificate for the issuer’s host name', async t => {
  const scene = await openSecure(t, 'another.test')
  const { headers } = await scene.visitor().post('/login')
  assert.equal(headers.location, '/login?error=temporarily_unavailable')
  assert.deepEqual(scene.op.calls, [])
})
