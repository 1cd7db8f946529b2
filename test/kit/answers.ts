// The ways in which a scripted provider can answer, as data, and how each is delivered.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'

export interface PlainAnswer {
  status: number
  headers: OutgoingHttpHeaders
  body: string | Uint8Array
}

/** `normal`, `delay`, `held`, `cut` after headers or in the body, and `drip` do the provider's work; the others only answer. */
export type Answer =
  | { kind: 'normal' }
  /** The normal answer, after some time. */
  | { kind: 'delay'; ms: number }
  /** The normal answer, its work done at once, when the test lets it go. */
  | { kind: 'held'; until: Promise<void> }
  /** The normal answer, a byte each 100 ms. */
  | { kind: 'drip' }
  /** The connection is destroyed; the normal answer arrives not at all, as its head only, or half. */
  | { kind: 'cut'; when: 'at once' | 'after headers' | 'in the body' }
  | { kind: 'json'; body: unknown; status?: number; headers?: OutgoingHttpHeaders }
  /** A body that need not be JSON. */
  | { kind: 'bytes'; body: string | Uint8Array; status?: number; headers?: OutgoingHttpHeaders }
  /** Bytes in place of a whole HTTP response. */
  | { kind: 'wire'; bytes: string | Uint8Array }
  | { kind: 'redirect'; to: string; status?: number }
  /** Never answers. */
  | { kind: 'hang' }
  /** Status 200 and a body without end, as fast as it is read. */
  | { kind: 'endless' }

/** `work` does what a correct provider does for this call, and gives its answer. */
export async function deliver(answer: Answer, response: ServerResponse, work: () => PlainAnswer): Promise<void> {
  switch (answer.kind) {
    case 'normal':
      return send(response, work())
    case 'delay':
      await pause(answer.ms, undefined, { ref: false })
      return send(response, work())
    case 'held': {
      const held = work()
      await answer.until
      return send(response, held)
    }
    case 'drip':
      return drip(response, work())
    case 'cut':
      if (answer.when === 'at once') response.socket?.destroy()
      else cut(response, work(), answer.when === 'in the body')
      return
    case 'json':
      return send(response, json(answer.body, answer.status, answer.headers))
    case 'bytes':
      return send(response, { status: answer.status ?? 200, headers: answer.headers ?? {}, body: answer.body })
    case 'wire':
      response.socket?.end(answer.bytes)
      return
    case 'redirect':
      return send(response, redirect(answer.to, answer.status))
    case 'hang':
      return
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/json' })
      return stream(response, endlessSpace())
  }
}

export function json(body: unknown, status = 200, headers: OutgoingHttpHeaders = {}): PlainAnswer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}

export function redirect(to: string, status = 302): PlainAnswer {
  return { status, headers: { location: to }, body: '' }
}

function send(response: ServerResponse, { status, headers, body }: PlainAnswer): void {
  response.writeHead(status, headers).end(body)
}

async function drip(response: ServerResponse, { status, headers, body }: PlainAnswer): Promise<void> {
  response.writeHead(status, headers).flushHeaders()
  await stream(response, slowly(Buffer.from(body)))
}

function cut(response: ServerResponse, { status, headers, body }: PlainAnswer, inTheBody: boolean): void {
  const bytes = Buffer.from(body)
  response.writeHead(status, { ...headers, 'content-length': bytes.length }).flushHeaders()
  if (inTheBody) response.write(bytes.subarray(0, bytes.length / 2))
  response.socket?.destroySoon()
}

async function stream(response: ServerResponse, chunks: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
  // A reader who has had enough closes the connection, which ends the stream.
  await pipeline(Readable.from(chunks), response).catch(() => {})
}

async function* slowly(bytes: Buffer): AsyncGenerator<Buffer> {
  for (const byte of bytes) {
    yield Buffer.of(byte)
    await pause(100, undefined, { ref: false })
  }
}

/** White space, so that a JSON reader keeps hoping. */
function* endlessSpace(): Generator<Buffer> {
  const chunk = Buffer.alloc(64 * 1024, ' ')
  for (;;) yield chunk
}
