// An answer that is sent to the response of an application, which may not be Node's own.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { connect, constants, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { createGzip, type Gzip, gunzipSync } from 'node:zlib'
import { sendAnswer } from '../../src/http/send.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'

const CHUNK = 64 * 1024
/** Much more than a connection and a stream keep for a client that does not read. */
const MANY = 400

/** As the middleware `compression` does: only the stream has listeners for `drain`, and they cannot be removed. */
function compress(response: ServerResponse): Gzip {
  const gzip = createGzip()
  const write = response.write.bind(response)
  const end = response.end.bind(response)
  const on = response.on.bind(response)
  gzip.on('data', chunk => write(chunk) || gzip.pause()).on('end', () => end())
  on('drain', () => gzip.resume())
  Object.assign(response, {
    write: (chunk: Uint8Array) => gzip.write(chunk),
    end: () => gzip.end(),
    on: (event: string, listener: () => void) => (event === 'drain' ? gzip.on(event, listener) : on(event, listener)),
  })
  return gzip
}

/** A body of this many chunks; each is ready in a later turn. */
function bodyOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const left = [...chunks]
  return new ReadableStream({
    async pull(controller) {
      await new Promise(setImmediate)
      const chunk = left.shift()
      if (chunk) controller.enqueue(chunk)
      else controller.close()
    },
  })
}

function randomChunks(count: number): Buffer[] {
  return Array.from({ length: count }, () => randomBytes(CHUNK))
}

function start(t: TestContext, listener: RequestListener) {
  return listen(t, createServer(listener))
}

async function responseTo(url: string): Promise<IncomingMessage> {
  const [response] = (await once(get(url), 'response')) as [IncomingMessage]
  return response
}

test('a response arrives complete through compression middleware and leaves no extra drain listeners', async t => {
  const chunks = randomChunks(MANY / 10)
  const sent = Promise.withResolvers<number>()
  const { url } = await start(t, (_, response) => {
    const gzip = compress(response)
    sendAnswer(response, new Response(bodyOf(chunks))).then(() => sent.resolve(gzip.listenerCount('drain')))
  })
  const received = await buffer(await responseTo(url))
  assert.ok(gunzipSync(received).equals(Buffer.concat(chunks)))
  assert.equal(await sent.promise, 1)
})

test('sendAnswer resolves when the client disconnects during backpressure, even with compression middleware', async t => {
  const sent = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<Gzip>()
  const { url } = await start(t, (_, response) => {
    answered.resolve(compress(response))
    sendAnswer(response, new Response(bodyOf(randomChunks(MANY)))).then(sent.resolve, sent.reject)
  })
  const response = await responseTo(url)
  const gzip = await answered.promise
  await until(() => gzip.writableNeedDrain && gzip.isPaused())
  response.destroy()
  await sent.promise
})

test('sendAnswer resolves when an HTTP/2 client resets the stream during backpressure', async t => {
  const sent = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<ServerHttp2Stream>()
  const server = createHttp2Server((_, response) => {
    answered.resolve(response.stream)
    // What is there at once is gathered.
    const body = new ReadableStream({
      start(controller) {
        for (const chunk of randomChunks(10)) controller.enqueue(chunk)
      },
    })
    sendAnswer(response as unknown as ServerResponse, new Response(body)).then(sent.resolve, sent.reject)
  })
  const { url } = await listen(t, server)
  const session = connect(url)
  t.after(() => session.destroy())
  const stream = session.request()
  stream.on('error', () => {})
  const waiting = await answered.promise
  await until(() => waiting.writableNeedDrain)
  stream.close(constants.NGHTTP2_CANCEL)
  await sent.promise
})

test('sendAnswer resolves when the response is destroyed, even if its body is always ready', async t => {
  const sent = Promise.withResolvers<void>()
  const { url } = await start(t, (_, response) => {
    let pulled = 0
    const body = new ReadableStream({
      pull(controller) {
        // After a part of it was sent.
        if (pulled++ === 20) response.destroy()
        controller.enqueue(Buffer.alloc(CHUNK))
      },
    })
    sendAnswer(response, new Response(body)).then(sent.resolve, sent.reject)
  })
  get(url)
    .on('response', response => response.resume().on('error', () => {}))
    .on('error', () => {})
  await sent.promise
})

test('the client gets a connection reset if the response body fails', async t => {
  const { url } = await start(t, (_, response) => {
    const body = new ReadableStream({
      async pull(controller) {
        await new Promise(setImmediate)
        if (response.headersSent) controller.error(new Error('no more'))
        else controller.enqueue(Buffer.alloc(CHUNK))
      },
    })
    void sendAnswer(response, new Response(body))
  })
  await assert.rejects(buffer(await responseTo(url)), { code: 'ECONNRESET' })
})
