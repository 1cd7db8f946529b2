// Whoever asks for a WebSocket passes the same checks of session, rule and origin as for a page.

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorFields } from '../errors.ts'
import { type Admission, admit, challengeFor, identified } from '../gateway/admission.ts'
import { insufficient } from '../gateway/bearer-callers.ts'
import type { GatewayContext } from '../gateway/context.ts'
import { isCheck } from '../gateway/forward-auth.ts'
import {
  beginRequest,
  type GatewayRequest,
  isForeignSocket,
  REQUEST_ID,
  readGatewayRequest,
  readPath,
  requestFields,
  wasReset,
} from '../gateway/request.ts'
import { tellOfForeign, unreadableName } from '../gateway/respond.ts'
import { CLIENT_LEFT, type ObservedRequest } from '../observe/observed-request.ts'

import { NOTICES } from '../pages/notices.ts'
import { isOwnPath, OWN_PATHS } from '../paths.ts'
import { ownerOf, type SlotHolder } from './capacity.ts'
import { watchCaller } from './open-streams.ts'
import { type HeaderList, isOurCookie, type Ours } from './response-headers.ts'
import type { Upstream } from './upstreams.ts'

export type UpgradeListener = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void

export function createUpgradeListener(context: GatewayContext, listener: RequestListener): UpgradeListener {
  function answer(incoming: IncomingMessage, head: Buffer) {
    const { socket } = incoming
    const hasBody = announcesBody(incoming)
    if (isAuthCheck(incoming) && !hasBody) return answerQuestion(listener, incoming)
    const observed = beginRequest(context, incoming)
    if (wasReset(socket)) return drop(context, observed, socket)
    context.slowClients.watchSocket(observed, socket)
    observed.isStream = true
    socket.once('close', () => context.observation.ended(observed, observed.status ?? CLIENT_LEFT, socket))
    const request = readGatewayRequest(incoming, observed)
    context.observation.begun?.(observed, incoming.headers)
    if (!request || hasBody) {
      observed.outcome = 'refused'
      return refuse(socket, NOTICES[unreadableName(incoming.url)].status, { observed })
    }
    upgrade(context, incoming, request, head).catch(error => {
      observed.outcome = 'error'
      context.report('upgrade_failed', {
        ...errorFields(error),
        ...requestFields(context, request),
        path: request.path,
      })
      refuse(socket, 503, { observed })
    })
  }

  return (incoming, stream, head) => {
    const { socket } = incoming
    // First of all: an error that nobody listens to ends the process. Where a body is announced, Node has made a stream of its
    // own beside the socket, and the error of one becomes the error of the other.
    socket.on('error', () => socket.destroy())
    if (stream !== socket) stream.on('error', () => socket.destroy()).resume()
    try {
      answer(incoming, head)
    } catch (error) {
      context.report('upgrade_failed', errorFields(error))
      socket.destroy()
    }
  }
}

/** A handshake has no body (RFC 6455, 4.1). What comes of one may be taken for the first words on the socket. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return coding !== undefined || Number(length) !== 0
}

/** Nobody is there any more. */
function drop(context: GatewayContext, observed: ObservedRequest, socket: Duplex): void {
  observed.outcome = 'refused'
  context.observation.ended(observed, CLIENT_LEFT)
  socket.destroy()
}

/** Anything else that asks for an upgrade, such as h2c or a proxy's question, is answered as if it had not. */
export function wantsSocket(incoming: IncomingMessage): boolean {
  return isWebSocket(incoming) && !isAuthCheck(incoming)
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** A proxy asks about a request for a socket, in the browser's own words; or the doctor, whether one would get here. */
export function isAuthCheck(incoming: Pick<IncomingMessage, 'url'>): boolean {
  const path = readPath(incoming)
  return path !== undefined && (isCheck(path) || path === OWN_PATHS.doctor)
}

/** Node has let go of a connection that asks for an upgrade: it is good for this one answer. */
function answerQuestion(listener: RequestListener, incoming: IncomingMessage): void {
  const { socket } = incoming
  const response = new ServerResponse(incoming)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  socket.resume()
  listener(incoming, response)
}

async function upgrade(
  context: GatewayContext,
  incoming: IncomingMessage,
  request: GatewayRequest,
  head: Buffer,
): Promise<void> {
  const { socket } = incoming
  const { observed } = request
  if (context.lifecycle.closing) return refuseWhileClosing(socket, observed)
  // Whoever listens to `upgrade` without our check gets here with anything: h2c would be a tunnel past every rule.
  if (!isWebSocket(incoming)) return refuse(socket, 400, { observed })
  // What is judged by one method must not arrive under another.
  if (request.method !== 'GET') return refuse(socket, 405, { observed })
  const upstream = isOwnPath(request.path, context.providers.callbackPaths)
    ? undefined
    : context.upstreams.for(request.path)
  if (!upstream) return refuse(socket, 404, { observed })
  if (isForeignSocket(request, context.settings.BASE_URL)) {
    tellOfForeign(context, request)
    return refuse(socket, 403, { observed })
  }
  const admission = await admit(context, request)
  const { outcome, bearer, cookies } = admission
  const ours = { observed, cookies }
  if (outcome === 'visitor')
    return refuse(socket, 401, { ...ours, lines: [`www-authenticate: ${challengeFor(request, admission)}`] })
  if (outcome === 'refused')
    return refuse(socket, 403, { ...ours, lines: bearer ? [`www-authenticate: ${insufficient(admission)}`] : [] })
  if (outcome === 'limited') return refuse(socket, 429, ours)
  const headers = await context.requestHeaders(upstream, incoming, request, admission)
  // The sockets that were open have been ended meanwhile.
  if (context.lifecycle.closing) return refuseWhileClosing(socket, observed)
  if (!socket.destroyed) openTunnel(context, { upstream, request, admission, socket, head, headers })
}

/** It would keep a process from its end. Whoever asks again gets to one that stays. */
function refuseWhileClosing(socket: Socket, observed: ObservedRequest): void {
  observed.outcome = 'refused'
  refuse(socket, 503, { observed, lines: ['retry-after: 1'] })
}

// What somebody who asks for an upgrade is told, on a socket that node:http has given away: yes, no, or whatever else
// the application has answered.

/** How long a refused client may take to read the answer and to close. */
const FAREWELL_MS = 1000
/** How long an application may take for the rest of an answer that is no upgrade. */
const REST_MS = 5000

interface Refusal {
  readonly observed: ObservedRequest
  readonly cookies?: readonly string[]
  readonly lines?: readonly string[]
}

export function accept(
  context: GatewayContext,
  { rawHeaders, headers }: IncomingMessage,
  { observed, cookies = [] }: Refusal,
  socket: Socket,
): void {
  observed.status = 101
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    const ours = name.toLowerCase() === 'set-cookie' && isOurCookie(context, value)
    if (!ours) lines.push(`${name}: ${value}`)
  }
  if (headers[REQUEST_ID] === undefined) lines.push(`${REQUEST_ID}: ${observed.requestId}`)
  socket.write(headOf([...lines, ...setCookies(cookies)]), 'latin1')
}

/** Whatever still comes is thrown away: unread bytes would make the system drop our answer. */
export function refuse(socket: Socket, status: number, { observed, cookies = [], lines = [] }: Refusal): void {
  if (socket.destroyed) return
  observed.status = status
  const fixed = [statusLine(status), 'connection: close', 'content-length: 0', `${REQUEST_ID}: ${observed.requestId}`]
  socket.resume()
  socket.end(headOf([...fixed, ...lines, ...setCookies(cookies)]), 'latin1')
  destroyAfter(socket, FAREWELL_MS)
}

/** An answer that is no upgrade, such as a redirect: with its status, its headers and its body. */
export function passOn(context: GatewayContext, answer: IncomingMessage, ours: Ours, socket: Socket): void {
  const lines = [statusLine(answer.statusCode ?? 502), 'connection: close']
  socket.resume()
  socket.write(headOf([...lines, ...headerLines(context.responseHeaders(answer.headers, ours))]), 'latin1')
  answer.pipe(socket)
  answer.once('end', () => destroyAfter(socket, FAREWELL_MS)).once('error', () => socket.destroy())
  destroyAfter(socket, REST_MS)
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

function setCookies(cookies: readonly string[]): string[] {
  return cookies.map(cookie => `set-cookie: ${cookie}`)
}

function headOf(lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

// A WebSocket of an admitted user: the application is asked for one too, and then the two are joined.

interface Wanted {
  readonly upstream: Upstream
  readonly request: GatewayRequest
  readonly admission: Admission
  readonly socket: Socket
  /** What the browser has sent already. */
  readonly head: Buffer
  /** For the application. */
  readonly headers: string[]
}

/** Counts among the streams for as long as it is open. */
export function openTunnel(context: GatewayContext, wanted: Wanted): void {
  const { upstream, request, admission, socket } = wanted
  const { observed } = request
  observed.upstream = upstream.destination.origin
  const occupant: SlotHolder = {
    place: 0,
    stage: 'outside',
    isEndless: true,
    owner: ownerOf(context, request, admission),
    isSlow: () => false,
    waitsForClient: () => socket.writableNeedDrain,
    cutOff: () => void socket.destroy(),
    turnAway(reason) {
      context.report('upstream_busy', { ...tunnelFacts(context, wanted), reason })
      observed.outcome = 'error'
      if (reason === 'holds_most_streams') return void socket.destroy()
      refuse(socket, 503, { observed, cookies: admission.cookies, lines: ['retry-after: 5'] })
    },
    start() {
      const forget = watchCaller(context, request, admission, () => socket.destroy())
      socket.once('close', () => {
        forget()
        upstream.capacity.leave(occupant)
      })
      connect(context, wanted)
    },
  }
  upstream.capacity.enterAsStream(occupant)
}

function tunnelFacts(context: GatewayContext, { upstream, request, admission }: Wanted) {
  const { method, path } = request
  return {
    ...requestFields(context, request, identified(admission)),
    method,
    path,
    upstream: upstream.destination.origin,
  }
}

function connect(context: GatewayContext, wanted: Wanted): void {
  const { socket, head } = wanted
  const { cookies } = wanted.admission
  const { observed } = wanted.request
  const { requestId } = observed
  observed.askedAt = performance.now()
  observed.trace?.asked(wanted.headers)
  const outgoing = dial(wanted)
  const early = readEarly(socket, head)
  let isAnswered = false
  const patience = setTimeout(() => outgoing.destroy(TOO_SLOW), context.settings.UPSTREAM_HEADERS_TIMEOUT_MS)
  socket.once('close', () => outgoing.destroy())
  outgoing.once('close', () => clearTimeout(patience))
  outgoing.on('upgrade', (answer, upstreamSocket, upstreamHead) => {
    clearTimeout(patience)
    isAnswered = true
    context.observation.answered(observed, 101)
    accept(context, answer, { observed, cookies }, socket)
    joinSockets(socket, upstreamSocket, early(), upstreamHead)
  })
  outgoing.on('response', answer => {
    clearTimeout(patience)
    isAnswered = true
    context.observation.answered(observed, answer.statusCode ?? 0)
    early()
    const signedIn = identified(wanted.admission) !== undefined
    observed.status = answer.statusCode ?? 502
    passOn(context, answer, { requestId, signedIn, cookies }, socket)
  })
  outgoing.on('error', error => {
    if (socket.destroyed || isAnswered) return
    early()
    observed.outcome = 'error'
    context.observation.answered(observed, 0)
    context.report('upstream_failed', { ...tunnelFacts(context, wanted), reason: String(error) })
    refuse(socket, error === TOO_SLOW ? 504 : 502, { observed, cookies })
  })
  outgoing.end()
}

const TOO_SLOW = new Error('no answer within UPSTREAM_HEADERS_TIMEOUT_MS')

function dial({ upstream, request, headers }: Wanted): ClientRequest {
  const { destination } = upstream
  const open = destination.origin.startsWith('https:') ? httpsRequest : httpRequest
  const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const { origin, ...how } = destination
  return open(origin, {
    ...how,
    path: request.path + request.search,
    headers: [...headers, ...upgradeHeaders],
    agent: false,
  })
}

// Two sockets that become one: what comes in on either goes out on the other, until one of them has ended.

/** When one side has said its last word, the other has this long to say its own. */
const LAST_WORD_MS = 5000

/** Only somebody who reads a socket learns that it was closed. What a hasty browser has sent is given back. */
export function readEarly(socket: Duplex, head: Buffer): () => Buffer {
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

export function joinSockets(one: Duplex, other: Duplex, oneHead: Buffer, otherHead: Buffer): void {
  if (oneHead.length > 0) other.write(oneHead)
  if (otherHead.length > 0) one.write(otherHead)
  one.pipe(other).pipe(one)
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    here.on('error', () => there.destroy())
    here.on('close', () => there.destroy())
    here.once('end', () => destroyAfter(there, LAST_WORD_MS))
  }
}

/** Nothing of it stays behind if it is closed before. */
export function destroyAfter(socket: Duplex, ms: number): void {
  if (socket.destroyed) return
  const deadline = setTimeout(() => socket.destroy(), ms)
  socket.once('close', () => clearTimeout(deadline))
}
