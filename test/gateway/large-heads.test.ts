// Heads that are larger than MAX_HEADER_KB, of requests and of an application's answers.

import assert from 'node:assert/strict'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
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

test('a large head is answered however it arrives, and the next client is served', async t => {
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

test('a large head after a request that is being answered does not disturb that answer', async t => {
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

test('other requests that cannot be read get 400', async t => {
  const scene = await setUp(t)
  assert.equal(await raw(scene.url, 'nonsense\r\n\r\n'), 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
})

test('MAX_HEADER_KB is the limit for both directions', async t => {
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
