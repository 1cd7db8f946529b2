// The connections to an application. Each serves one exchange at a time, so that no request waits in undici's queue.

import { isIP } from 'node:net'
import { buildConnector, Client } from 'undici'
import type { Settings } from '../config/settings.ts'
import { dispatchExpecting, type ExpectingRequest } from './expect-continue.ts'

/** A connection that serves one exchange. */
export type Connection = Pick<Client, 'dispatch' | 'destroy'>

export interface Connections {
  take(): Client
  /** For a request whose body waits until the application asks for it. */
  takeExpecting(onContinue: () => void): Connection
  giveBack(connection: Connection): void
  /** From now on idle connections are closed. A request that still comes opens a new one. */
  keepNone(): void
  /** Cuts off exchanges that still use one. */
  close(): Promise<void>
}

/** Where and how to connect. */
export interface Destination {
  readonly origin: string
  readonly socketPath?: string
  readonly ca?: string
  /** The largest head of an answer, in bytes. */
  readonly maxHeaderSize?: number
}

export function createConnections(destination: Destination, servername: string, settings: Settings): Connections {
  const { origin, socketPath, ca } = destination
  const connect = buildConnector({
    timeout: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    allowH2: false,
    ...(socketPath && { socketPath }),
    ...(ca && { ca }),
  })
  const options: Client.Options = {
    headersTimeout: settings.UPSTREAM_HEADERS_TIMEOUT_MS,
    bodyTimeout: settings.UPSTREAM_IDLE_TIMEOUT_MS,
    maxHeaderSize: settings.MAX_HEADER_KB * 1024,
    // A TLS server name must not be an address; without a name the address itself is checked.
    connect: (how, callback) => connect(isIP(servername) ? { ...how, servername: '' } : how, callback),
  }
  const deadlines = {
    connectMs: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    headersMs: settings.UPSTREAM_HEADERS_TIMEOUT_MS,
    idleMs: settings.UPSTREAM_IDLE_TIMEOUT_MS,
  }
  const all = new Set<Connection>()
  // The one that was used last is the least likely to have been closed by the application.
  const idle: Client[] = []
  let mostIdle = settings.UPSTREAM_CONNECTIONS

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
    take: () => idle.pop() ?? open(),
    takeExpecting(onContinue) {
      const connection = createExpecting({ destination, deadlines, onContinue })
      all.add(connection)
      return connection
    },
    giveBack(connection) {
      if (!(connection instanceof Client)) all.delete(connection)
      else if (idle.length < mostIdle) idle.push(connection)
      // Streams had opened more than the limit.
      else leave(connection)
    },
    keepNone() {
      mostIdle = 0
      for (const connection of idle.splice(0)) leave(connection)
    },
    async close() {
      await Promise.allSettled([...all].map(connection => connection.destroy()))
    },
  }
}

function createExpecting(shared: Pick<ExpectingRequest, 'destination' | 'deadlines' | 'onContinue'>): Connection {
  let cut: ((reason: Error) => void) | undefined
  return {
    dispatch(request, handler) {
      cut = dispatchExpecting({ ...shared, ...(request as unknown as ExpectingRequest) }, handler)
      return true
    },
    async destroy() {
      cut?.(new Error('the connection is cut off'))
    },
  } as Connection
}
