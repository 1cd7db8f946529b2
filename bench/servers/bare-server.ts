// The fastest that plain node:http can be: the same answer to every request. `node bench/servers/bare-server.ts PORT FILE`,
// where the file has what `bare-twin.ts` recorded.

import { createServer } from 'node:http'
import { readRecorded } from './recorded-answer.ts'

const [port = '', file = ''] = process.argv.slice(2)
const { status, rawHeaders, body, keepAliveMs } = readRecorded(file)

const server = createServer((_request, response) => {
  response.writeHead(status, rawHeaders)
  if (body.length > 0) response.end(body)
  else response.end()
})
server.keepAliveTimeout = keepAliveMs
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
