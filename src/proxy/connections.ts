// The connections to an application. Each serves one exchange at a time, so that nothing waits in a queue that is not ours.

import { isIP } from 'node:net'
import { buildConnector, Client } from 'undici'
import type { Settings } from '../config/settings.ts'

export interface Connections {
  take(): Client
  giveBack(connection: Client): void
  /** From now on whatever is not in use is closed. Whoever still comes gets one of its own. */
  keepNone(): void
  /** Cuts off whatever still uses one. */
  close(): Promise<void>
}

/** Where and how to connect. */
export interface Destination {
  readonly origin: string
  readonly socketPath?: string
  readonly ca?: string
}

export function createConnections(
  { origin, socketPath, ca }: Destination,
  servername: string,
  settings: Settings,
): Connections {
  const connect = buildConnector({
    timeout: settings.UPSTREAM_CONNECT_TIMEOUT_MS,
    allowH2: false,
    ...(socketPath && { socketPath }),
    ...(ca && { ca }),
  })
  const options: Client.Options = {
    headersTimeout: settings.UPSTREAM_HEADERS_TIMEOUT_MS,
    bodyTimeout: settings.UPSTREAM_IDLE_TIMEOUT_MS,
    // TLS wants a name to be no address; without one the address itself is checked.
    connect: (how, callback) => connect(isIP(servername) ? { ...how, servername: '' } : how, callback),
  }
  const all = new Set<Client>()
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
    // One that was cut off meanwhile cannot be closed any more.
    connection.close().catch(() => {})
  }

  return {
    take: () => idle.pop() ?? open(),
    giveBack(connection) {
      if (idle.length < mostIdle) idle.push(connection)
      // Of those that streams had on top.
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
