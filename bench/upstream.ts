// The application behind the proxies: a page of 1 KB, and at /events a stream whose first event says when it was written.
// `node bench/upstream.ts PORT`

import { createServer } from 'node:http'
import { preciseNow } from './precise-now.ts'

const PAGE = Buffer.from('<!doctype html>'.padEnd(1024, '.'))
/** The head of the answer is on its way alone by then. */
const FIRST_EVENT_MS = 20

createServer((request, response) => {
  if (request.url !== '/events') {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': PAGE.length }).end(PAGE)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  setTimeout(() => response.write(`data: ${preciseNow()}\n\n`), FIRST_EVENT_MS)
}).listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('ready\n'))
