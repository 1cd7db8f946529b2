// The simplest proxy on the same undici that still streams both ways: no session, no rule, no identity.
// `node bench/servers/bare-proxy.ts PORT UPSTREAM`

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { Pool } from 'undici'

const [port = '', upstream = ''] = process.argv.slice(2)
const pool = new Pool(upstream, { connections: 256 })
const { host } = new URL(upstream)

createServer((request, response) => {
  const { method = 'GET', url: path = '/' } = request
  const headers = { ...endToEnd(request.headers), host }
  pool.dispatch(
    { method, path, headers, body: bodyOf(request) },
    {
      onRequestStart(controller) {
        response.once('close', () => {
          if (!response.writableFinished) controller.abort(new Error('gone'))
        })
      },
      onResponseStart(controller, status, received) {
        response.writeHead(status, endToEnd(received))
        response.on('drain', () => controller.resume())
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause()
      },
      onResponseEnd: () => void response.end(),
      onResponseError: () => void fail(response),
    },
  )
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))

function bodyOf(request: IncomingMessage): IncomingMessage | null {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  return length === undefined && coding === undefined ? null : request
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...rest } = headers
  return rest
}

function fail(response: ServerResponse): void {
  if (response.headersSent) response.destroy()
  else response.writeHead(502).end()
}
