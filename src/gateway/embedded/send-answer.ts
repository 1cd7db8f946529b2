// Puts an answer of ours in the place of the application's.
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { destroyAfter } from '../forward/socket-pair.ts'
import { newRequestId, REQUEST_ID } from '../http/request-id.ts'
import { send } from '../http/send.ts'
import { addCookies } from './add-cookies.ts'

/** How long a refused client may take to read the answer and to close. */
const FAREWELL_MS = 1000

/**
 * Writes it to a response of node:http, as a stream where it is one. Cookies that the application has set stay there. Or to the
 * socket of an `upgrade` event, which it closes.
 */
export function sendAnswer(target: ServerResponse | Duplex, answer: Response): Promise<void> {
  return isResponse(target) ? sendToResponse(target, answer) : sendToSocket(target, answer)
}

function isResponse(target: ServerResponse | Duplex): target is ServerResponse {
  return 'writeHead' in target
}

function sendToResponse(response: ServerResponse, answer: Response): Promise<void> {
  const cookies = answer.headers.getSetCookie()
  addCookies(response, cookies)
  if (cookies.length > 0) answer.headers.delete('set-cookie')
  return send(response, answer, answer.headers.get(REQUEST_ID) ?? newRequestId())
}

/** Whatever still comes is thrown away: unread bytes would make the system drop our answer. */
async function sendToSocket(socket: Duplex, answer: Response): Promise<void> {
  socket.on('error', () => socket.destroy()).resume()
  const body = Buffer.from(await answer.arrayBuffer())
  if (socket.destroyed) return
  const lines = [`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`, 'connection: close']
  for (const [name, value] of answer.headers) if (!OF_THE_WIRE.has(name)) lines.push(`${name}: ${value}`)
  const head = Buffer.from(`${[...lines, `content-length: ${body.length}`].join('\r\n')}\r\n\r\n`, 'latin1')
  socket.end(Buffer.concat([head, body]))
  destroyAfter(socket, FAREWELL_MS)
}

const OF_THE_WIRE = new Set(['connection', 'content-length', 'transfer-encoding'])
