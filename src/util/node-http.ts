// node:http without its getters. `import` reads every one of them, and some load Node's own copy of undici for a WebSocket. That
// takes a fifth of this package's load time, and memory, and nothing here uses it.

import type * as http from 'node:http'
import type { Socket } from 'node:net'

export const {
  createServer,
  IncomingMessage,
  METHODS,
  request,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule('node:http')

export type IncomingMessage = http.IncomingMessage
export type ServerResponse = http.ServerResponse

/** Node has no public API for the response that a socket is busy with, and throws if a second one is assigned. */
export function pendingAnswer(socket: Socket): ServerResponse | undefined {
  return Reflect.get(socket, '_httpMessage') ?? undefined
}
