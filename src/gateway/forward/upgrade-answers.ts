// What somebody who asks for an upgrade is told, on a socket that node:http has given away: yes, no, or whatever else
// the application has answered.
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ObservedRequest } from '../../observe/observed-request.ts'
import type { GatewayContext } from '../context.ts'
import { REQUEST_ID } from '../http/request-id.ts'
import { type HeaderList, isOurCookie, type Ours } from './response-headers.ts'
import { destroyAfter } from './socket-pair.ts'

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
