// Sends one request over a connection and reads its whole answer, uncompressed and not beyond the size limit.
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { Client, Dispatcher } from 'undici'
import { MenshenError } from '../../errors.ts'
import { phrase, phrasedError } from '../../phrases.ts'
import type { Deadline } from './call-deadline.ts'

/** As much of a Response as anybody needs here. To make a whole one takes longer than to read it. */
export interface WholeAnswer extends Pick<Response, 'status' | 'bytes'> {
  readonly headers: Pick<Response['headers'], 'get'>
}

type Bytes = Uint8Array<ArrayBuffer>
type ReceivedHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

const ANSWER_LIMIT = 1024 * 1024
const IDENTITY = { 'accept-encoding': 'identity' }

/** Rejects with what broke, or once the deadline has passed. After either, the connection is gone. */
export async function sendAndRead(
  client: Client,
  { path, method, headers, body }: SentRequest,
  deadline: Deadline,
): Promise<WholeAnswer> {
  const answered = Promise.withResolvers<ReceivedAnswer>()
  deadline.onPassed = error => {
    answered.reject(error)
    void client.destroy(error)
  }
  const request = { path, method: method as Dispatcher.HttpMethod, headers: { ...IDENTITY, ...headers }, body }
  client.dispatch(request, readingHandler(answered))
  const { status, received, chunks } = await answered.promise
  const whole = Buffer.concat(chunks)
  const coding = received['content-encoding']
  const bytes = coding === undefined ? whole : await uncompress(whole, String(coding))
  return { status, headers: { get: name => headerOf(received, name) }, bytes: async () => bytes }
}

function headerOf(headers: ReceivedHeaders, name: string): string | null {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

export interface SentRequest {
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

interface ReceivedAnswer {
  readonly status: number
  readonly received: ReceivedHeaders
  readonly chunks: readonly Buffer[]
}

function readingHandler({ resolve, reject }: PromiseWithResolvers<ReceivedAnswer>): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = []
  let status = 0
  let received: ReceivedHeaders = {}
  let size = 0
  return {
    // Without it undici takes the handler for one of the former kind.
    onRequestStart() {},
    onResponseStart(_controller, code, headers) {
      status = code
      received = headers
    },
    onResponseData(controller, chunk) {
      size += chunk.length
      if (size > ANSWER_LIMIT) controller.abort(tooLarge())
      else chunks.push(chunk)
    },
    onResponseEnd: () => resolve({ status, received, chunks }),
    onResponseError: (_controller, error) => reject(status === 0 ? error : brokenOff(error)),
  }
}

const DECODERS = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** We ask for none, but some compress for everybody. */
async function uncompress(bytes: Bytes, coding: string): Promise<Bytes> {
  const name = coding.trim().toLowerCase()
  if (name === 'identity' || name === '' || bytes.length === 0) return bytes
  const decode = DECODERS.get(name)
  if (!decode) throw new MenshenError('provider_answer', 'the answer is compressed in a way that nobody asked for')
  try {
    return await decode(bytes, { maxOutputLength: ANSWER_LIMIT })
  } catch (error) {
    if (Object(error).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw new MenshenError('provider_answer', 'the answer is not compressed as it says', error)
  }
}

/** Whoever has begun to answer has got the request. */
function brokenOff(error: Error): Error {
  if (error instanceof MenshenError) return error
  return phrasedError('provider_unreachable', phrase('answer_broke'), error)
}

function tooLarge(): MenshenError {
  return phrasedError('provider_answer', phrase('answer_too_large', { bytes: ANSWER_LIMIT }))
}
