// Writes a Response to a node:http response: in one piece if all of it is available, otherwise as it arrives.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { REQUEST_ID } from '../observe/observed-request.ts'
import { Http2Response } from '../server/http2-messages.ts'
import { destroyAfter } from '../util/deadline.ts'
import { STATUS_CODES } from '../util/node-http.ts'
import { addCookies } from './add-cookies.ts'
import { newRequestId } from './request.ts'

type Reader = ReadableStreamDefaultReader<Uint8Array>
type Read = Awaited<ReturnType<Reader['read']>>

interface FirstChunks {
  readonly chunks: readonly Uint8Array[]
  /** The read that is still pending; absent after the last chunk. */
  readonly next?: Promise<Read>
}

/** Bytes that are gathered before they are sent. */
const MAX_BUFFERED_BYTES = 256 * 1024

export async function send(
  response: ServerResponse,
  answer: Response,
  requestId: string,
  sharedBody?: Uint8Array,
): Promise<void> {
  const { 'set-cookie': _, ...plain } = Object.fromEntries(answer.headers)
  const cookies = answer.headers.getSetCookie()
  const headers = { ...plain, ...(cookies.length > 0 ? { 'set-cookie': cookies } : {}), [REQUEST_ID]: requestId }
  const reader: Reader | undefined = sharedBody ? undefined : answer.body?.getReader()
  const { chunks, next }: FirstChunks = reader ? await readFirstChunks(reader) : { chunks: [] }
  // The client left while the answer was prepared: its `close` has been.
  if (isClosed(response)) return void reader?.cancel().catch(() => {})
  if (reader && next) return sendRest(response, answer.status, headers, reader, { chunks, next })
  const body = sharedBody ?? Buffer.concat(chunks)
  if (!takesBody(response, body.length)) return
  // RFC 9110, 8.6: a 204 has none.
  const length = answer.status === 204 ? {} : { 'content-length': body.length }
  response.writeHead(answer.status, { ...headers, ...length })
  response.end(body)
  drain(response.req)
}

/** False if the client has left too much unread, and gets nothing more for now. */
export function takesBody(response: ServerResponse, bytes: number): boolean {
  return !(response instanceof Http2Response) || response.admits(bytes)
}

/** The chunks that are available without waiting: nearly always all of them. */
async function readFirstChunks(reader: Reader): Promise<FirstChunks> {
  const chunks: Uint8Array[] = []
  for (let size = 0; ; ) {
    const next = reader.read()
    const read = size < MAX_BUFFERED_BYTES ? await Promise.race([next, nextTurn()]) : undefined
    if (!read) return { chunks, next }
    if (read.done) return { chunks }
    chunks.push(read.value)
    size += read.value.length
  }
}

async function sendRest(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  reader: Reader,
  firstChunks: Required<FirstChunks>,
): Promise<void> {
  let isDisconnected = false
  let resumeWriting = () => {}
  // The client has left and does not read it.
  firstChunks.next.catch(() => {})
  response.once('close', () => {
    isDisconnected = true
    resumeWriting()
    reader.cancel().catch(() => {})
  })
  // Once for all chunks, and not chained: middleware that compresses passes it on to a stream of its own, and cannot remove it there.
  response.on('drain', () => resumeWriting())
  response.writeHead(status, headers)
  response.flushHeaders()
  drain(response.req)
  if (response.req.method === 'HEAD') return void response.end()
  try {
    for await (const chunk of chunksOf(reader, firstChunks)) {
      if (isDisconnected || response.destroyed) return
      if (response.write(chunk) || isDisconnected) continue
      await new Promise<void>(resolve => {
        resumeWriting = resolve
      })
    }
    if (!isDisconnected && !response.destroyed) response.end()
  } catch {
    // The client learns that the answer is incomplete; if it has left, it needs no more of it.
    response.destroy()
  }
}

/** Node's own response of HTTP/2, which an application may have, does not tell it itself. */
function isClosed(response: ServerResponse & { readonly stream?: Pick<Duplex, 'destroyed'> }): boolean {
  return response.destroyed || response.stream?.destroyed === true
}

/** Calls the listener when the response has closed, also if that was before. */
export function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.destroyed) process.nextTick(listener)
  else response.once('close', listener)
}

async function* chunksOf(reader: Reader, { chunks, next }: Required<FirstChunks>): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (let read = await next; !read.done; read = await reader.read()) yield read.value
}

/** The counter of an answer's bytes: in HTTP/1.1 its connection, which answers one request after the other. */
export function sentBy(response: ServerResponse): { readonly bytesWritten: number } {
  return response instanceof Http2Response ? response : response.req.socket
}

/** Discards the body of a request, so that the next request on the connection is read; its deadline is the client's. */
export function drain(incoming: IncomingMessage): void {
  if (!incoming.complete) incoming.resume()
}

// For an application: sends our own answer in place of its own.

/** How long a refused client may take to read the answer and to close. */
const CLOSE_MS = 1000

/**
 * Writes the answer to a response of node:http, as a stream if it is one, and keeps the cookies that the application has set. Or
 * writes it to the socket of an `upgrade` event, and closes the socket.
 */
export function sendAnswer(target: ServerResponse | Duplex, answer: Response): Promise<void> {
  return isResponse(target) ? sendToResponse(target, answer) : sendToSocket(target, answer)
}

function isResponse(target: ServerResponse | Duplex): target is ServerResponse {
  return 'writeHead' in target
}

function sendToResponse(response: ServerResponse, answer: Response): Promise<void> {
  const cookies = answer.headers.getSetCookie()
  addCookies(response, cookies)
  if (cookies.length > 0) answer.headers.delete('set-cookie')
  return send(response, answer, answer.headers.get(REQUEST_ID) ?? newRequestId())
}

/** Discards further input: unread bytes would make the operating system drop our answer. */
async function sendToSocket(socket: Duplex, answer: Response): Promise<void> {
  socket.on('error', () => socket.destroy()).resume()
  const body = Buffer.from(await answer.arrayBuffer())
  if (socket.destroyed) return
  const lines = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, 'connection: close']
  for (const [name, value] of answer.headers) if (!FRAMING_HEADERS.has(name)) lines.push(`${name}: ${value}`)
  const head = Buffer.from(`${[...lines, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n`, 'latin1')
  socket.end(Buffer.concat([head, body]))
  destroyAfter(socket, CLOSE_MS)
}

const FRAMING_HEADERS = new Set(['connection', 'content-length', 'transfer-encoding'])
