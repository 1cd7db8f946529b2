// A WebSocket of an admitted caller: opens one to the application, and joins the two.

import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Report } from '../events.ts'
import { callerOf, type Identification, ownerOf, type ProxyRequest, type UpstreamFailure } from '../http/caller.ts'
import { type ObservedRequest, REQUEST_ID, requestFields } from '../observe/observed-request.ts'
import { destroyAfter } from '../util/deadline.ts'
import type { HeaderList } from '../util/header-list.ts'
import { request as httpRequest, STATUS_CODES } from '../util/node-http.ts'
import type { SlotHolder } from './capacity.ts'
import { failureEvent } from './forward.ts'
import type { RequestHeaders } from './request-headers.ts'
import { clearsCookies, type ResponseHeaders } from './response-headers.ts'
import { pathForUpstream, prefixedCookie } from './stripped-prefix.ts'
import { withChanges } from './upstream-headers.ts'
import type { ExchangedTokenFor, Upstream } from './upstreams.ts'

/** Opens the socket to the application; from then on it is one of the streams. */
export type OpenTunnel = (
  upstream: Upstream,
  request: ProxyRequest,
  identification: Identification,
  incoming: IncomingMessage,
  /** What the browser has sent already. */
  head: Buffer,
) => Promise<void>

export interface TunnelOptions {
  readonly requestHeaders: RequestHeaders
  readonly exchangedToken: ExchangedTokenFor
  readonly responseHeaders: ResponseHeaders
  isOwnCookie(setCookie: string): boolean
  watch(request: ProxyRequest, identification: Identification, close: () => void): () => void
  /** Open sockets would keep the process from ending. */
  readonly lifecycle: { readonly closing: boolean }
  readonly report: Report
  /** The head of the application's answer has arrived; with 0 there is none. */
  answered(observed: ObservedRequest, status: number): void
  /** Refuses the socket in place of an application that failed. It may be destroyed already. */
  refuseFailure(
    failure: UpstreamFailure | 'closing',
    request: ProxyRequest,
    identification: Identification,
    socket: Socket,
  ): void
}

interface Tunnel {
  readonly upstream: Upstream
  readonly request: ProxyRequest
  readonly identification: Identification
  readonly socket: Socket
  readonly head: Buffer
  /** For the application. */
  readonly headers: string[]
}

export function createTunnels(options: TunnelOptions): OpenTunnel {
  return async (upstream, request, identification, incoming, head) => {
    const { socket } = incoming
    const exchanged =
      upstream.tokenExchange &&
      (await options.exchangedToken(upstream, upstream.tokenExchange, request, identification))
    if (exchanged === 'failed') return options.refuseFailure('no_token', request, identification, socket)
    const headers = await options.requestHeaders(upstream, incoming, request, identification, exchanged?.token)
    // The sockets that were open have been closed in the meantime.
    if (options.lifecycle.closing) return options.refuseFailure('closing', request, identification, socket)
    if (!socket.destroyed) enter(options, { upstream, request, identification, socket, head, headers })
  }
}

function enter(options: TunnelOptions, tunnel: Tunnel): void {
  const { upstream, request, identification, socket } = tunnel
  request.observed.upstream = upstream.destination.origin
  const holder: SlotHolder = {
    index: 0,
    stage: 'outside',
    isEndless: true,
    owner: ownerOf(request, identification),
    checkSlow: () => undefined,
    waitsForClient: () => socket.writableNeedDrain,
    cutOff: () => void socket.destroy(),
    reject(reason) {
      options.report('upstream_busy', { ...tunnelFields(tunnel), reason })
      if (reason === 'holds_most_streams') socket.destroy()
      options.refuseFailure('busy', request, identification, socket)
    },
    start() {
      const forget = options.watch(request, identification, () => socket.destroy())
      socket.once('close', () => {
        forget()
        upstream.capacity.leave(holder)
      })
      connect(options, tunnel)
    },
  }
  upstream.capacity.enterAsStream(holder)
}

function tunnelFields({ upstream, request, identification }: Tunnel) {
  const { method, path } = request
  return {
    ...requestFields(request, callerOf(identification)),
    method,
    path,
    upstream: upstream.destination.origin,
  }
}

function connect(options: TunnelOptions, tunnel: Tunnel): void {
  const { upstream, request, identification, socket, head, headers } = tunnel
  const { cookies } = identification
  const { observed, path } = request
  const { requestId } = observed
  observed.askedAt = performance.now()
  observed.trace?.asked(headers)
  const outgoing = dial(tunnel)
  const early = readEarly(socket, head)
  let isAnswered = false
  const timer = setTimeout(() => outgoing.destroy(TIMEOUT_ERROR), upstream.headersTimeoutMs)
  socket.once('close', () => outgoing.destroy())
  outgoing.once('close', () => clearTimeout(timer))
  outgoing.on('upgrade', (answer, upstreamSocket, upstreamHead) => {
    clearTimeout(timer)
    isAnswered = true
    options.answered(observed, 101)
    accept(options, tunnel, answer)
    joinSockets(socket, upstreamSocket, early(), upstreamHead)
  })
  outgoing.on('response', answer => {
    clearTimeout(timer)
    isAnswered = true
    options.answered(observed, answer.statusCode ?? 0)
    early()
    const signedIn = callerOf(identification) !== undefined
    observed.status = answer.statusCode ?? 502
    const ours = { upstream, path, requestId, signedIn, cookies }
    forwardAnswer(answer, options.responseHeaders(withChanges(upstream.responseChanges, answer.headers), ours), socket)
  })
  outgoing.on('error', error => {
    if (socket.destroyed || isAnswered) return
    early()
    options.answered(observed, 0)
    options.report(failureEvent((error as NodeJS.ErrnoException).code), {
      ...tunnelFields(tunnel),
      reason: String(error),
    })
    options.refuseFailure(error === TIMEOUT_ERROR ? 'timeout' : 'unreachable', request, identification, socket)
  })
  outgoing.end()
}

const TIMEOUT_ERROR = new Error('no answer within UPSTREAM_HEADERS_TIMEOUT_MS or timeoutSeconds')

function dial({ upstream, request, headers }: Tunnel): ClientRequest {
  const { destination } = upstream
  const open = destination.origin.startsWith('https:') ? httpsRequest : httpRequest
  const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const { origin, ...how } = destination
  return open(origin, {
    ...how,
    path: pathForUpstream(upstream, request.path) + request.search,
    headers: [...headers, ...upgradeHeaders],
    agent: false,
  })
}

// Answers on a socket that node:http has handed over: the upgrade, a refusal, or any other answer of the application.

/** How long a refused client may take to read the answer and to close. */
const CLOSE_MS = 1000
/** How long an application may take for the rest of an answer that is not an upgrade. */
const BODY_TIMEOUT_MS = 5000

function accept({ isOwnCookie }: TunnelOptions, tunnel: Tunnel, { rawHeaders, headers }: IncomingMessage): void {
  const { upstream, request, identification, socket } = tunnel
  const { observed, path } = request
  observed.status = 101
  const lines = ['HTTP/1.1 101 Switching Protocols']
  const changes = upstream.responseChanges ?? {}
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    const lowerCased = name.toLowerCase()
    if (Object.hasOwn(changes, lowerCased) || (lowerCased === 'clear-site-data' && clearsCookies(value))) continue
    if (lowerCased !== 'set-cookie') lines.push(`${name}: ${value}`)
    else if (!isOwnCookie(value)) lines.push(`${name}: ${prefixedCookie(upstream, value, path)}`)
  }
  for (const name in changes) if (changes[name] !== null) lines.push(`${name}: ${changes[name]}`)
  if (headers[REQUEST_ID] === undefined) lines.push(`${REQUEST_ID}: ${observed.requestId}`)
  socket.write(headOf([...lines, ...setCookieLines(identification.cookies)]), 'latin1')
}

/** Menshen's own answer, not an upgrade, without a body. */
export interface SocketRefusal {
  readonly status: number
  readonly lines?: readonly string[]
  readonly cookies?: readonly string[]
}

/** Discards further input, because unread bytes would make the system drop our answer. */
export function answerSocket(
  socket: Socket,
  observed: ObservedRequest,
  { status, lines = [], cookies = [] }: SocketRefusal,
): void {
  if (socket.destroyed) return
  observed.status = status
  const fixed = [statusLine(status), 'connection: close', 'content-length: 0', `${REQUEST_ID}: ${observed.requestId}`]
  socket.resume()
  socket.end(headOf([...fixed, ...lines, ...setCookieLines(cookies)]), 'latin1')
  destroyAfter(socket, CLOSE_MS)
}

/** An answer of the application that is not an upgrade, such as a redirect: its status, headers and body. */
function forwardAnswer(answer: IncomingMessage, headers: HeaderList, socket: Socket): void {
  const lines = [statusLine(answer.statusCode ?? 502), 'connection: close']
  socket.resume()
  socket.write(headOf([...lines, ...headerLines(headers)]), 'latin1')
  answer.pipe(socket)
  answer.once('end', () => destroyAfter(socket, CLOSE_MS)).once('error', () => socket.destroy())
  destroyAfter(socket, BODY_TIMEOUT_MS)
}

function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`
}

function headerLines(headers: HeaderList): string[] {
  const lines: string[] = []
  for (let i = 0; i < headers.length; i += 2)
    for (const value of [headers[i + 1] ?? []].flat()) lines.push(`${headers[i]}: ${value}`)
  return lines
}

function setCookieLines(cookies: readonly string[]): string[] {
  return cookies.map(cookie => `set-cookie: ${cookie}`)
}

function headOf(lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

// Joins two sockets: what comes in on either goes out on the other, until one of them has ended.

/** When one side has ended, the other has this long to send the rest. */
const HALF_CLOSED_MS = 5000

/** A socket shows that it was closed only if it is read. The returned function returns what the browser has sent early. */
function readEarly(socket: Duplex, head: Buffer): () => Buffer {
  let early = head
  const keep = (chunk: Buffer) => {
    socket.pause()
    early = Buffer.concat([early, chunk])
  }
  const leave = () => void socket.destroy()
  socket.once('data', keep).once('end', leave)
  return () => {
    socket.off('data', keep).off('end', leave)
    return early
  }
}

function joinSockets(one: Duplex, other: Duplex, oneHead: Buffer, otherHead: Buffer): void {
  if (oneHead.length > 0) other.write(oneHead)
  if (otherHead.length > 0) one.write(otherHead)
  one.pipe(other).pipe(one)
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    here.on('error', () => there.destroy())
    here.on('close', () => there.destroy())
    here.once('end', () => destroyAfter(there, HALF_CLOSED_MS))
  }
}
