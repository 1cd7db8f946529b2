// WebSocket upgrades: the same session, rule and origin checks as for pages, then two sockets joined.

import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { factsOf } from '../../errors.ts'
import { isOwnPath } from '../../own-paths.ts'
import { admit } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { isCheck } from '../forward-auth/check.ts'
import { readCookie } from '../http/cookies.ts'
import { isForeignSocket, readVisit, type Visit } from '../http/request.ts'
import { requestHeaders } from './request-headers.ts'
import { isOurCookie } from './response-headers.ts'
import type { Upstream } from './upstreams.ts'

export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export function createUpgradeListener(context: GatewayContext, listener: RequestListener): UpgradeListener {
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    if (isQuestion(request)) return answerQuestion(listener, request)
    upgrade(context, request, socket, head).catch(error => {
      context.report('upgrade_failed', factsOf(error))
      refuse(socket, 503)
    })
  }
}

/** Anything else that asks for an upgrade, such as h2c or a proxy's question, is answered as if it had not. */
export function wantsSocket(request: IncomingMessage): boolean {
  return isWebSocket(request) && !isQuestion(request)
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** A proxy asks about a request for a socket, in the browser's own words. */
function isQuestion(request: IncomingMessage): boolean {
  const visit = readVisit(request)
  return visit !== undefined && isCheck(visit.path)
}

/** Node has let go of a connection that asks for an upgrade: it is good for this one answer. */
function answerQuestion(listener: RequestListener, request: IncomingMessage): void {
  const { socket } = request
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  socket.resume()
  listener(request, response)
}

async function upgrade(context: GatewayContext, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  // Whoever listens to `upgrade` without our check gets here with anything: h2c would be a tunnel past every rule.
  if (!isWebSocket(request)) return refuse(socket, 400)
  const visit = readVisit(request)
  if (!visit) return refuse(socket, 400)
  // What is judged by one method must not arrive under another.
  if (visit.method !== 'GET') return refuse(socket, 405)
  const upstream = isOwnPath(visit.path) ? undefined : context.upstreams.for(visit.path)
  if (!upstream) return refuse(socket, 404)
  if (isForeignSocket(visit, context.settings.BASE_URL)) return refuse(socket, 403)
  const { outcome, loaded, cookies } = await admit(context, visit)
  if (outcome !== 'admitted') return refuse(socket, outcome === 'refused' ? 403 : 401, cookies)
  const headers = await requestHeaders(context, upstream, request, visit, loaded)
  if (socket.destroyed) return

  const outgoing = dial(upstream, visit, headers)
  const ticket = loaded && readCookie(visit.headers.cookie, context.cookies.session)
  const forget = ticket ? context.streams.add(ticket, () => socket.destroy()) : undefined
  const early = readEarly(socket, head)
  const patience = setTimeout(() => outgoing.destroy(TOO_SLOW), context.settings.UPSTREAM_HEADERS_TIMEOUT_MS)
  socket.once('close', () => {
    forget?.()
    outgoing.destroy()
  })
  outgoing.once('close', () => clearTimeout(patience))
  outgoing.on('upgrade', (answer, upstreamSocket, upstreamHead) => {
    clearTimeout(patience)
    socket.write(head101(context, answer, cookies), 'latin1')
    join(socket, upstreamSocket, early(), upstreamHead)
  })
  outgoing.on('response', answer => {
    answer.resume()
    refuse(socket, answer.statusCode ?? 502, cookies)
  })
  outgoing.on('error', error => {
    if (socket.destroyed) return
    context.report('upstream_failed', { reason: String(error), method: visit.method, path: visit.path })
    refuse(socket, error === TOO_SLOW ? 504 : 502, cookies)
  })
  outgoing.end()
}

const TOO_SLOW = new Error('no answer within UPSTREAM_HEADERS_TIMEOUT_MS')

/** Only somebody who reads a socket learns that it was closed. What a hasty browser has sent is given back. */
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

function dial({ connection }: Upstream, { path, search }: Visit, headers: string[]): ClientRequest {
  const request = connection.origin.startsWith('https:') ? httpsRequest : httpRequest
  const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const { origin, ...how } = connection
  return request(origin, { ...how, path: path + search, headers: [...headers, ...upgradeHeaders], agent: false })
}

function head101(context: GatewayContext, { rawHeaders }: IncomingMessage, cookies: readonly string[]): string {
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    const ours = name.toLowerCase() === 'set-cookie' && isOurCookie(context, value)
    if (!ours) lines.push(`${name}: ${value}`)
  }
  return headOf(lines, cookies)
}

function join(one: Duplex, other: Duplex, oneHead: Buffer, otherHead: Buffer): void {
  if (oneHead.length > 0) other.write(oneHead)
  if (otherHead.length > 0) one.write(otherHead)
  one.pipe(other).pipe(one)
  for (const [here, there] of [
    [one, other],
    [other, one],
  ] as const) {
    here.on('error', () => there.destroy())
    here.on('close', () => there.destroy())
  }
}

function refuse(socket: Duplex, status: number, cookies: readonly string[] = []): void {
  if (!socket.writable) return
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, 'connection: close', 'content-length: 0']
  socket.end(headOf(lines, cookies))
}

function headOf(lines: readonly string[], cookies: readonly string[]): string {
  return `${[...lines, ...cookies.map(cookie => `set-cookie: ${cookie}`)].join('\r\n')}\r\n\r\n`
}
