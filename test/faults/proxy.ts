// A small proxy in front of several instances, as nginx is by default: each request goes to the next one, and on to
// another if no connection can be made, or if the connection is closed before an answer and the request can be repeated.

import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export interface TestProxy {
  readonly url: string
  /** Requests that went on to another instance. */
  readonly retries: { unconnected: number; unanswered: number }
}

export async function startProxy(
  t: TestContext,
  instances: readonly { readonly url: string }[],
  { keepAlive = false } = {},
): Promise<TestProxy> {
  const retries = { unconnected: 0, unanswered: 0 }
  const agent = new Agent({ keepAlive })
  let next = 0

  function ask(asked: IncomingMessage, url: string): Promise<IncomingMessage> {
    const { method, headers, url: path } = asked
    return new Promise((resolve, reject) => {
      request(url, { method, path, headers, agent }).on('response', resolve).on('error', reject).end()
    })
  }

  async function askAny(asked: IncomingMessage): Promise<IncomingMessage> {
    const first = next++
    for (let tries = 0; ; tries++) {
      const { url = '' } = instances[(first + tries) % instances.length] ?? {}
      try {
        return await ask(asked, url)
      } catch (error) {
        const isUnconnected = (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
        if (tries + 1 >= instances.length || !(isUnconnected || asked.method === 'GET')) throw error
        retries[isUnconnected ? 'unconnected' : 'unanswered'] += 1
      }
    }
  }

  const server = createServer(async (asked, response) => {
    try {
      const answer = await askAny(asked)
      const { connection: _, 'keep-alive': __, ...headers } = answer.headers
      response.writeHead(answer.statusCode ?? 0, headers)
      answer.pipe(response)
    } catch {
      response.writeHead(502).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    agent.destroy()
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, retries }
}
