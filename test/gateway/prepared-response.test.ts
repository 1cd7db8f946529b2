// A head that was prepared has the bytes that Node would have written.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import { createSendPrepared, PreparedResponse } from '../../src/gateway/prepared-response.ts'
import { CommonHeaders } from '../../src/gateway/respond.ts'
import { raw } from '../proxy/raw.ts'

const HEADERS = { 'cache-control': 'no-store', 'content-length': '0', 'x-menshen-name': '%E5%BC%A0', 'x-empty': '' }

test('a prepared head has the bytes that Node writes, on every kind of connection', async t => {
  const clock = { now: 1_000_000 }
  const common = new CommonHeaders(HEADERS)
  const sendPrepared = createSendPrepared(() => clock.now)
  let count = 0
  const server = createServer({ ServerResponse: PreparedResponse, keepAliveTimeout: 7000 }, (request, response) => {
    const requestId = `request-${++count}`
    // Every third one is the first of its second.
    clock.now += 400
    if (request.url === '/prepared')
      return sendPrepared(response, { outcome: 'admitted', status: 200, common, requestId, more: [] })
    response.writeHead(200, common.listFor(requestId))
    response.end()
  })
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo

  /** The heads of the answers, without what differs between any two. */
  async function headsOf(path: string): Promise<string[]> {
    const requests = ['GET', 'GET', 'HEAD', 'GET', 'GET', 'GET'].map(
      method => `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`,
    )
    const last = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const answers = await raw(`http://127.0.0.1:${port}`, requests.join('') + last)
    const old = await raw(`http://127.0.0.1:${port}`, `GET ${path} HTTP/1.0\r\n\r\n`)
    const text = (answers + old).replace(/request-\d+/g, 'request').replace(/Date: .{25} GMT/g, 'Date: now')
    return text.split(/(?<=\r\n\r\n)/)
  }

  const prepared = await headsOf('/prepared')
  assert.deepEqual(prepared, await headsOf('/plain'))
  assert.equal(prepared.length, 8)
  assert.match(prepared[1] ?? '', /^HTTP\/1\.1 200 OK\r\n.*x-request-id: request\r\nDate: now\r\n.*timeout=7\r\n/s)
  assert.match(prepared[6] ?? '', /Connection: close/)
})

test('a head that Node would refuse is refused', () => {
  assert.throws(() => new CommonHeaders({ 'x-name': 'a\r\nset-cookie: b' }).headOfOk('id'), /invalid character/i)
  assert.throws(() => new CommonHeaders({ 'x name': 'a' }).headOfOk('id'), /token/)
})
