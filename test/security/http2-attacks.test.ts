// Attacks by HTTP/2: each is bounded, ends with its own connection or stream, and does not hurt others.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import test from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  hpack,
  number,
  openFrames,
  requestFrame,
  requestHeaders,
} from '../kit/http2-frames.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'
import { fuzzHttp2 } from './fuzz-http2.ts'
import { createRandom } from './random.ts'

const REFUSED_STREAM = 7

test('HTTP/2 attacks are bounded, and other users are still served', { timeout: 120_000 }, async t => {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  let hits = 0
  let events = 0
  const injected: string[] = []
  const scene = await setUp(t, {
    env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, CLIENT_TIMEOUT_MS: '900', UPSTREAM_STREAMS: '150' },
    answer(request, response) {
      hits++
      if (request.headers['x-injected']) injected.push(JSON.stringify(request.headers))
      if (request.url === '/large') return void response.end(Buffer.alloc(4_000_000))
      if (request.url !== '/events') return void response.end('hello')
      events++
      response.once('close', () => events--)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
    },
  })
  const attacker = cookieOf(await scene.user('attacker'))
  const other = cookieOf(await scene.user('lisi', { sub: 'sub-lisi' }))
  const bystander = await openHttp2(t, scene.url)
  /** Another user is served. */
  const serves = async () => {
    assert.equal((await ask(bystander, { ':path': '/', cookie: other })).text, 'hello')
  }
  const cookie = ['cookie', attacker] as const

  await t.test('20,000 requests reset at once close the connection, and under 1,500 are forwarded', async () => {
    const before = hits
    const connection = await openFrames(t, scene.url)
    let sent = 0
    for (let stream = 1; sent < 20_000; stream += 200) {
      const frames: Buffer[] = []
      for (let n = 0; n < 100; n++)
        frames.push(requestFrame(stream + 2 * n, '/', [cookie]), frame(FRAME.reset, 0, stream + 2 * n, number(8)))
      sent += 100
      if (!(await connection.write(Buffer.concat(frames)))) break
    }
    await until(() => connection.isClosed)
    assert.ok(hits - before < 1500, `${hits - before} reached the application`)
    await serves()
  })

  await t.test('a connection whose request head never ends is closed', async () => {
    const connection = await openFrames(t, scene.url)
    await connection.write(frame(FRAME.headers, END_STREAM, 1, hpack(requestHeaders('/', [cookie]))))
    const more = frame(FRAME.continuation, 0, 1, hpack([['x-more', 'x'.repeat(100)]]))
    for (let n = 0; n < 10_000; n++) if (!(await connection.write(more))) break
    await until(() => connection.isClosed)
    await serves()
  })

  for (const [name, next] of [
    ['SETTINGS', frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 1, 0, 0]))],
    ['PING', frame(FRAME.ping, 0, 0, Buffer.alloc(8))],
  ] as const)
    await t.test(`20,000 ${name} frames close their connection, even if the client reads the replies`, async () => {
      const connection = await openFrames(t, scene.url)
      const frames = Buffer.concat(Array.from({ length: 100 }, () => next))
      for (let n = 0; n < 200; n++) if (!(await connection.write(frames))) break
      await until(() => connection.isClosed)
      assert.ok(connection.frames.filter(({ flags, type }) => flags === ACK && type !== FRAME.headers).length < 5000)
      await serves()
    })

  await t.test('the stream of an unread response is reset, and other streams of its connection go on', async () => {
    const nothing = Buffer.from([0, 4, 0, 0, 0, 0])
    const connection = await openFrames(t, scene.url, nothing)
    await connection.write(requestFrame(1, '/large', [cookie]))
    await until(() => connection.resetOf(1) !== undefined)
    assert.ok(scene.lines.some(({ event, fields }) => event === 'client_cut_off' && fields.reason === 'reads_nothing'))
    await connection.write(Buffer.concat([requestFrame(3, '/', [cookie]), frame(FRAME.window, 0, 3, number(1000))]))
    await until(() => connection.hasEnded(3))
    assert.equal(connection.resetOf(3), undefined)
  })

  await t.test('a stream whose request body never arrives is reset, even if the client sends pings', async () => {
    const connection = await openFrames(t, scene.url)
    await connection.write(frame(FRAME.headers, END_HEADERS, 1, hpack(requestHeaders('/', [cookie], 'POST'))))
    const pings = setInterval(() => connection.write(frame(FRAME.ping, 0, 0, Buffer.alloc(8))), 50)
    await until(() => connection.resetOf(1) !== undefined)
    clearInterval(pings)
    assert.ok(scene.lines.some(({ event, fields }) => event === 'client_cut_off' && fields.reason === 'sends_nothing'))
    assert.ok(!connection.isClosed)
  })

  await t.test('a stream beyond the connection’s limit gets REFUSED_STREAM, and earlier ones stay open', async () => {
    const connection = await openFrames(t, scene.url)
    const frames = Array.from({ length: 140 }, (_, n) => requestFrame(2 * n + 1, '/events', [cookie]))
    await connection.write(Buffer.concat(frames))
    await until(() => connection.resetOf(279) !== undefined)
    assert.equal(connection.resetOf(279), REFUSED_STREAM)
    assert.equal(connection.resetOf(1), undefined)
    await serves()
    connection.socket.destroy()
    await until(() => events === 0)
  })

  await t.test('a thousand streams of one user leave room for a stream of another user', async () => {
    const sessions = await Promise.all(Array.from({ length: 8 }, () => openHttp2(t, scene.url)))
    for (const session of sessions)
      for (let n = 0; n < 125; n++)
        session
          .request({ ':path': '/events', cookie: attacker })
          .on('error', () => {})
          .resume()
    await until(() => events >= 140)
    await serves()
    const mine = bystander.request({ ':path': '/events', cookie: other })
    assert.match(String((await once(mine, 'data'))[0]), /data/)
    assert.ok(events <= 160, `${events} streams`)
    mine.close()
    for (const session of sessions) session.destroy()
    await until(() => events === 0)
  })

  await t.test('damaged frames on 150 connections inject no headers into requests', async () => {
    await fuzzHttp2(t, scene.url, createRandom(20261117), 150, [cookie])
    assert.deepEqual(injected, [])
    await serves()
  })
})
