// An application that records what reaches it, exactly as it came.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { endWithTest } from './listen.ts'

interface Received {
  method: string
  /** The target, as on the wire. */
  target: string
  headers: IncomingMessage['headers']
  /** Every header line: its name in lower case, and its value. */
  lines: [name: string, value: string][]
}

export type Upstream = Awaited<ReturnType<typeof startUpstream>>

const hello: RequestListener = (request, response) => {
  request.resume()
  response.end('hello')
}

export async function startUpstream(t: TestContext, answer: RequestListener = hello) {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  const watched = await watch(t, server, answer)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...watched }
}

/** Records what a server of any kind receives, and ends it with the test. Resolves when it listens. */
export async function watch(t: TestContext, server: Server, answer: RequestListener = hello) {
  const received: Received[] = []
  const sockets = endWithTest(t, server)
  server.on('request', (request, response) => {
    received.push(asReceived(request))
    answer(request, response)
  })
  server.on('upgrade', request => received.push(asReceived(request)))
  if (!server.listening) await once(server, 'listening')
  return {
    server,
    received,
    /** Its connections that are open now. */
    sockets,
    /** What came last. */
    last(): Received {
      const last = received.at(-1)
      if (!last) throw new Error('nothing reached the application')
      return last
    },
  }
}

function asReceived({ method = '', url = '', headers, rawHeaders }: IncomingMessage): Received {
  const lines = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? ''] as [string, string]] : [],
  )
  return { method, target: url, headers, lines }
}
