// Browsers by HTTP/2: the same pages, rules and headers as by HTTP/1.1, on one connection.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants, sensitiveHeaders } from 'node:http2'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { cookieOf } from '../kit/client.ts'
import { answerOf, ask, openHttp2 } from '../kit/http2-client.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

function certificate(t: Parameters<typeof tempFolder>[0]) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  return { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }
}

async function protocolOf(url: string, options: ConnectionOptions): Promise<unknown> {
  const { port } = new URL(url)
  const socket = connectTls({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false, ...options })
  await once(socket, 'secureConnect')
  socket.destroy()
  return socket.alpnProtocol
}

test('the gateway behaves over HTTP/2 as it does over HTTP/1.1', async t => {
  const scene = await setUp(t, {
    env: { ...certificate(t), ACCESS_LOG: 'true', UPSTREAM_HEADERS_TIMEOUT_MS: '1000' },
    async answer(request, response) {
      switch (request.url) {
        case '/echo':
          return void response.end(await text(request))
        case '/odd':
          response.writeHead(200, 'Fine', {
            connection: 'keep-alive, x-hop',
            'keep-alive': 'timeout=5',
            'x-hop': 'dropped',
            'proxy-connection': 'close',
            'x-bytes': Buffer.from('报告').toString('latin1'),
            'set-cookie': ['a=1', 'b=2'],
          })
          return void response.end('odd')
        case '/trailers':
          response.writeHead(200, { trailer: 'x-checksum' })
          response.write('part')
          response.addTrailers({ 'x-checksum': 'abc', 'set-cookie': 'no=1' })
          return void response.end()
        case '/empty':
          return void response.writeHead(204).end()
        case '/not-modified':
          return void response.writeHead(304, { etag: '"1"' }).end()
        case '/hints':
          response.writeEarlyHints({ link: '</a.css>; rel=preload' })
          return void response.end('hinted')
        case '/broken':
          response.write('begin')
          return void setTimeout(() => response.destroy(), 20)
        case '/weird':
          return void response.writeHead(799).end('weird')
        case '/early':
          return void response.writeHead(413).end('too much')
        case '/events':
          response.writeHead(200, { 'content-type': 'text/event-stream' })
          return void response.write('data: 1\n\n')
      }
      response.end('hello')
    },
  })
  const session = await openHttp2(t, scene.url)
  const user = await scene.user()
  const cookie = cookieOf(user)
  const get = (path: string, more: object = {}) => ask(session, { ':path': path, cookie, ...more })

  await t.test('ALPN selects HTTP/2 or HTTP/1.1, and a client without ALPN can still connect', async () => {
    assert.equal(await protocolOf(scene.url, { ALPNProtocols: ['http/1.1', 'h2'] }), 'h2')
    assert.equal(await protocolOf(scene.url, { ALPNProtocols: ['http/1.1'] }), 'http/1.1')
    assert.equal(await protocolOf(scene.url, {}), false)
    assert.equal((await user.get('/')).text, 'hello')
  })

  await t.test('a visitor is redirected to /login, and a script gets 401', async () => {
    const page = await ask(session, { ':path': '/x', accept: 'text/html' })
    assert.deepEqual([page.status, page.headers.location], [302, '/login'])
    assert.equal((await ask(session, { ':path': '/x', accept: 'application/json' })).status, 401)
    assert.equal((await ask(session, { ':path': '/login' })).status, 200)
  })

  await t.test('split cookie headers reach the application as one header, without Menshen’s own cookie', async () => {
    const crumbs = ['one=1', ...cookie.split('; '), 'two=2']
    const answer = await ask(session, {
      ':path': '/',
      cookie: crumbs,
      'x-forwarded-user': 'root',
      'x-twice': ['a', 'b'],
    })
    assert.equal(answer.text, 'hello')
    const { lines, headers } = scene.upstream.last()
    assert.deepEqual(
      lines.filter(([name]) => name === 'cookie'),
      [['cookie', 'one=1; two=2']],
    )
    assert.equal(headers['x-forwarded-user'], 'zhangsan')
    assert.equal(headers['x-twice'], 'a, b')
    assert.equal(headers.host, new URL(scene.url).host)
    assert.ok(!lines.some(([name]) => name.startsWith(':')))
  })

  await t.test('request bodies pass with and without content-length, and a mismatched one is refused', async () => {
    const post = { ':path': '/echo', ':method': 'POST', cookie }
    assert.equal((await ask(session, post, 'without a length')).text, 'without a length')
    assert.equal((await ask(session, { ...post, 'content-length': '4' }, 'four')).text, 'four')
    const large = Buffer.alloc(1_000_000, 'x')
    assert.equal((await ask(session, post, large)).text.length, large.length)
    for (const length of ['3', '5']) {
      const other = await openHttp2(t, scene.url)
      await assert.rejects(ask(other, { ...post, 'content-length': length }, 'four'))
    }
  })

  await t.test('hop-by-hop response headers of HTTP/1.1 are dropped, and all other headers arrive', async () => {
    const { status, headers, text } = await get('/odd')
    assert.deepEqual([status, text], [200, 'odd'])
    for (const name of ['connection', 'keep-alive', 'x-hop', 'proxy-connection', 'transfer-encoding'])
      assert.equal(headers[name], undefined)
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2'])
    assert.deepEqual(Reflect.get(headers, sensitiveHeaders), ['x-request-id'], 'it is not for the table of headers')
    assert.equal(Buffer.from(String(headers['x-bytes']), 'latin1').toString(), '报告')
  })

  await t.test('trailers, early hints and responses without a body arrive', async () => {
    const trailed = await get('/trailers', { te: 'trailers' })
    assert.equal(trailed.text, 'part')
    assert.deepEqual(Object.entries(trailed.trailers), [['x-checksum', 'abc']])
    assert.equal((await get('/empty')).status, 204)
    assert.deepEqual([(await get('/not-modified')).status, (await get('/empty')).text], [304, ''])
    const head = await get('/', { ':method': 'HEAD' })
    assert.deepEqual([head.status, head.text], [200, ''])
    const hinted = session.request({ ':path': '/hints', cookie })
    const hints = once(hinted, 'headers')
    assert.equal((await answerOf(hinted)).text, 'hinted')
    assert.match(String((await hints)[0].link), /a\.css/)
  })

  await t.test('an upload with expect: 100-continue gets 100, and an unknown expectation gets 417', async () => {
    const stream = session.request(
      { ':path': '/echo', ':method': 'POST', cookie, expect: '100-continue' },
      { endStream: false },
    )
    await once(stream, 'continue')
    stream.end('asked for')
    assert.equal((await answerOf(stream)).text, 'asked for')
    assert.equal((await get('/', { expect: 'something' })).status, 417)
  })

  await t.test('a response that breaks off resets its stream, and one with the status 799 becomes 502', async () => {
    await assert.rejects(get('/broken'), /INTERNAL_ERROR/)
    assert.equal((await get('/weird')).status, 502)
    assert.equal((await get('/')).text, 'hello')
  })

  await t.test('an application can respond before it has read the request body', async () => {
    const stream = session.request({ ':path': '/early', ':method': 'POST', cookie }, { endStream: false })
    stream.write('x'.repeat(1000))
    assert.equal((await answerOf(stream)).status, 413)
    await until(() => stream.closed)
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
  })

  await t.test('a Host that differs from :authority, an unknown method and an unsafe path get 400', async () => {
    assert.equal((await get('/', { ':authority': 'localhost', host: 'other.example' })).status, 400)
    assert.equal((await get('/', { ':method': 'BREW' })).status, 400)
    for (const path of ['/../x', '//x', '/a\\b']) assert.equal((await get(path)).status, 400, path)
  })

  await t.test('a request head that is too large gets a page with 431, and a much larger one is reset', async () => {
    const answer = await get('/', { 'x-long': 'x'.repeat(17_000), accept: 'text/html' })
    assert.equal(answer.status, 431)
    assert.match(answer.text, new RegExp(String(answer.headers['x-request-id'])))
    assert.ok(scene.lines.some(({ event }) => event === 'head_too_large'))
    const other = await openHttp2(t, scene.url)
    await assert.rejects(ask(other, { ':path': '/', 'x-long': ['x', 'y', 'z', 'w'].map(each => each.repeat(30_000)) }))
    assert.equal((await get('/')).text, 'hello')
  })

  await t.test('seven event streams leave room for a page, and a sign-out closes them', async () => {
    const streams = Array.from({ length: 7 }, () => session.request({ ':path': '/events', cookie }))
    const closed = streams.map(stream => {
      stream.on('error', () => {})
      return new Promise(resolve => stream.once('close', resolve))
    })
    for (const stream of streams) assert.match(String((await once(stream, 'data'))[0]), /data: 1/)
    assert.equal((await get('/')).text, 'hello')
    await user.post('/logout', {}, { headers: { origin: scene.baseUrl } })
    await Promise.all(closed)
  })

  await t.test('the access log has the number of bytes of a response', () => {
    const line = scene.lines.find(({ event, fields }) => event === 'request' && fields.path === '/echo')
    assert.equal(line?.fields.bytes, 'without a length'.length)
  })
})

test('a shutdown sends GOAWAY over HTTP/2 and lets requests finish', async t => {
  let finish: (() => void) | undefined
  const scene = await setUp(t, {
    env: certificate(t),
    answer(request, response) {
      if (request.url === '/slow') finish = () => response.end('finished')
      else response.end('hello')
    },
  })
  const cookie = cookieOf(await scene.user())
  const session = await openHttp2(t, scene.url)
  const slow = ask(session, { ':path': '/slow', cookie })
  await until(() => finish !== undefined)
  const goaway = once(session, 'goaway')
  const closed = scene.end(10_000)
  assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR)
  finish?.()
  assert.equal((await slow).text, 'finished')
  await closed
})

test('an idle HTTP/2 connection is closed, and HTTP2=false offers only HTTP/1.1', async t => {
  const env = certificate(t)
  const scene = await setUp(t, { env: { ...env, KEEP_ALIVE_TIMEOUT_MS: '1000' }, application: false })
  const session = await openHttp2(t, scene.url)
  await once(session, 'goaway')
  await once(session, 'close')
  const without = await setUp(t, { env: { ...env, HTTP2: 'false' }, application: false })
  assert.equal(await protocolOf(without.url, { ALPNProtocols: ['h2', 'http/1.1'] }), 'http/1.1')
})

test('with several hosts, one HTTP/2 connection serves all of them, and an unknown :authority gets 421', async t => {
  const env = certificate(t)
  const scene = await setUp(t, {
    env,
    config: { hosts: { 'wiki.example.com': { upstream: 'http://127.0.0.1:1' } } },
  })
  const session = await openHttp2(t, scene.url)
  const at = (authority: string) => ask(session, { ':path': '/x', ':authority': authority, accept: 'text/html' })
  assert.equal((await at('other.example.com')).status, 421)
  assert.match(String((await at('wiki.example.com')).headers.location), /_menshen\/enter/)
  assert.equal((await at(new URL(scene.url).host)).headers.location, '/login')
})

test('a refused gRPC request gets a gRPC status over HTTP/1.1 too, but never a 200 from forward-auth', async t => {
  const scene = await setUp(t, {
    env: { TRUSTED_PROXIES: '127.0.0.1' },
    config: { rules: [{ path: '/', roles: ['developer'] }] },
  })
  const grpc = { 'content-type': 'application/grpc-web+proto; charset=x', 'accept-language': 'en' }
  const visitor = await scene.client.post('/pkg.Service/Method', '', { headers: grpc })
  assert.deepEqual(
    [visitor.status, visitor.headers['content-type'], visitor.headers['grpc-status'], visitor.text],
    [200, 'application/grpc-web+proto', '16', ''],
  )
  assert.match(String(visitor.headers['grpc-message']), /^[ -~]+$/)
  const user = await scene.user()
  const refused = await user.post('/pkg.Service/Method', '', { headers: grpc })
  assert.deepEqual([refused.status, refused.headers['grpc-status']], [200, '7'])
  for (const [client, status] of [
    [scene.client, 401],
    [user, 403],
  ] as const) {
    const original = { 'x-original-method': 'POST', 'x-original-uri': '/pkg.Service/Method' }
    assert.equal((await client.get('/_menshen/check', { headers: { ...grpc, ...original } })).status, status)
    assert.equal((await client.post('/_menshen/authz/pkg.Service/Method', '', { headers: grpc })).status, status)
    const forwarded = { 'x-forwarded-method': 'POST', 'x-forwarded-uri': '/pkg.Service/Method' }
    assert.notEqual((await client.get('/_menshen/forward', { headers: { ...grpc, ...forwarded } })).status, 200)
  }
})

test('a gRPC call with an unreadable path or the method TRACE gets a gRPC status, but never a 200 from forward-auth', async t => {
  const scene = await setUp(t, {
    env: { TRUSTED_PROXIES: '127.0.0.1' },
    config: { rules: [{ path: '/', public: true }] },
  })
  const grpc = { 'content-type': 'application/grpc', 'accept-language': 'en' }
  const ask = async (method: string, path: string) => {
    const { status, headers, text } = await scene.client.request({ method, path, headers: grpc })
    return { status, grpc: headers['grpc-status'], message: String(headers['grpc-message']), text }
  }
  for (const [method, path, status] of [
    ['POST', '/pkg.Service/%2e%2e/Method', '3'],
    ['POST', '/pkg.Service/%zz', '3'],
    ['POST', '//pkg.Service/Method', '3'],
    ['POST', `/${'a'.repeat(5000)}`, '3'],
    ['TRACE', '/pkg.Service/Method', '12'],
  ] as const) {
    const answer = await ask(method, path)
    assert.deepEqual([answer.status, answer.grpc, answer.text], [200, status, ''], path.slice(0, 60))
    assert.match(answer.message, /^[ -~]+$/)
  }
  for (const path of [
    '/_menshen/authz/pkg.Service/%2e%2e/Method',
    '/_menshen/authz/pkg.Service/%zz',
    '/_menshen/authz/../Method',
    `/_menshen/authz/${'a'.repeat(5000)}`,
    '//_menshen/authz/pkg.Service/Method',
    '/x/../_menshen/authz/pkg.Service/Method',
    '/_menshen/check/../x',
  ]) {
    const { status, grpc } = await ask('POST', path)
    assert.ok(status === 400 || status === 414, `${status} ${path.slice(0, 60)}`)
    assert.equal(grpc, undefined)
  }
  assert.equal((await ask('TRACE', '/_menshen/authz/pkg.Service/Method')).status, 405)
  assert.equal((await ask('TRACE', '/_menshen/check')).status, 401)
  const page = await scene.client.request({ method: 'POST', path: '/a/%2e%2e/b', headers: {} })
  assert.deepEqual([page.status, page.headers['grpc-status']], [400, undefined])
})
