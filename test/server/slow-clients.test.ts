// Clients that stop reading or writing: they cost nobody else anything, and are cut off.

import assert from 'node:assert/strict'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import test, { type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isFullySent } from '../../src/server/slow-clients.ts'
import { cookieOf } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { type Scene, setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { sendLarge } from '../proxy/large-answer.ts'
import { openWire, request, type Wire } from '../proxy/raw.ts'

/** Short enough for a test. */
const IDLE_MS = 600
const SOON = { CLIENT_TIMEOUT_MS: String(IDLE_MS) }
/** More than a connection takes when nobody reads it. */
const LARGE = 64 * 1024 * 1024

const application: RequestListener = (request, response) => {
  if (request.url === '/large') sendLarge(response, LARGE)
  else if (request.url === '/events')
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
  else if (request.url === '/drip') void drip(response)
  else request.resume().once('end', () => response.end('hello'))
}

async function drip(response: ServerResponse): Promise<void> {
  for (let n = 0; n < 10; n++) {
    response.write('.')
    await pause(IDLE_MS / 4)
  }
  response.end('whole')
}

async function ask(t: TestContext, scene: Scene, line: string, ...headers: string[]): Promise<Wire> {
  const wire = await openWire(scene.url)
  t.after(() => wire.socket.destroy())
  wire.socket.write(request(line, ...headers))
  return wire
}

const signedIn = async (scene: Scene) => `cookie: ${cookieOf(await scene.user())}`

test('stalled bodies, unread responses, event streams and WebSockets do not use up UPSTREAM_CONNECTIONS', async t => {
  const scene = await setUpSockets(t, { env: { UPSTREAM_CONNECTIONS: '2' }, answer: application })
  const user = await scene.user()
  const cookie = `cookie: ${cookieOf(user)}`
  for (let n = 0; n < 8; n++) {
    const body = await ask(t, scene, 'POST /body HTTP/1.1', cookie, 'content-length: 100')
    body.socket.write('ab')
    const unread = await ask(t, scene, 'GET /large HTTP/1.1', cookie)
    unread.socket.pause()
    const events = await ask(t, scene, 'GET /events HTTP/1.1', cookie)
    await events.sees('data: 1')
    const socket = dial(scene, user)
    t.after(() => socket.terminate())
    await new Promise(resolve => socket.once('open', resolve))
    assert.equal((await user.get('/page')).status, 200)
  }
  const pages = await Promise.all(Array.from({ length: 50 }, () => user.get('/page')))
  assert.ok(pages.every(({ status }) => status === 200))
})

test('a stream beyond UPSTREAM_STREAMS gets 503, and a slow request keeps its connection slot', async t => {
  const env = { UPSTREAM_CONNECTIONS: '2', UPSTREAM_STREAMS: '2' }
  const scene = await setUpSockets(t, { env, answer: application })
  const user = await scene.user()
  const cookie = `cookie: ${cookieOf(user)}`
  const kept = await ask(t, scene, 'GET /events HTTP/1.1', cookie)
  await kept.sees('data: 1')
  const unread = await ask(t, scene, 'GET /large HTTP/1.1', cookie)
  unread.socket.pause()
  // The large answer has its slot for a moment before it counts among the slow ones.
  await until(async () => {
    const wire = await ask(t, scene, 'GET /events HTTP/1.1', cookie)
    const answer = await wire.sees('\r\n\r\n')
    wire.socket.destroy()
    return answer.startsWith('HTTP/1.1 503')
  })
  const refused = await user.get('/events', { headers: { accept: 'application/json' } })
  assert.equal(refused.json<{ error: string }>().error, 'busy')
  assert.match(String(refused.headers['retry-after']), /^\d+$/)
  const [handshake] = await upgradeAnswer(t, scene, cookie)
  assert.match(handshake ?? '', /^HTTP\/1\.1 503 /)
  const stalled = await ask(t, scene, 'POST /body HTTP/1.1', cookie, 'content-length: 100')
  assert.equal((await user.get('/page')).status, 200)
  stalled.socket.write('x'.repeat(100))
  assert.match(await stalled.rest(), /200 OK[\s\S]*hello/)
  assert.ok(!kept.socket.closed && !unread.socket.closed)
  assert.equal((await user.get('/page')).status, 200)
})

test('the user with the most UPSTREAM_STREAMS loses one to another user, and the log names the user who lost it', async t => {
  const env = { UPSTREAM_CONNECTIONS: '2', UPSTREAM_STREAMS: '3' }
  const scene = await setUp(t, { env, answer: application })
  const greedy = await signedIn(scene)
  const streams: Wire[] = []
  for (let n = 0; n < 3; n++) {
    const wire = await ask(t, scene, 'GET /events HTTP/1.1', greedy)
    await wire.sees('data: 1')
    streams.push(wire)
  }
  const other = `cookie: ${cookieOf(await scene.user('lisi'))}`
  const theirs = await ask(t, scene, 'GET /events HTTP/1.1', other)
  await theirs.sees('data: 1')
  await streams[0]?.rest()
  const [ended] = scene.lines.filter(({ event }) => event === 'upstream_busy')
  assert.match(JSON.stringify(ended), /"user":"zhangsan".*holds_most_streams.*\/events/)
  // Answers that go on find no place and are whole all the same.
  const dripped = await Promise.all([other, other].map(who => ask(t, scene, 'GET /drip HTTP/1.1', who)))
  for (const wire of dripped) assert.match(await wire.rest(), /whole/)
  assert.ok(!theirs.socket.closed && !streams[2]?.socket.closed)
})

async function upgradeAnswer(t: TestContext, scene: Scene, cookie: string): Promise<string[]> {
  const wire = await openWire(scene.url)
  t.after(() => wire.socket.destroy())
  const lines = ['GET / HTTP/1.1', 'host: a', cookie, 'connection: upgrade', 'upgrade: websocket']
  const key = ['sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==']
  wire.socket.write(`${[...lines, ...key].join('\r\n')}\r\n\r\n`)
  return (await wire.rest()).split('\r\n')
}

test('a client that reads nothing of its response is disconnected, with its connection to the application', async t => {
  const scene = await setUp(t, { env: SOON, answer: application })
  const wire = await ask(t, scene, 'GET /large HTTP/1.1', await signedIn(scene))
  wire.socket.pause()
  await until(() => scene.upstream.sockets.size === 1)
  await until(() => scene.upstream.sockets.size === 0)
  assert.ok(
    scene.lines.some(({ event, fields }) => event === 'client_cut_off' && JSON.stringify(fields).includes('reads')),
  )
})

test('a client that reads nothing is disconnected even if it keeps sending requests', async t => {
  const scene = await setUp(t, { env: SOON, answer: application })
  const cookie = await signedIn(scene)
  const wire = await openWire(scene.url)
  t.after(() => wire.socket.destroy())
  wire.socket.pause()
  wire.socket.write(`GET /large HTTP/1.1\r\nhost: a\r\n${cookie}\r\n\r\n`)
  await until(() => scene.upstream.sockets.size === 1)
  const chatter = setInterval(() => wire.socket.write('GET /page HTTP/1.1\r\nhost: a\r\n\r\n'), IDLE_MS / 10)
  await until(() => scene.upstream.sockets.size === 0).finally(() => clearInterval(chatter))
})

test('a client that stops sending the request body it announced is disconnected', async t => {
  const scene = await setUp(t, { env: SOON, answer: application })
  const wire = await ask(t, scene, 'POST /body HTTP/1.1', await signedIn(scene), 'content-length: 100')
  wire.socket.write('ab')
  await wire.rest()
  await until(() => scene.upstream.sockets.size === 0)
  assert.ok(
    scene.lines.some(({ event, fields }) => event === 'client_cut_off' && JSON.stringify(fields).includes('sends')),
  )
})

test('clients that read or write slowly, or wait for a silent application, are not disconnected', async t => {
  const scene = await setUpSockets(t, { env: SOON, answer: application })
  const user = await scene.user()
  const cookie = `cookie: ${cookieOf(user)}`
  const events = await ask(t, scene, 'GET /events HTTP/1.1', cookie)
  const socket = dial(scene, user)
  t.after(() => socket.terminate())
  const dripped = await ask(t, scene, 'GET /drip HTTP/1.1', cookie)
  const upload = await ask(t, scene, 'POST /body HTTP/1.1', cookie, 'content-length: 10')
  for (let n = 0; n < 10; n++) {
    await pause(IDLE_MS / 4)
    upload.socket.write('x')
  }
  assert.match(await upload.rest(), /200 OK[\s\S]*hello/)
  assert.match(await dripped.rest(), /whole/)
  assert.ok(!events.socket.closed)
  assert.equal(socket.readyState, socket.OPEN)
})

test('a WebSocket whose client reads nothing is disconnected', async t => {
  const scene = await setUpSockets(t, { env: SOON })
  scene.sockets.on('connection', socket => socket.send(Buffer.alloc(LARGE)))
  const socket = dial(scene, await scene.user())
  t.after(() => socket.terminate())
  socket.once('open', () => socket.pause())
  await until(() => scene.sockets.clients.size === 1)
  await until(() => scene.sockets.clients.size === 0)
})

const UNREAD = {
  'POST /_menshen/check': 401,
  'POST /_menshen/forward': 400,
  'GET /_menshen/health': 200,
  'GET /login': 200,
  'GET /nothing': 404,
  'PUT /': 405,
  'GET /': 200,
  'POST /_menshen/nothing': 404,
  'PUT /login': 405,
  'GET /internal': 403,
  'TRACE /': 405,
  'GET /a/..%2fb': 400,
} as const

test('a connection does not wait indefinitely for a request body that no handler reads, at any route', async t => {
  const config = { rules: [{ path: '/internal', roles: ['developer'] as const }] }
  const scene = await setUp(t, { env: { ...SOON, UPSTREAM: '' }, config })
  const cookie = await signedIn(scene)
  const asks = [...Object.entries(UNREAD).map(([line, status]) => [line, status, cookie] as const)]
  const wires = [...asks, ['GET /page', 302, 'x: y'] as const, ['POST /page', 401, 'x: y'] as const].map(
    async ([line, status, who]) => {
      const wire = await openWire(scene.url)
      wire.socket.write(`${line} HTTP/1.1\r\nhost: a\r\n${who}\r\ncontent-length: 100000\r\n\r\n`)
      const dripping = setInterval(() => wire.socket.write('x'), IDLE_MS / 10)
      t.after(() => clearInterval(dripping))
      const answer = await wire.rest().finally(() => clearInterval(dripping))
      if (line !== 'POST /_menshen/check') assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), line)
    },
  )
  await Promise.all(wires)
})

test('a client that drips a body into a route of Menshen for too long is disconnected', async t => {
  const scene = await setUp(t, { env: SOON })
  for (const path of ['/login', '/logout', '/_menshen/backchannel-logout']) {
    const wire = await openWire(scene.url)
    wire.socket.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n`)
    const dripping = setInterval(() => wire.socket.write('x'), IDLE_MS / 10)
    assert.equal(await wire.rest().finally(() => clearInterval(dripping)), '', path)
  }
  assert.deepEqual(
    scene.lines.map(({ event, fields }) => [event, (fields as { reason?: string }).reason]),
    Array(3).fill(['client_cut_off', 'form_takes_too_long']),
  )
})

test('a response is finished once its connection has taken it all, and not while it waits for an earlier response', async t => {
  const responses: ServerResponse[] = []
  const arrived = Promise.withResolvers<void>()
  const server = createServer((_request, response) => {
    if (responses.push(response) === 2) arrived.resolve()
  })
  const wire = await openWire((await listen(t, server)).url)
  t.after(() => wire.socket.destroy())
  wire.socket.write('GET / HTTP/1.1\r\nhost: app.test\r\n\r\n'.repeat(2))
  await arrived.promise
  const [first, second] = responses as [ServerResponse, ServerResponse]
  assert.equal(isFullySent(first), false)
  second.end('second')
  assert.equal(isFullySent(second), false)
  first.end('first')
  assert.equal(isFullySent(first), true)
})
