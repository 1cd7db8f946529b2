// The connections to an application. With HTTP/1.1 each serves one request at a time, so that no request waits in undici's
// queue; with HTTP/2 one serves many. An application behind https chooses the protocol when it is connected to.

import { isIP, type Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import type { Settings } from '../config/settings.ts'
import { dispatchExpecting, type ExpectingRequest, type Http1Destination } from './expect-continue.ts'
import { createHttp2Pool, type Http2Pool } from './http2-connections.ts'
import type { UpstreamHttp2Request } from './http2-exchange.ts'

/** A connection that serves one request. */
export type UpstreamConnection = Pick<Client, 'dispatch' | 'destroy'> & { readonly isHttp2?: true }

export interface Connections {
  take(): UpstreamConnection
  /** For a request whose body waits until the application asks for it. */
  takeExpecting(onContinue: () => void): UpstreamConnection
  release(connection: UpstreamConnection): void
  /** From now on, idle connections are closed. A later request opens a new one. */
  disableKeepAlive(): void
  /** Cuts off requests that still use one. */
  close(): Promise<void>
}

/** Where and how to connect. */
export interface Destination extends Http1Destination {
  /** It speaks HTTP/2 without TLS. */
  readonly isH2c?: true
}

/**
 * The application speaks a different protocol than before. Nothing was sent, so the request can start again on a new connection.
 */
export class ProtocolChange extends Error {
  readonly code = 'ERR_PROTOCOL_CHANGED'
}

export function createConnections(
  destination: Destination,
  servername: string,
  settings: Settings,
  headersTimeoutMs: number = settings.UPSTREAM_HEADERS_TIMEOUT_MS,
): Connections {
  const { origin, socketPath, ca, cert, key } = destination
  const { protocol, hostname, host, port } = new URL(origin)
  const isSecure = protocol === 'https:'
  const connector = buildConnector({
    timeout: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    allowH2: isSecure,
    preferH2: true,
    ...(socketPath && { socketPath }),
    ...(ca && { ca }),
    ...(cert && key && { cert, key }),
  })
  // A TLS server name must not be an address; without a name the address itself is checked.
  const connect: typeof connector = (how, callback) =>
    connector(isIP(servername) ? { ...how, servername: '' } : how, callback)
  const options: Client.Options = {
    headersTimeout: headersTimeoutMs,
    bodyTimeout: settings.UPSTREAM_IDLE_TIMEOUT_MS,
    maxHeaderSize: settings.MAX_HEADER_KB * 1024,
    connect: isSecure ? connectHttp1 : connect,
  }
  const deadlines = {
    connectMs: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    headersMs: headersTimeoutMs,
    idleMs: settings.UPSTREAM_IDLE_TIMEOUT_MS,
  }
  const all = new Set<UpstreamConnection>()
  // The one that was used last is the least likely to have been closed by the application.
  const idle: Client[] = []
  let mostIdle = settings.UPSTREAM_CONNECTIONS
  /** Not known before the first connection, which serves all waiting requests if it speaks HTTP/2. */
  let speaksHttp2 = isSecure || destination.isH2c === true
  const http2 = createHttp2Pool({
    origin,
    maxHeaderSize: settings.MAX_HEADER_KB * 1024,
    deadlines,
    dial(done) {
      const how = { protocol, host, hostname: hostname.replace(/^\[|\]$/g, ''), port, servername }
      connect(how, (error, socket) => {
        if (error || !socket || destination.isH2c || isHttp2(socket)) return done(error, socket)
        speaksHttp2 = false
        socket.destroy()
        done(new ProtocolChange(), null)
      })
    },
  })

  const shared = viaHttp2(http2)

  /** For undici, which gets connections of HTTP/1.1 only. */
  function connectHttp1(...[how, callback]: Parameters<typeof connector>): void {
    connect(how, (error, socket) => {
      if (error || !socket || !isHttp2(socket)) return error ? callback(error, null) : callback(null, socket as Socket)
      speaksHttp2 = true
      http2.adopt(socket)
      callback(new ProtocolChange(), null)
    })
  }

  function open(): Client {
    const connection = new Client(origin, options)
    all.add(connection)
    return connection
  }

  function leave(connection: Client): void {
    all.delete(connection)
    // A connection that was cut off cannot be closed any more.
    connection.close().catch(() => {})
  }

  return {
    take: () => (speaksHttp2 ? shared : (idle.pop() ?? open())),
    takeExpecting(onContinue) {
      if (speaksHttp2) return viaHttp2(http2, onContinue)
      const connection = createExpecting({ destination, deadlines, onContinue })
      all.add(connection)
      return connection
    },
    release(connection) {
      if (connection === shared) return
      if (!(connection instanceof Client)) all.delete(connection)
      else if (idle.length < mostIdle) idle.push(connection)
      // Streams had opened more than the limit.
      else leave(connection)
    },
    disableKeepAlive() {
      mostIdle = 0
      http2.disableKeepAlive()
      for (const connection of idle.splice(0)) leave(connection)
    },
    async close() {
      http2.destroy()
      await Promise.allSettled([...all].map(connection => connection.destroy()))
    },
  }
}

function isHttp2(socket: Socket): boolean {
  return (socket as Socket & { alpnProtocol?: unknown }).alpnProtocol === 'h2'
}

function viaHttp2(http2: Http2Pool, onContinue?: () => void): UpstreamConnection {
  return {
    isHttp2: true,
    dispatch(request, handler) {
      const call = request as unknown as UpstreamHttp2Request
      http2.dispatch(onContinue ? { ...call, onContinue } : call, handler)
      return true
    },
    async destroy() {},
  } as UpstreamConnection
}

function createExpecting(
  shared: Pick<ExpectingRequest, 'destination' | 'deadlines' | 'onContinue'>,
): UpstreamConnection {
  let cut: ((reason: Error) => void) | undefined
  return {
    dispatch(request, handler) {
      cut = dispatchExpecting({ ...shared, ...(request as unknown as ExpectingRequest) }, handler)
      return true
    },
    async destroy() {
      cut?.(new Error('the connection is cut off'))
    },
  } as UpstreamConnection
}
