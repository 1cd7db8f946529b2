// A gRPC server that answers each unary call with its own message. `node bench/servers/grpc-upstream.ts PORT`

import { createServer, type ServerHttp2Stream } from 'node:http2'

const [port = ''] = process.argv.slice(2)

createServer()
  .on('stream', (stream: ServerHttp2Stream) => {
    const chunks: Buffer[] = []
    stream.on('error', () => {})
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.concat(chunks))
    })
  })
  .listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
