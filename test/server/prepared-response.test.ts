// A head that was prepared has the bytes that Node would have written.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { CommonHeaders } from '../../src/http/answers.ts'
import { createSendPrepared, PreparedResponse } from '../../src/server/fast-path.ts'
import { cookieOf } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'
import { openWire, raw, startRawUpstream } from '../proxy/raw.ts'

const HEADERS = { 'cache-control': 'no-store', 'content-length': '0' }
const IDENTITY = { pairs: ['x-menshen-name', '%E5%BC%A0', 'x-empty', ''], sent: [] }
const COOKIES = ['set-cookie', 'menshen_session=a; Path=/', 'set-cookie', 'b=c']

test('a prepared response head has the bytes that Node writes, on keep-alive, closing and HTTP/1.0 connections', async t => {
  const clock = { now: 1_000_000 }
  const common = new CommonHeaders(HEADERS)
  const sendPrepared = createSendPrepared(() => clock.now)
  let count = 0
  const server = createServer({ ServerResponse: PreparedResponse, keepAliveTimeout: 7000 }, (request, response) => {
    const requestId = `request-${++count}`
    // Every third one is the first of its second.
    clock.now += 400
    const identity = request.url?.includes('user') ? IDENTITY : undefined
    const more = request.url?.includes('renewed') ? COOKIES : []
    if (request.url?.startsWith('/prepared'))
      return sendPrepared(response, { outcome: 'admitted', status: 200, common, identity, requestId, more })
    response.writeHead(200, common.listFor({ requestId, identity, more }))
    response.end()
  })
  const { url } = await listen(t, server)

  /** The heads of the answers, without what differs between any two. */
  async function headsOf(path: string): Promise<string[]> {
    const requests = ['GET', 'GET', 'HEAD', 'GET', 'GET', 'GET'].map(
      method => `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    const last = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const answers = await raw(url, requests.join('') + last)
    const old = await raw(url, `GET ${path} HTTP/1.0\r\n\r\n`)
    const text = (answers + old).replace(/request-\d+/g, 'request').replace(/Date: .{25} GMT/g, 'Date: now')
    return text.split(/(?<=\r\n\r\n)/)
  }

  const prepared = await headsOf('/prepared')
  assert.deepEqual(prepared, await headsOf('/plain'))
  assert.deepEqual(await headsOf('/prepared?user'), await headsOf('/plain?user'))
  assert.deepEqual(await headsOf('/prepared?user&renewed'), await headsOf('/plain?user&renewed'))
  assert.equal(prepared.length, 8)
  assert.match(prepared[1] ?? '', /^HTTP\/1\.1 200 OK\r\n.*x-request-id: request\r\nDate: now\r\n.*timeout=7\r\n/s)
  assert.match(prepared[6] ?? '', /Connection: close/)
})

test('a renewed cookie is not sent with other responses of the same second', async t => {
  const common = new CommonHeaders(HEADERS)
  const sendPrepared = createSendPrepared(() => 1_000_000)
  const server = createServer({ ServerResponse: PreparedResponse }, (request, response) => {
    const more = request.url === '/renewed' ? COOKIES : []
    sendPrepared(response, { outcome: 'admitted', status: 200, common, identity: undefined, requestId: 'id', more })
  })
  const { url } = await listen(t, server)
  const requests = ['/renewed', '/', '/renewed', '/'].map(path => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  const last = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const answers = (await raw(url, requests.join('') + last)).split(/(?<=\r\n\r\n)/)
  const cookies = answers.map(answer => answer.match(/set-cookie/g)?.length ?? 0)
  assert.deepEqual(cookies, [2, 0, 2, 0, 0])
})

test('a prepared response head with an invalid header name or value is refused', () => {
  const requestId = 'id'
  const refused = ['a\r\nset-cookie: b', '张']
  for (const value of refused) {
    assert.throws(() => new CommonHeaders({ 'x-name': value }).headOfOk({ requestId }), /invalid character/i)
    const identity = { pairs: ['x-name', value], sent: [] }
    assert.throws(() => new CommonHeaders({}).headOfOk({ requestId, identity }), /invalid character/i)
    assert.throws(() => new CommonHeaders({}).headOfOk({ requestId, more: identity.pairs }), /invalid character/i)
  }
  assert.throws(() => new CommonHeaders({ 'x name': 'a' }).headOfOk({ requestId }), /token/)
})

test('a pipelined check with expect: 100-continue gets no 100, and its response closes the connection', async t => {
  const release = Promise.withResolvers<void>()
  const upstream = await startRawUpstream(t, async socket => {
    await release.promise
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
  })
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url, TRUSTED_PROXIES: '127.0.0.1' } })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const check = [cookie, 'host: a', 'x-original-uri: /', 'x-original-method: GET']
  const usual = `GET /_menshen/check HTTP/1.1\r\n${check.join('\r\n')}\r\n\r\n`
  const expecting = ['POST /_menshen/check HTTP/1.1', ...check, 'expect: 100-continue', 'content-length: 44']
  const wire = await openWire(scene.url)
  // The first of its second is written by Node.
  wire.socket.write(usual)
  await wire.sees('\r\n\r\n')
  wire.socket.write(`GET / HTTP/1.1\r\nhost: a\r\n${cookie}\r\n\r\n${expecting.join('\r\n')}\r\n\r\n`)
  release.resolve()
  const answers = (await wire.rest()).split(/(?=HTTP\/1\.1 )/)
  assert.equal(answers.length, 3)
  assert.match(answers[2] ?? '', /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is)
})
