// Frames of HTTP/2 that are nearly right: valid ones, changed ones, and nonsense, on many connections.

import { setTimeout as pause } from 'node:timers/promises'
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  FRAME,
  type FrameConnection,
  frame,
  hpack,
  number,
  openFrames,
  requestHeaders,
} from '../kit/http2-frames.ts'
import type { Random } from './random.ts'

type Cleanup = Parameters<typeof openFrames>[0]

const PATHS = [
  '/',
  '/login',
  '/x?y=1',
  '/_menshen/me',
  '*',
  '',
  '/a b',
  '//x',
  'http://other/',
  `/${'long/'.repeat(200)}`,
]
const METHODS = ['GET', 'POST', 'HEAD', 'OPTIONS', 'CONNECT', 'PRI', 'G T', '', 'TRACE']
const HEADERS: readonly Header[] = [
  ['content-length', '5'],
  ['content-length', '-1'],
  ['Content-Type', 'text/plain'],
  ['connection', 'close'],
  ['transfer-encoding', 'chunked'],
  ['upgrade', 'websocket'],
  ['te', 'gzip'],
  ['host', 'other.example'],
  ['x-bad', 'a\r\nx-injected: 1'],
  ['x-nul', 'a\0b'],
  ['bad name', '1'],
  ['', 'empty'],
  [':late', 'pseudo'],
  [':path', '/twice'],
  ['cookie', 'a=1'],
  ['content-type', 'application/grpc'],
  ['expect', '100-continue'],
  ['x-long', 'x'.repeat(20_000)],
]

type Header = readonly [name: string, value: string]

function anyFrame(random: Random, stream: number, always: readonly Header[]): Buffer {
  const flags = random.below(4) === 0 ? random.below(256) : 0
  const bytes = () => Buffer.from(Array.from({ length: random.below(40) }, () => random.below(256)))
  switch (random.below(12)) {
    case 0:
      return frame(FRAME.data, flags | random.below(2), stream, bytes())
    case 1:
      return frame(FRAME.priority, flags, stream, number(random.below(9)))
    case 2:
      return frame(FRAME.reset, flags, stream, number(random.below(14)))
    case 3:
      return frame(
        FRAME.settings,
        flags,
        random.below(3) === 0 ? stream : 0,
        Buffer.from([0, random.below(9), ...number(random.below(2 ** 31))]),
      )
    case 4:
      return frame(FRAME.settings, ACK, 0)
    case 5:
      return frame(FRAME.ping, flags, 0, Buffer.alloc(8))
    case 6:
      return frame(FRAME.window, flags, random.below(2) === 0 ? 0 : stream, number(random.below(2 ** 31)))
    case 7:
      return frame(FRAME.continuation, flags, stream, bytes())
    case 8:
      return frame(FRAME.goaway, flags, 0, Buffer.concat([number(stream), number(random.below(14))]))
    case 9:
      return frame(random.below(256), flags, stream, bytes())
    default:
      return headersFrame(random, stream, always)
  }
}

function headersFrame(random: Random, stream: number, always: readonly Header[]): Buffer {
  const more = [...always, ...Array.from({ length: random.below(4) }, () => random.pick(HEADERS))]
  const head = hpack(requestHeaders(random.pick(PATHS), more, random.pick(METHODS)))
  const flags = (random.below(3) > 0 ? END_HEADERS : 0) | (random.below(2) === 0 ? END_STREAM : 0)
  // One byte of the compressed head is another.
  if (random.below(5) === 0) head[random.below(head.length)] = random.below(256)
  return frame(FRAME.headers, flags, stream, head)
}

/** One connection, until it is closed or has sent enough. */
async function attack(connection: FrameConnection, random: Random, always: readonly Header[]): Promise<void> {
  let stream = 1
  const count = 5 + random.below(60)
  for (let n = 0; n < count; n++) {
    const next = anyFrame(random, random.below(3) === 0 ? Math.max(1, stream - 2 * random.below(5)) : stream, always)
    stream += 2
    const bytes = random.below(20) === 0 ? next.subarray(0, random.below(next.length)) : next
    if (!(await connection.write(bytes))) return
  }
  if (random.below(2) === 0) await pause(2)
}

/** `always` are headers of every request, such as the cookie of a user. */
export async function fuzzHttp2(
  t: Cleanup,
  url: string,
  random: Random,
  connections: number,
  always: readonly Header[] = [],
): Promise<void> {
  for (let n = 0; n < connections; n++) {
    const connection = await openFrames(t, url)
    await attack(connection, random, always)
    if (random.below(2) === 0) connection.socket.destroy()
    else connection.socket.end()
  }
}
