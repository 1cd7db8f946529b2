// HTTP/1.1 and HTTP/2, on the side of the client and on that of the application: whichever of them is spoken, a client gets the
// same answer and an application the same request.
//
// What the protocols themselves do not have in common is left out: headers for a connection, the reason phrase, trailers where
// one side is HTTP/1.1 and the answer has a length, and Date.

import assert from 'node:assert/strict'
import { createServer as createHttp1, type IncomingMessage } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  createServer as createHttp2,
  type ServerHttp2Stream,
} from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { OWN_PATHS } from '../../src/paths.ts'
import { Http2Request } from '../../src/server/http2-messages.ts'
import { cookieOf } from '../kit/client.ts'
import { openHttp2 } from '../kit/http2-client.ts'
import { END_HEADERS, FRAME, frame, hpack, number, openFrames, PREFACE, requestHeaders } from '../kit/http2-frames.ts'
import { listen, listenHttp2 } from '../kit/listen.ts'
import { type GatewayAndProvider, setUp } from '../kit/set-up.ts'
import { tempFolder } from '../kit/temp.ts'
import { until } from '../kit/until.ts'
import { makeAuthority, makeCertificate } from '../proxies/certificates.ts'

type Lines = readonly (readonly [name: string, value: string])[]

/** What an application answers with. */
interface Answer {
  readonly status?: number
  readonly hints?: string
  readonly headers?: Lines
  readonly body?: readonly string[]
  readonly trailers?: Lines
  /** Where it breaks off. */
  readonly reset?: 'before the head' | 'after the head' | 'in the body' | 'after the body'
  /** Without the body of the request. */
  readonly isEarly?: true
}

interface Question {
  readonly method?: string
  readonly path?: string
  readonly headers?: Lines
  readonly body?: readonly string[]
  readonly trailers?: Lines
  /** The client waits until it is asked. */
  readonly expects?: true
  /** Resolves when the client leaves, with its body half sent. */
  readonly leaves?: Promise<void>
}

interface Case {
  readonly question?: Question
  readonly answer?: Answer
}

const page = (body: string): Lines => [['content-length', String(body.length)]]
const LARGE = 'large '.repeat(100_000)

const CASES: Readonly<Record<string, Case>> = {
  'a page with its length': { answer: { headers: page('hello'), body: ['hello'] } },
  'a page without its length': { answer: { body: ['hello ', 'world'] } },
  'an empty page with its length': { answer: { headers: [['content-length', '0']] } },
  'an empty page without its length': { answer: {} },
  'a large page with its length': { answer: { headers: page(LARGE), body: [LARGE] } },
  'a large page without its length': { answer: { body: [LARGE, LARGE] } },
  'a page in pieces with its length': { answer: { headers: page('one two'), body: ['one ', 'two'] } },
  ...Object.fromEntries(
    [
      201, 202, 203, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 409, 410, 418, 422, 429, 451, 500, 501, 503,
    ].map(status => [`status ${status}`, { answer: { status, headers: page('text'), body: ['text'] } }]),
  ),
  ...Object.fromEntries([204, 205, 304].map(status => [`status ${status} without a body`, { answer: { status } }])),
  '304 with the length of its page': {
    answer: {
      status: 304,
      headers: [
        ['content-length', '1234'],
        ['etag', '"1"'],
      ],
    },
  },
  'HEAD with a length': { question: { method: 'HEAD' }, answer: { headers: [['content-length', '1234']] } },
  'HEAD without a length': { question: { method: 'HEAD' } },
  'HEAD of a missing page': { question: { method: 'HEAD' }, answer: { status: 404 } },
  'a partial response': {
    question: { headers: [['range', 'bytes=0-3']] },
    answer: { status: 206, headers: [['content-range', 'bytes 0-3/10'], ...page('hell')], body: ['hell'] },
  },
  'a redirect': { answer: { status: 302, headers: [['location', '/elsewhere?a=b']] } },
  'several cookies': {
    answer: {
      headers: [
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2; Path=/'],
      ],
      body: ['x'],
    },
  },
  'a response header in several lines': {
    answer: {
      headers: [
        ['x-many', 'a'],
        ['x-many', 'b'],
        ['vary', 'x'],
      ],
      body: ['x'],
    },
  },
  'bytes above 0x7f in headers': {
    question: { headers: [['x-bytes', '\xe6\x8a\xa5 caf\xe9']] },
    answer: {
      headers: [
        ['x-bytes', '\xe6\x8a\xa5 caf\xe9'],
        ['content-disposition', 'attachment; filename="\xe9"'],
      ],
      body: ['x'],
    },
  },
  'bytes above 0x7f in a body': { answer: { headers: page('\xff\xfe\x00\x80'), body: ['\xff\xfe\x00\x80'] } },
  'gzip data': { answer: { headers: [['content-encoding', 'gzip'], ...page('\x1f\x8b\x08')], body: ['\x1f\x8b\x08'] } },
  'an empty header': { answer: { headers: [['x-empty', '']], body: ['x'] } },
  'a publicly cacheable page': { answer: { headers: [['cache-control', 'public, max-age=60']], body: ['x'] } },
  trailers: { answer: { headers: [['trailer', 'x-end']], body: ['x'], trailers: [['x-end', 'reached']] } },
  'trailers that are not allowed': {
    answer: {
      body: ['x'],
      trailers: [
        ['set-cookie', 'a=1'],
        ['x-end', 'reached'],
      ],
    },
  },
  'early hints': { answer: { hints: '</a.css>; rel=preload', body: ['x'] } },
  'a reset before the head': { answer: { reset: 'before the head' } },
  'a reset after the head': { answer: { reset: 'after the head' } },
  'a reset in the body': { answer: { body: ['half'], reset: 'in the body' } },
  'a reset in a body with its length': {
    answer: { headers: page('half and half'), body: ['half'], reset: 'in the body' },
  },
  'a reset after the body, without its length': { answer: { body: ['whole'], reset: 'after the body' } },
  'a reset after the head of a page with a length': { answer: { headers: page('x'), reset: 'after the head' } },
  'a form with its length': {
    question: { method: 'POST', headers: page('a=b'), body: ['a=b'] },
    answer: { body: ['x'] },
  },
  'a body without its length': { question: { method: 'PUT', body: ['one ', 'two'] }, answer: { body: ['x'] } },
  'an empty body with its length': {
    question: { method: 'POST', headers: page(''), body: [] },
    answer: { body: ['x'] },
  },
  'a large body': { question: { method: 'POST', headers: page(LARGE), body: [LARGE] }, answer: { body: ['x'] } },
  'DELETE with a body': { question: { method: 'DELETE', headers: page('x'), body: ['x'] }, answer: { status: 204 } },
  'a body after 100 Continue': {
    question: { method: 'POST', headers: page('x'), body: ['x'], expects: true },
    answer: { body: ['x'] },
  },
  'a final response instead of 100 Continue': {
    question: { method: 'POST', headers: page('x'), body: ['x'], expects: true },
    answer: { status: 413, headers: page('large'), body: ['large'], isEarly: true },
  },
  'a request header in several lines': {
    question: {
      headers: [
        ['x-many', 'a'],
        ['x-many', 'b'],
      ],
    },
    answer: { body: ['x'] },
  },
  'an address with a query': { question: { path: '/a%20b/?q=%ff&r' }, answer: { body: ['x'] } },
}

interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Lines
  readonly body: string
  readonly trailers: Lines
}

interface Application {
  readonly url: string
  answer: Answer
  seen: Request[]
  /** How many requests have begun. */
  asked: number
  /** How many bodies broke off. */
  broken: number
}

const LEFT_OUT = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'te', 'date', 'host', 'x-request-id', 'traceparent', 'expect'],
  ...['x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-for', 'cookie', 'content-length', 'x-menshen-assertion'],
])

/** By name; the order of different names has no meaning. Lines of one name are joined, but for cookies. */
function plain(lines: Lines, leftOut: ReadonlySet<string> = LEFT_OUT): Record<string, string> {
  const byName = new Map<string, string[]>()
  for (const [name, value] of lines) {
    const lower = name.toLowerCase()
    if (lower.startsWith(':') || leftOut.has(lower)) continue
    byName.set(lower, [...(byName.get(lower) ?? []), value])
  }
  return Object.fromEntries(
    [...byName].sort().map(([name, values]) => [name, values.join(name === 'set-cookie' ? '\n' : ', ')]),
  )
}

function pairs(raw: readonly string[]): [name: string, value: string][] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1] ?? ''] as [string, string]] : []))
}

async function bodyOf(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

const turn = () => new Promise(setImmediate)

async function startHttp1(t: TestContext): Promise<Application> {
  const application: Application & { url: string } = { url: '', answer: {}, seen: [], asked: 0, broken: 0 }
  const server = createHttp1()
  const answer = async (request: IncomingMessage, socket: Socket, isExpected: boolean) => {
    application.asked++
    const { status = 200, hints, headers = [], body = [], trailers = [], reset, isEarly } = application.answer
    const { method = '', url: path = '', rawHeaders } = request
    const write = (text: string) => socket.write(text, 'latin1')
    if (isExpected && !isEarly) write('HTTP/1.1 100 Continue\r\n\r\n')
    const received = isEarly ? '' : await bodyOf(request)
    application.seen.push({
      method,
      path,
      headers: pairs(rawHeaders),
      body: received,
      trailers: pairs(request.rawTrailers),
    })
    if (reset === 'before the head') return socket.destroy()
    if (hints) write(`HTTP/1.1 103 Early Hints\r\nlink: ${hints}\r\n\r\n`)
    const hasLength = headers.some(([name]) => name === 'content-length')
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    const framing: Lines = hasLength || !hasBody ? [] : [['transfer-encoding', 'chunked']]
    const lines = [...headers, ...framing].map(([name, value]) => `${name}: ${value}\r\n`)
    write(`HTTP/1.1 ${status} Reason\r\n${lines.join('')}\r\n`)
    await turn()
    if (reset === 'after the head') return socket.destroy()
    if (hasBody)
      for (const part of body) {
        write(hasLength ? part : `${part.length.toString(16)}\r\n${part}\r\n`)
        await turn()
      }
    if (reset) {
      await new Promise(resolve => setTimeout(resolve, 20))
      return socket.destroy()
    }
    if (!hasLength && hasBody) write(`0\r\n${trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
    if (isEarly) socket.end()
  }
  server.on('request', request => void answer(request, request.socket, false).catch(() => application.broken++))
  server.on('checkContinue', request => void answer(request, request.socket, true).catch(() => application.broken++))
  application.url = (await listen(t, server)).url
  return application
}

async function startHttp2(t: TestContext): Promise<Application> {
  const application: Application & { url: string } = { url: '', answer: {}, seen: [], asked: 0, broken: 0 }
  const server = createHttp2({ strictSingleValueFields: false } as object)
  const answer = async (stream: ServerHttp2Stream, raw: readonly string[]) => {
    application.asked++
    const { status = 200, hints, headers = [], body = [], trailers = [], reset, isEarly } = application.answer
    const lines = pairs(raw)
    const head = new Map(lines)
    const method = head.get(':method') ?? ''
    if (head.has('expect') && !isEarly) stream.additionalHeaders({ ':status': 100 })
    let sentAfter: Lines = []
    stream.on('trailers', (_trailers, _flags, rawTrailers: readonly string[]) => {
      sentAfter = pairs(rawTrailers)
    })
    const received = isEarly ? '' : await bodyOf(stream)
    // Node ends the body of a stream that was cancelled like a whole one.
    if (stream.aborted || stream.rstCode) throw new Error('the body broke off')
    application.seen.push({
      method,
      path: head.get(':path') ?? '',
      headers: lines,
      body: received,
      trailers: sentAfter,
    })
    if (reset === 'before the head') return stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    if (hints) stream.additionalHeaders({ ':status': 103, link: hints })
    const hasBody =
      method !== 'HEAD' && ![204, 205, 304].includes(status) && (body.length > 0 || reset || trailers.length > 0)
    if (trailers.length > 0) stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(trailers)))
    const sent = [':status', String(status), ...headers.flat()]
    stream.respond(sent as never, { endStream: !hasBody, waitForTrailers: trailers.length > 0 })
    await turn()
    if (reset === 'after the head') return stream.destroy(new Error('reset'))
    if (hasBody)
      for (const part of body) {
        stream.write(Buffer.from(part, 'latin1'))
        await turn()
      }
    if (reset) {
      await new Promise(resolve => setTimeout(resolve, 20))
      return stream.destroy(new Error('reset'))
    }
    if (hasBody) stream.end()
  }
  server.on('session', session =>
    session.on('stream', (stream, _headers, _flags, raw: readonly string[]) => {
      stream.on('error', () => {})
      answer(stream, raw).catch(() => application.broken++)
    }),
  )
  application.url = (await listenHttp2(t, server)).url
  return application
}

/** What a client got. */
interface Received {
  status: number
  headers: Record<string, string>
  body: string
  trailers: Record<string, string>
  hints: string[]
  wasAsked: boolean
  /** It broke off. */
  isBroken: boolean
}

type Ask = (question: Question, cookie: string, leftOut?: ReadonlySet<string>) => Promise<Received>

const ANSWER_LEFT_OUT = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'x-request-id'])

function nothingYet(): Received {
  return { status: 0, headers: {}, body: '', trailers: {}, hints: [], wasAsked: false, isBroken: false }
}

function askByHttp1(url: string): Ask {
  return ({ method = 'GET', path = '/', headers = [], body, trailers = [], expects, leaves }, cookie) => {
    const { promise, resolve } = Promise.withResolvers<Received>()
    const received = nothingYet()
    const hasLength = headers.some(([name]) => name === 'content-length')
    const framing = body && !hasLength ? ['transfer-encoding', 'chunked'] : []
    const request = httpsRequest({
      host: '127.0.0.1',
      port: new URL(url).port,
      path,
      method,
      agent: false,
      rejectUnauthorized: false,
      servername: 'localhost',
      headers: [
        ...['host', new URL(url).host, 'cookie', cookie, 'connection', 'close'],
        ...headers.flat(),
        ...framing,
        ...(expects ? ['expect', '100-continue'] : []),
      ],
    } as object)
    const send = () => {
      for (const part of body ?? []) request.write(Buffer.from(part, 'latin1'))
      if (leaves) return void leaves.then(() => request.destroy())
      if (trailers.length > 0) request.addTrailers(Object.fromEntries(trailers))
      request.end()
    }
    request.on('continue', () => {
      received.wasAsked = true
      send()
    })
    request.on('information', ({ statusCode, headers: { link } }) => {
      if (statusCode === 103) received.hints.push(String(link))
    })
    request.on('error', () => {
      received.isBroken = true
      resolve(received)
    })
    request.on('response', response => {
      received.status = response.statusCode ?? 0
      received.headers = plain(pairs(response.rawHeaders), ANSWER_LEFT_OUT)
      response.on('data', (chunk: Buffer) => {
        received.body += chunk.toString('latin1')
      })
      response.on('error', () => {
        received.isBroken = true
      })
      response.on('close', () => {
        received.trailers = plain(pairs(response.rawTrailers))
        request.destroy()
        resolve(received)
      })
    })
    if (!expects) send()
    else request.flushHeaders()
    return promise
  }
}

function askByHttp2(session: ClientHttp2Session, url: string): Ask {
  return ({ method = 'GET', path = '/', headers = [], body, trailers = [], expects }, cookie) => {
    const { promise, resolve } = Promise.withResolvers<Received>()
    const received = nothingYet()
    const { host } = new URL(url)
    const head = [
      ...[':method', method, ':scheme', 'https', ':path', path, ':authority', host, 'cookie', cookie],
      ...headers.flat(),
      ...(expects ? ['expect', '100-continue'] : []),
    ]
    const stream: ClientHttp2Stream = session.request(head as never, {
      endStream: body === undefined,
      waitForTrailers: trailers.length > 0,
    })
    stream.on('wantTrailers', () => stream.sendTrailers(Object.fromEntries(trailers)))
    const send = () => {
      for (const part of body ?? []) stream.write(Buffer.from(part, 'latin1'))
      if (body) stream.end()
    }
    stream.on('continue', () => {
      received.wasAsked = true
      send()
    })
    stream.on('headers', ({ ':status': status, link }: Record<string, unknown>) => {
      if (status === 103) received.hints.push(String(link))
    })
    stream.on('response', (answer, _flags, raw: readonly string[]) => {
      received.status = Number(answer[':status'])
      received.headers = plain(pairs(raw), ANSWER_LEFT_OUT)
    })
    stream.on('trailers', (_headers, _flags, raw: readonly string[]) => {
      received.trailers = plain(pairs(raw))
    })
    stream.on('data', (chunk: Buffer) => {
      received.body += chunk.toString('latin1')
    })
    stream.on('error', () => {
      received.isBroken = true
    })
    stream.on('close', () => resolve(received))
    if (!expects) send()
    return promise
  }
}

function certificate(t: TestContext) {
  const folder = tempFolder(t)
  const { certFile, keyFile } = makeCertificate(folder, 'own', makeAuthority(folder))
  return { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }
}

async function clientsOf(t: TestContext, { url }: Pick<GatewayAndProvider, 'url'>): Promise<Record<string, Ask>> {
  const session = await openHttp2(t, url, { strictSingleValueFields: false } as object)
  return { 'HTTP/1.1': askByHttp1(url), 'HTTP/2': askByHttp2(session, url) }
}

test('requests and responses are the same over HTTP/1.1 and HTTP/2, on both sides', { timeout: 120_000 }, async t => {
  const env = certificate(t)
  const applications = { 'HTTP/1.1': await startHttp1(t), 'HTTP/2': await startHttp2(t) }
  const ways = await Promise.all(
    Object.entries(applications).map(async ([name, application]) => {
      const scene = await setUp(t, { application: false, env: { ...env, UPSTREAM: application.url } })
      const cookie = cookieOf(await scene.user())
      return { name, application, cookie, clients: await clientsOf(t, scene) }
    }),
  )

  for (const [title, { question = {}, answer = {} }] of Object.entries(CASES))
    await t.test(title, { timeout: 60_000 }, async () => {
      let expected: { received: object; seen: object } | undefined
      for (const { name, application, cookie, clients } of ways)
        for (const [client, ask] of Object.entries(clients)) {
          application.answer = answer
          application.seen = []
          const received = await ask(question, cookie)
          const last = application.seen.at(-1)
          const result = {
            received: comparable(received),
            seen: { method: last?.method, path: last?.path, body: last?.body, headers: plain(last?.headers ?? []) },
          }
          expected ??= result
          assert.deepEqual(result, expected, `a client by ${client}, an application by ${name}`)
        }
    })
})

test('request trailers reach an HTTP/2 application, and trailers follow a length if both sides use HTTP/2', async t => {
  const application = await startHttp2(t)
  const scene = await setUp(t, { application: false, env: { ...certificate(t), UPSTREAM: application.url } })
  const cookie = cookieOf(await scene.user())
  for (const [client, ask] of Object.entries(await clientsOf(t, scene))) {
    application.answer = {
      headers: [...page('x'), ['trailer', 'x-end']],
      body: ['x'],
      trailers: [['x-end', 'reached']],
    }
    const question = {
      method: 'POST',
      headers: [['trailer', 'x-sum']],
      body: ['body'],
      trailers: [['x-sum', '1']],
    } as const
    const received = await ask(question, cookie)
    assert.deepEqual([received.status, received.body, received.isBroken], [200, 'x', false], client)
    assert.deepEqual(received.trailers, client === 'HTTP/2' ? { 'x-end': 'reached' } : {}, client)
    assert.deepEqual(plain(application.seen.at(-1)?.trailers ?? []), { 'x-sum': '1' }, client)
  }
})

test('an upload that the client aborts never looks complete, over HTTP/1.1 and HTTP/2, with and without its length', async t => {
  const env = certificate(t)
  for (const application of [await startHttp1(t), await startHttp2(t)]) {
    const scene = await setUp(t, { application: false, env: { ...env, UPSTREAM: application.url } })
    const cookie = cookieOf(await scene.user())
    const breaksOff = async (send: () => unknown, leave: () => unknown) => {
      const before = { broken: application.broken, asked: application.asked }
      await send()
      await until(() => application.asked === before.asked + 1)
      await leave()
      await until(() => application.broken === before.broken + 1)
      assert.deepEqual(application.seen, [])
    }
    for (const headers of [page('half and half'), []]) {
      const { promise: leaves, resolve: leave } = Promise.withResolvers<void>()
      const question = { method: 'POST', headers, body: ['half'], leaves }
      await breaksOff(() => void askByHttp1(scene.url)(question, cookie), leave)
      for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR]) {
        const connection = await openFrames(t, scene.url)
        const head = hpack(requestHeaders('/', [['cookie', cookie], ...headers], 'POST'))
        const body = frame(FRAME.data, 0, 1, Buffer.from('half'))
        await breaksOff(
          () => connection.write(Buffer.concat([frame(FRAME.headers, END_HEADERS, 1, head), body])),
          () => connection.write(frame(FRAME.reset, 0, 1, number(code))),
        )
      }
    }
  }
})

test('25 uploads aborted together do not look complete to the application', async t => {
  let [asked, left, whole] = [0, 0, 0]
  const server = createHttp2().on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {})
    stream.once('data', () => asked++).on('end', () => stream.aborted || whole++)
    stream.on('close', () => left++)
  })
  const { url } = await listenHttp2(t, server)
  const scene = await setUp(t, { application: false, env: { ...certificate(t), UPSTREAM: url } })
  const head = hpack(requestHeaders('/', [['cookie', cookieOf(await scene.user())]], 'POST'))
  const connection = await openFrames(t, scene.url)
  // The last one goes on: without it the connection to the application would end at once.
  const streams = Array.from({ length: 26 }, (_, n) => 2 * n + 1)
  for (const stream of streams)
    await connection.write(
      Buffer.concat([
        frame(FRAME.headers, END_HEADERS, stream, head),
        frame(FRAME.data, 0, stream, Buffer.from('half')),
      ]),
    )
  await until(() => asked === 26)
  const resets = streams.slice(0, -1).map(stream => frame(FRAME.reset, 0, stream, number(constants.NGHTTP2_CANCEL)))
  await connection.write(Buffer.concat(resets))
  await until(() => left === 25)
  assert.equal(whole, 0)
})

test('a body that was aborted before it was read is an error, not an empty body', async t => {
  const reads: Promise<unknown>[] = []
  const server = createHttp2().on('stream', (stream: ServerHttp2Stream, headers) => {
    const head = { method: 'POST', path: '/', headers, rawReceived: [], isTooLarge: false }
    const request = new Http2Request(stream, stream.session?.socket as TLSSocket, head)
    stream.on('close', () =>
      reads.push(
        request
          .iterator()
          .next()
          .then(
            () => 'whole',
            () => 'broken off',
          ),
      ),
    )
  })
  const { port } = await listenHttp2(t, server)
  const socket = connect(Number(port), '127.0.0.1')
  t.after(() => socket.destroy())
  const head = hpack(requestHeaders('/', [], 'POST'))
  socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)]))
  for (const [stream, code] of [
    [1, constants.NGHTTP2_NO_ERROR],
    [3, constants.NGHTTP2_CANCEL],
  ] as const)
    socket.write(
      Buffer.concat([
        frame(FRAME.headers, END_HEADERS, stream, head),
        frame(FRAME.data, 0, stream, Buffer.from('half')),
        frame(FRAME.reset, 0, stream, number(code)),
      ]),
    )
  await until(() => reads.length === 2)
  assert.deepEqual(await Promise.all(reads), ['broken off', 'broken off'])
})

/** A page of ours has the id of its request. */
function comparable({ body, isBroken, ...rest }: Received): object {
  const text = body.replaceAll(/(?<=<code>|data-copy=")\w+/g, 'ID')
  return { ...rest, isBroken, body: text }
}

test('all built-in pages are the same over HTTP/1.1 and HTTP/2, in both languages, for visitors, users and developers', async t => {
  const scene = await setUp(t, { application: false, env: { ...certificate(t), PAGE_LANGUAGE: 'auto' } })
  const clients = await clientsOf(t, scene)
  const cookies = {
    visitor: '',
    user: cookieOf(await scene.user()),
    developer: cookieOf(await scene.user('admin', { sub: 'sub-admin' })),
  }
  // They never end, or sign out.
  const { consoleLive: _live, consoleAuditLive: _auditLive, metrics: _metrics, ...paths } = OWN_PATHS
  const all = [
    '/',
    '/login',
    '/callback',
    '/missing',
    '/a/../b',
    ...Object.values(paths),
    '/_menshen/assets/menshen.css',
  ]
  for (const [who, cookie] of Object.entries(cookies))
    for (const language of ['en', 'zh-CN'])
      for (const method of ['GET', 'HEAD', 'POST'])
        for (const path of all) {
          if (method === 'POST' && who !== 'visitor') continue
          const headers: Lines = [
            ['accept', 'text/html'],
            ['accept-language', language],
          ]
          const question = { method, path, headers, ...(method === 'POST' && { body: [] }) }
          const [first, second] = await Promise.all(Object.values(clients).map(ask => ask(question, cookie)))
          assert.ok(first && second)
          const what = `${method} ${path} in ${language} for a ${who}`
          assert.equal(second.isBroken, false, what)
          if (method === 'GET' && path === '/login' && who === 'visitor')
            assert.match(second.body, new RegExp(`<html lang="${language}`), what)
          assert.deepEqual(stable(second), stable(first), what)
        }
})

/** Without what differs from one request to the next. */
function stable({ status, headers, body }: Received): object {
  const { 'set-cookie': cookies = '', 'content-length': length, ...rest } = headers
  const names = cookies.split('\n').map(cookie => cookie.split('=')[0])
  const isWhole = length === undefined || Number(length) === body.length || body === ''
  return {
    status,
    headers: { ...rest, location: rest.location?.replaceAll(/[\w-]{12,}/g, 'ID') },
    names,
    isWhole,
    // Times and counts.
    body: body.replaceAll(/[\w-]{12,}/g, 'ID').replaceAll(/\d+/g, 'N'),
  }
}
