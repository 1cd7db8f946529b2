// The fastest that plain node:http can be: the same answer to every request. `node bench/servers/bare-server.ts PORT FILE`,
// where the file has what `bare-twin.ts` recorded.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Recorded } from './bare-twin.ts'

const [port = '', file = ''] = process.argv.slice(2)
const { status, rawHeaders, body, keepAliveMs }: Recorded = JSON.parse(readFileSync(file, 'utf8'))
const bytes = Buffer.from(body, 'base64')

const server = createServer((_request, response) => {
  response.writeHead(status, rawHeaders)
  if (bytes.length > 0) response.end(bytes)
  else response.end()
})
server.keepAliveTimeout = keepAliveMs
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
