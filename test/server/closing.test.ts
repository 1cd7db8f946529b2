// What a server that stops does with the connections that it has.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect as connectHttp2, constants } from 'node:http2'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { createHttp2Server } from '../../src/server/http2.ts'
import { type CertificateFiles, readCertificate, serve } from '../../src/server/serve.ts'
import { freePort } from '../kit/free-port.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { FRAME, frame, number, openFrames, requestFrame } from '../kit/http2-frames.ts'
import { listen } from '../kit/listen.ts'
import { openGateway, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

const REQUEST = 'GET /_menshen/health HTTP/1.1\r\nHost: localhost\r\n\r\n'

test('a connection that the kernel accepted before the server closes is answered', async t => {
  const { url, end } = await openGateway(t, {})
  const port = Number(new URL(url).port)
  const sockets = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'))
  // The system has taken them, and the server has not yet looked.
  await new Promise(process.nextTick)
  const ended = end(10_000)
  const answers = sockets.map(async socket => {
    await once(socket, 'connect')
    socket.write(REQUEST)
    return text(socket)
  })
  for (const answer of await Promise.all(answers)) assert.match(answer, /^HTTP\/1\.1 200 /)
  await ended
})

test('a server that has closed refuses connections', async t => {
  const { url, end } = await openGateway(t, {})
  await end(10_000)
  const [error] = await once(connect(Number(new URL(url).port), '127.0.0.1'), 'error')
  assert.equal(error.code, 'ECONNREFUSED')
})

for (const protocol of ['http/1.1', 'h2'])
  test(`a request after a TLS handshake that completes while the server closes is answered (${protocol})`, {
    timeout: 60_000,
  }, async t => {
    const { socket, ended } = await shakeHandsWhileClosing(t, protocol)
    // As clients do, which send their first request with the end of the handshake.
    const answer = protocol === 'h2' ? await askByHttp2(socket) : await askByHttp1(socket)
    assert.equal(answer, 200)
    assert.equal(socket.alpnProtocol, protocol)
    // The server does not wait for its deadline.
    await ended
  })

test('a client whose TLS handshake completes while the server closes can send its request 300 ms later (http/1.1)', {
  timeout: 60_000,
}, async t => {
  const { socket, ended } = await shakeHandsWhileClosing(t, 'http/1.1')
  await once(socket, 'secureConnect')
  // Several times as often as the server looks for idle connections.
  await pause(300)
  assert.equal(await askByHttp1(socket), 200)
  await ended
})

test('a TLS handshake that is not finished does not keep a server open', { timeout: 15_000 }, async t => {
  const { url, end } = await openSecureGateway(t)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  socket.resume()
  await Promise.all([end(600_000), once(socket, 'close')])
})

for (const before of ['', REQUEST])
  test(`the unfinished head of a ${before ? 'second' : 'first'} request does not keep a server open`, {
    timeout: 15_000,
  }, async t => {
    const { url, end } = await openGateway(t, {})
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write(before)
    if (before) await once(socket, 'data')
    socket.write('GET / HTTP/1.1\r\nHost: local')
    socket.resume()
    await Promise.all([end(600_000), once(socket, 'close')])
  })

test('a response that its client reads slowly is sent completely before the server closes (http/1.1)', async t => {
  const { port, server, given } = await serveBytes(t, 20_000_000)
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await given
  const closed = server.close(600_000)
  // The server has looked for idle connections by then.
  await pause(600)
  assert.ok((await buffer(socket)).length > 20_000_000)
  await closed
})

test('an unread response does not keep a closing server open', { timeout: 30_000 }, async t => {
  const { port, server, given } = await serveBytes(t, 20_000_000)
  const [idle, socket] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  t.after(() => [idle, socket].map(each => each.destroy()))
  idle.resume()
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await given
  await Promise.all([server.close(600_000), once(idle, 'close')])
})

test('a response that its client reads slowly is sent completely before the server closes (h2)', async t => {
  const size = 3_000_000
  const folder = tempFolder(t)
  const { port, server, given } = await serveBytes(t, size, makeCertificate(folder, 'own', makeAuthority(folder)))
  const windowOfStreams = Buffer.concat([Buffer.from([0, 4]), number(2 * size)])
  const connection = await openFrames(t, `https://localhost:${port}`, windowOfStreams)
  const { socket } = connection
  socket.on('data', (chunk: Buffer) => {
    socket.pause()
    // As clients do for what they have read.
    void connection.write(windowUpdate(0, chunk.length))
    setTimeout(() => socket.resume(), 15)
  })
  await connection.write(Buffer.concat([windowUpdate(0, size), requestFrame(1, '/')]))
  await given
  const closed = server.close(600_000)
  await until(() => connection.hasEnded(1) || connection.isClosed)
  const received = connection.frames.filter(({ type }) => type === FRAME.data).map(({ payload }) => payload.length)
  assert.equal(
    received.reduce((sum, length) => sum + length, 0),
    size,
  )
  await closed
})

test('an event stream that begins while the server closes does not keep it open', { timeout: 60_000 }, async t => {
  const asked = Promise.withResolvers<ServerResponse>()
  const scene = await setUp(t, { answer: (_, response) => asked.resolve(response) })
  const user = await scene.user()
  const answer = user.get('/events').catch((error: Error) => error)
  const response = await asked.promise
  const ended = scene.end(600_000)
  // The server has ended the streams that it had.
  await pause(600)
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: a\n\n')
  await ended
  assert.ok((await answer) instanceof Error)
})

test('an HTTP/2 connection that completes its TLS handshake while the server closes and sends no request does not keep it open', {
  timeout: 60_000,
}, async t => {
  const { socket, ended } = await shakeHandsWhileClosing(t, 'h2')
  const session = connectHttp2('https://localhost', { createConnection: () => socket })
  await once(session, 'goaway')
  await ended
})

test('a request in flight on an idle HTTP/2 connection when the server closes is answered', async t => {
  const folder = tempFolder(t)
  const http2 = createHttp2Server({
    listener: (_, response) => response.end('hello'),
    keepAliveTimeoutMs: 60_000,
    headersTimeoutMs: 60_000,
    maxHeaderKb: 16,
  })
  const server = createTlsServer(
    { ALPNProtocols: ['h2'], ...readCertificate(makeCertificate(folder, 'own', makeAuthority(folder))) },
    http2.accept,
  )
  const { url } = await listen(t, server)
  const connection = await openFrames(t, url)
  await until(() => connection.frames.some(({ type }) => type === FRAME.settings))
  http2.announceEnd()
  await connection.write(requestFrame(1, '/'))
  await until(() => connection.hasEnded(1))
  assert.equal(connection.resetOf(1), undefined)
  await until(() => connection.isClosed)
  assert.equal(connection.goaway, constants.NGHTTP2_NO_ERROR)
})

/** A server by https with both protocols, or by http, whose answer is this long and given at once. */
async function serveBytes(t: TestContext, length: number, tls?: CertificateFiles) {
  const given = Promise.withResolvers<void>()
  const application = {
    listener(_: unknown, response: ServerResponse) {
      response.end(Buffer.alloc(length))
      given.resolve()
    },
    shouldUpgrade: () => false,
    upgradeListener() {},
    clientErrorListener() {},
    prepareToClose() {},
    endStreams() {},
  }
  const port = await freePort()
  const server = await serve(application, { port, host: '127.0.0.1', ...(tls && { tls, http2: true }) }, () => {})
  t.after(() => server.close(0))
  return { port, server, given: given.promise }
}

function windowUpdate(stream: number, bytes: number): Buffer {
  return frame(FRAME.window, 0, stream, number(bytes))
}

function openSecureGateway(t: TestContext) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  return openGateway(t, { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile })
}

/** The server took the connection before it closed. */
async function shakeHandsWhileClosing(t: TestContext, protocol: string) {
  const { url, end } = await openSecureGateway(t)
  const idle = await openHttp2(t, url)
  const connection = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => connection.destroy())
  await once(connection, 'connect')
  const ended = end(600_000)
  // The server has waited for requests that were on their way, and has ended what was idle.
  await once(idle, 'close')
  const socket = connectTls({ socket: connection, ALPNProtocols: [protocol], rejectUnauthorized: false })
  return { socket, ended }
}

async function askByHttp1(socket: TLSSocket): Promise<number> {
  socket.write(REQUEST)
  return Number(/^HTTP\/1\.1 (\d+) /.exec(await text(socket))?.[1])
}

async function askByHttp2(socket: TLSSocket): Promise<number> {
  const session = connectHttp2('https://localhost', { createConnection: () => socket })
  const { status } = await ask(session, { ':path': '/_menshen/health' })
  return status
}
