// The application behind the proxies: pages of several sizes, and at /events a stream whose first event contains the time at which
// it was written. `node bench/servers/upstream.ts PORT`

import { createServer } from 'node:http'
import { preciseNow } from '../measure/precise-now.ts'

const PAGES = new Map([
  ['/1KB', page(1024)],
  ['/64KB', page(64 * 1024)],
  ['/10MB', page(10 * 1024 * 1024)],
])
/** By then the response headers are on their way, separately. */
const FIRST_EVENT_MS = 20

createServer((request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    setTimeout(() => response.write(`data: ${preciseNow()}\n\n`), FIRST_EVENT_MS)
    return
  }
  const body = PAGES.get(pathOf(request.url ?? ''))
  if (!body) return void response.writeHead(404).end()
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': body.length }).end(body)
}).listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('ready\n'))

/** The path, wherever the application is mounted. */
function pathOf(url: string): string {
  return url.slice(url.lastIndexOf('/')).replace(/\?+$/, '')
}

function page(bytes: number): Buffer {
  return Buffer.alloc(bytes, '<p>A page of an application.</p>\n')
}
