// The fastest that plain node:http2 can be: the same answer to every request.
// `node bench/servers/bare-http2-server.ts PORT CERTIFICATE KEY FILE`, where the file has a recorded answer.

import { readFileSync } from 'node:fs'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { readRecorded } from './recorded-answer.ts'

const [port = '', cert = '', key = '', file = ''] = process.argv.slice(2)
const { rawHeaders, body } = readRecorded(file)

createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) })
  .on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {})
    stream.respond([...rawHeaders] as never, { endStream: body.length === 0 })
    if (body.length > 0) stream.end(body)
  })
  .listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
