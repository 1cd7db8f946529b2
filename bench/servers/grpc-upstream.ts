// A gRPC server that answers each unary call with its own message. `node bench/servers/grpc-upstream.ts PORT`
//
// It works on frames: a node:http2 server takes more time for a call than a bare proxy, which would then wait for it.

import { createServer } from 'node:net'
import { ACK, END_HEADERS, END_STREAM, FRAME, frame, hpack, PREFACE } from '../../test/kit/http2-frames.ts'
import { ALLOWANCE, createFrameReader } from '../measure/frame-reader.ts'

const [port = ''] = process.argv.slice(2)
const HEAD = hpack([
  [':status', '200'],
  ['content-type', 'application/grpc'],
])
const TRAILERS = hpack([['grpc-status', '0']])

createServer(socket => {
  socket.on('error', () => {})
  const messages = new Map<number, Buffer[]>()
  let answers: Buffer[] = []

  function answer(stream: number): void {
    answers.push(
      frame(FRAME.headers, END_HEADERS, stream, HEAD),
      frame(FRAME.data, 0, stream, Buffer.concat(messages.get(stream) ?? [])),
      frame(FRAME.headers, END_HEADERS | END_STREAM, stream, TRAILERS),
    )
    messages.delete(stream)
  }

  const read = createFrameReader((type, flags, stream, payload) => {
    if (type === FRAME.settings && flags !== ACK) answers.push(frame(FRAME.settings, ACK, 0))
    if (type === FRAME.ping && flags !== ACK) answers.push(frame(FRAME.ping, ACK, 0, payload))
    if (type === FRAME.headers) messages.set(stream, [])
    if (type === FRAME.data) messages.get(stream)?.push(payload)
    if ((type === FRAME.headers || type === FRAME.data) && flags & END_STREAM) answer(stream)
  }, PREFACE.length)
  socket.write(Buffer.concat([frame(FRAME.settings, 0, 0), ALLOWANCE]))
  socket.on('data', (chunk: Buffer) => {
    read(chunk)
    if (answers.length > 0) socket.write(Buffer.concat(answers))
    answers = []
  })
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
