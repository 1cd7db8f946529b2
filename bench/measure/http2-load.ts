// Load by HTTP/2: as many requests as a server can answer, on connections that stay open.

import { once } from 'node:events'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import type { Answer } from './answer.ts'
import type { Measured } from './wrk.ts'

export interface Http2Request {
  readonly headers: OutgoingHttpHeaders
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

export async function askByHttp2(session: ClientHttp2Session, { headers, body }: Http2Request): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body) stream.end(body)
  const [received, , rawHeaders] = await once(stream, 'response')
  const texts = Object.entries(received as Record<string, unknown>).map(([name, value]) => [name, String(value)])
  return { status: received[':status'], rawHeaders, headers: Object.fromEntries(texts), body: await buffer(stream) }
}

/** Throws if an answer is not 200, or has another status of gRPC than 0. */
export async function openHttp2Load(url: string, { headers, body }: Http2Request): Promise<Http2Load> {
  const sessions = await Promise.all(Array.from({ length: CONNECTIONS }, () => openSession(url)))
  let answered = 0
  let isRunning = false
  let wrong: string | undefined

  function judge(received: Record<string, unknown>): void {
    const { ':status': status, 'grpc-status': grpc = '0' } = received
    if ((status !== undefined && status !== 200) || grpc !== '0') wrong ??= `${status} ${grpc}`
  }

  async function ask(session: ClientHttp2Session): Promise<void> {
    while (isRunning && wrong === undefined) {
      const stream = session.request(headers, { endStream: body === undefined })
      if (body) stream.end(body)
      stream.on('response', judge).on('trailers', judge).resume()
      await once(stream, 'end')
      answered++
    }
  }

  return {
    async measure(seconds) {
      const before = answered
      const startedAt = performance.now()
      isRunning = true
      const timer = setTimeout(() => {
        isRunning = false
      }, seconds * 1000)
      await Promise.all(sessions.flatMap(session => Array.from({ length: STREAMS }, () => ask(session))))
      clearTimeout(timer)
      if (wrong !== undefined) throw new Error(`${url} answered ${wrong}`)
      const requests = answered - before
      return { requests, rate: (requests * 1000) / (performance.now() - startedAt) }
    },
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy()
    },
  }
}
