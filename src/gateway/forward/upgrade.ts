// WebSocket upgrades: the same session, rule and origin checks as for pages, then two sockets joined.
import { type ClientRequest, request as httpRequest, type IncomingMessage, STATUS_CODES } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { admit } from '../admission.ts'
import { ourCookies, readCookie } from '../cookies.ts'
import type { House } from '../house.ts'
import { readVisit, type Visit } from '../request.ts'
import { requestHeaders } from './request-headers.ts'
import type { Upstream } from './upstreams.ts'

export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export function createUpgradeListener(house: House): UpgradeListener {
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    upgrade(house, request, socket, head).catch(error => {
      house.log.error({ err: error }, 'an upgrade failed')
      refuse(socket, 503)
    })
  }
}

/** Anything else that asks for an upgrade, such as h2c, is answered as if it had not. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

async function upgrade(house: House, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  const visit = readVisit(request)
  if (!visit) return refuse(socket, 400)
  const upstream = house.upstreams.for(visit.path)
  if (!upstream) return refuse(socket, 404)
  const { origin } = visit.headers
  if (origin !== undefined && origin !== house.settings.BASE_URL) return refuse(socket, 403)
  const { outcome, opened } = await admit(house, visit)
  if (outcome !== 'admitted') return refuse(socket, outcome === 'refused' ? 403 : 401)

  const headers = await requestHeaders(house, upstream.host, request, visit, opened)
  const outgoing = dial(upstream, visit, headers)
  const ticket = opened && readCookie(visit.headers.cookie, house.cookies.session)
  const forget = ticket ? house.streams.add(ticket, () => socket.destroy()) : undefined
  socket.once('close', () => {
    forget?.()
    outgoing.destroy()
  })
  outgoing.on('upgrade', (answer, upstreamSocket, upstreamHead) => {
    socket.write(head101(house, answer))
    join(socket, upstreamSocket, head, upstreamHead)
  })
  outgoing.on('response', answer => {
    answer.resume()
    refuse(socket, answer.statusCode ?? 502)
  })
  outgoing.on('error', error => {
    house.log.error({ cause: String(error), path: visit.path }, 'the application behind did not answer')
    refuse(socket, 502)
  })
  outgoing.end()
}

function dial({ connection }: Upstream, { path, search, headers: asked }: Visit, headers: string[]): ClientRequest {
  const request = connection.origin.startsWith('https:') ? httpsRequest : httpRequest
  const upgradeHeaders = ['connection', 'Upgrade', 'upgrade', asked.upgrade ?? 'websocket']
  const { origin, ...how } = connection
  return request(origin, { ...how, path: path + search, headers: [...headers, ...upgradeHeaders], agent: false })
}

function head101(house: House, { rawHeaders }: IncomingMessage): string {
  const names = ourCookies(house.cookies)
  const lines = ['HTTP/1.1 101 Switching Protocols']
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    const ours = name.toLowerCase() === 'set-cookie' && names.has((value.split('=', 1)[0] ?? '').trim().toLowerCase())
    if (!ours) lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n`
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

function refuse(socket: Duplex, status: number): void {
  if (!socket.writable) return
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}
