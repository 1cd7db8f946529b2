// Serves the provider's routes with node:http. @hono/node-server is not used: it takes whichever Hono the application has
// installed, and fails to load with an older one.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

export const MAX_BODY_BYTES = 16 * 1024

type Fetch = (request: Request) => Response | Promise<Response>

export function createNodeListener(fetch: Fetch): RequestListener {
  return (request, response) => {
    answer(fetch, request, response).catch(() => response.destroy())
  }
}

async function answer(fetch: Fetch, message: IncomingMessage, response: ServerResponse): Promise<void> {
  const request = await toRequest(message)
  if (!request) return void response.writeHead(400).end()
  const { status, headers, body } = await fetch(request)
  response.setHeaders(headers)
  // No answer here is longer than a page.
  response.writeHead(status).end(body ? Buffer.from(await new Response(body).arrayBuffer()) : undefined)
}

/** `undefined` if the address or the method is not valid. */
async function toRequest(message: IncomingMessage): Promise<Request | undefined> {
  const { method = 'GET', url = '', headers: given } = message
  const address = URL.parse(url.startsWith('/') ? `http://${given.host}${url}` : url)
  // A Request cannot have these two methods.
  if (!address || method === 'TRACE' || method === 'CONNECT') return undefined
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(message.headersDistinct))
    for (const value of values) headers.append(name, value)
  const body = hasShortBody(message) ? Buffer.concat(await message.toArray()) : null
  return new Request(address, { method, headers, body })
}

/** The routes refuse a longer body, or one of unknown length, without reading it. */
function hasShortBody({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD' || headers['transfer-encoding'] !== undefined) return false
  return Number(headers['content-length'] ?? 0) <= MAX_BODY_BYTES
}
