// Traces with a real SDK of OpenTelemetry: what hangs below what, and what an application is told of it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test, { after, afterEach } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { newKey } from '../../src/util/key-form.ts'
import { readVersion } from '../../src/util/version.ts'
import { freePort } from '../kit/free-port.ts'
import { startStrictOidcServer } from '../kit/oidc/strict-oidc-server.ts'
import { openGateway, setUp, setUpOidc } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'

const exporter = new InMemorySpanExporter()
const sdk = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
sdk.register()
after(() => sdk.shutdown())
afterEach(() => exporter.reset())

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`

const requestSpans = (path: string) =>
  exporter
    .getFinishedSpans()
    .filter(({ kind, attributes }) => kind === SpanKind.SERVER && attributes['url.path'] === path)

/** It ends when its response closes, a moment after its last byte. */
async function requestSpan(path: string): Promise<ReadableSpan> {
  await until(() => requestSpans(path).length > 0)
  return requestSpans(path)[0] as ReadableSpan
}

function below(parent: ReadableSpan): ReadableSpan[] {
  const { spanId } = parent.spanContext()
  return exporter.getFinishedSpans().filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanId)
}

function childOf(parent: ReadableSpan, name: string): ReadableSpan {
  const child = below(parent).find(span => span.name === name)
  return child ?? assert.fail(`no ${name} below ${parent.name}: ${below(parent).map(span => span.name)}`)
}

test('spans have only the first ten characters of a key that was pasted into a path', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const key = newKey()
  await user.get(`/files/${key}`)
  const request = await requestSpan(`/files/${key.slice(0, 10)}`)
  assert.ok(below(request).length > 0)
  for (const { attributes } of exporter.getFinishedSpans()) assert.ok(!JSON.stringify(attributes).includes(key))
})

test('spans are nested as request, session, refresh and provider, and the application receives its own span in traceparent', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  scene.passSeconds(7000)
  exporter.reset()
  const { headers } = await user.get('/page?secret=1', { headers: { traceparent: TRACEPARENT, tracestate: 'a=b' } })
  const request = await requestSpan('/page')
  assert.equal(request.name, 'GET')
  assert.equal(request.spanContext().traceId, TRACE_ID, 'continued')
  assert.equal(request.parentSpanContext?.spanId, '00f067aa0ba902b7')
  const refresh = childOf(childOf(request, 'session find'), 'refresh tokens')
  const provider = childOf(refresh, 'provider refresh')
  assert.equal(provider.kind, SpanKind.CLIENT)
  const asked = new URL(scene.provider.url)
  assert.deepEqual(provider.attributes, {
    'http.request.method': 'POST',
    'url.full': `${asked.origin}/oauth/token`,
    'server.address': asked.hostname,
    'server.port': Number(asked.port),
    'http.response.status_code': 200,
    'menshen.call': 'refresh',
  })
  assert.deepEqual(request.instrumentationScope, {
    name: 'menshen',
    version: readVersion(),
    schemaUrl: undefined,
  })
  assert.ok(below(refresh).some(({ name }) => name.startsWith('store ')))
  assert.deepEqual(
    refresh.events.map(({ name, attributes }) => [name, attributes]),
    [['session_refreshed', { level: 'info' }]],
  )

  const upstream = below(request).find(({ kind }) => kind === SpanKind.CLIENT) ?? assert.fail('no upstream')
  const told = scene.upstream.last()
  assert.equal(told.headers.traceparent, `00-${TRACE_ID}-${upstream.spanContext().spanId}-01`)
  assert.equal(told.headers.tracestate, 'a=b')
  assert.equal(told.lines.filter(([name]) => name === 'traceparent').length, 1)
  const { hostname, port } = new URL(scene.upstream.url)
  assert.deepEqual(upstream.attributes, {
    'http.request.method': 'GET',
    'url.full': `${scene.upstream.url}/page`,
    'server.address': hostname,
    'server.port': Number(port),
    'http.response.status_code': 200,
  })
  const {
    'http.response.status_code': status,
    'menshen.request_id': id,
    'menshen.outcome': outcome,
  } = request.attributes
  assert.deepEqual({ status, id, outcome }, { status: 200, id: headers['x-request-id'], outcome: 'admitted' })
})

test('the span of a sign-in has the calls to provider and store below it, and no span contains a secret', async t => {
  const scene = await setUp(t)
  const user = await scene.user('zhangsan')
  const request = await requestSpan('/callback')
  assert.equal(request.name, 'GET /callback')
  childOf(request, 'provider token')
  childOf(request, 'provider user_info')
  childOf(request, 'store create')
  const everything = JSON.stringify(
    exporter.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  )
  const ticket = user.cookies.get('menshen_session') ?? assert.fail('no ticket')
  for (const secret of [ticket, 'code=', 'zhangsan', ...scene.provider.livingTokens])
    assert.ok(!everything.includes(secret), secret)
})

test('a failing provider and an unreachable application are errors of their spans', async t => {
  const scene = await setUp(t, { env: { UPSTREAM: `http://127.0.0.1:${await freePort()}` } })
  const user = await scene.user()
  exporter.reset()
  await user.get('/away')
  const away = await requestSpan('/away')
  assert.equal(away.status.code, SpanStatusCode.ERROR)
  assert.equal(away.attributes['error.type'], '502')
  assert.deepEqual(
    away.events.map(({ name, attributes }) => [name, attributes?.reason]),
    [['upstream_failed', 'ECONNREFUSED']],
  )
  const [upstream] = below(away).filter(({ kind }) => kind === SpanKind.CLIENT)
  assert.deepEqual([upstream?.status.code, upstream?.attributes['error.type']], [SpanStatusCode.ERROR, 'no_answer'])

  scene.passSeconds(7000)
  scene.provider.answer('refresh', { kind: 'json', status: 500, body: {} })
  await user.get('/ended')
  const ended = await requestSpan('/ended')
  const refresh = childOf(childOf(ended, 'session find'), 'refresh tokens')
  const provider = childOf(refresh, 'provider refresh')
  assert.deepEqual([provider.status.code, provider.attributes['error.type']], [SpanStatusCode.ERROR, '500'])
  assert.deepEqual(
    refresh.events.map(({ name, attributes }) => [name, attributes?.reason]),
    [
      ['session_refresh_failed', 'provider_answer'],
      ['session_ended', 'refresh_failed'],
    ],
  )
})

test('each call to the provider has a span, and a call that is not made has none', async t => {
  const port = await freePort()
  const op = await startStrictOidcServer(t)
  op.bend.discovery = ({ userinfo_endpoint: _, end_session_endpoint: __, revocation_endpoint: ___, ...right }) => right
  const gateway = await openGateway(t, { ...op.settings, PORT: String(port) })
  op.client = { baseUrl: gateway.url, now: gateway.now }
  const client = gateway.visitor()
  const back = await client.follow(await client.follow(await client.post('/login')))
  assert.equal(back.headers.location, '/')
  await client.post('/logout', '', { headers: { origin: gateway.url } })
  await requestSpan('/logout')
  const calls = exporter.getFinishedSpans().filter(({ name }) => name.startsWith('provider '))
  assert.deepEqual(
    calls.map(({ name, attributes }) => [name, attributes['url.full'], attributes['http.response.status_code']]),
    [
      ['provider metadata', `${op.issuer}/.well-known/openid-configuration`, 200],
      ['provider token', `${op.issuer}/token`, 200],
      ['provider keys', `${op.issuer}/keys`, 200],
    ],
  )
})

test('an unreachable provider is an error of the span of its call, without a status code', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  scene.passSeconds(7000)
  exporter.reset()
  await scene.provider.close()
  await user.get('/away')
  const refresh = childOf(childOf(await requestSpan('/away'), 'session find'), 'refresh tokens')
  const { attributes } = childOf(refresh, 'provider refresh')
  assert.equal(attributes['error.type'], 'provider_unreachable')
  assert.equal(attributes['http.response.status_code'], undefined)
})

test('an invalid traceparent starts a new trace and does not reach the application', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  for (const traceparent of [
    'nonsense',
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `${TRACEPARENT}, ${TRACEPARENT}`,
  ]) {
    exporter.reset()
    await user.get('/page', { headers: { traceparent } })
    const request = await requestSpan('/page')
    assert.equal(request.parentSpanContext, undefined)
    assert.match(String(scene.upstream.last().headers.traceparent), new RegExp(request.spanContext().traceId))
  }
})

test('a denied request has a refused event on its span, and a WebSocket has spans too', async t => {
  const rules = [{ path: '/secret', roles: ['developer' as const] }]
  const scene = await setUpSockets(t, { config: { rules } })
  const user = await scene.user()
  await user.get('/secret')
  const refused = await requestSpan('/secret')
  assert.deepEqual(
    refused.events.map(({ name }) => name),
    ['refused'],
  )
  assert.equal(refused.status.code, SpanStatusCode.UNSET)
  const socket = dial(scene, user, '/chat')
  await once(socket, 'open')
  socket.close()
  const chat = await requestSpan('/chat')
  assert.equal(chat.attributes['http.response.status_code'], 101)
  const [upstream] = below(chat).filter(({ kind }) => kind === SpanKind.CLIENT)
  assert.match(String(scene.upstream.last().headers.traceparent), new RegExp(String(upstream?.spanContext().spanId)))
})

test('the introspection of a bearer token is a span below its request', async t => {
  const rules = [{ path: '/api', roles: ['*' as const], bearer: true }]
  const { provider, bring } = await setUpOidc(t, { config: { rules } })
  provider.introspect = () => ({ active: true, client_id: provider.clientId, sub: 'u-7' })
  assert.equal((await bring('opaque', '/api')).status, 200)
  assert.equal(childOf(await requestSpan('/api'), 'provider introspection').kind, SpanKind.CLIENT)
})
