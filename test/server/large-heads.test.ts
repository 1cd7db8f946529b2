// Heads that are larger than MAX_HEADER_KB, of requests and of an application's answers, and requests with too many fields.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { OutgoingHttpHeaders } from 'node:http2'
import test from 'node:test'
import { type Config, sendAnswer } from '../../src/index.ts'
import { cookieOf } from '../kit/client.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { listen } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { openWire, raw, request, startRawUpstream, statusOf } from '../proxy/raw.ts'

test('a request with a head that is too large gets 431 with a page or JSON, and the log has its id', async t => {
  const scene = await setUp(t)
  const large = `cookie: a=${'x'.repeat(16 * 1024)}`
  const page = await raw(
    scene.url,
    request('GET /wiki/page?secret=1 HTTP/1.1', 'accept: text/html', 'accept-language: zh-CN', large),
  )
  assert.equal(statusOf(page), 431)
  assert.match(page, /\r\ncontent-type: text\/html/i)
  assert.match(page, /\r\nconnection: close\r\n/i)
  assert.ok(Buffer.from(page, 'latin1').toString().includes('请求过大'))
  const id = /\r\nx-request-id: (\S+)/i.exec(page)?.[1] ?? 'none'
  const { fields } = scene.lines.find(({ event }) => event === 'head_too_large') ?? {}
  assert.deepEqual([fields?.requestId, fields?.path, fields?.method], [id, '/wiki/page', 'GET'])
  assert.ok(page.includes(`<code>${id}</code>`))

  const json = await raw(scene.url, request('POST /api HTTP/1.1', 'accept: application/json', large))
  assert.equal(statusOf(json), 431)
  assert.match(json, /"error":"headers_too_large"/)
  assert.equal(scene.upstream.received.length, 0)
  assert.doesNotMatch(JSON.stringify(scene.lines), /secret|xxxx/)
})

test('an oversized head gets 431 however it is split, and the next client is served', async t => {
  const scene = await setUp(t)
  for (const first of ['G', 'GET / HTTP/1.1\r\n', 'GET / HTTP/1.1\r\nhost: a\r\naccept: text/html\r\nx-', '']) {
    const wire = await openWire(scene.url)
    const all = `GET / HTTP/1.1\r\nhost: a\r\naccept: text/html\r\nx-large: ${'x'.repeat(200_000)}\r\n\r\n`
    wire.socket.write(first)
    await new Promise(resolve => setImmediate(resolve))
    wire.socket.write(all.slice(first.length))
    assert.equal(statusOf(await wire.sees('\r\n\r\n')), 431)
    wire.socket.destroy()
  }
  assert.equal((await (await scene.user()).get('/')).text, 'hello')
})

test('an oversized head after a request in progress does not disturb the response to that request', async t => {
  const upstream = await startRawUpstream(t, socket =>
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello'),
  )
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url } })
  const wire = await openWire(scene.url)
  wire.socket.write(`GET / HTTP/1.1\r\nhost: a\r\ncookie: ${cookieOf(await scene.user())}\r\n\r\n`)
  await wire.sees('hello')
  wire.socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx-large: ${'x'.repeat(30_000)}\r\n\r\n`)
  assert.doesNotMatch(await wire.rest(), /431/)
})

test('bad input after an unanswered request closes only its own connection', async t => {
  const scene = await setUp(t, {
    config: { rules: [{ path: '/', public: true }] },
    answer: (request, response) => void (request.url === '/slow' || response.end('hello')),
  })
  const handshake = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: AA==',
  ]
  for (const [next, status] of [
    [`GET / HTTP/1.1\r\nhost: a\r\nx-large: ${'x'.repeat(30_000)}\r\n\r\n`, '431'],
    ['nonsense\r\n\r\n', '400'],
    [['GET / HTTP/1.1', 'host: a', ...handshake, '\r\n'].join('\r\n'), undefined],
  ] as const) {
    const before = scene.upstream.received.length
    const wire = await openWire(scene.url)
    wire.socket.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n')
    await until(() => scene.upstream.received.length > before)
    wire.socket.write(next)
    assert.equal(/^HTTP\/1.1 (\d+)/.exec(await wire.rest())?.[1], status)
    assert.equal((await scene.client.get('/')).text, 'hello')
  }
  assert.deepEqual(
    scene.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('a malformed request gets 400', async t => {
  const scene = await setUp(t)
  assert.equal(await raw(scene.url, 'nonsense\r\n\r\n'), 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
})

test('MAX_HEADER_KB limits the heads of requests and of application responses', async t => {
  const upstream = await startRawUpstream(t, (socket, head) => {
    const size = Number(/\/(\d+)/.exec(head)?.[1])
    const isSocket = /upgrade: websocket/i.test(head)
    socket.write(
      `HTTP/1.1 ${isSocket ? '403 Forbidden' : '200 OK'}\r\ncontent-length: 2\r\nx-large: ${'x'.repeat(size)}\r\n\r\nok`,
    )
  })
  for (const [kb, accepted, refused] of [
    [undefined, 15_000, 17_000],
    ['40', 38_000, 42_000],
  ] as const) {
    const scene = await setUp(t, { env: { UPSTREAM: upstream.url, ...(kb && { MAX_HEADER_KB: kb }) } })
    const cookie = `cookie: ${cookieOf(await scene.user())}`
    const size = (size: number) => `x-large: ${'x'.repeat(size)}`
    assert.equal(statusOf(await raw(scene.url, request('GET /1 HTTP/1.1', cookie, size(accepted)))), 200)
    assert.equal(statusOf(await raw(scene.url, request('GET /1 HTTP/1.1', cookie, size(refused)))), 431)
    assert.equal(statusOf(await raw(scene.url, request(`GET /${accepted} HTTP/1.1`, cookie))), 200)
    assert.equal(statusOf(await raw(scene.url, request(`GET /${refused} HTTP/1.1`, cookie))), 502)
    const expect = ['expect: 100-continue', 'content-length: 4']
    assert.equal(statusOf(await raw(scene.url, request(`POST /${refused} HTTP/1.1`, cookie, ...expect))), 502)
    const socket = ['upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
    const lines = [`GET /${refused} HTTP/1.1`, 'host: a', 'connection: upgrade', ...socket, cookie]
    assert.equal(statusOf(await raw(scene.url, `${lines.join('\r\n')}\r\n\r\n`)), 502)
    await until(() => scene.lines.filter(({ event }) => event === 'upstream_head_too_large').length > 0)
    assert.equal(
      scene.lines.some(({ event }) => event === 'upstream_failed'),
      false,
    )
  }
})

/** With `host` and `connection`, a request of `count` header fields whose last one names the address of its client. */
function fields(count: number, ...own: string[]): string[] {
  const filler = Array.from({ length: count - 3 - own.length }, (_, n) => `x-${n % 7}: ${n}`)
  return [...own, ...filler, 'x-forwarded-for: 203.0.113.7']
}

const NETWORKS: Config = { rules: [{ path: '/', roles: ['*'], networks: ['127.0.0.0/8'] }] }

test('a request with more than 200 header fields gets 431 at every path, with a page and a log line', async t => {
  const scene = await setUp(t, { env: { TRUSTED_PROXIES: '127.0.0.1', MAX_HEADER_KB: '64' }, config: NETWORKS })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const get = (path: string, count: number, ...own: string[]) =>
    raw(scene.url, request(`GET ${path} HTTP/1.1`, ...fields(count, cookie, ...own)))
  assert.equal(statusOf(await get('/', 200)), 403, 'the last field is read: the client is outside the networks')
  assert.equal(scene.lines.filter(({ event }) => event === 'head_too_large').length, 0)
  const page = await get('/wiki?secret=1', 201, 'accept: text/html', 'accept-language: en')
  const id = /\r\nx-request-id: (\S+)/i.exec(page)?.[1] ?? 'none'
  assert.ok(page.includes(`<code>${id}</code>`))
  assert.match(page, /\r\nconnection: close\r\n/i)
  const logged = scene.lines.find(({ event }) => event === 'head_too_large')
  assert.partialDeepStrictEqual(logged?.fields, { requestId: id, path: '/wiki', address: '203.0.113.7' })
  for (const count of [201, 900, 1100, 2100])
    for (const path of ['/', '/_menshen/check', '/_menshen/forward', '/_menshen/authz/a', '/_menshen/health', '/login'])
      assert.equal(statusOf(await get(path, count)), 431, `${count} ${path}`)
  const expect = ['expect: 100-continue', 'content-length: 4']
  assert.equal(statusOf(await raw(scene.url, request('POST / HTTP/1.1', ...fields(201, ...expect)))), 431)
  const body = request('POST / HTTP/1.1', ...fields(201, 'content-length: 300000')) + 'x'.repeat(300_000)
  assert.equal(statusOf(await raw(scene.url, body)), 431)
  assert.equal(scene.upstream.received.length, 0)
})

test('an upgrade with more than 200 header fields gets 431', async t => {
  const scene = await setUp(t, { config: { rules: [{ path: '/', public: true }] } })
  const socket = ['upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
  const open = (count: number) =>
    raw(
      scene.url,
      ['GET / HTTP/1.1', 'host: a', 'connection: upgrade', ...fields(count, ...socket), '\r\n'].join('\r\n'),
    )
  const answer = await open(201)
  assert.equal(statusOf(answer), 431)
  const id = /\r\nx-request-id: (\S+)/i.exec(answer)?.[1] ?? 'none'
  assert.equal(scene.lines.find(({ event }) => event === 'head_too_large')?.fields?.requestId, id)
  assert.equal(scene.upstream.received.length, 0)
})

test('over HTTP/2, a request with more than 200 header fields gets 431, and split cookies are one field', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  const env = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }
  const scene = await setUp(t, { env, config: { rules: [{ path: '/', public: true }] } })
  const session = await openHttp2(t, scene.url)
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, 'a']))
  const status = async (headers: OutgoingHttpHeaders) => (await ask(session, { ':path': '/', ...headers })).status
  assert.equal(await status(many(190)), 200)
  assert.equal(await status({ ...many(50), cookie: Array.from({ length: 300 }, (_, n) => `c${n}=1`) }), 200)
  for (const count of [201, 350]) assert.equal(await status(many(count)), 431)
  assert.equal(scene.upstream.received.length, 2)
})

test('with several hosts, a request with more than 200 header fields gets 431 at each of them', async t => {
  const hosts = { 'wiki.test': { upstream: 'http://127.0.0.1:9' } }
  const scene = await setUp(t, { env: { BASE_URL: 'http://portal.test' }, config: { hosts } })
  for (const host of ['wiki.test', 'portal.test', 'other.test']) {
    const lines = ['GET / HTTP/1.1', `host: ${host}`, 'connection: close', ...fields(201)]
    assert.equal(statusOf(await raw(scene.url, `${lines.join('\r\n')}\r\n\r\n`)), 431, host)
  }
})

test('admit and fetch return 431 for more than 200 header fields, or if the server may have dropped fields', async t => {
  const scene = await setUp(t, { application: false, config: { rules: [{ path: '/', public: true }] } })
  const { menshen } = scene
  const many = (count: number) => new Headers(Array.from({ length: count }, (_, n) => [`x-${n}`, 'a']))
  const asked = (path: string, count: number) => new Request(`${scene.url}${path}`, { headers: many(count) })
  assert.equal((await menshen.admit(asked('/', 200))).answer, undefined)
  const { answer, requestId } = await menshen.admit(asked('/', 201))
  assert.equal(answer?.status, 431)
  assert.equal(answer?.headers.get('x-request-id'), requestId)
  assert.equal((await menshen.fetch(asked('/login', 201)))?.status, 431)
  assert.equal(await menshen.fetch(asked('/other', 201)), undefined)

  const server = createServer((incoming, response) => {
    menshen.admit(incoming).then(({ answer }) => response.writeHead(answer?.status ?? 200).end())
  })
  server.on('upgrade', (incoming, socket) => {
    menshen.admit(incoming).then(({ answer }) => answer && sendAnswer(socket, answer))
  })
  const { url } = await listen(t, server)
  const get = async (count: number) => statusOf(await raw(url, request('GET / HTTP/1.1', ...fields(count))))
  assert.deepEqual([await get(200), await get(201), await get(500)], [200, 431, 431])
  const upgrade = ['GET / HTTP/1.1', 'host: a', 'connection: upgrade', ...fields(201, 'upgrade: websocket'), '\r\n']
  assert.equal(statusOf(await raw(url, upgrade.join('\r\n'))), 431)
  server.maxHeadersCount = 50
  assert.deepEqual([await get(49), await get(50), await get(51)], [200, 431, 431])
  server.maxHeadersCount = 0
  assert.deepEqual([await get(200), await get(201), await get(1500)], [200, 431, 431])
})
