// Load by HTTP/2: as many requests as a server can answer, on connections that stay open. They are written as frames: a node:http2
// client takes more time for a request than a bare server, which would then wait for it.

import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { ACK, END_HEADERS, END_STREAM, FRAME, frame, hpack, INDEXED, PREFACE } from '../../test/kit/http2-frames.ts'
import type { Answer } from './answer.ts'
import { ALLOWANCE, createFrameReader } from './frame-reader.ts'
import type { Measured } from './wrk.ts'

export interface Http2Request {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

export interface Http2Load extends AsyncDisposable {
  measure(seconds: number): Promise<Measured>
}

const CONNECTIONS = 4
const STREAMS = 16

export async function openSession(url: string): Promise<ClientHttp2Session> {
  const session = connect(url, { rejectUnauthorized: false })
  await once(session, 'connect')
  return session
}

/** Throws if its gRPC status is not 0. */
export async function askByHttp2(session: ClientHttp2Session, { headers, body }: Http2Request): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body) stream.end(body)
  let wrong: unknown
  stream.on('trailers', ({ 'grpc-status': grpc = '0' }) => {
    if (grpc !== '0') wrong = grpc
  })
  const [received, , rawHeaders] = await once(stream, 'response')
  const texts = Object.entries(received as Record<string, unknown>).map(([name, value]) => [name, String(value)])
  const content = await buffer(stream)
  if (wrong !== undefined) throw new Error(`the status of gRPC is ${wrong}`)
  return { status: received[':status'], rawHeaders, headers: Object.fromEntries(texts), body: content }
}

/** Throws if an answer is not 200, has a gRPC status other than 0, or another length than the first. */
export async function openHttp2Load(url: string, request: Http2Request): Promise<Http2Load> {
  const session = await openSession(url)
  const { status, body } = await askByHttp2(session, request)
  session.destroy()
  if (status !== 200) throw new Error(`${url} answered ${status}`)
  const loads: LoadConnection[] = []
  for (let n = 0; n < CONNECTIONS; n++) loads.push(new LoadConnection(await openSocket(url), url, request, body.length))
  return {
    async measure(seconds) {
      const startedAt = performance.now()
      const running = loads.map(load => load.run())
      const timer = setTimeout(() => {
        for (const load of loads) load.stop()
      }, seconds * 1000)
      const counts = await Promise.all(running).finally(() => clearTimeout(timer))
      const requests = counts.reduce((sum, count) => sum + count, 0)
      return { requests, rate: (requests * 1000) / (performance.now() - startedAt) }
    },
    async [Symbol.asyncDispose]() {
      for (const load of loads) load.close()
    },
  }
}

async function openSocket(url: string): Promise<TLSSocket> {
  const { hostname, port } = new URL(url)
  const socket = connectTls({ host: hostname, port: Number(port), ALPNProtocols: ['h2'], rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  return socket
}

/** `:status: 200` in the table that every connection begins with. */
const STATUS_200 = 0x88

class LoadConnection {
  readonly #socket: TLSSocket
  readonly #url: string
  readonly #bodyLength: number
  /** The first request has its headers in full, the next ones refer to them. */
  readonly #first: Buffer
  readonly #next: Buffer
  readonly #readFrames = createFrameReader((type, flags, _stream, payload) => this.#take(type, flags, payload))
  #stream = 1
  #open = 0
  /** Counted in the last read. */
  #ended = 0
  #answered = 0
  #received = 0
  #isRunning = false
  #done = Promise.withResolvers<number>()

  constructor(socket: TLSSocket, url: string, { headers, body }: Http2Request, bodyLength: number) {
    this.#socket = socket
    this.#url = url
    this.#bodyLength = bodyLength
    const all = Object.entries({ ':method': 'GET', ':scheme': 'https', ':authority': new URL(url).host, ...headers })
    const references = Buffer.from(all.map((_, index) => 0x80 | (62 + all.length - 1 - index)))
    const framesOf = (block: Buffer) =>
      Buffer.concat([
        frame(FRAME.headers, END_HEADERS | (body ? 0 : END_STREAM), 0, block),
        ...(body ? [frame(FRAME.data, END_STREAM, 0, body)] : []),
      ])
    this.#first = framesOf(hpack(all, INDEXED))
    this.#next = framesOf(references)
    socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0), ALLOWANCE]))
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', error => this.#done.reject(error))
    socket.on('close', () => this.#done.reject(new Error(`${url} has closed the connection`)))
    this.#done.promise.catch(() => {})
  }

  /** Resolves with the number of answers, after `stop`. */
  run(): Promise<number> {
    this.#done = Promise.withResolvers()
    this.#answered = this.#received = 0
    this.#isRunning = true
    this.#ask(STREAMS)
    return this.#done.promise
  }

  stop(): void {
    this.#isRunning = false
  }

  close(): void {
    this.#socket.destroy()
  }

  #ask(count: number): void {
    const requests: Buffer[] = []
    for (let n = 0; n < count; n++) requests.push(this.#request())
    this.#open += count
    this.#socket.write(Buffer.concat(requests))
  }

  #request(): Buffer {
    const id = this.#stream
    const bytes = Buffer.from(id === 1 ? this.#first : this.#next)
    this.#stream += 2
    for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) bytes.writeUInt32BE(id, at + 5)
    return bytes
  }

  #read(chunk: Buffer): void {
    this.#ended = 0
    this.#readFrames(chunk)
    this.#open -= this.#ended
    this.#answered += this.#ended
    if (this.#ended > 0 && this.#isRunning) this.#ask(this.#ended)
    else if (this.#open === 0 && !this.#isRunning) this.#finish()
  }

  #take(type: number, flags: number, payload: Buffer): void {
    const isEnd = (flags & END_STREAM) !== 0
    switch (type) {
      case FRAME.headers:
        if (isEnd === (this.#bodyLength === 0) && payload[0] !== STATUS_200) this.#fail('another status than 200')
        if (isEnd) this.#ended++
        return
      case FRAME.data:
        this.#received += payload.length
        if (isEnd) this.#ended++
        return
      case FRAME.settings:
        if (flags !== ACK) this.#socket.write(frame(FRAME.settings, ACK, 0))
        return
      case FRAME.reset:
      case FRAME.goaway:
        this.#fail('RST_STREAM or GOAWAY')
    }
  }

  #finish(): void {
    const expected = this.#answered * this.#bodyLength
    if (this.#received !== expected) this.#fail(`${this.#received} bytes in place of ${expected}`)
    this.#done.resolve(this.#answered)
  }

  #fail(what: string): void {
    this.#isRunning = false
    this.#done.reject(new Error(`${this.#url} answered ${what}`))
  }
}
