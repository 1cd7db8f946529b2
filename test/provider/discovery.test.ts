// Discovery: whose document it is, where it leads, and what happens while it cannot be had.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { ProviderConfig } from '../../src/config/provider.ts'
import { MenshenError } from '../../src/errors.ts'
import { isPrivateAddress } from '../../src/provider/address-guard.ts'
import { createMetadata } from '../../src/provider/discovery.ts'
import { createBoundedFetch } from '../../src/provider/fetch.ts'
import { planNamedProvider } from '../../src/provider/plan.ts'
import { createProvider } from '../../src/provider/provider.ts'

/** An address of the open network that needs no name server. */
const OPEN = 'https://1.1.1.1'

const documentOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  userinfo_endpoint: `${issuer}/userinfo`,
  jwks_uri: `${issuer}/keys`,
  id_token_signing_alg_values_supported: ['RS256'],
})

function scene(issuer: string, answer: unknown, config: ProviderConfig = {}) {
  const state = { now: 10_000_000, answer, asked: [] as string[], reports: [] as string[] }
  const plan = planNamedProvider('p', { preset: 'oidc', issuer, clientId: 'c', clientSecret: 's', ...config })
  const metadata = createMetadata(plan, {
    now: () => state.now,
    report: code => state.reports.push(code),
    async fetch(url) {
      state.asked.push(url)
      if (state.answer instanceof Error) throw state.answer
      return state.answer instanceof Response ? state.answer.clone() : Response.json(state.answer)
    },
  })
  return { state, metadata }
}

const refused = { code: 'provider_answer' }

test('the issuer in a discovery document must match exactly, except for a trailing slash', async () => {
  for (const [configured, said] of [
    [OPEN, OPEN],
    [OPEN, `${OPEN}/`],
    [`${OPEN}/`, OPEN],
    [`${OPEN}/realms/a`, `${OPEN}/realms/a`],
  ] as const) {
    const { state, metadata } = scene(configured, { ...documentOf(OPEN), issuer: said })
    assert.equal((await metadata.get()).issuer, said)
    assert.deepEqual(state.asked, [`${configured.replace(/\/$/, '')}/.well-known/openid-configuration`])
  }
  for (const said of [
    `${OPEN}1`,
    `${OPEN}//`,
    'https://1.1.1.2',
    'HTTPS://1.1.1.1',
    'http://1.1.1.1',
    `${OPEN}/realms`,
    '',
    7,
  ])
    await assert.rejects(scene(OPEN, { ...documentOf(OPEN), issuer: said }).metadata.get(), refused, String(said))
  const also = scene(OPEN, { ...documentOf(OPEN), issuer: 'https://other' }, { alsoIssuers: ['https://other'] })
  assert.equal((await also.metadata.get()).issuer, 'https://other')
})

test('a discovery document with missing or invalid fields is refused, and empty optional fields are ignored', async () => {
  const right = documentOf(OPEN)
  for (const wrong of [
    { authorization_endpoint: undefined },
    { token_endpoint: 'not an address' },
    { jwks_uri: 'file:///etc/passwd' },
    { userinfo_endpoint: ['https://1.1.1.1/u'] },
    { id_token_signing_alg_values_supported: 'RS256' },
    { token_endpoint: `javascript:alert(1)` },
  ])
    await assert.rejects(scene(OPEN, { ...right, ...wrong }).metadata.get(), refused, JSON.stringify(wrong))
  for (const body of [[], 'x', null, new Response('<html>'), new Response('{}', { status: 404 })])
    await assert.rejects(scene(OPEN, body).metadata.get(), refused)
  const { metadata } = scene(OPEN, { ...right, userinfo_endpoint: null, end_session_endpoint: '' })
  assert.equal((await metadata.get()).endpoints.userInfo, undefined)
})

test('configured endpoints take precedence over those in the discovery document', async () => {
  const { metadata } = scene(OPEN, documentOf(OPEN), { userInfoUrl: 'http://10.0.0.7/me' })
  assert.equal((await metadata.get()).endpoints.userInfo, 'http://10.0.0.7/me')
})

test('a public https issuer must not name endpoints on plain http or in a private network, but a local issuer can', async () => {
  for (const place of [
    'authorization_endpoint',
    'token_endpoint',
    'userinfo_endpoint',
    'jwks_uri',
    'revocation_endpoint',
  ]) {
    for (const trap of [
      'http://1.1.1.1/x',
      'https://127.0.0.1/x',
      'https://localhost/x',
      'https://169.254.169.254/latest',
      'https://10.1.2.3/x',
      'https://[::1]/x',
      'https://[::ffff:192.168.0.1]/x',
      'https://2130706433/x',
    ])
      await assert.rejects(
        scene(OPEN, { ...documentOf(OPEN), [place]: trap }).metadata.get(),
        refused,
        `${place} ${trap}`,
      )
    await scene(OPEN, { ...documentOf(OPEN), [place]: 'https://1.0.0.1/x' }).metadata.get()
  }
  const inside = 'http://127.0.0.1:1'
  const { metadata } = scene(inside, { ...documentOf(inside), token_endpoint: 'http://10.0.0.1/t' })
  assert.equal((await metadata.get()).endpoints.token, 'http://10.0.0.1/t')
})

test('private addresses are recognized in every notation', () => {
  for (const address of [
    '127.0.0.1',
    '10.0.0.1',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.0.1',
    '100.64.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::a00:1',
    'not an address',
  ])
    assert.equal(isPrivateAddress(address), true, address)
  for (const address of ['1.1.1.1', '172.32.0.1', '11.0.0.1', '2606:4700::1111', '::ffff:1.1.1.1'])
    assert.equal(isPrivateAddress(address), false, address)
})

test('a discovery document is fetched once for all requests, cached for an hour, and still used if fetching it again fails', async () => {
  const { state, metadata } = scene(OPEN, documentOf(OPEN))
  await Promise.all([metadata.get(), metadata.get(), metadata.get()])
  assert.equal(state.asked.length, 1)
  state.now += 3_700_000
  state.answer = new MenshenError('provider_unreachable', 'no connection')
  assert.equal((await metadata.get()).issuer, OPEN)
  await new Promise(resolve => setImmediate(resolve))
  assert.equal((await metadata.get()).issuer, OPEN)
  assert.equal(state.asked.length, 2)
  assert.deepEqual(state.reports, ['metadata_unavailable'])
  state.now += 2000
  state.answer = { ...documentOf(OPEN), token_endpoint: `${OPEN}/token2` }
  await metadata.get()
  await new Promise(resolve => setImmediate(resolve))
  await new Promise(resolve => setImmediate(resolve))
  assert.equal((await metadata.get()).endpoints.token, `${OPEN}/token2`)
})

test('until discovery first succeeds, all requests get the same error and the provider is asked once per second', async () => {
  const { state, metadata } = scene(OPEN, new MenshenError('provider_unreachable', 'no connection'))
  for (let n = 0; n < 20; n++) await assert.rejects(metadata.get(), { code: 'provider_unreachable' })
  assert.equal(state.asked.length, 1)
  state.now += 1000
  state.answer = documentOf(OPEN)
  assert.equal((await metadata.get()).issuer, OPEN)
})

async function served(t: TestContext, listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const plan = planNamedProvider('p', { preset: 'oidc', issuer, clientId: 'c', clientSecret: 's' })
  const calls = createBoundedFetch(10_000)
  t.after(async () => {
    await calls.close()
    server.closeAllConnections()
    server.close()
  })
  return { issuer, plan, metadata: createMetadata(plan, { fetch: calls.fetch, now: () => 0, report: () => {} }) }
}

test('a discovery document of 10 MB is refused', async t => {
  const huge = await served(t, (_request, response) => response.end(`{"issuer":"${'x'.repeat(10_000_000)}"}`))
  await assert.rejects(huge.metadata.get(), refused)
})

test('discovery follows one redirect, and only within the same origin', async t => {
  const paths: string[] = []
  const twice = await served(t, (request, response) => {
    paths.push(request.url ?? '')
    response.writeHead(302, { location: '/elsewhere' }).end()
  })
  await assert.rejects(twice.metadata.get(), refused)
  assert.deepEqual(paths, ['/.well-known/openid-configuration', '/elsewhere'])

  const once = await served(t, (request, response) => {
    if (request.url === '/elsewhere') response.end(JSON.stringify(documentOf(once.issuer)))
    else response.writeHead(301, { location: '/elsewhere' }).end()
  })
  assert.equal((await once.metadata.get()).issuer, once.issuer)

  const asked: string[] = []
  const trap = await served(t, (request, response) => {
    asked.push(request.url ?? '')
    response.end()
  })
  const away = await served(t, (_request, response) => response.writeHead(302, { location: `${trap.issuer}/x` }).end())
  await assert.rejects(away.metadata.get(), new RegExp(`redirects to another origin: ${trap.issuer}`))
  assert.deepEqual(asked, [])
})

test('discovery errors name the other issuer that was found, or the content type of a response that is not JSON', async () => {
  const other = scene(OPEN, { ...documentOf(OPEN), issuer: 'https://1.1.1.1/realms/staff' })
  await assert.rejects(other.metadata.get(), /another issuer: https:\/\/1\.1\.1\.1\/realms\/staff; expected/)
  const page = new Response('<!doctype html><title>Sign in</title>', { headers: { 'content-type': 'text/html' } })
  await assert.rejects(scene(OPEN, page).metadata.get(), /the discovery document is text\/html, not JSON/)
})

test('discoveryUrl can differ from the issuer’s default address, and the document’s issuer is still checked', async () => {
  const discoveryUrl = `${OPEN}/application/o/wiki/.well-known/openid-configuration`
  const { state, metadata } = scene(OPEN, documentOf(OPEN), { discoveryUrl })
  assert.equal((await metadata.get()).issuer, OPEN)
  assert.deepEqual(state.asked, [discoveryUrl])
  await assert.rejects(scene('https://1.0.0.1', documentOf(OPEN), { discoveryUrl }).metadata.get(), /another issuer/)
})

test('an operator who configures every endpoint needs no discovery', async () => {
  const { state, metadata } = scene(OPEN, new MenshenError('provider_unreachable', 'no connection'), {
    authorizationUrl: `${OPEN}/a`,
    tokenUrl: `${OPEN}/t`,
    jwksUrl: `${OPEN}/k`,
  })
  const { issuer, endpoints } = await metadata.get()
  assert.deepEqual([issuer, endpoints.authorization, endpoints.jwks], [OPEN, `${OPEN}/a`, `${OPEN}/k`])
  assert.deepEqual(state.asked, [])
})

test('starting a sign-in fails with provider_unreachable instead of hanging if discovery gets no response', async t => {
  const { plan } = await served(t, () => {})
  const provider = createProvider(plan, {
    settings: {
      BASE_URL: 'http://localhost',
      LOGIN_PATH: '/login',
      PROVIDER_TIMEOUT_MS: 300,
      PROVIDER_PARALLEL_CALLS: 1,
    },
    now: () => 0,
    report: () => {},
  })
  t.after(() => provider.close())
  await assert.rejects(provider.authorizationUrl({ state: 's' }), { code: 'provider_unreachable' })
})
