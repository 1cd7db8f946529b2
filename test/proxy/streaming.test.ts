// Bodies flow in both directions at the speed of the slower side, and end when either side has gone.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import test, { type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { cookieOf, createClient, signIn } from '../kit/client.ts'
import { startInstance } from '../kit/instance.ts'
import { openScriptedProvider } from '../kit/scripted-provider.ts'
import { setUp } from '../kit/set-up.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'
import { openWire, request, statusOf } from './raw.ts'

const MEGABYTE = 1024 * 1024
const SIZE = 64 * MEGABYTE
/** What sockets and streams may hold between two sides, far below what there is to send. */
const IN_BETWEEN = 16 * MEGABYTE

test('64 MiB are uploaded and downloaded unchanged, without being kept in memory', async t => {
  const { open, memory } = await startGateway(t, async (request, response) => {
    if (request.method === 'GET') return void pipeline(bytes(), response)
    const hash = createHash('sha256')
    for await (const chunk of request) hash.update(chunk)
    response.end(hash.digest('hex'))
  })
  const expected = createHash('sha256')
  for (const chunk of bytes()) expected.update(chunk)
  const wanted = expected.digest('hex')
  await hashOf(await open('GET'))

  const before = memory()
  assert.equal(await hashOf(await open('GET')), wanted)
  const uploaded = await open('POST', Readable.from(bytes()))
  assert.equal((await uploaded.toArray()).join(''), wanted)
  const grown = (memory() - before) / MEGABYTE
  assert.ok(grown < 64, `the memory grew by ${grown} MB`)
})

test('an application that sends faster than the browser reads has to wait', async t => {
  let sent = 0
  const scene = await setUp(t, {
    answer: (_request, response) =>
      void pipeline(
        counted(n => (sent += n)),
        response,
      ).catch(() => {}),
  })
  const user = await scene.user()
  const outgoing = httpRequest(`${scene.url}/`, { headers: { cookie: cookieOf(user) }, agent: false }).end()
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  answer.pause()
  await isStill(() => sent)
  assert.ok(sent < IN_BETWEEN, `${sent} bytes were taken from the application`)
  assert.equal(await hashOf(answer).then(() => sent), SIZE)
})

test('a browser that sends faster than the application reads has to wait', async t => {
  const reading = Promise.withResolvers<void>()
  let received = 0
  const scene = await setUp(t, {
    answer: async (request, response) => {
      await reading.promise
      for await (const chunk of request) received += chunk.length
      response.end()
    },
  })
  const user = await scene.user()
  let sent = 0
  const headers = { cookie: cookieOf(user), 'content-length': SIZE }
  const outgoing = httpRequest(`${scene.url}/`, { method: 'POST', headers, agent: false })
  const sending = pipeline(
    counted(n => (sent += n)),
    outgoing,
  )
  await isStill(() => sent)
  assert.ok(sent < IN_BETWEEN, `${sent} bytes were taken from the browser`)
  reading.resolve()
  await once(outgoing, 'response')
  await sending
  assert.equal(received, SIZE)
})

test('an upload that the application reads slowly does not trigger UPSTREAM_HEADERS_TIMEOUT_MS', async t => {
  const scene = await setUp(t, {
    env: { UPSTREAM_HEADERS_TIMEOUT_MS: '3000' },
    answer: async (request, response) => {
      const began = performance.now()
      let size = 0
      for await (const chunk of request) {
        size += chunk.length
        // When it is no longer slow, most of the upload is still to come: the answer is not late after its end.
        if (performance.now() - began < 3500) await pause(50)
      }
      response.end(String(size))
    },
  })
  const user = await scene.user()
  const { status, text } = await user.post('/', new Uint8Array(SIZE / 4))
  assert.equal(status, 200)
  assert.equal(text, String(SIZE / 4))
})

test('each event reaches the browser when it is sent, and the response head before the first event', async t => {
  let events: ServerResponse | undefined
  const scene = await setUp(t, {
    answer: (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      events = response
    },
  })
  const user = await scene.user()
  const wire = await openWire(scene.url)
  wire.socket.write(request('GET /events HTTP/1.1', `cookie: ${cookieOf(user)}`, 'accept: text/event-stream'))
  await wire.sees('text/event-stream')
  for (const event of ['data: one\n\n', 'data: two\n\n']) {
    events?.write(event)
    await wire.sees(event)
  }
  wire.socket.destroy()
})

test('a response sent before the upload ends reaches the client, and the connection does not hang', async t => {
  const scene = await setUp(t, {
    answer: (_request, response) => void response.writeHead(413).end('too large'),
  })
  const user = await scene.user()
  for (const connection of ['close', 'keep-alive']) {
    const wire = await openWire(scene.url)
    const head = ['POST / HTTP/1.1', 'host: app.test', `connection: ${connection}`, `cookie: ${cookieOf(user)}`]
    wire.socket.write(`${[...head, `content-length: ${SIZE}`].join('\r\n')}\r\n\r\n`)
    // Like many a client, it does not look for an answer before it has sent everything.
    const sent = pipeline(bytes(), wire.socket, { end: false })
    await (connection === 'close' ? sent.catch(() => {}) : sent)
    assert.equal(statusOf(await wire.sees('too large')), 413)
    wire.socket.destroy()
  }
})

test('a browser that disconnects ends the request to the application, before and during the response', async t => {
  const gone: string[] = []
  const scene = await setUp(t, {
    answer: (request, response) => {
      response.once('close', () => gone.push(request.url ?? ''))
      if (request.url === '/during') response.write('some')
    },
  })
  const user = await scene.user()
  for (const path of ['/before', '/during']) {
    const wire = await openWire(scene.url)
    wire.socket.write(request(`GET ${path} HTTP/1.1`, `cookie: ${cookieOf(user)}`))
    await until(() => scene.upstream.received.some(({ target }) => target === path))
    if (path === '/during') await wire.sees('some')
    wire.socket.destroy()
    await until(() => gone.includes(path))
  }
  assert.equal(scene.lines.filter(({ level }) => level === 'error').length, 0)
})

test('requests that wait behind another response on the same connection end with the connection', async t => {
  const closed: string[] = []
  const scene = await setUp(t, {
    env: { UPSTREAM_CONNECTIONS: '3', UPSTREAM_QUEUE: '1' },
    answer: (request, response) => {
      response.once('close', () => closed.push(request.url ?? ''))
      if (request.url === '/large') response.write(Buffer.alloc(MEGABYTE))
      else if (request.url === '/page') response.end('hello')
    },
  })
  const user = await scene.user()
  // Three get a connection, in whatever order; the fourth waits in the queue.
  const paths = ['/first', '/silent', '/large', '/fourth']
  const wire = await openWire(scene.url)
  const line = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\ncookie: ${cookieOf(user)}\r\n\r\n`
  wire.socket.write(paths.map(line).join(''))
  await until(() => scene.upstream.received.length === 3)
  wire.socket.destroy()
  await until(() => closed.length === 3)
  assert.equal((await user.get('/page')).status, 200)
  assert.equal(scene.upstream.received.length, 4, 'the one in the queue never reached the application')
  assert.deepEqual(
    scene.lines.filter(({ level }) => level === 'error'),
    [],
  )
})

test('a sign-out ends the user’s request that waits behind another response on the same connection', async t => {
  const closed: string[] = []
  const scene = await setUp(t, {
    answer: (request, response) => void response.once('close', () => closed.push(request.url ?? '')),
    config: { rules: [{ path: '/first', public: true }] },
  })
  const user = await scene.user()
  const wire = await openWire(scene.url)
  const line = (path: string, cookie = '') => `GET ${path} HTTP/1.1\r\nhost: a\r\n${cookie}\r\n`
  wire.socket.write(line('/first') + line('/second', `cookie: ${cookieOf(user)}\r\n`))
  await until(() => scene.upstream.received.length === 2)
  await user.post('/logout', '', { headers: { origin: scene.baseUrl, 'sec-fetch-site': 'same-origin' } })
  await until(() => closed.includes('/second'))
  assert.ok(!closed.includes('/first'))
  wire.socket.destroy()
})

test('a browser that disconnects during an upload aborts it for the application', async t => {
  const ended = Promise.withResolvers<string>()
  const scene = await setUp(t, {
    answer: request => void request.on('data', () => {}).once('error', ({ message }) => ended.resolve(message)),
  })
  const user = await scene.user()
  const wire = await openWire(scene.url)
  wire.socket.write(request('POST / HTTP/1.1', `cookie: ${cookieOf(user)}`, 'content-length: 100'))
  wire.socket.write('half')
  await until(() => scene.upstream.received.length === 1)
  wire.socket.destroy()
  assert.equal(await ended.promise, 'aborted')
  assert.equal((await user.get('/_menshen/health')).status, 200)
})

/** In a process of its own, so that its memory is its own. */
async function startGateway(t: TestContext, answer: RequestListener) {
  const provider = await openScriptedProvider(t)
  const upstream = await startUpstream(t, answer)
  const menshen = await startInstance({ ...provider.settings, STORE: 'memory:', UPSTREAM: upstream.url })
  t.after(() => menshen.stop())
  const [pid] = menshen.workers()
  const user = createClient(menshen.url)
  await signIn(user, provider)
  return {
    /** The most that it ever used, in bytes. */
    memory: () => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    async open(method: string, body?: Readable): Promise<IncomingMessage> {
      const outgoing = httpRequest(`${menshen.url}/`, { method, headers: { cookie: cookieOf(user) }, agent: false })
      const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
      if (body) await pipeline(body, outgoing)
      else outgoing.end()
      return (await answered)[0]
    },
  }
}

/** SIZE bytes, no two chunks alike. */
function* bytes(): Generator<Buffer> {
  const chunk = 64 * 1024
  for (let at = 0; at < SIZE; at += chunk) {
    const piece = Buffer.alloc(chunk, 'menshen')
    piece.writeUInt32BE(at)
    yield piece
  }
}

function* counted(count: (bytes: number) => void): Generator<Buffer> {
  for (const chunk of bytes()) {
    count(chunk.length)
    yield chunk
  }
}

async function hashOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk)
  return hash.digest('hex')
}

/** Resolves when a number above zero has stopped growing. */
async function isStill(count: () => number): Promise<void> {
  let before = -1
  while (count() === 0 || count() !== before) {
    before = count()
    await pause(200)
  }
}
