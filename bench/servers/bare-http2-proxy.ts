// The simplest proxy on node:http2 that streams both ways, with trailers: no session, no rule, no identity.
// `node bench/servers/bare-http2-proxy.ts PORT CERTIFICATE KEY UPSTREAM`

import { readFileSync } from 'node:fs'
import { connect, createSecureServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'

const [port = '', cert = '', key = '', upstream = ''] = process.argv.slice(2)
const session = connect(upstream)

createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) })
  .on('stream', (stream: ServerHttp2Stream, headers) => {
    const outgoing = session.request(headers, { endStream: stream.endAfterHeaders })
    let trailers: IncomingHttpHeaders = {}
    stream.on('error', () => outgoing.close())
    outgoing.on('error', () => stream.close())
    outgoing.on('response', received => {
      stream.respond(received, { waitForTrailers: true })
      outgoing.pipe(stream)
    })
    outgoing.on('trailers', received => {
      trailers = received
    })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    if (!stream.endAfterHeaders) stream.pipe(outgoing)
  })
  .listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
