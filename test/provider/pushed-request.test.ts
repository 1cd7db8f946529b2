// Pushed authorization requests (RFC 9126): what goes to the provider and what to the browser, and an endpoint that answers
// anything else.

import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import test, { type TestContext } from 'node:test'
import { runDoctorCommand } from '../../src/cli/commands/doctor.ts'
import { createPaint } from '../../src/cli/terminal.ts'
import { readSettings } from '../../src/config/read.ts'
import type { Config } from '../../src/index.ts'
import { planProviders } from '../../src/provider/providers.ts'
import type { Environment } from '../kit/instance.ts'
import { listen } from '../kit/listen.ts'
import { startOidcServer } from '../kit/oidc-server.ts'
import { openGateway } from '../kit/set-up.ts'

async function open(t: TestContext, env: Environment = {}, demanded = false, hasEndpoint = true) {
  const endpoint: { pushed_authorization_request_endpoint?: string } = {}
  const metadata = { ...(demanded && { require_pushed_authorization_requests: true }) }
  const op = await startOidcServer(t, { metadata: Object.assign(endpoint, metadata) })
  if (hasEndpoint) endpoint.pushed_authorization_request_endpoint = `${op.issuer}/par`
  const gateway = await openGateway(t, { ...op.settings, ...env })
  op.now = gateway.now
  const details = () =>
    gateway.lines.filter(({ event }) => event === 'sign_in_failed').map(({ fields }) => String(fields.detail))
  return { op, ...gateway, details }
}

test('authorization parameters are pushed with client authentication, and the browser gets only a reference to them', async t => {
  const { op, client } = await open(t, { PAR: 'on' })
  const away = await client.post('/login')
  const url = new URL(String(away.headers.location))
  assert.equal(url.origin + url.pathname, `${op.issuer}/authorize`)
  assert.deepEqual([...url.searchParams.keys()], ['client_id', 'request_uri'])
  const [pushed, ...more] = op.callsTo('/par')
  assert.equal(more.length, 0)
  assert.match(pushed?.authorization ?? '', /^Basic /)
  const names = [
    'client_id',
    'code_challenge',
    'code_challenge_method',
    'nonce',
    'redirect_uri',
    'response_type',
    'scope',
  ]
  assert.deepEqual([...(pushed?.form.keys() ?? [])].sort(), [...names, 'state'])
  const back = new URL(String((await client.follow(away)).headers.location))
  const path = back.pathname + back.search
  assert.equal((await client.get(path)).headers.location, '/')
  assert.equal((await client.get('/_menshen/me')).status, 200)
  const redeemed = op.callsTo('/token').length
  assert.equal((await client.get(path)).headers.location, '/')
  assert.equal(op.callsTo('/token').length, redeemed, 'an attempt counts once')
})

test('a script that starts a sign-in also gets only a reference to the pushed request', async t => {
  const { op, client } = await open(t, { PAR: 'on' })
  const answer = await client.post('/login', {}, { headers: { accept: 'application/json', 'sec-fetch-mode': 'cors' } })
  const { location } = answer.json<{ location: string }>()
  assert.deepEqual([...new URL(location).searchParams.keys()], ['client_id', 'request_uri'])
  assert.equal(op.callsTo('/par').length, 1)
})

test('PAR=auto pushes requests if the metadata requires it, PAR=on always and PAR=off never', async t => {
  for (const [PAR, demanded, isPushed] of [
    ['', false, false],
    ['', true, true],
    ['auto', false, false],
    ['auto', true, true],
    ['on', false, true],
    ['off', true, false],
  ] as const) {
    const { client } = await open(t, { PAR }, demanded)
    const { searchParams } = new URL(String((await client.post('/login')).headers.location))
    assert.equal(searchParams.has('request_uri'), isPushed, `${PAR} ${demanded}`)
    assert.equal(searchParams.has('state'), !isPushed)
  }
})

const json =
  (status: number, body: unknown, headers = {}) =>
  (response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
const reference = (request_uri: unknown, expires_in: unknown = 60) => json(201, { request_uri, expires_in })

const BAD: Record<string, [answer: (response: ServerResponse) => unknown, detail: RegExp]> = {
  '200 in place of 201': [json(200, { request_uri: 'urn:x', expires_in: 60 }), /returned 200 instead of 201/],
  garbage: [response => response.writeHead(201).end('<html>'), /invalid or missing in the response.*PAR.*the whole/],
  'an array': [json(201, []), /the whole/],
  'no reference': [json(201, { expires_in: 60 }), /request_uri/],
  'a reference with a header in it': [reference('urn:x\r\nset-cookie: a=b'), /PAR\): request_uri$/],
  'a reference with spaces': [reference('urn:x y'), /request_uri/],
  'an empty reference': [reference(''), /request_uri/],
  'a reference that is a number': [reference(7), /request_uri/],
  'a reference that is not a URI': [reference('//evil.example'), /request_uri/],
  'a reference of 10,000 characters': [reference(`urn:${'x'.repeat(10_000)}`), /request_uri/],
  'a reference that has expired': [reference('urn:x', 0), /PAR\): expires_in$/],
  'a reference without an end': [json(201, { request_uri: 'urn:x' }), /expires_in/],
  'a life in words': [reference('urn:x', 'sixty'), /expires_in/],
  'a refusal of the client': [json(401, { error: 'invalid_client' }), /401 with invalid_client/],
  'a refusal in words of its own': [json(400, { error: 'CANARY <b>' }), /returned 400 instead of 201$/],
  'a broken server': [response => response.writeHead(500).end(), /returned 500/],
  'ten megabytes': [response => response.writeHead(201).end(Buffer.alloc(10 << 20, 'x')), /larger than 1048576 bytes/],
  'no answer': [() => {}, /500 ms/],
  'half an answer': [response => response.writeHead(201, { 'content-length': '100' }).write('{'), /500 ms/],
  'a closed connection': [response => response.destroy(), /connection/],
}

test('an invalid response of the PAR endpoint fails the sign-in, and no request is sent without being pushed', async t => {
  const { op, visitor, lines, details, passSeconds } = await open(t, { PAR: 'on', PROVIDER_TIMEOUT_MS: '500' })
  for (const [what, [answer, detail]] of Object.entries(BAD)) {
    op.intercept = ({ path }, response) => {
      if (path !== '/par') return false
      answer(response)
      return true
    }
    // The log has a limit for lines of one kind.
    passSeconds(60)
    const client = visitor()
    const { status, headers } = await client.post('/login')
    assert.deepEqual([status, headers.location], [303, '/login?error=temporarily_unavailable'], what)
    assert.match(details().at(-1) ?? '', detail, what)
    assert.equal((await client.get('/login?error=temporarily_unavailable')).status, 200)
  }
  assert.equal(op.callsTo('/par').length, Object.keys(BAD).length, 'each was asked once')
  assert.deepEqual(op.callsTo('/authorize'), [])
  assert.doesNotMatch(JSON.stringify(lines), /CANARY/)
  op.intercept = undefined
  assert.match(String((await visitor().post('/login')).headers.location), /request_uri=/)
})

test('a redirect of the PAR endpoint to another origin is not followed, so the client secret is not sent there', async t => {
  let asked = 0
  const other = createServer((_request, response) => {
    asked++
    response.writeHead(201).end('{"request_uri":"urn:x","expires_in":60}')
  })
  const { url } = await listen(t, other)
  const { op, client, details } = await open(t, { PAR: 'on' })
  op.intercept = ({ path }, response) => {
    if (path !== '/par') return false
    return response.writeHead(307, { location: `${url}/par` }).end()
  }
  assert.equal((await client.post('/login')).headers.location, '/login?error=temporarily_unavailable')
  assert.match(details()[0] ?? '', /returned 307 instead of 201/)
  assert.equal(asked, 0)
})

test('a required PAR endpoint that the provider does not have fails the sign-in, and the log names the reason', async t => {
  for (const [PAR, demanded] of [
    ['on', false],
    ['auto', true],
  ] as const) {
    const { client, details } = await open(t, { PAR }, demanded, false)
    assert.equal((await client.post('/login')).headers.location, '/login?error=temporarily_unavailable')
    assert.match(details()[0] ?? '', /\(PAR\) are on, but the provider has no endpoint for them/)
  }
})

const OAUTH2 = { preset: 'oauth2', clientId: 'a', clientSecret: 'b', tokenUrl: 'https://a.example/t' }

test('PAR=on without metadata and without parUrl is refused at startup', () => {
  const authorizationUrl = 'https://a.example/a'
  const plan = (config: Config, env: Environment = {}) => planProviders(config, readSettings(env))
  const provider = { ...OAUTH2, authorizationUrl }
  assert.throws(
    () => plan({ provider }, { PAR: 'on' }),
    /PAR is "on", but there is no address to push requests to; expected provider\.parUrl/,
  )
  assert.throws(() => plan({ providers: { x: { ...provider, par: 'on' } } }), /providers\.x\.par is "on"/)
  assert.throws(() => plan({ providers: { x: provider } }, { PAR: 'on' }), /expected providers\.x\.par instead/)
  assert.throws(
    () => plan({}, { AUTH_URL: 'https://a.example', CLIENT_ID: 'a', CLIENT_SECRET: 'b', PAR: 'on' }),
    /PAR is/,
  )
  plan({ provider: { ...provider, parUrl: 'https://a.example/par' } }, { PAR: 'on' })
  const [idaas] = plan({}, { AUTH_URL: 'https://a.example', CLIENT_ID: 'a', CLIENT_SECRET: 'b' })
  assert.deepEqual([idaas.par, idaas.dpop, idaas.endpoints.par], ['auto', 'auto', undefined])
})

test('a plain OAuth 2.0 provider receives pushed requests at the configured parUrl', async t => {
  const op = await startOidcServer(t)
  const config = {
    provider: {
      ...OAUTH2,
      authorizationUrl: `${op.issuer}/authorize`,
      tokenUrl: `${op.issuer}/token`,
      parUrl: `${op.issuer}/par`,
      stateCheck: 'suffix' as const,
      pkce: false,
      par: 'on' as const,
    },
  }
  const { client } = await openGateway(t, {}, { config })
  assert.match((await client.get('/login')).text, /data-authorize=""/, 'the page cannot start an attempt without us')
  const away = await client.post('/login')
  assert.deepEqual([...new URL(String(away.headers.location)).searchParams.keys()], ['client_id', 'request_uri'])
  assert.equal(op.callsTo('/par')[0]?.form.get('response_type'), 'code')
})

test('menshen doctor reports a refused or unusable pushed request and suggests a remedy', async t => {
  const { op } = await open(t)
  const diagnose = async () => {
    const environment = { ...op.settings, PAR: 'on', STORE: 'memory:' }
    const { text } = await runDoctorCommand(['--json'], { environment, now: Date.now, paint: createPaint(false) })
    const { checks } = JSON.parse(text) as { checks: { name: string; level: string; seen: string; remedy: string }[] }
    return checks.find(({ name }) => name === 'provider pushed request') ?? assert.fail(text)
  }
  assert.equal((await diagnose()).level, 'good')
  for (const answer of [json(400, { error: 'invalid_request' }), reference('urn:x y'), json(404, {})]) {
    op.intercept = ({ path }, response) => path === '/par' && answer(response)
    const { level, seen, remedy } = await diagnose()
    assert.equal(level, 'failure')
    assert.match(seen, /\(PAR\)/)
    assert.match(remedy, /Allow pushed authorization requests for this client/)
  }
})
