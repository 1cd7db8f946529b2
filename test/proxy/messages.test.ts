// What a message looks like on the other side: any method, any body, trailers, interim and empty answers, odd bytes.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, METHODS } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import test from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { openWire, raw, request, startRawUpstream, statusOf } from './raw.ts'

test('every method except CONNECT and TRACE reaches the application with its body, and TRACE gets 405', async t => {
  const bodies: string[] = []
  const scene = await setUp(t, {
    answer: async (request, response) => {
      bodies.push(await text(request))
      response.end()
    },
  })
  const user = await scene.user()
  const forwarded = METHODS.filter(method => method !== 'CONNECT' && method !== 'TRACE')
  for (const method of forwarded) {
    const { status } = await user.request({
      method,
      path: '/thing?a=1',
      body: `body of ${method}`,
      headers: { 'content-length': `body of ${method}`.length },
    })
    assert.equal(status, 200, method)
    assert.equal(scene.upstream.last().method, method)
    assert.equal(scene.upstream.last().target, '/thing?a=1')
    assert.equal(bodies.at(-1), `body of ${method}`)
  }
  assert.equal((await user.request({ method: 'TRACE', path: '/thing' })).status, 405)
  assert.equal(scene.upstream.received.length, forwarded.length)
})

test('a method override header changes neither the rule nor the method, and the application never sees it', async t => {
  const scene = await setUp(t, {
    config: { rules: [{ path: '/things', methods: ['DELETE'], roles: ['developer'] }] },
  })
  const user = await scene.user()
  const overrides = ['x-http-method-override', 'x-http-method', 'x-method-override']
  for (const name of overrides) {
    assert.equal((await user.request({ method: 'DELETE', path: '/things/1', headers: { [name]: 'GET' } })).status, 403)
    assert.equal((await user.post('/things/1', '', { headers: { [name]: 'DELETE' } })).status, 200)
    const { method, headers } = scene.upstream.last()
    assert.equal(method, 'POST')
    assert.ok(!(name in headers), name)
  }
})

test('a request body that is empty, of known length, chunked or absent reaches the application as such', async t => {
  const scene = await setUp(t, {
    answer: async (request, response) => void response.end(`<${await text(request)}>`),
  })
  const user = await scene.user()
  const cookie = `cookie: ${cookieOf(user)}`
  const empty = await raw(scene.url, request('POST / HTTP/1.1', cookie, 'content-length: 0'))
  assert.match(empty, /<>/)
  assert.equal(scene.upstream.last().headers['content-length'], '0')

  const known = await raw(scene.url, `${request('POST / HTTP/1.1', cookie, 'content-length: 5')}abcde`)
  assert.match(known, /<abcde>/)
  assert.equal(scene.upstream.last().headers['content-length'], '5')
  assert.equal(scene.upstream.last().headers['transfer-encoding'], undefined)

  const chunked = `${request('POST / HTTP/1.1', cookie, 'transfer-encoding: chunked')}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`
  assert.match(await raw(scene.url, chunked), /<abcde>/)
  assert.equal(scene.upstream.last().headers['content-length'], undefined)
  assert.equal(scene.upstream.last().headers['transfer-encoding'], 'chunked')

  await user.get('/')
  assert.equal(scene.upstream.last().headers['content-length'], undefined)
  assert.equal(scene.upstream.last().headers['transfer-encoding'], undefined)
})

test('response trailers are forwarded, except Set-Cookie and Cache-Control', async t => {
  const scene = await setUp(t, {
    answer: (_request, response) => {
      response.writeHead(200, { trailer: 'x-checksum' })
      response.write('body')
      response.addTrailers({ 'x-checksum': 'abc', 'set-cookie': 'menshen_session=evil', 'cache-control': 'public' })
      response.end()
    },
  })
  const user = await scene.user()
  const answer = await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`, 'te: trailers'))
  assert.match(answer, /\r\ntrailer: x-checksum\r\n/i)
  assert.match(answer, /\r\n0\r\nx-checksum: abc\r\n\r\n$/)
  // Applications may only send them to somebody who says that they are welcome.
  assert.equal(scene.upstream.last().headers.te, 'trailers')
})

test('a Trailer header on a response that cannot have trailers does not break the response', async t => {
  const answers: Record<string, string> = {
    '/length': 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntrailer: x-checksum\r\n\r\nhello',
    '/unchanged': 'HTTP/1.1 304 Not Modified\r\ntrailer: x-checksum\r\n\r\n',
    '/head': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-checksum\r\n\r\n',
  }
  const upstream = await startRawUpstream(t, (socket, head) => {
    socket.write(answers[head.split(' ')[1] ?? ''] ?? '')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const ask = (line: string) => raw(scene.url, request(line, cookie))
  assert.match(await ask('GET /length HTTP/1.1'), /^HTTP\/1\.1 200 .*hello$/s)
  assert.match(await ask('GET /unchanged HTTP/1.1'), /^HTTP\/1\.1 304 /)
  assert.match(await ask('HEAD /head HTTP/1.1'), /^HTTP\/1\.1 200 /)
})

test('only an admitted upload gets 100 Continue', async t => {
  const scene = await setUp(t, {
    config: { rules: [{ path: '/internal', roles: ['developer'] }] },
    answer: async (request, response) => void response.end(`got ${await text(request)}`),
  })
  const user = await scene.user()
  const expecting = (path: string, ...more: string[]) =>
    request(`POST ${path} HTTP/1.1`, 'expect: 100-continue', 'content-length: 4', ...more)

  for (const [path, more, status] of [
    ['/', [], 401],
    ['/internal', [`cookie: ${cookieOf(user)}`], 403],
    ['/%2e%2e/', [`cookie: ${cookieOf(user)}`], 400],
  ] as const) {
    const wire = await openWire(scene.url)
    wire.socket.write(expecting(path, ...more))
    assert.equal(statusOf(await wire.sees('\r\n\r\n')), status)
    wire.socket.destroy()
  }
  assert.equal(scene.upstream.received.length, 0)

  const wire = await openWire(scene.url)
  wire.socket.write(expecting('/', `cookie: ${cookieOf(user)}`))
  assert.equal(await wire.sees('\r\n\r\n'), 'HTTP/1.1 100 Continue\r\n\r\n')
  wire.socket.write('abcd')
  assert.match(await wire.rest(), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[\s\S]*got abcd/)
})

test('an HTTP/1.0 client gets no interim response and a body that ends with the connection', async t => {
  const scene = await setUp(t, {
    answer: async (request, response) => {
      response.writeProcessing()
      response.write('got ')
      response.end(await text(request))
    },
  })
  const user = await scene.user()
  const lines = ['POST / HTTP/1.0', `cookie: ${cookieOf(user)}`, 'expect: 100-continue', 'content-length: 4']
  const answer = await raw(scene.url, `${lines.join('\r\n')}\r\n\r\nabcd`)
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\ngot abcd$/)
  assert.doesNotMatch(answer, /transfer-encoding/i)
})

test('responses to HEAD and with status 204 or 304 keep their headers and have no body', async t => {
  const scene = await setUp(t, {
    answer: (request, response) => {
      const status = Number(request.url?.slice(1))
      response.writeHead(status, { etag: '"v1"', ...(status !== 204 && { 'content-length': 5 }) })
      response.end(status === 200 ? 'hello' : undefined)
    },
  })
  const user = await scene.user()
  for (const [method, path] of [
    ['HEAD', '/200'],
    ['GET', '/204'],
    ['DELETE', '/204'],
    ['GET', '/304'],
    ['HEAD', '/304'],
  ] as const) {
    const bytes = request(`${method} ${path} HTTP/1.1`, `cookie: ${cookieOf(user)}`)
    const answer = await raw(scene.url, bytes)
    assert.equal(statusOf(answer), Number(path.slice(1)))
    assert.match(answer, /\r\netag: "v1"\r\n/)
    assert.match(answer, /\r\n\r\n$/, `${method} ${path} has a body`)
    assert.equal(/\r\ncontent-length: 5\r\n/.test(answer), path !== '/204', `${method} ${path}`)
    assert.equal(scene.upstream.last().method, method)
  }
})

test('interim responses are forwarded before the final one', async t => {
  const upstream = await startRawUpstream(t, socket => {
    socket.write('HTTP/1.1 102 Processing\r\n\r\n')
    socket.write(
      'HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel="preload stylesheet"; as=style, </b.js>; rel=preload\r\nset-cookie: a=b\r\n\r\n',
    )
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  const answer = await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`))
  assert.match(answer, /^HTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 103 Early Hints\r\n/)
  assert.match(
    answer,
    /\r\nlink: <\/a.css>; rel="preload stylesheet"; as=style, <\/b.js>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK/i,
  )
  assert.match(answer, /hello$/)
})

test('at most 64 KiB of interim responses are forwarded for a request', async t => {
  const hint = `HTTP/1.1 103 Early Hints\r\nlink: </${'a'.repeat(1000)}.css>; rel=preload\r\n\r\n`
  const upstream = await startRawUpstream(t, socket => {
    socket.write(hint.repeat(1000))
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  const answer = await raw(scene.url, request('GET / HTTP/1.1', `cookie: ${cookieOf(user)}`))
  const hints = answer.match(/^HTTP\/1\.1 103 /gm) ?? []
  assert.ok(hints.length > 50 && hints.length < 65, String(hints.length))
  assert.match(answer, /\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
  assert.match(answer, /hello$/)
})

test('a compressed body is forwarded unchanged', async t => {
  const zipped = gzipSync('门神'.repeat(1000))
  const scene = await setUp(t, {
    answer: (_request, response) => {
      response.writeHead(200, {
        'content-encoding': 'gzip',
        'content-type': 'text/plain',
        'content-length': zipped.length,
      })
      response.end(zipped)
    },
  })
  const user = await scene.user()
  const headers = { cookie: cookieOf(user), 'accept-encoding': 'gzip, br' }
  const [answer] = (await once(httpRequest(`${scene.url}/`, { headers, agent: false }).end(), 'response')) as [
    IncomingMessage,
  ]
  assert.equal(answer.headers['content-encoding'], 'gzip')
  assert.equal(answer.headers['content-length'], String(zipped.length))
  const body = await buffer(answer)
  assert.deepEqual(body, zipped)
  assert.equal(gunzipSync(body).toString(), '门神'.repeat(1000))
  assert.equal(scene.upstream.last().headers['accept-encoding'], 'gzip, br')
})

test('a response body of arbitrary bytes is unchanged, short or long, alone or after another response', async t => {
  const bodyOf = (length: string) => Buffer.from(Array.from({ length: Number(length) }, (_, n) => n % 256))
  const scene = await setUp(t, {
    answer: ({ url = '' }, response) => {
      const body = bodyOf(url.slice(1))
      response.writeHead(200, { 'content-length': body.length, 'x-note': 'caf\xe9' }).end(body)
    },
  })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  for (const length of ['1', '256', '8192', '8193', '100000']) {
    const one = `GET /${length} HTTP/1.1\r\nhost: app.test\r\n${cookie}\r\n\r\n`
    const answers = await raw(scene.url, one + request(`GET /${length} HTTP/1.1`, cookie))
    const body = bodyOf(length).toString('latin1')
    assert.equal(answers.split(`\r\n\r\n${body}`).length, 3, length)
    assert.equal(answers.match(/x-note: caf\xe9\r\n/gi)?.length, 2, length)
    assert.ok(answers.endsWith(body), length)
  }
})

test('non-ASCII bytes are forwarded in headers both ways, and are harmless in the reason phrase', async t => {
  const name = Buffer.from('报告.pdf').toString('latin1')
  const upstream = await startRawUpstream(t, socket => {
    const disposition = `content-disposition: attachment; filename="${name}"`
    socket.write(`HTTP/1.1 200 ${name}\r\n${disposition}\r\ncontent-length: 2\r\n\r\nok`, 'latin1')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const user = await scene.user()
  const bytes = request(`GET / HTTP/1.1`, `cookie: ${cookieOf(user)}`, `x-name: ${name}`)
  const answer = await raw(scene.url, bytes)
  assert.equal(statusOf(answer), 200)
  assert.ok(answer.includes(`content-disposition: attachment; filename="${name}"`))
  assert.ok(upstream.heads[0]?.includes(`\r\nx-name: ${name}\r\n`))
})

test('early hints for a pipelined request do not end up in the body of another response', async t => {
  const first = Promise.withResolvers<void>()
  const hinted = Promise.withResolvers<void>()
  const scene = await setUp(t, {
    async answer({ url }, response) {
      if (url === '/first') await first.promise
      else await new Promise<void>(resolve => response.writeEarlyHints({ link: '</a.css>; rel=preload' }, resolve))
      response.end(`the answer to ${url}`)
      if (url === '/second') response.once('close', hinted.resolve)
    },
  })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const wire = await openWire(scene.url)
  wire.socket.write(`GET /first HTTP/1.1\r\nhost: a\r\n${cookie}\r\n\r\n`)
  wire.socket.write(request('GET /second HTTP/1.1', cookie))
  await hinted.promise
  first.resolve()
  const answers = (await wire.rest()).split(/(?=HTTP\/1\.1 )/)
  assert.deepEqual(
    answers.map(answer => [statusOf(answer), answer.slice(answer.indexOf('\r\n\r\n') + 4)]),
    [
      [200, 'the answer to /first'],
      [200, 'the answer to /second'],
    ],
  )
})

test('a request body that the application might not read closes its connection and cannot become another user’s request', async t => {
  // It answers each head at once, and takes whatever follows for the next one.
  const app = await startRawUpstream(t, (socket, head, nth) => {
    for (const line of head.match(/^\S+ \S+ HTTP\/1\.1\r\n/gm) ?? [])
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${line.length}\r\nx-nth: ${nth}\r\n\r\n${line}`)
  })
  const scene = await setUp(t, { env: { UPSTREAM: app.url } })
  const [evil, user] = [await scene.user('evil'), await scene.user()]
  const body = 'GET /evil HTTP/1.1\r\nhost: a\r\n\r\n'
  for (const method of ['GET', 'OPTIONS', 'DELETE', 'PROPFIND']) {
    await evil.request({ method, path: '/', body, headers: { 'content-length': body.length } })
    for (let n = 0; n < 3; n++) assert.match((await user.get('/mine')).text, /^GET \/mine /, method)
  }
  const closing = app.heads.filter(head => !head.startsWith('GET /mine '))
  for (const head of closing.filter(head => head.includes('x-forwarded-for')))
    assert.match(head, /^connection: close\r\n/im)
})
