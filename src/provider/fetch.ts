// Calls to a provider: with a deadline, a size limit and no redirects.

import type { LookupFunction } from 'node:net'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { MenshenError } from '../errors.ts'
import { phrase, phrasedError, phraseIn } from '../text/text.ts'
import { withDeadline } from '../util/deadline.ts'
import type { ClientCertificate } from './mutual-tls.ts'

/** Some providers refuse requests without one. */
export const USER_AGENT = 'menshen'

/** A status and the parsed body: `undefined` if it is not JSON. */
export interface ProviderAnswer {
  readonly status: number
  readonly body: unknown
}

/** The request cannot have arrived, so it is safe to send it again. */
export class UnsentRequestError extends MenshenError {
  constructor(code: string, cause: unknown) {
    const message = phrase('no_connection_made', { code })
    super('provider_unreachable', phraseIn('en', message), cause, message)
  }
}

/** Header names are in lower case. */
export interface CallInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: URLSearchParams | string
}

/** The answer has been read completely and is within the limits. */
export type BoundedFetch = (url: string, init?: CallInit) => Promise<WholeAnswer>

/** Calls for one user, one after the other. Its connections carry no other user's calls. */
export interface Conversation extends Disposable {
  readonly fetch: BoundedFetch
}

export interface BoundedCalls {
  /** Each call has a new connection. */
  readonly fetch: BoundedFetch
  openConversation(): Conversation
  close(): void
}

/**
 * undici's `fetch` and `request` share connections between callers and have no deadline for the whole answer. Here each user has
 * separate connections. `lookup` can refuse the address of a host each time that a connection is opened. `certificate` is shown
 * to servers that ask for one.
 */
export function createBoundedFetch(
  timeoutMs: number,
  lookup?: LookupFunction,
  certificate?: ClientCertificate,
): BoundedCalls {
  // One connector for all, so that a TLS session can be resumed. HTTP/2 could mix requests of several users. The connector has a
  // deadline, because undici does not close a socket that is still connecting when its client is destroyed.
  const shown = certificate && { cert: certificate.cert.reveal(), key: certificate.key.reveal() }
  const connect = buildConnector({
    timeout: timeoutMs,
    keepAlive: false,
    allowH2: false,
    ...(lookup && { lookup }),
    ...shown,
  })
  const open = new Set<Conversation>()

  function openConversation(): Conversation {
    /** The latest connection to each origin. */
    const latest = new Map<string, Client>()
    const clients = new Set<Client>()

    function connectTo(origin: string): Client {
      const client = new Client(origin, { connect, headersTimeout: 0, bodyTimeout: 0 })
      clients.add(client)
      latest.set(origin, client)
      return client
    }

    const conversation: Conversation = {
      async fetch(url, init = {}) {
        const { origin, pathname, search } = new URL(url)
        const { method = 'GET', body = null } = init
        const request = {
          path: pathname + search,
          method,
          headers: { 'user-agent': USER_AGENT, accept: 'application/json', ...typeOf(body), ...init.headers },
          body: body === null ? null : String(body),
        }
        // The provider may have closed this connection, and then it is unknown whether a request arrived. A request that
        // changes something, such as redeeming a code, gets a new connection.
        let client = method === 'GET' ? latest.get(origin) : undefined
        const replaceConnection = (error: unknown) => {
          // An answer of the provider is final. Only a broken connection is replaced.
          if (error instanceof MenshenError) throw error
          return sendOnNewConnection()
        }
        const sendOnNewConnection = () => {
          client = connectTo(origin)
          return sendAndRead(client, request)
        }
        const abort = () => {
          const error = phrasedError('provider_unreachable', phrase('no_whole_answer', { ms: timeoutMs }))
          client?.destroy(error, () => {})
          throw error
        }
        try {
          const answer = client ? sendAndRead(client, request).catch(replaceConnection) : sendOnNewConnection()
          return await withDeadline(answer, timeoutMs, abort)
        } catch (error) {
          throw asMenshenError(error)
        }
      },

      [Symbol.dispose]() {
        open.delete(conversation)
        for (const client of clients) client.destroy(CONVERSATION_CLOSED, () => {})
      },
    }
    open.add(conversation)
    return conversation
  }

  return {
    openConversation,
    async fetch(url, init) {
      using conversation = openConversation()
      return await conversation.fetch(url, init)
    },
    close() {
      for (const conversation of open) conversation[Symbol.dispose]()
    },
  }
}

function typeOf(body: CallInit['body'] | null): Record<string, string> {
  return body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' } : {}
}

/** Created once: undici would create one with a stack for each connection that it closes. */
const CONVERSATION_CLOSED = new Error('the conversation is over')

export async function readAnswer(response: WholeAnswer): Promise<ProviderAnswer> {
  const type = response.headers.get('content-type') ?? ''
  const text = decode(await response.bytes())
  const body = text === undefined ? undefined : (readJson(text) ?? readForm(text, type))
  return { status: response.status, body }
}

/** Created once, because creating it takes longer than using it. */
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string | undefined {
  try {
    return STRICT_UTF8.decode(bytes)
  } catch {
    return undefined
  }
}

const LARGE_NUMBER = /\d{16}/
/** No real answer has this many lists and objects. A larger one may be nested too deeply for later code. */
const MAX_CONTAINERS = 1000

/** An integer that a number cannot hold stays text, because it is an id. */
export function readJson(text: string): unknown {
  try {
    // A reviver takes five times as long, and hardly any answer needs it. It throws if the nesting is too deep.
    if (!LARGE_NUMBER.test(text) && countContainers(text) <= MAX_CONTAINERS) return JSON.parse(text)
    return JSON.parse(text, reviveNumber as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

function countContainers(text: string): number {
  return (text.match(/[[{]/g) ?? []).length
}

/** TypeScript's types do not have the third parameter of a reviver yet. */
function reviveNumber(_key: string, value: unknown, { source = '' }: { source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? source : value
}

/** Some providers answer a token request with a form, sent as a form or as plain text. */
function readForm(text: string, type: string): unknown {
  if (!/^(application\/x-www-form-urlencoded|text\/(plain|html))\b/i.test(type)) return undefined
  if (!/^[\w.-]+=[^\s<>]*$/.test(text)) return undefined
  return Object.fromEntries(new URLSearchParams(text))
}

const UNSENT_ERROR_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

function asMenshenError(error: unknown): MenshenError {
  if (error instanceof MenshenError) return error
  // An error of the lookup is wrapped.
  if (error instanceof Error && error.cause instanceof MenshenError) return error.cause
  const code = innermostCode(error)
  if (UNSENT_ERROR_CODES.has(code)) return new UnsentRequestError(code, error)
  return phrasedError('provider_unreachable', phrase('connection_broke', { code }), error)
}

function innermostCode(error: unknown): string {
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] }
  if (cause !== undefined) return innermostCode(cause)
  if (errors?.[0] !== undefined) return innermostCode(errors[0])
  return typeof code === 'string' ? code : 'unknown'
}

// Sends one request over a connection and reads its whole answer, up to the size limit, and decompresses it.

/** The part of a Response that is used. Creating a whole one takes longer than reading the answer. */
export interface WholeAnswer extends Pick<Response, 'status' | 'bytes'> {
  readonly headers: Pick<Response['headers'], 'get'>
}

type Bytes = Uint8Array<ArrayBuffer>
type ReceivedHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

const ANSWER_LIMIT = 1024 * 1024
const NO_COMPRESSION = { 'accept-encoding': 'identity' }

/** Rejects with what broke the connection. */
async function sendAndRead(client: Client, { path, method, headers, body }: SentRequest): Promise<WholeAnswer> {
  const answered = Promise.withResolvers<ReceivedAnswer>()
  const request = { path, method: method as Dispatcher.HttpMethod, headers: { ...NO_COMPRESSION, ...headers }, body }
  client.dispatch(request, readingHandler(answered))
  const { status, received, chunks } = await answered.promise
  const whole = Buffer.concat(chunks)
  const coding = received['content-encoding']
  const bytes = coding === undefined ? whole : await decompress(whole, String(coding))
  return { status, headers: { get: name => headerOf(received, name) }, bytes: async () => bytes }
}

function headerOf(headers: ReceivedHeaders, name: string): string | null {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

interface SentRequest {
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
    // Without it, undici treats the handler as one of its old kind.
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
    onResponseError: (_controller, error) => reject(status === 0 ? error : interrupted(error)),
  }
}

const DECODERS = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

/** The request asks for no compression, but some providers always compress. */
async function decompress(bytes: Bytes, coding: string): Promise<Bytes> {
  const name = coding.trim().toLowerCase()
  if (name === 'identity' || name === '' || bytes.length === 0) return bytes
  const decode = DECODERS.get(name)
  if (!decode) throw new MenshenError('provider_answer', 'the response uses a compression that was not requested')
  try {
    return await decode(bytes, { maxOutputLength: ANSWER_LIMIT })
  } catch (error) {
    if (Object(error).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw new MenshenError('provider_answer', 'the response is not compressed as its headers say', error)
  }
}

/** The provider had begun to answer, so it has received the request. */
function interrupted(error: Error): Error {
  if (error instanceof MenshenError) return error
  return phrasedError('provider_unreachable', phrase('answer_broke'), error)
}

function tooLarge(): MenshenError {
  return phrasedError('provider_answer', phrase('answer_too_large', { bytes: ANSWER_LIMIT }))
}
