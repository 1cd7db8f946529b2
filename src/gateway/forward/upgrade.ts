// Whoever asks for a WebSocket passes the same checks of session, rule and origin as for a page.

import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { factsOf } from '../../errors.ts'
import { CLIENT_LEFT } from '../../observe/observation.ts'
import type { ObservedRequest } from '../../observe/observed-request.ts'
import { isOwnPath, OWN_PATHS } from '../../own-paths.ts'
import { NOTICES } from '../../pages/notice-page.ts'
import { admit } from '../admission/admit.ts'
import { insufficient } from '../admission/bearer.ts'
import { challengeFor } from '../admission/visitor.ts'
import type { GatewayContext } from '../context.ts'
import { isCheck } from '../forward-auth/check.ts'
import { tellOfForeign, unreadableName } from '../http/page-answers.ts'
import { wasReset } from '../http/peer.ts'
import { beginRequest, isForeignSocket, readPath, readVisit, type Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { openTunnel } from './tunnel.ts'
import { refuse } from './upgrade-answers.ts'

export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export function createUpgradeListener(context: GatewayContext, listener: RequestListener): UpgradeListener {
  function answer(request: IncomingMessage, head: Buffer) {
    const { socket } = request
    const hasBody = announcesBody(request)
    if (isQuestion(request) && !hasBody) return answerQuestion(listener, request)
    const observed = beginRequest(context, request)
    if (wasReset(socket)) return drop(context, observed, socket)
    context.slowClients.watchSocket(observed, socket)
    observed.isStream = true
    socket.once('close', () => context.observation.ended(observed, observed.status ?? CLIENT_LEFT, socket))
    const visit = readVisit(request, observed)
    context.observation.begun?.(observed, request.headers)
    if (!visit || hasBody) {
      observed.outcome = 'refused'
      return refuse(socket, NOTICES[unreadableName(request.url)].status, { observed })
    }
    upgrade(context, request, visit, head).catch(error => {
      observed.outcome = 'error'
      context.report('upgrade_failed', { ...factsOf(error), ...whoAsks(context, visit), path: visit.path })
      refuse(socket, 503, { observed })
    })
  }

  return (request, stream, head) => {
    const { socket } = request
    // First of all: an error that nobody listens to ends the process. Where a body is announced, Node has made a stream of its
    // own beside the socket, and the error of one becomes the error of the other.
    socket.on('error', () => socket.destroy())
    if (stream !== socket) stream.on('error', () => socket.destroy()).resume()
    try {
      answer(request, head)
    } catch (error) {
      context.report('upgrade_failed', factsOf(error))
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
export function wantsSocket(request: IncomingMessage): boolean {
  return isWebSocket(request) && !isQuestion(request)
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** A proxy asks about a request for a socket, in the browser's own words; or the doctor, whether one would get here. */
export function isQuestion(request: Pick<IncomingMessage, 'url'>): boolean {
  const path = readPath(request)
  return path !== undefined && (isCheck(path) || path === OWN_PATHS.doctor)
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

async function upgrade(context: GatewayContext, request: IncomingMessage, visit: Visit, head: Buffer): Promise<void> {
  const { socket } = request
  const { observed } = visit
  if (context.lifecycle.closing) return refuseWhileClosing(socket, observed)
  // Whoever listens to `upgrade` without our check gets here with anything: h2c would be a tunnel past every rule.
  if (!isWebSocket(request)) return refuse(socket, 400, { observed })
  // What is judged by one method must not arrive under another.
  if (visit.method !== 'GET') return refuse(socket, 405, { observed })
  const upstream = isOwnPath(visit.path, context.providers.callbackPaths)
    ? undefined
    : context.upstreams.for(visit.path)
  if (!upstream) return refuse(socket, 404, { observed })
  if (isForeignSocket(visit, context.settings.BASE_URL)) {
    tellOfForeign(context, visit)
    return refuse(socket, 403, { observed })
  }
  const admission = await admit(context, visit)
  const { outcome, bearer, cookies } = admission
  const ours = { observed, cookies }
  if (outcome === 'visitor')
    return refuse(socket, 401, { ...ours, lines: [`www-authenticate: ${challengeFor(visit, admission)}`] })
  if (outcome === 'refused')
    return refuse(socket, 403, { ...ours, lines: bearer ? [`www-authenticate: ${insufficient(admission)}`] : [] })
  if (outcome === 'limited') return refuse(socket, 429, ours)
  const headers = await context.requestHeaders(upstream, request, visit, admission)
  // The sockets that were open have been ended meanwhile.
  if (context.lifecycle.closing) return refuseWhileClosing(socket, observed)
  if (!socket.destroyed) openTunnel(context, { upstream, visit, admission, socket, head, headers })
}

/** It would keep a process from its end. Whoever asks again gets to one that stays. */
function refuseWhileClosing(socket: Socket, observed: ObservedRequest): void {
  observed.outcome = 'refused'
  refuse(socket, 503, { observed, lines: ['retry-after: 1'] })
}
