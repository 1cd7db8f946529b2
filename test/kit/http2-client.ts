// A client of HTTP/2 that sends exactly what a test says.

import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'

export interface Http2Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly trailers: IncomingHttpHeaders
  readonly text: string
}

/** A connection that ends with the test. */
export async function openHttp2(
  t: Pick<TestContext, 'after'>,
  url: string,
  options: SecureClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  const session = connect(url, { rejectUnauthorized: false, lookup: toLoopback, ...options })
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** The servers of the tests listen on IPv4. */
const toLoopback: NonNullable<SecureClientSessionOptions['lookup']> = (_name, { all }, done) => {
  if (all) done(null, [{ address: '127.0.0.1', family: 4 }])
  else done(null, '127.0.0.1', 4)
}

export async function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Uint8Array,
): Promise<Http2Answer> {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return answerOf(stream)
}

/** Rejects if the stream is reset. */
export async function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let trailers: IncomingHttpHeaders = {}
  stream.on('trailers', received => {
    trailers = received
  })
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders & { ':status'?: number }]
  const content = await text(stream)
  return { status: headers[':status'] ?? 0, headers, trailers, text: content }
}
