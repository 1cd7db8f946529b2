// A WebSocket of an admitted user: the application is asked for one too, and then the two are joined.
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { type Admission, identified } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import type { Occupant } from './capacity/capacity.ts'
import { ownerOf } from './capacity/owner.ts'
import { watchCaller } from './open-streams.ts'
import { joinSockets, readEarly } from './socket-pair.ts'
import { accept, passOn, refuse } from './upgrade-answers.ts'
import type { Upstream } from './upstreams.ts'

interface Wanted {
  readonly upstream: Upstream
  readonly visit: Visit
  readonly admission: Admission
  readonly socket: Socket
  /** What the browser has sent already. */
  readonly head: Buffer
  /** For the application. */
  readonly headers: string[]
}

/** Counts among the streams for as long as it is open. */
export function openTunnel(context: GatewayContext, wanted: Wanted): void {
  const { upstream, visit, admission, socket } = wanted
  const { observed } = visit
  observed.upstream = upstream.destination.origin
  const occupant: Occupant = {
    place: 0,
    stage: 'outside',
    isEndless: true,
    owner: ownerOf(context, visit, admission),
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
      const forget = watchCaller(context, visit, admission, () => socket.destroy())
      socket.once('close', () => {
        forget()
        upstream.capacity.leave(occupant)
      })
      connect(context, wanted)
    },
  }
  upstream.capacity.enterAsStream(occupant)
}

function tunnelFacts(context: GatewayContext, { upstream, visit, admission }: Wanted) {
  const { method, path } = visit
  return { ...whoAsks(context, visit, identified(admission)), method, path, upstream: upstream.destination.origin }
}

function connect(context: GatewayContext, wanted: Wanted): void {
  const { socket, head } = wanted
  const { cookies } = wanted.admission
  const { observed } = wanted.visit
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

function dial({ upstream, visit, headers }: Wanted): ClientRequest {
  const { destination } = upstream
  const request = destination.origin.startsWith('https:') ? httpsRequest : httpRequest
  const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', 'websocket']
  const { origin, ...how } = destination
  return request(origin, {
    ...how,
    path: visit.path + visit.search,
    headers: [...headers, ...upgradeHeaders],
    agent: false,
  })
}
