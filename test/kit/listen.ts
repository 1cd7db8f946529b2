// Servers of a test: on a free port of the loopback address, until the test ends.

import { once } from 'node:events'
import type { Http2SecureServer, Http2Server, ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { TestContext } from 'node:test'

type After = Pick<TestContext, 'after'>

/** Resolves when a server of any kind listens. It closes with the test, and so do its connections. */
export async function listen(t: After, server: Server, port = 0) {
  const sockets = endWithTest(t, server)
  await once(server.listen(port, '127.0.0.1'), 'listening')
  const address = server.address() as AddressInfo
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    /** Its connections that are open now. */
    sockets,
  }
}

/** The connections of a server that are open now. They and the server end with the test. */
export function endWithTest(t: After, server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  })
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return sockets
}

/** As `listen`, with the sessions of HTTP/2 that are open now, and how many there were. */
export async function listenHttp2(t: After, server: Http2Server | Http2SecureServer) {
  const sessions = new Set<ServerHttp2Session>()
  let opened = 0
  server.on('session', session => {
    opened++
    sessions.add(session)
    session.on('error', () => {}).once('close', () => sessions.delete(session))
  })
  const { port } = await listen(t, server)
  return { port, url: `h2c://127.0.0.1:${port}`, sessions, opened: () => opened }
}
