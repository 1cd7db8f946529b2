// The transport of WebSockets: session and rules are checked as for a page, and the origin as well; answers go to the socket.

import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { errorFields } from '../errors.ts'
import { reportForeign, unreadableName } from '../http/answers.ts'
import { type GatewayRequest, readPath } from '../http/request.ts'
import type { Admission } from '../identify/admission.ts'
import {
  CLIENT_CLOSED_REQUEST,
  type ObservedRequest,
  type RequestOutcome,
  requestFields,
} from '../observe/observed-request.ts'
import { NOTICES } from '../pages/notices.ts'
import { OWN_PATHS } from '../paths.ts'
import { answerSocket, type SocketRefusal, type TunnelOptions } from '../proxy/tunnel.ts'
import { challengeFor } from '../sign-in/challenge.ts'
import { isForeignSocket } from '../util/fetch-metadata.ts'
import { orElse } from '../util/maybe-promise.ts'
import { pendingAnswer } from '../util/node-http.ts'
import { lastResponse } from './bad-requests.ts'
import type { GatewayContext } from './context.ts'
import { isForwardAuth } from './forward-auth.ts'
import { handleRequest, reply, type Transport } from './pipeline.ts'

export type UpgradeListener = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void

interface Upgrade {
  readonly incoming: IncomingMessage
  /** The bytes that the browser has already sent. */
  readonly head: Buffer
}

interface SocketAnswer extends SocketRefusal {
  readonly outcome: RequestOutcome
}

export function createUpgradeListener(context: GatewayContext, listener: RequestListener): UpgradeListener {
  const { settings, lifecycle, proxy, observe } = context

  const entrance: Transport<Upgrade, SocketAnswer, void> = {
    isTraced: true,

    onReset(observed, { incoming }) {
      observe.ended(observed, CLIENT_CLOSED_REQUEST)
      incoming.socket.destroy()
    },

    begin(observed, { incoming: { socket } }) {
      proxy.slowClients.watchSocket(observed, socket)
      observed.isStream = true
      socket.once('close', () => observe.ended(observed, observed.status ?? CLIENT_CLOSED_REQUEST, socket))
    },

    unreadable: ({ url }) => unreadable(url),

    ownRoute: (request, upgrade) => precheck(request, upgrade) ?? NOT_FOUND,

    precheck,

    deny: (request, admission) => denial(request, admission),

    forward(request, admission, { incoming, head }) {
      const upstream = proxy.upstreams.for(request.path)
      if (upstream) return proxy.openTunnel(upstream, request, admission, incoming, head)
    },

    fail(request, error) {
      observe.report('upgrade_failed', { ...errorFields(error), ...requestFields(request), path: request.path })
      return { outcome: 'error', status: 503 }
    },

    send: (observed, answer, { incoming }) => answerSocket(incoming.socket, observed, answer),
  }

  function precheck(request: GatewayRequest, { incoming }: Upgrade): SocketAnswer | undefined {
    if (announcesBody(incoming)) return unreadable(incoming.url)
    if (lifecycle.closing) return CLOSING
    // A program that listens to `upgrade` without our check passes on anything: h2c would be a tunnel past every rule.
    if (!isWebSocket(incoming)) return { outcome: 'own', status: 400 }
    // A request that is judged by one method must not arrive under another.
    if (request.method !== 'GET') return { outcome: 'own', status: 405 }
    if (!proxy.upstreams.for(request.path)) return NOT_FOUND
    if (!isForeignSocket(request, settings.BASE_URL)) return undefined
    reportForeign(observe.report, request)
    return { outcome: 'refused', status: 403 }
  }

  return (incoming, stream, head) => {
    const { socket } = incoming
    // This must come first: an error without a listener ends the process. If a body is announced, Node has created a second
    // stream beside the socket, and an error of one becomes an error of the other.
    socket.on('error', () => socket.destroy())
    if (stream !== socket) stream.on('error', () => socket.destroy()).resume()
    // The answer to the previous request would get into the tunnel.
    if (pendingAnswer(socket)?.writableEnded === false) return void socket.destroy()
    try {
      if (isAuthCheck(incoming) && !announcesBody(incoming)) return answerCheck(listener, incoming)
      void orElse(handleRequest(context, entrance, incoming, { incoming, head }), () => void socket.destroy())
    } catch (error) {
      observe.report('upgrade_failed', errorFields(error))
      socket.destroy()
    }
  }
}

const NOT_FOUND: SocketAnswer = { outcome: 'own', status: 404 }
/** A new socket would delay the shutdown. The next attempt reaches another process. */
const CLOSING: SocketAnswer = { outcome: 'refused', status: 503, lines: ['retry-after: 1'] }

function unreadable(url: string | undefined): SocketAnswer {
  return { outcome: 'refused', status: NOTICES[unreadableName(url)].status }
}

const DENIALS = {
  visitor: { outcome: 'visitor', status: 401 },
  refused: { outcome: 'refused', status: 403 },
  step_up: { outcome: 'refused', status: 401 },
  limited: { outcome: 'refused', status: 429 },
  unavailable: { outcome: 'error', status: 503 },
  unreadable: { outcome: 'refused', status: 400 },
  admitted: { outcome: 'admitted', status: 200 },
} as const

function denial(request: GatewayRequest, admission: Admission): SocketAnswer {
  const { outcome, cookies } = admission
  const challenge = challengeFor(request, admission)
  const lines = [
    ...(challenge ? [`www-authenticate: ${challenge}`] : []),
    ...(outcome === 'unavailable' ? ['retry-after: 5'] : []),
  ]
  return { ...DENIALS[outcome], cookies, lines }
}

/** A handshake has no body (RFC 6455, 4.1). Bytes of one could be taken for the first message on the socket. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  return coding !== undefined || Number(length) !== 0
}

/** Any other request for an upgrade, such as h2c or a forward-auth check, is answered as if it had not asked for one. */
export function wantsSocket(incoming: IncomingMessage): boolean {
  return isWebSocket(incoming) && !isAuthCheck(incoming)
}

function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** Whether an upgrade is only a check: a proxy's has the browser's headers; the doctor's shows whether an upgrade gets here. */
export function isAuthCheck(head: Pick<IncomingMessage, 'url'>): boolean {
  const path = readPath(head)
  return path !== undefined && (isForwardAuth(path) || path === OWN_PATHS.doctor)
}

/** Node has detached the socket of a request for an upgrade. */
function answerCheck(listener: RequestListener, incoming: IncomingMessage): void {
  const response = lastResponse(incoming)
  response.once('finish', () => incoming.socket.destroySoon())
  listener(incoming, response)
}

const FAILURES = {
  busy: { outcome: 'error', status: 503, lines: ['retry-after: 5'] },
  timeout: { outcome: 'error', status: 504 },
  unreachable: { outcome: 'error', status: 502 },
  no_token: { outcome: 'error', status: 502 },
} as const

const SENDER = {
  send: (observed: ObservedRequest, answer: SocketAnswer, socket: Socket) => answerSocket(socket, observed, answer),
}

/** The answer in place of an application that failed. */
export const refuseFailure: TunnelOptions['refuseFailure'] = (failure, { observed }, { cookies }, socket) => {
  const answer: SocketAnswer = failure === 'closing' ? CLOSING : { ...FAILURES[failure], cookies }
  reply(SENDER, observed, answer, socket)
}
