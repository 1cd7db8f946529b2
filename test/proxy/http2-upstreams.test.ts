// Applications that speak HTTP/2: by h2c, or because they choose it behind https.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createSecureServer, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { WebSocket, WebSocketServer } from 'ws'
import { cookieOf } from '../kit/client.ts'
import { answerOf, ask, openHttp2 } from '../kit/http2-client.ts'
import { listen, listenHttp2 } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { refusal } from '../kit/websocket.ts'
import { filesOf, makeAuthority, makeCertificate } from '../proxies/certificates.ts'

/** Answers with what it was asked, and with trailers. */
function answer(stream: ServerHttp2Stream, headers: Record<string, unknown>): void {
  stream.on('error', () => {})
  const path = String(headers[':path'])
  let trailers: Record<string, unknown> = {}
  stream.on('trailers', received => {
    trailers = received
  })
  if (path === '/silent') return
  if (path === '/refused') return void stream.close(7)
  if (path === '/large') return void stream.respond({ 'x-large': 'x'.repeat(20_000) }, { endStream: true })
  if (path === '/half') {
    stream.respond({ ':status': 200, 'content-length': '10' })
    stream.write('half')
    return void setImmediate(() => stream.close(2))
  }
  void text(stream).then(body => {
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/json',
        'set-cookie': ['a=1', '__Host-menshen_session=x'],
        connection: undefined,
      },
      { waitForTrailers: true },
    )
    stream.once('wantTrailers', () => stream.sendTrailers({ 'x-end': 'reached', 'set-cookie': 'b=2' }))
    stream.end(JSON.stringify({ headers, body, trailers }))
  })
}

interface Seen {
  readonly headers: Record<string, string>
  readonly body: string
  readonly trailers: Record<string, string>
}

/** By HTTP/1.1. */
async function listenToSockets(t: TestContext) {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.after(() => sockets.close())
  sockets.on('connection', (socket, { headers }) => socket.send(`hello ${headers['x-forwarded-user']}`))
  await once(sockets, 'listening')
  return { port: (sockets.address() as AddressInfo).port }
}

test('an h2c application is called over HTTP/2, on one connection, with trailers both ways', async t => {
  const folder = tempFolder(t)
  const own = makeCertificate(folder, 'own', makeAuthority(folder))
  const application = await listenHttp2(t, createServer().on('stream', answer))
  const sockets = await listenToSockets(t)
  const scene = await setUp(t, {
    env: {
      TLS_CERT_FILE: own.certFile,
      TLS_KEY_FILE: own.keyFile,
      UPSTREAM: application.url,
    },
    config: {
      upstreams: {
        '/sockets': `h2c://127.0.0.1:${sockets.port}`,
        '/silent': { url: application.url, timeoutSeconds: 1 },
      },
    },
  })
  const user = await scene.user()
  const cookie = cookieOf(user)
  const session = await openHttp2(t, scene.url)

  await t.test('headers are the same as with HTTP/1.1, and Menshen’s cookies are removed both ways', async () => {
    const { headers, text, trailers } = await ask(session, { ':path': '/a?b', cookie: [cookie, 'own=1'] })
    const seen = JSON.parse(text) as Seen
    assert.equal(seen.headers[':path'], '/a?b')
    assert.equal(seen.headers[':authority'], new URL(scene.url).host)
    assert.equal(seen.headers.cookie, 'own=1')
    assert.equal(seen.headers['x-forwarded-user'], 'zhangsan')
    assert.deepEqual(headers['set-cookie'], ['a=1'])
    assert.deepEqual(Object.entries(trailers), [['x-end', 'reached']])
  })

  await t.test(
    'request trailers are forwarded, except those that claim a user or concern the paths that the request acts on',
    async () => {
      const stream = session.request(
        { ':path': '/', ':method': 'POST', cookie, trailer: 'x-sum' },
        { endStream: false, waitForTrailers: true },
      )
      stream.on('wantTrailers', () =>
        stream.sendTrailers({
          'x-sum': '1',
          'x-forwarded-user': 'root',
          'x-remote-user': 'root',
          depth: 'infinity',
          destination: '/secret',
          overwrite: 'T',
          'new-uri': '/secret',
        }),
      )
      stream.end('body')
      const seen = JSON.parse((await answerOf(stream)).text) as Seen
      assert.equal(seen.body, 'body')
      assert.deepEqual(seen.trailers, { 'x-sum': '1' })
    },
  )

  await t.test('requests of HTTP/1.1 clients share the same HTTP/2 connection', async () => {
    const pages = await Promise.all(Array.from({ length: 20 }, () => user.post('/x', 'from HTTP/1.1')))
    for (const page of pages) assert.equal(page.json<Seen>().body, 'from HTTP/1.1')
    assert.equal(application.opened(), 1)
  })

  await t.test('a timeout gives 504, a refused stream or oversized head 502, and a cut-off body a reset', async () => {
    assert.equal((await user.get('/silent')).status, 504)
    assert.equal((await user.get('/refused')).status, 502)
    assert.equal((await user.get('/large')).status, 502)
    assert.ok(scene.lines.some(({ event }) => event === 'upstream_head_too_large'))
    await assert.rejects(ask(session, { ':path': '/half', cookie }), /INTERNAL_ERROR/)
  })

  await t.test('a WebSocket to an h2c address uses HTTP/1.1, and gets 502 if that is not supported', async () => {
    const open = (path: string) =>
      new WebSocket(scene.url.replace('https', 'wss') + path, { headers: { cookie }, rejectUnauthorized: false })
    const socket = open('/sockets')
    assert.equal(String((await once(socket, 'message'))[0]), 'hello zhangsan')
    socket.terminate()
    assert.equal(await refusal(open('/x')), 502)
    const failure = scene.lines.findLast(({ event }) => event === 'upstream_failed')
    assert.equal(failure?.fields.upstream, `http://127.0.0.1:${application.port}`)
  })

  await t.test('the next request opens a new connection after the application closed the old one', async () => {
    const before = application.opened()
    for (const each of application.sessions) each.close()
    await until(() => application.sessions.size === 0)
    assert.equal((await user.get('/again')).status, 200)
    for (const each of application.sessions) each.destroy()
    assert.equal((await user.get('/again')).status, 200)
    assert.equal(application.opened() - before, 2)
  })
})

test('the content type of gRPC lifts no deadline of a request that is not a POST, or of an answer that is not gRPC', async t => {
  const server = createServer().on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    if (headers[':method'] === 'POST') stream.respond({ ':status': 200, 'content-type': 'text/html' })
  })
  const { url } = await listenHttp2(t, server)
  const env = { UPSTREAM: url, UPSTREAM_HEADERS_TIMEOUT_MS: '300', UPSTREAM_IDLE_TIMEOUT_MS: '300' }
  const scene = await setUp(t, { env })
  const user = await scene.user()
  const headers = { 'content-type': 'application/grpc' }
  assert.equal((await user.get('/', { headers })).headers['grpc-status'], '14')
  await assert.rejects(user.post('/', 'call', { headers }))
  const reasons = scene.lines.filter(({ event }) => event === 'upstream_failed').map(({ fields }) => fields.reason)
  assert.deepEqual(reasons, ['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])
})

test('an https application chooses HTTP/1.1 or HTTP/2, and can change its choice after a restart', async t => {
  const folder = tempFolder(t)
  const ca = makeAuthority(folder)
  const files = filesOf(makeCertificate(folder, 'application', ca))
  const http1 = createHttps(
    files,
    (request, response) => void text(request).then(body => response.end(`HTTP/1.1 ${body}`)),
  )
  const connections = new Set<TLSSocket>()
  http1.on('secureConnection', connection => connections.add(connection))
  const { port } = await listen(t, http1)
  const scene = await setUp(t, { env: { UPSTREAM: `https://127.0.0.1:${port}`, UPSTREAM_CA_FILE: ca.certFile } })
  const user = await scene.user()
  const posts = () => Promise.all(Array.from({ length: 5 }, (_, n) => user.post('/x', `body ${n}`)))
  for (const [n, page] of (await posts()).entries()) assert.equal(page.text, `HTTP/1.1 body ${n}`)
  // Each is closed when the gateway has closed its side: it repeats no POST on a connection that ends meanwhile.
  const open = [...connections].filter(connection => !connection.destroyed)
  await Promise.all(open.map(connection => once(connection.end(), 'close')))
  http1.close()
  await once(http1, 'close')

  const http2 = createSecureServer(files)
  http2.on('stream', answer)
  const sessions: ServerHttp2Session[] = []
  http2.on('session', session => sessions.push(session))
  await listen(t, http2, port)
  for (const [n, page] of (await posts()).entries()) {
    assert.equal(page.status, 200, JSON.stringify(scene.lines.at(-1)))
    assert.equal(page.json<Seen>().body, `body ${n}`)
  }
  for (const session of sessions) session.destroy()
  http2.close()
  await once(http2, 'close')

  const again = createHttps(files, (_request, response) => response.end('HTTP/1.1'))
  await listen(t, again, port)
  assert.equal((await user.post('/x', 'body')).text, 'HTTP/1.1')
})
