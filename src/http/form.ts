// Reads the form in a request, up to a limit and within a deadline.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { withDeadline } from '../util/deadline.ts'
import { hasBody } from './request.ts'

/** Why there is no form: too large, too slow, or a middleware has read the body before us. */
export type FormProblem = 'too_large' | 'too_slow' | 'already_read'

const BODY_LIMIT = 16 * 1024

/** A client that takes longer is cut off. */
export function readForm(
  request: IncomingMessage | Request,
  deadlineMs: number,
  onCutOff: () => void,
): Promise<URLSearchParams | FormProblem> {
  return isRequest(request) ? readRequest(request, deadlineMs, onCutOff) : readMessage(request, deadlineMs, onCutOff)
}

export function isRequest(request: IncomingMessage | Request): request is Request {
  return isHeaders(request.headers)
}

/** Recognizes Headers by their methods, because frameworks have their own classes. */
export function isHeaders(headers: IncomingHttpHeaders | Headers | undefined): headers is Headers {
  return typeof headers?.get === 'function'
}

async function readMessage(
  incoming: IncomingMessage,
  deadlineMs: number,
  onCutOff: () => void,
): Promise<URLSearchParams | FormProblem> {
  if (incoming.readableDidRead) return alreadyRead(incoming)
  if (!hasBody(incoming)) return new URLSearchParams()
  const deadline = setTimeout(() => {
    onCutOff()
    incoming.destroy()
  }, deadlineMs)
  try {
    // Leaving the loop must not destroy the connection, which the answer needs.
    return await gather(incoming.iterator({ destroyOnReturn: false }))
  } finally {
    clearTimeout(deadline)
  }
}

async function readRequest(
  { body, bodyUsed }: Request,
  deadlineMs: number,
  onCutOff: () => void,
): Promise<URLSearchParams | FormProblem> {
  if (bodyUsed || body?.locked) return 'already_read'
  if (!body) return new URLSearchParams()
  const reader = body.getReader()
  const cutOff = (): FormProblem => {
    onCutOff()
    return 'too_slow'
  }
  try {
    return await withDeadline(gather(chunksOf(reader)), deadlineMs, cutOff)
  } finally {
    reader.cancel().catch(() => {})
  }
}

async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
}

async function gather(chunks: AsyncIterable<Uint8Array>): Promise<URLSearchParams | FormProblem> {
  const kept: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > BODY_LIMIT) return 'too_large'
    kept.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(kept).toString())
}

/** A framework's parser leaves the parsed body on the request. */
function alreadyRead(request: IncomingMessage & { body?: unknown }): URLSearchParams | FormProblem {
  const form = formIn(request.body)
  if (form === undefined) return request.headers['content-length'] === '0' ? new URLSearchParams() : 'already_read'
  return form.toString().length > BODY_LIMIT ? 'too_large' : form
}

function formIn(body: unknown): URLSearchParams | undefined {
  if (typeof body === 'string' || body instanceof URLSearchParams) return new URLSearchParams(body)
  if (Buffer.isBuffer(body)) return new URLSearchParams(body.toString())
  if (typeof body !== 'object' || body === null) return undefined
  // Parsers turn a field that was sent several times into a list.
  const texts = Object.entries(body).flatMap(([name, value]) =>
    [value].flat().flatMap(text => (typeof text === 'string' ? [[name, text]] : [])),
  )
  return new URLSearchParams(texts)
}
