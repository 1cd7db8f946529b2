// Writes a Response to a node:http response: whole if all of it is there, else as it comes.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { drain } from './drain.ts'
import { REQUEST_ID } from './request-id.ts'

type Reader = ReadableStreamDefaultReader<Uint8Array>
type Read = Awaited<ReturnType<Reader['read']>>

interface Beginning {
  readonly chunks: readonly Uint8Array[]
  /** What is still being waited for; absent if that was all. */
  readonly next?: Promise<Read>
}

/** What is gathered before it is sent. */
const MOST_AT_ONCE = 256 * 1024

export async function send(response: ServerResponse, answer: Response, requestId: string): Promise<void> {
  const { 'set-cookie': _, ...plain } = Object.fromEntries(answer.headers)
  const cookies = answer.headers.getSetCookie()
  const headers = { ...plain, ...(cookies.length > 0 ? { 'set-cookie': cookies } : {}), [REQUEST_ID]: requestId }
  const reader: Reader | undefined = answer.body?.getReader()
  const { chunks, next }: Beginning = reader ? await readBeginning(reader) : { chunks: [] }
  if (reader && next) return sendOn(response, answer.status, headers, reader, { chunks, next })
  const body = Buffer.concat(chunks)
  response.writeHead(answer.status, { ...headers, 'content-length': body.length })
  response.end(body)
  drain(response.req)
}

/** What is at hand: nearly always all of it. */
async function readBeginning(reader: Reader): Promise<Beginning> {
  const chunks: Uint8Array[] = []
  for (let size = 0; ; ) {
    const next = reader.read()
    const read = size < MOST_AT_ONCE ? await Promise.race([next, nextTurn()]) : undefined
    if (!read) return { chunks, next }
    if (read.done) return { chunks }
    chunks.push(read.value)
    size += read.value.length
  }
}

async function sendOn(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  reader: Reader,
  beginning: Required<Beginning>,
): Promise<void> {
  const stop = () => void reader.cancel().catch(() => {})
  // Whoever has gone does not come to ask for it.
  beginning.next.catch(() => {})
  response.once('close', stop)
  response.writeHead(status, headers)
  response.flushHeaders()
  drain(response.req)
  if (response.req.method === 'HEAD') return void response.end()
  try {
    await pipeline(Readable.from(chunksOf(reader, beginning)), response)
  } catch (error) {
    // Whoever has gone needs no more of it.
    if (!response.destroyed) throw error
  }
}

async function* chunksOf(reader: Reader, { chunks, next }: Required<Beginning>): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (let read = await next; !read.done; read = await reader.read()) yield read.value
}

/**
 * Asks for the body. Not while an earlier answer of the same connection is still on its way: Node would put the words
 * between the head and the body of this one.
 */
export function sayContinue(response: ServerResponse): void {
  if (response.socket) response.writeContinue()
}
