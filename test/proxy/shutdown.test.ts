// Sockets and event streams end with the session that opened them, wherever and however it ended.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import test, { type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { createMenshen, readSettings } from '../../src/index.ts'
import { type Client, cookieOf, createClient, signIn } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { listen } from '../kit/listen.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { createTestLog } from '../kit/test-log.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { dial, setUpSockets } from '../kit/websocket.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { openWire, request, type Wire } from './raw.ts'

type SocketScene = Awaited<ReturnType<typeof setUpSockets>>

async function openStreams(t: TestContext, scene: SocketScene, client: Client) {
  const socket = dial(scene, client)
  await once(socket, 'open')
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /events HTTP/1.1', `cookie: ${cookieOf(client)}`))
  await wire.sees('data: 1')
  t.after(() => {
    socket.terminate()
    wire.socket.destroy()
  })
  return { socket, wire, isOpen: () => socket.readyState === socket.OPEN && !wire.socket.closed }
}

async function bothClose({ socket, wire }: { socket: ReturnType<typeof dial>; wire: Wire }): Promise<void> {
  await until(() => socket.readyState === socket.CLOSED && wire.socket.closed)
}

const sendEvent: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: 1\n\n')
}

function openEnding(t: TestContext) {
  return setUpSockets(t, { answer: sendEvent })
}

test('during shutdown, requests on open connections are answered, readiness with 503, and the connections then closed', async t => {
  const scene = await setUp(t)
  const user = await scene.user()
  const wires = [await openWire(scene.url), await openWire(scene.url), await openWire(scene.url)]
  // Each has been in use before.
  for (const wire of wires) {
    wire.socket.write('GET /_menshen/ready HTTP/1.1\r\nhost: x\r\n\r\n')
    await wire.sees('{"status":"ready"}')
  }
  const ended = scene.end(5000)
  // First it accepts the connections that the system has taken: two turns of the event loop.
  for (let turns = 0; turns < 3; turns++) await turn()
  const asks = ['/_menshen/ready', '/_menshen/health', '/page']
  for (const [n, wire] of wires.entries())
    wire.socket.write(`GET ${asks[n]} HTTP/1.1\r\nhost: x\r\ncookie: ${cookieOf(user)}\r\n\r\n`)
  const answers = await Promise.all(wires.map(wire => wire.rest()))
  const [ready = '', health = '', page = ''] = answers.map(answer => answer.slice(answer.lastIndexOf('HTTP/1.1')))
  assert.match(ready, /^HTTP\/1\.1 503 .*\{"status":"unavailable","reason":"closing"\}$/s)
  assert.match(health, /^HTTP\/1\.1 200 /)
  assert.match(page, /^HTTP\/1\.1 200 .*hello/s)
  for (const answer of [ready, health, page]) assert.match(answer, /connection: close/i)
  await ended
})

test('during shutdown, a WebSocket upgrade gets 503 with Retry-After', async t => {
  const scene = await openEnding(t)
  const cookie = `cookie: ${cookieOf(await scene.user())}`
  const wire = await openWire(scene.url)
  wire.socket.write('GET /_menshen/health HTTP/1.1\r\nhost: x\r\n\r\n')
  await wire.sees('200 OK')
  const ended = scene.end(60_000)
  const socket = ['connection: Upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: eA==']
  wire.socket.write(`${['GET / HTTP/1.1', 'host: x', cookie, ...socket].join('\r\n')}\r\n\r\n`)
  assert.match(await wire.rest(), /HTTP\/1\.1 503 .*retry-after: 1\r\n.*$/s)
  await ended
})

test('an unfinished TLS handshake does not block the shutdown', async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'server', makeAuthority(folder))
  const scene = await setUp(t, { env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } })
  const wire = await openWire(scene.url)
  await scene.end(1)
  await wire.rest()
})

test('a sign-out closes the streams of that session, and of no other', async t => {
  const scene = await openEnding(t)
  const [leaving, staying] = [await scene.user(), await scene.user()]
  const theirs = await openStreams(t, scene, leaving)
  const others = await openStreams(t, scene, staying)
  await leaving.post('/logout')
  await bothClose(theirs)
  assert.ok(others.isOpen())
  await until(() => scene.sockets.clients.size === 1)
})

test('ending a session in the console closes its streams', async t => {
  const scene = await openEnding(t)
  const [admin, user] = [await scene.user('admin'), await scene.user('lisi')]
  const streams = await openStreams(t, scene, user)
  const { text } = await admin.get('/_menshen/console/sessions?username=lisi')
  const [, session = ''] = /name="session" value="([^"]+)"/.exec(text) ?? []
  assert.notEqual(session, '')
  await admin.post('/_menshen/console/end', { session })
  await bothClose(streams)
})

test('the streams of a session without a refresh token close when it expires', async t => {
  const scene = await openEnding(t)
  scene.provider.behaviour.refreshTokens = false
  const streams = await openStreams(t, scene, await scene.user())
  scene.passSeconds(7201)
  await bothClose(streams)
})

test('a token refresh that the provider refuses closes the session’s streams', async t => {
  const scene = await openEnding(t)
  const streams = await openStreams(t, scene, await scene.user())
  scene.provider.answer('refresh', { kind: 'json', status: 400, body: { error: 'invalid_grant' } })
  scene.passSeconds(7200 - 200)
  await bothClose(streams)
  assert.equal(scene.provider.callsTo('refresh').length, 1)
})

test('a slow refresh neither closes the streams of its session nor keeps those of other sessions open', async t => {
  const scene = await openEnding(t)
  const kept = await openStreams(t, scene, await scene.user())
  scene.passSeconds(3600)
  const leaving = await scene.user()
  const ended = await openStreams(t, scene, leaving)
  const release = scene.provider.hold('refresh')
  scene.passSeconds(3600 - 200)
  await scene.provider.called('refresh')
  await leaving.post('/logout')
  await bothClose(ended)
  release()
  assert.ok(kept.isOpen())
})

test('on SIGTERM the process closes WebSockets and event streams without waiting for them', async t => {
  const provider = await openScriptedProvider(t)
  const upstream = await startUpstream(t, sendEvent)
  new WebSocketServer({ server: upstream.server })
  const menshen = await startInstance({ ...provider.settings, STORE: 'memory:', UPSTREAM: upstream.url })
  t.after(() => menshen.kill('SIGKILL'))
  const client = createClient(menshen.url)
  await signIn(client, provider)
  const socket = dial(menshen, client)
  await once(socket, 'open')
  const wire = await openWire(menshen.url)
  wire.socket.write(request('GET /events HTTP/1.1', `cookie: ${cookieOf(client)}`))
  await wire.sees('data: 1')
  // Before the deadline of the shutdown, which would end them too.
  const patience = { signal: AbortSignal.timeout(8000) }
  const closed = Promise.all([once(socket, 'close', patience), once(wire.socket, 'close', patience)])
  const ended = menshen.kill('SIGTERM')
  await closed.finally(() => {
    socket.terminate()
    wire.socket.destroy()
  })
  assert.equal((await ended).code, 0)
})

test('close() of the library ends WebSockets, event streams and unfinished requests', async t => {
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url === '/events') sendEvent(request, response)
    // A page that is never finished, and one that is never begun.
    else if (request.url === '/unfinished') response.write('some')
  })
  new WebSocketServer({ server: upstream.server })
  const settings = readSettings({ STORE: 'memory:', UPSTREAM: upstream.url })
  const config = { rules: [{ path: '/', public: true as const }] }
  const menshen = await createMenshen({ settings, config, log: createTestLog().log })
  const { url } = await listen(t, createServer(menshen.listener).on('upgrade', menshen.upgradeListener))
  const socket = dial({ url }, createClient(url))
  await once(socket, 'open')
  const wires = ['/events', '/unfinished', '/hung'].map(async path => {
    const wire = await openWire(url)
    wire.socket.write(request(`GET ${path} HTTP/1.1`))
    return wire
  })
  const [events, ...others] = await Promise.all(wires)
  await until(() => upstream.sockets.size === 4)
  await events?.sees('data: 1')
  const socketClosed = once(socket, 'close')
  await menshen.close(100)
  await Promise.all([socketClosed, events?.rest(), ...others.map(wire => wire.rest())])
  await until(() => upstream.sockets.size === 0)
})
