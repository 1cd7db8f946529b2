// Uploads that wait until they are asked for: the application asks, or answers without the body.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { suite, type TestContext } from 'node:test'
import { cookieOf } from '../kit/client.ts'
import { listenHttp2 } from '../kit/listen.ts'
import { setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { startUpstream, watch } from '../kit/upstream.ts'
import { openWire, startRawUpstream, statusOf } from './raw.ts'

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

/** With one slot: a request that does not give it back is the last one that reaches the application. */
async function setUpUpload(t: TestContext, take: (socket: Socket, head: string, nth: number) => void, env = {}) {
  const upstream = await startRawUpstream(t, take)
  const scene = await setUp(t, { env: { UPSTREAM: upstream.url, UPSTREAM_CONNECTIONS: '1', ...env } })
  const cookie = cookieOf(await scene.user())
  const open = async (...lines: string[]) => {
    const wire = await openWire(scene.url)
    const head = ['POST /up?load HTTP/1.1', 'host: app.test', `cookie: ${cookie}`, 'expect: 100-continue', ...lines]
    wire.socket.write(`${head.join('\r\n')}\r\n\r\n`, 'latin1')
    return wire
  }
  return { scene, upstream, open }
}

test('100 Continue is sent to the client when the application sends it, and the body is forwarded unchanged', async t => {
  let socketOfApplication: Socket | undefined
  const { upstream, open } = await setUpUpload(t, (socket, _head, nth) => {
    socketOfApplication = socket
    if (nth > 1) return
    socket.on('data', chunk => {
      if (chunk.toString().endsWith('abcd')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    })
  })
  const wire = await open('content-length: 4', 'x-name: caf\xe9 \xe6\x8a\xa5')
  await until(() => upstream.heads.length === 1)
  assert.match(upstream.heads[0] ?? '', /^POST \/up\?load HTTP\/1\.1\r\n/)
  assert.match(upstream.heads[0] ?? '', /\r\nexpect: 100-continue\r\n/i)
  assert.match(upstream.heads[0] ?? '', /\r\ncontent-length: 4\r\n/i)
  assert.match(upstream.heads[0] ?? '', /\r\nx-name: caf\xe9 \xe6\x8a\xa5\r\n/)
  assert.equal(wire.seen, '')
  socketOfApplication?.write(CONTINUE)
  await wire.sees(CONTINUE)
  wire.socket.write('abcd')
  const answer = await wire.sees('\r\n\r\nok')
  assert.equal(statusOf(answer.slice(CONTINUE.length)), 200)
  assert.match(answer, /\r\nconnection: keep-alive\r\n/i)
  wire.socket.destroy()
})

test('a final response instead of 100 Continue reaches the client and closes the connection', async t => {
  for (const [status, ...lines] of [
    ['413 Payload Too Large', 'content-length: 3', 'x-name: caf\xe9'],
    ['401 Unauthorized', 'transfer-encoding: chunked', 'www-authenticate: Basic', 'set-cookie: a=1', 'set-cookie: b=2'],
    ['200 OK', 'content-length: 3'],
  ] as const) {
    const isChunked = lines[0].startsWith('t')
    const { upstream, open } = await setUpUpload(t, socket =>
      socket.write(
        `HTTP/1.1 ${status}\r\n${lines.join('\r\n')}\r\n\r\n${isChunked ? '3\r\nbig\r\n0\r\n\r\n' : 'big'}`,
        'latin1',
      ),
    )
    const wire = await open('content-length: 100000')
    const answer = await wire.rest()
    assert.equal(statusOf(answer), Number(status.slice(0, 3)))
    assert.ok(answer.includes('big'))
    assert.match(answer, /\r\nconnection: close\r\n/i)
    for (const line of lines.slice(1)) assert.ok(answer.includes(`${line}\r\n`), `${line} in ${answer}`)
    assert.equal(upstream.heads.length, 1)
    await until(() => upstream.sockets.size === 0)
    const next = await open('content-length: 100000')
    assert.equal(statusOf(await next.rest()), Number(status.slice(0, 3)))
  }
})

test('a body sent before 100 Continue is held back for about a second, then forwarded', async t => {
  const bodies: string[] = []
  const { upstream, open } = await setUpUpload(t, (socket, _head, nth) => {
    if (nth > 1) return
    socket.on('data', chunk => {
      bodies.push(chunk.toString())
      if (bodies.join('').includes('0\r\n\r\n')) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
  })
  const from = Date.now()
  const wire = await open('transfer-encoding: chunked')
  wire.socket.write('4\r\nabcd\r\n0\r\n\r\n')
  await until(() => upstream.heads.length === 1)
  assert.deepEqual(bodies, [])
  await wire.sees('HTTP/1.1 204 ')
  assert.ok(Date.now() - from >= 900)
  assert.match(bodies.join(''), /^4\r\nabcd\r\n0\r\n\r\n$/)
  assert.match(upstream.heads[0] ?? '', /\r\ntransfer-encoding: chunked\r\n/i)
  wire.socket.destroy()
})

suite('deadlines and disconnects on either side', { concurrency: true }, () => {
  test('a failure of the application before 100 Continue gives 502 or 504, and the log names the reason', async t => {
    for (const [take, env, status, reason] of [
      [(socket: Socket) => socket.destroy(), {}, 502, /ECONNRESET|UND_ERR_SOCKET/],
      [() => {}, { UPSTREAM_HEADERS_TIMEOUT_MS: '1500' }, 504, /UND_ERR_HEADERS_TIMEOUT/],
      [(socket: Socket) => socket.write('nonsense\r\n\r\n'), {}, 502, /HPE_/],
      [() => {}, { UPSTREAM: 'http://127.0.0.1:1' }, 502, /ECONNREFUSED/],
    ] as const) {
      const { scene, open } = await setUpUpload(t, take, env)
      for (const nth of ['first', 'next']) {
        const wire = await open('content-length: 4', 'connection: close')
        wire.socket.write('abcd')
        const answer = await wire.rest()
        assert.equal(statusOf(answer.replace(CONTINUE, '')), status, `${nth}: ${answer}`)
      }
      assert.match(JSON.stringify(scene.lines), reason)
    }
  })

  test('a client that disconnects before 100 Continue ends the request to the application and frees its slot', async t => {
    const { upstream, open } = await setUpUpload(t, () => {})
    const wire = await open('content-length: 4')
    await until(() => upstream.heads.length === 1)
    wire.socket.destroy()
    await until(() => upstream.sockets.size === 0)
    const next = await open('content-length: 4')
    await until(() => upstream.heads.length === 2)
    next.socket.destroy()
  })

  test('a connection can be used for another request after an upload with 100 Continue', async t => {
    const scene = await setUp(t, {
      answer: async (request, response) => void response.end(`${request.url} ${await text(request)}`),
    })
    const cookie = `cookie: ${cookieOf(await scene.user())}`
    const wire = await openWire(scene.url)
    for (const path of ['/one', '/two']) {
      wire.socket.write(
        `PUT ${path} HTTP/1.1\r\nhost: a\r\n${cookie}\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n`,
      )
      await until(() => wire.seen.endsWith(CONTINUE))
      wire.socket.write('abcd')
      await wire.sees(`${path} abcd`)
    }
    wire.socket.destroy()
  })

  test('a 20 MB upload with 100 Continue arrives complete at an application on a Unix socket', async t => {
    const path = join(tempFolder(t), 'app.sock')
    const server = createServer().listen(path)
    await once(server, 'listening')
    await watch(t, server, async (request, response) => {
      let size = 0
      for await (const chunk of request) size += chunk.length
      response.end(`${size} bytes`)
    })
    const scene = await setUp(t, { env: { UPSTREAM: `unix:${path}` } })
    const cookie = `cookie: ${cookieOf(await scene.user())}`
    const wire = await openWire(scene.url)
    const size = 20_000_000
    wire.socket.write(
      `POST / HTTP/1.1\r\nhost: a\r\n${cookie}\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: ${size}\r\n\r\n`,
    )
    await wire.sees(CONTINUE)
    wire.socket.write(Buffer.alloc(size))
    assert.ok((await wire.rest()).includes(`${size} bytes`))
  })

  test('UPSTREAM_HEADERS_TIMEOUT_MS does not run while a client pauses its upload, and starts when the upload ends', async t => {
    for (const isHttp2 of [false, true]) {
      const { url, wait } = isHttp2 ? await startSilentHttp2(t) : await startSilentHttp1(t)
      const env = { UPSTREAM: url, UPSTREAM_HEADERS_TIMEOUT_MS: '300', UPSTREAM_CONNECTIONS: '2' }
      const scene = await setUp(t, { env })
      const user = await scene.user()
      const cookie = `cookie: ${cookieOf(user)}`
      const timesOut = async () => assert.equal((await user.get('/')).status, 504)
      const wire = await openWire(scene.url)
      wire.socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${cookie}\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n`)
      await wire.sees(CONTINUE)
      // While it pauses, requests that begin later reach the same deadline.
      for (const part of ['a', 'b']) {
        await timesOut()
        await timesOut()
        wire.socket.write(part)
        await wait(part)
      }
      assert.equal(wire.seen, CONTINUE)
      wire.socket.write('cd')
      await wire.sees('HTTP/1.1 504 ')
      wire.socket.destroy()
      // All slots are free again: as many requests as there are slots reach the application, and none waits in vain.
      await Promise.all([timesOut(), timesOut()])
      const failures = scene.lines.filter(({ event }) => event === 'upstream_failed')
      assert.deepEqual(
        failures.map(({ fields }) => fields.reason),
        Array(7).fill('UND_ERR_HEADERS_TIMEOUT'),
      )
    }
  })

  test('UPSTREAM_IDLE_TIMEOUT_MS applies to a pause of the application, not to a client that reads slowly', async t => {
    for (const isHttp2 of [false, true]) {
      const { url, streams } = await startPausing(t, isHttp2)
      const scene = await setUp(t, { env: { UPSTREAM: url, UPSTREAM_IDLE_TIMEOUT_MS: '1000' } })
      const failed = () => scene.lines.filter(({ event }) => event === 'upstream_failed').length
      const cookie = `cookie: ${cookieOf(await scene.user())}`
      const wire = await openWire(scene.url)
      wire.socket.pause()
      wire.socket.write(
        `POST / HTTP/1.1\r\nhost: a\r\n${cookie}\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\nabcd`,
      )
      await until(() => streams.length === 1)
      // A client that begins later and reads everything gets to the pause of the application, and to its deadline.
      const other = await openWire(scene.url)
      other.socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${cookie}\r\ncontent-length: 4\r\n\r\nabcd`)
      assert.ok((await other.rest()).length > LARGE)
      await until(() => failed() === 1)
      assert.equal(wire.socket.closed, false)
      wire.socket.resume()
      await until(() => failed() === 2)
      assert.match(JSON.stringify(scene.lines), /UND_ERR_BODY_TIMEOUT/)
      assert.ok((await wire.rest()).length > LARGE)
    }
  })
})

async function startSilentHttp1(t: TestContext) {
  let body = ''
  const upstream = await startUpstream(t, request => {
    request.on('data', chunk => {
      body += chunk
    })
  })
  upstream.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    response.writeContinue()
    upstream.server.emit('request', request, response)
  })
  return { url: upstream.url, wait: (part: string) => until(() => body.endsWith(part)) }
}

async function startHttp2(t: TestContext, onStream: (stream: ServerHttp2Stream) => void) {
  // Node refuses further streams while more than this many MB wait.
  const server = createHttp2({ maxSessionMemory: 100 })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.additionalHeaders({ ':status': 100 })
    stream.on('error', () => {})
    onStream(stream)
  })
  return (await listenHttp2(t, server)).url
}

async function startSilentHttp2(t: TestContext) {
  let body = ''
  const url = await startHttp2(t, stream =>
    stream.on('data', chunk => {
      body += chunk
    }),
  )
  return { url, wait: (part: string) => until(() => body.endsWith(part)) }
}

/** More than all buffers on the way. */
const LARGE = 24 * 1024 * 1024

async function startPausing(t: TestContext, isHttp2: boolean) {
  const streams: unknown[] = []
  const begin = (response: ServerResponse | ServerHttp2Stream) => {
    streams.push(response)
    response.write(Buffer.alloc(LARGE))
  }
  if (isHttp2) {
    const url = await startHttp2(t, stream => {
      stream.resume()
      stream.respond({ ':status': 200 })
      begin(stream)
    })
    return { url, streams }
  }
  const upstream = await startUpstream(t, (request, response) => {
    request.resume()
    begin(response)
  })
  return { url: upstream.url, streams }
}
