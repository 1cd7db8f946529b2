// Nothing that a stranger sends brings the provider down, and nothing piles up in it.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startDevProvider } from '../../src/dev-provider/dev-provider.ts'
import { createExpiringMap } from '../../src/dev-provider/expiring-map.ts'
import { CLIENT, start } from './harness.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const PATHS = ['/', '/panel', '/oauth/authorize', '/oauth/token', '/oauth/logout', '/api/bff/v1.2/oauth2/userinfo']

test('startDevProvider rejects with EADDRINUSE if the port is taken', async t => {
  const { provider } = await start(t)
  const port = Number(new URL(provider.url).port)
  await assert.rejects(startDevProvider({ port, ...CLIENT, now: () => 0 }), { code: 'EADDRINUSE' })
})

test('the provider can be closed twice and then refuses connections', async t => {
  const { provider } = await start(t)
  await provider.close()
  await provider.close()
  await assert.rejects(fetch(provider.url))
})

test('an unsupported method gets 405 with an Allow header, and an unknown path gets 404', async t => {
  const { at } = await start(t)
  for (const path of PATHS) {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
      const response = await fetch(at(path), { method })
      assert.equal(response.status, 405, `${method} ${path}`)
      assert.match(response.headers.get('allow') ?? '', /GET|POST/)
    }
  }
  assert.equal((await fetch(at('/oauth/token'))).status, 405)
  assert.equal((await fetch(at('/nowhere'))).status, 404)
})

test('a body over 16 KiB gets 413, and a body without Content-Length gets 411', async t => {
  const { at } = await start(t)
  const body = `code=${'x'.repeat(16 * 1024)}`
  const announced = await fetch(at('/oauth/token'), { method: 'POST', body, headers: FORM })
  assert.equal(announced.status, 413)
  const unannounced = { method: 'POST', body: new Blob([body]).stream(), headers: FORM, duplex: 'half' }
  assert.equal((await fetch(at('/oauth/token'), unannounced)).status, 411)
})

test('a malformed form gets a 4xx status, whatever its content type', async t => {
  const { at, authorizePath } = await start(t)
  const bodies = ['%', '%E0%A4%A', '&&&===', '\0\0', 'a'.repeat(16_000), '__proto__=1', '&'.repeat(16_000)]
  for (const path of ['/panel', '/oauth/token', '/oauth/logout', authorizePath()]) {
    for (const body of bodies) {
      for (const type of [FORM['content-type'], 'multipart/form-data', 'application/json', 'nonsense']) {
        const response = await fetch(at(path), { method: 'POST', body, headers: { 'content-type': type } })
        assert.ok(response.status >= 400 && response.status < 500, `${response.status} ${path} ${body.slice(0, 20)}`)
      }
    }
  }
})

test('the provider survives malformed HTTP and requests that break off', async t => {
  const { provider, get } = await start(t)
  const raws = [
    'hello\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n',
    'GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'GET //%%/%ff?%&=%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
    'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM['content-type']}\r\nContent-Length: 99\r\n\r\ncode=`,
  ]
  for (const raw of raws) {
    const socket = connect(Number(new URL(provider.url).port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end(raw)
    const answer = await text(socket).catch(() => '')
    assert.match(answer, /^(HTTP\/1\.1 4\d\d |$)/, raw)
  }
  assert.equal((await get('/')).status, 200)
})

test('an expiring map drops expired entries, and the oldest entry when it is full', () => {
  const map = createExpiringMap<string>({ lifetimeMs: 100, limit: 2 })
  map.set('a', 'first', 0)
  map.set('b', 'second', 10)
  map.set('a', 'first again', 20)
  map.set('c', 'third', 30)
  assert.equal(map.get('b', 30), undefined)
  assert.deepEqual(map.values(30), ['first again', 'third'])
  assert.equal(map.get('a', 119), 'first again')
  assert.equal(map.get('a', 120), undefined)
  assert.deepEqual(map.values(130), [])
})
