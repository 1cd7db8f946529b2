// HTTP/2 by its frames, for what no client would send.

import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const

export const END_STREAM = 1
export const END_HEADERS = 4
export const ACK = 1

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream >>> 0, 5)
  return Buffer.concat([head, payload])
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

function hpackInteger(value: number, prefix: number): Buffer {
  const most = 2 ** prefix - 1
  if (value < most) return Buffer.from([value])
  const bytes = [most]
  let rest = value - most
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
  return Buffer.from([...bytes, rest])
}

export const INDEXED = 0x40

/** Each as a literal, its bytes as they are; with INDEXED the other side remembers it, the newest by 62. */
export function hpack(headers: readonly (readonly [name: string, value: string])[], indexing = 0): Buffer {
  const text = (value: string) => {
    const bytes = Buffer.from(value, 'latin1')
    return Buffer.concat([hpackInteger(bytes.length, 7), bytes])
  }
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([indexing]), text(name), text(value)]))
}

export function requestHeaders(path: string, more: readonly (readonly [string, string])[] = [], method = 'GET') {
  return [[':method', method], [':scheme', 'https'], [':path', path], [':authority', 'localhost'], ...more] as const
}

/** A request without a body. */
export function requestFrame(stream: number, ...head: Parameters<typeof requestHeaders>): Buffer {
  return frame(FRAME.headers, END_STREAM | END_HEADERS, stream, hpack(requestHeaders(...head)))
}

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** A connection with its preface sent. It ends with the test. */
export async function openFrames(t: Pick<TestContext, 'after'>, url: string, settings: Buffer = Buffer.alloc(0)) {
  const { port } = new URL(url)
  const socket = connect({ port: Number(port), host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'secureConnect')
  socket.write(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0, settings)]))
  return new FrameConnection(socket)
}

export class FrameConnection {
  readonly socket: TLSSocket
  readonly frames: Frame[] = []
  #rest: Buffer = Buffer.alloc(0)

  constructor(socket: TLSSocket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk])
      this.#read()
    })
  }

  get isClosed(): boolean {
    return this.socket.destroyed || this.socket.readableEnded
  }

  /** The code of the GOAWAY that came, if one did. */
  get goaway(): number | undefined {
    return this.frames.findLast(({ type }) => type === FRAME.goaway)?.payload.readUInt32BE(4)
  }

  /** The code by which a stream was reset. */
  resetOf(stream: number): number | undefined {
    return this.frames.find(each => each.type === FRAME.reset && each.stream === stream)?.payload.readUInt32BE(0)
  }

  hasEnded(stream: number): boolean {
    return this.frames.some(
      each => each.stream === stream && (each.type === FRAME.reset || (each.flags & END_STREAM) !== 0),
    )
  }

  /** False if the connection is closed. */
  async write(bytes: Buffer): Promise<boolean> {
    if (this.isClosed || !this.socket.writable) return false
    if (!this.socket.write(bytes))
      await Promise.race([once(this.socket, 'drain'), once(this.socket, 'close')]).catch(() => {})
    return !this.isClosed
  }

  #read(): void {
    for (; this.#rest.length >= 9; ) {
      const length = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < 9 + length) return
      const [type, flags, stream] = [this.#rest[3] ?? 0, this.#rest[4] ?? 0, this.#rest.readUInt32BE(5)]
      this.frames.push({ type, flags, stream, payload: this.#rest.subarray(9, 9 + length) })
      this.#rest = this.#rest.subarray(9 + length)
    }
  }
}
