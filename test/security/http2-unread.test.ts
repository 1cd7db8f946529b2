// Clients by HTTP/2 that open no window: none of their answers leaves, and what waits for them is bounded.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, constants, createServer, type ServerHttp2Stream } from 'node:http2'
import type { Writable } from 'node:stream'
import test, { type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Http2Response } from '../../src/server/http2-messages.ts'
import { cookieOf } from '../kit/client.ts'
import { ask, openHttp2 } from '../kit/http2-client.ts'
import { listenHttp2 } from '../kit/listen.ts'
import { type GatewayAndProvider, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const CONNECTIONS = 20
const STREAMS = 80
const OF_CONNECTION = 1024 * 1024
const OF_NETWORK = 16 * 1024 * 1024
const FORWARDED_OF_NETWORK = 64 * 1024 * 1024
/** As many as a connection may have. */
const MAX_STREAMS = 128

interface Unread {
  /** The bytes of answers that wait. */
  waiting: number
  reset: number
}

/** Sends all requests, and reads nothing but the heads of their answers. What it returns changes as answers are cut off. */
async function leaveUnread(session: ClientHttp2Session, path: string, cookie = '', streams = STREAMS): Promise<Unread> {
  const unread = { waiting: 0, reset: 0 }
  const heads = Array.from({ length: streams }, () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const stream = session.request({ ':path': path, accept: 'text/html', ...(cookie && { cookie }) })
    stream.on('error', () => {})
    let length = 0
    stream.once('response', headers => {
      length = Number(headers['content-length'])
      unread.waiting += length
      resolve()
    })
    stream.once('close', () => {
      unread.waiting -= length
      if (stream.rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM) unread.reset++
      resolve()
    })
    return promise
  })
  await Promise.all(heads)
  return unread
}

const sumOf = (all: readonly Unread[], name: keyof Unread) => all.reduce((sum, each) => sum + each[name], 0)

const cutOffs = ({ lines }: Pick<GatewayAndProvider, 'lines'>) =>
  lines.filter(({ event, fields }) => event === 'client_cut_off' && fields.reason === 'too_much_unread')

async function setUpUnread(t: TestContext, env = {}) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  return setUp(t, { application: false, env: { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, ...env } })
}

test('unread responses are bounded per connection and per address, and clients that read are served', async t => {
  const scene = await setUpUnread(t)
  const all: Unread[] = []
  for (const path of ['/login', '/_menshen/assets/uplot.js'])
    for (let n = 0; n < CONNECTIONS; n++) {
      const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
      const unread = await leaveUnread(session, path)
      await until(() => unread.waiting <= OF_CONNECTION)
      all.push(unread)
      if (path === '/login' && n === 0) assert.ok(unread.waiting > 0)
    }
  await until(() => sumOf(all, 'waiting') <= OF_NETWORK)
  assert.ok(sumOf(all, 'waiting') > OF_NETWORK / 2)
  assert.ok(sumOf(all, 'reset') > 0)
  assert.ok(cutOffs(scene).length > 0)
  const reader = await openHttp2(t, scene.url)
  const answers = await Promise.all(Array.from({ length: STREAMS }, () => ask(reader, { ':path': '/login' })))
  for (const answer of answers) assert.equal(answer.status, 200)
})

test('responses to requests that the client has reset do not count as unread, and its connection is still served', async t => {
  const scene = await setUpUnread(t, { RATE_LIMIT_PER_MINUTE: '0' })
  const session = await openHttp2(t, scene.url)
  scene.provider.answer('token', { kind: 'json', status: 500, body: {} })
  const release = scene.provider.hold('token')
  const streams = Array.from({ length: MAX_STREAMS }, (_, n) =>
    session.request({ ':path': `/callback?code=a${n}&state=abc_idp` }),
  )
  await scene.provider.called('token')
  for (const stream of streams) stream.on('error', () => {}).close(constants.NGHTTP2_CANCEL)
  await Promise.all(streams.map(stream => once(stream, 'close')))
  // It comes after the resets.
  assert.equal((await ask(session, { ':path': '/_menshen/health' })).status, 200)
  release()
  await scene.provider.called('token', MAX_STREAMS)
  for (let n = 0; n < 20; n++) assert.equal((await ask(session, { ':path': '/login' })).status, 200)
})

test('closing a connection releases its unread responses, and the address is served again', async t => {
  const scene = await setUpUnread(t)
  for (let n = 0; n < CONNECTIONS; n++) {
    const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
    await leaveUnread(session, '/_menshen/assets/uplot.js')
    session.destroy()
  }
  const reader = await openHttp2(t, scene.url)
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(reader, { ':path': '/login' })))
  for (const answer of answers) assert.equal(answer.status, 200)
})

test('the per-connection limit on unread responses does not apply to a trusted proxy', async t => {
  const scene = await setUpUnread(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  const unread = await leaveUnread(session, '/_menshen/assets/uplot.js')
  assert.ok(unread.waiting > OF_CONNECTION)
})

test('unread responses for the same asset share one buffer', async t => {
  const scene = await setUpUnread(t, { TRUSTED_PROXIES: '127.0.0.1' })
  const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  await leaveUnread(session, '/_menshen/assets/menshen.css')
  collect()
  const before = process.memoryUsage().arrayBuffers
  const other = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
  const { waiting } = await leaveUnread(other, '/_menshen/assets/uplot.js')
  collect()
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < waiting / 2, `${grown} bytes more for ${waiting} that wait`)
})

/** An application's answers: one that is received whole before the client reads, and one that has to pause. */
const LENGTHS: Readonly<Record<string, number>> = { '/short': 60_000, '/long': 4_000_000 }
const PART = Buffer.alloc(20_000)

function sendParts(target: Writable, length: number): void {
  let left = length
  const go = () => {
    while (left > 0) {
      left -= PART.length
      if (!target.write(PART)) return void target.once('drain', go)
    }
    target.end()
  }
  go()
}

async function startApplication(t: TestContext, isHttp2: boolean): Promise<string> {
  if (!isHttp2) {
    const { url } = await startUpstream(t, ({ url = '' }, response) => {
      const length = LENGTHS[url] ?? 0
      response.setHeader('content-length', length)
      sendParts(response, length)
    })
    return url
  }
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, { ':path': path = '' }) => {
    const length = LENGTHS[path] ?? 0
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-length': length })
    sendParts(stream, length)
  })
  return (await listenHttp2(t, server)).url
}

/** The answers that the gateway has begun and holds, until the test ends. */
function watchAnswers(t: TestContext): { waiting(): number } {
  const begun = new Set<Http2Response>()
  const { prototype } = Http2Response
  const { writeHead } = prototype
  prototype.writeHead = function (...args) {
    begun.add(this)
    return writeHead.apply(this, args)
  }
  t.after(() => {
    prototype.writeHead = writeHead
  })
  return {
    waiting: () => [...begun].reduce((sum, answer) => sum + (answer.destroyed ? 0 : answer.writableLength), 0),
  }
}

for (const isHttp2 of [false, true])
  test(`unread responses of an ${isHttp2 ? 'HTTP/2' : 'HTTP/1.1'} application are bounded per address, and another user at that address keeps their response`, async t => {
    const url = await startApplication(t, isHttp2)
    const scene = await setUpUnread(t, { UPSTREAM: url, CLIENT_TIMEOUT_MS: '600000' })
    const hoarder = cookieOf(await scene.user())
    const other = cookieOf(await scene.user('other', { sub: 'sub-other' }))
    const answers = watchAnswers(t)
    const reader = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
    const late = reader.request({ ':path': '/short', cookie: other })
    await once(late, 'response')
    for (const [path, connections] of [
      ['/short', 9],
      ['/long', 2],
    ] as const)
      for (let n = 0; n < connections; n++) {
        const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
        await leaveUnread(session, path, hoarder, MAX_STREAMS)
        assert.ok(answers.waiting() <= FORWARDED_OF_NETWORK, `${answers.waiting()} bytes wait for one address`)
      }
    await until(() => cutOffs(scene).length > 0)
    assert.ok(cutOffs(scene).length <= 10, 'repeats are counted')
    assert.ok(cutOffs(scene).every(({ fields }) => fields.user === 'zhangsan'))
    reader.settings({ initialWindowSize: 1024 * 1024 })
    let received = 0
    for await (const chunk of late) received += chunk.length
    assert.equal(received, LENGTHS['/short'])
  })

test('the per-address limit on unread application responses does not apply to a trusted proxy', async t => {
  const scene = await setUpUnread(t, { UPSTREAM: await startApplication(t, false), TRUSTED_PROXIES: '127.0.0.1' })
  const cookie = cookieOf(await scene.user())
  const answers = watchAnswers(t)
  for (let n = 0; n < 10; n++) {
    const session = await openHttp2(t, scene.url, { settings: { initialWindowSize: 0 } })
    const { reset } = await leaveUnread(session, '/short', cookie, MAX_STREAMS)
    assert.equal(reset, 0)
  }
  assert.ok(answers.waiting() > FORWARDED_OF_NETWORK)
})
