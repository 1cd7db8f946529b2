// WebSocket upgrades: the same checks as for pages, and the same truth about who is there.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, refusal, setUpSockets } from '../kit/websocket.ts'
import { openWire, raw, startRawUpstream, statusOf } from './raw.ts'

function upgrade(line: string, ...headers: string[]): string {
  const lines = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13']
  return `${[line, 'host: a', ...lines, 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==', ...headers].join('\r\n')}\r\n\r\n`
}

test('a signed-in user exchanges text and a 4 MiB binary message with the application over a WebSocket', async t => {
  const scene = await setUpSockets(t)
  const user = await scene.user()
  const socket = dial(scene, user, '/chat?room=1', { origin: scene.baseUrl })
  await once(socket, 'open')
  socket.send('你好')
  assert.equal(String((await once(socket, 'message'))[0]), '你好')
  const large = Buffer.alloc(4 * 1024 * 1024, 'menshen')
  socket.send(large)
  assert.deepEqual((await once(socket, 'message'))[0], large)
  const { target, headers } = scene.upstream.last()
  assert.equal(target, '/chat?room=1')
  assert.equal(headers['x-forwarded-user'], 'zhangsan')
  assert.equal(headers.cookie, undefined)
  socket.close(4000, 'done')
  assert.deepEqual((await once(socket, 'close')).map(String), ['4000', 'done'])
  await until(() => scene.sockets.clients.size === 0)
})

test('a user without access to a page cannot open a WebSocket there', async t => {
  const rules = [
    { path: '/internal', roles: ['developer'] as const },
    { path: '/open', public: true as const },
  ]
  const scene = await setUpSockets(t, { config: { rules } })
  const [common, admin, visitor] = [await scene.user(), await scene.user('admin'), scene.visitor()]
  const foreign = { origin: 'https://evil.example' }
  assert.equal(await refusal(dial(scene, visitor)), 401)
  assert.equal(await refusal(dial(scene, common, '/internal')), 403)
  assert.equal(await refusal(dial(scene, common, '/', foreign)), 403)
  assert.equal(await refusal(dial(scene, visitor, '/open', foreign)), 403)
  assert.equal(await refusal(dial(scene, common, '/', { origin: 'null' })), 403)
  const trick = upgrade('GET /x/%2e%2e/internal HTTP/1.1', `cookie: ${cookieOf(common)}`)
  assert.equal(statusOf(await raw(scene.url, trick)), 400)
  assert.equal(await refusal(dial(scene, admin, '/_menshen/console')), 404)
  assert.equal(await refusal(dial(scene, admin, '/login')), 404)
  assert.deepEqual(scene.upstream.received, [])
  for (const [who, path] of [
    [admin, '/internal'],
    [visitor, '/open'],
  ] as const) {
    const socket = dial(scene, who, path)
    await once(socket, 'open')
    socket.terminate()
  }
})

test('an upgrade has to be a GET request, and the rules for GET apply to it', async t => {
  const scene = await setUpSockets(t, {
    config: { rules: [{ path: '/', methods: ['GET'], roles: ['developer'] }] },
  })
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  assert.equal(statusOf(await raw(scene.url, upgrade('POST /internal HTTP/1.1', cookie))), 405)
  assert.equal(statusOf(await raw(scene.url, upgrade('GET /internal HTTP/1.1', cookie))), 403)
  assert.deepEqual(scene.upstream.received, [])
})

test('a request for an upgrade to h2c is answered like a request without an upgrade', async t => {
  const scene = await setUp(t)
  const lines = ['host: a', `cookie: ${cookieOf(await scene.user())}`, 'connection: upgrade, http2-settings, close']
  const head = ['GET / HTTP/1.1', ...lines, 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__'].join('\r\n')
  assert.equal(statusOf(await raw(scene.url, `${head}\r\n\r\n`)), 200)
  assert.equal(scene.upstream.last().headers.upgrade, undefined)
  assert.equal(scene.upstream.last().headers['http2-settings'], undefined)
})

test('an upgrade gets 502 if the application is down, 504 if it is slow, and 426 if the application answers with 426', async t => {
  const unwilling = await startRawUpstream(t, (socket, head) => {
    if (!head.includes(' /slow ')) socket.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n')
  })
  const scene = await setUp(t, { env: { UPSTREAM: unwilling.url, UPSTREAM_HEADERS_TIMEOUT_MS: '300' } })
  const user = await scene.user()
  assert.equal(await refusal(dial(scene, user)), 426)
  assert.equal(await refusal(dial(scene, user, '/slow')), 504)
  const down = await setUp(t, { env: { UPSTREAM: 'http://127.0.0.1:1' } })
  assert.equal(await refusal(dial(down, await down.user())), 502)
  assert.match(JSON.stringify(down.lines), /ECONNREFUSED/)
})

test('a WebSocket stays open longer than UPSTREAM_HEADERS_TIMEOUT_MS', async t => {
  const scene = await setUpSockets(t, { env: { UPSTREAM_HEADERS_TIMEOUT_MS: '300' } })
  const socket = dial(scene, await scene.user())
  await once(socket, 'open')
  const silence = setTimeout(() => socket.send('still here'), 700)
  assert.equal(String((await once(socket, 'message'))[0]), 'still here')
  clearTimeout(silence)
  socket.terminate()
})

test('a WebSocket is closed on both sides when either side disconnects', async t => {
  const scene = await setUpSockets(t)
  const user = await scene.user()
  const leaving = dial(scene, user)
  await once(leaving, 'open')
  leaving.terminate()
  await until(() => scene.sockets.clients.size === 0)

  const left = dial(scene, user)
  await once(left, 'open')
  const closed = once(left, 'close')
  for (const client of scene.sockets.clients) client.terminate()
  assert.equal((await closed)[0], 1006)
})

test('a browser that disconnects before an upgrade is answered leaves no connection and no error in the log', async t => {
  const silent = await startRawUpstream(t, () => {})
  const scene = await setUp(t, { env: { UPSTREAM: silent.url } })
  const wire = await openWire(scene.url)
  wire.socket.write(upgrade('GET / HTTP/1.1', `cookie: ${cookieOf(await scene.user())}`))
  await until(() => silent.heads.length === 1)
  wire.socket.destroy()
  await until(() => silent.sockets.size === 0)
  assert.deepEqual(
    scene.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('an upgrade response has the session cookie of a refresh, and no session cookie or Clear-Site-Data of the application', async t => {
  const scene = await setUpSockets(t)
  scene.sockets.on('headers', lines =>
    lines.push('set-cookie: menshen_session=evil', 'set-cookie: a=1', 'Clear-Site-Data: "cookies"'),
  )
  const user = await scene.user()
  scene.passSeconds(7200 - 200)
  const socket = dial(scene, user)
  const [answer] = (await once(socket, 'upgrade')) as [IncomingMessage]
  assert.equal(answer.headers['clear-site-data'], undefined)
  const cookies = answer.headers['set-cookie'] ?? []
  assert.equal(cookies.length, 2)
  assert.equal(cookies[0], 'a=1')
  assert.match(cookies[1] ?? '', /^menshen_session=(?!evil).*Max-Age=7200/)
  socket.terminate()
})
