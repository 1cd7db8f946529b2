// Requests that Node cannot parse. If the head is too large, the request gets a page, a log line and a request id. Any other one, and
// one behind a request that still waits for its answer, gets what Node would send. A head that Node has read but that is too large
// for us (head-limit.ts) is answered like one that is too large for Node.

import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { readTarget } from '../access/request-path.ts'
import { errorFields } from '../errors.ts'
import { errorAnswer } from '../http/answers.ts'
import type { RequestHead } from '../http/request.ts'
import { send, sentBy } from '../http/send.ts'
import { observedFields } from '../observe/observed-request.ts'
import { destroyAfter } from '../util/deadline.ts'
import { IncomingMessage, pendingAnswer, ServerResponse, STATUS_CODES } from '../util/node-http.ts'
import type { GatewayContext } from './context.ts'

export type ClientErrorListener = (error: Error, socket: Duplex) => void

interface ParseError extends Error {
  readonly code?: string
  /** The last bytes that arrived, with the beginning of the head if that came with them. */
  readonly rawPacket?: Buffer
}

const STATUSES: Readonly<Record<string, number>> = {
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
}

/** How long the client may take to read the answer. */
const CLOSE_MS = 1000

export function createClientErrorListener(context: GatewayContext): ClientErrorListener {
  /** Each further packet of the same head raises another error. */
  const answered = new WeakSet<Duplex>()
  return (error: ParseError, stream) => {
    if (answered.has(stream)) return
    answered.add(stream)
    const socket = stream as Socket
    const pending = pendingAnswer(socket)
    // Nothing must come between the head and the body of an answer that is being sent.
    if (!socket.writable || pending?.headersSent) return void socket.destroy()
    socket.on('error', () => socket.destroy())
    destroyAfter(socket, CLOSE_MS)
    if (error.code === 'HPE_HEADER_OVERFLOW' && !pending) {
      try {
        return answerOnSocket(context, readHead(socket, error.rawPacket))
      } catch (problem) {
        // An error that is thrown from here ends the process.
        context.observe.report('request_failed', { ...errorFields(problem), method: '', path: '' })
      }
    }
    const status = STATUSES[error.code ?? ''] ?? 400
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`)
  }
}

/** The headers that the choice of an answer depends on. */
const NEGOTIATION_HEADERS = new Set(['accept', 'accept-language', 'user-agent', 'x-forwarded-for', 'x-requested-with'])
const MAX_HEADER_LENGTH = 1000

/** Reads the lines that are complete. */
function readHead(socket: Socket, packet?: Buffer): IncomingMessage {
  const incoming = new IncomingMessage(socket)
  const [first = '', ...lines] = (packet?.toString('latin1') ?? '').split('\r\n').slice(0, -1)
  const [, method = 'GET', url = '/'] = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(first) ?? []
  incoming.method = method
  incoming.url = url
  const raw = lines.flatMap(line => /^([\w-]+):[ \t]*([\t\x20-\x7e]*)$/.exec(line)?.slice(1) ?? [])
  incoming.headers = chosenHeaders(raw)
  return incoming
}

/** `raw` alternates names and values. */
export function chosenHeaders(raw: readonly string[]): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {}
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    if (value.length > MAX_HEADER_LENGTH || !(NEGOTIATION_HEADERS.has(name) || name.startsWith('sec-fetch-'))) continue
    // A proxy may add its own field to the client's.
    if (name === 'x-forwarded-for' && headers[name] !== undefined) headers[name] += `, ${value}`
    else headers[name] ??= value
  }
  return headers
}

function answerOnSocket(context: GatewayContext, incoming: IncomingMessage): void {
  const response = lastResponse(incoming)
  response.once('finish', () => incoming.socket.end())
  answerLargeHead(context, incoming, response)
}

/** For a connection that Node's server does not read from: it can carry only this one answer. */
export function lastResponse(incoming: IncomingMessage): ServerResponse {
  const response = new ServerResponse(incoming)
  response.shouldKeepAlive = false
  response.assignSocket(incoming.socket)
  incoming.socket.resume()
  return response
}

export function answerLargeHead(context: GatewayContext, head: RequestHead, response: ServerResponse): void {
  const { observed, answer } = refuseLargeHead(context, head)
  response.once('close', () => context.observe.ended(observed, response.statusCode, sentBy(response)))
  Promise.resolve(send(response, answer.response, observed.requestId)).catch(() => response.destroy())
}

/** The answer to a request whose head is too large. The caller sends it, and ends the observation. */
export function refuseLargeHead({ pages, observe }: GatewayContext, head: RequestHead) {
  const { method = 'GET', url = '', headers, socket } = head
  const observed = observe.beginRequest({ method, headers, socket })
  const { path, search } = readTarget(url) ?? { path: '', search: '' }
  observed.path = path
  observed.outcome = 'refused'
  observe.report('head_too_large', { ...observedFields(observed), method, path })
  const request = { method, path, search, headers, address: socket.remoteAddress ?? '', observed }
  return { observed, answer: errorAnswer(pages, request, 'headers_too_large', { outcome: 'refused' }) }
}
