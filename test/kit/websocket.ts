// WebSockets in front of the gateway and behind it.

import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { type Client, cookieOf } from './client.ts'
import { type SetUpOptions, setUp } from './set-up.ts'

/** An application that echoes what it hears. */
export async function setUpSockets(t: TestContext, wishes: SetUpOptions = {}) {
  const scene = await setUp(t, wishes)
  const sockets = new WebSocketServer({ server: scene.upstream.server })
  sockets.on('connection', socket => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })))
  return { ...scene, sockets }
}

export function dial(
  scene: { readonly url: string },
  client: Client,
  path = '/',
  headers: Record<string, string> = {},
): WebSocket {
  return new WebSocket(scene.url.replace('http', 'ws') + path, { headers: { cookie: cookieOf(client), ...headers } })
}

/** The status with which an upgrade was refused. */
export async function refusal(socket: WebSocket): Promise<number> {
  socket.on('error', () => {})
  const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  answer.resume()
  return answer.statusCode ?? 0
}
