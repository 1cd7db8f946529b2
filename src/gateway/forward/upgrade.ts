// Whoever asks for a WebSocket passes the same checks of session, rule and origin as for a page.

import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { factsOf } from '../../errors.ts'
import { CLIENT_LEFT } from '../../observe/observation.ts'
import type { ObservedRequest } from '../../observe/observed-request.ts'
import { isOwnPath, OWN_PATHS } from '../../own-paths.ts'
import { NOTICES } from '../../pages/notice-page.ts'
import { admit } from '../admission/admit.ts'
import { INSUFFICIENT } from '../admission/bearer.ts'
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
  return (request, _duplex, head) => {
    const { socket } = request
    socket.on('error', () => socket.destroy())
    if (isQuestion(request)) return answerQuestion(listener, request)
    const observed = beginRequest(context, request)
    if (wasReset(socket)) return drop(context, observed, socket)
    context.slowClients.watchSocket(observed, socket)
    observed.isStream = true
    socket.once('close', () => context.observation.ended(observed, observed.status ?? CLIENT_LEFT, socket))
    const visit = readVisit(request, observed)
    context.observation.begun?.(observed, request.headers)
    if (!visit) {
      observed.outcome = 'refused'
      return refuse(socket, NOTICES[unreadableName(request.url)].status, { observed })
    }
    upgrade(context, request, visit, head).catch(error => {
      observed.outcome = 'error'
      context.report('upgrade_failed', { ...factsOf(error), ...whoAsks(context, visit), path: visit.path })
      refuse(socket, 503, { observed })
    })
  }
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
function isQuestion(request: IncomingMessage): boolean {
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
  // Whoever listens to `upgrade` without our check gets here with anything: h2c would be a tunnel past every rule.
  if (!isWebSocket(request)) return refuse(socket, 400, { observed })
  // What is judged by one method must not arrive under another.
  if (visit.method !== 'GET') return refuse(socket, 405, { observed })
  const upstream = isOwnPath(visit.path) ? undefined : context.upstreams.for(visit.path)
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
    return refuse(socket, 403, { ...ours, lines: bearer ? [`www-authenticate: ${INSUFFICIENT}`] : [] })
  if (outcome === 'limited') return refuse(socket, 429, ours)
  const headers = await context.requestHeaders(upstream, request, visit, admission)
  if (!socket.destroyed) openTunnel(context, { upstream, visit, admission, socket, head, headers })
}
