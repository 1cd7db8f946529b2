// Sends one request over a connection and reads its whole answer, uncompressed and not beyond the size limit.
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { Client, Dispatcher } from 'undici'
import { MenshenError } from '../../errors.ts'

export interface ReadAnswer {
  readonly status: number
  readonly headers: [name: string, value: string][]
  readonly bytes: Uint8Array<ArrayBuffer>
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

const ANSWER_LIMIT = 1024 * 1024
const IDENTITY = { 'accept-encoding': 'identity' }

/** Rejects with what broke, or once the signal is aborted. After either, the connection is gone. */
export async function sendAndRead(
  client: Client,
  { path, method, headers, body }: SentRequest,
  signal: AbortSignal,
): Promise<ReadAnswer> {
  const answered = Promise.withResolvers<ReceivedAnswer>()
  const giveUp = () => {
    answered.reject(signal.reason)
    void client.destroy()
  }
  signal.addEventListener('abort', giveUp)
  try {
    const request = { path, method: method as Dispatcher.HttpMethod, headers: { ...IDENTITY, ...headers }, body }
    client.dispatch(request, readingHandler(answered))
    const { status, received, chunks } = await answered.promise
    const bytes = await uncompress(Buffer.concat(chunks), received['content-encoding'])
    return { status, headers: pairsOf(received), bytes: new Uint8Array(bytes) }
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

export interface SentRequest {
  readonly path: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

interface ReceivedAnswer {
  readonly status: number
  readonly received: Headers
  readonly chunks: readonly Buffer[]
}

function readingHandler({ resolve, reject }: PromiseWithResolvers<ReceivedAnswer>): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = []
  let status = 0
  let received: Headers = {}
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
async function uncompress(bytes: Buffer, coding: string | string[] = 'identity'): Promise<Buffer> {
  const name = String(coding).trim().toLowerCase()
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
  return new MenshenError('provider_unreachable', 'the connection broke in the midst of the answer', error)
}

function tooLarge(): MenshenError {
  return new MenshenError('provider_answer', `the answer is larger than ${ANSWER_LIMIT} bytes`)
}

function pairsOf(headers: Headers): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  )
}
