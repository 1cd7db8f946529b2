// The connections to an application. Each serves one exchange at a time, so that nothing waits in a queue that is not ours.
import { isIP } from 'node:net'
import { buildConnector, Client } from 'undici'
import type { Settings } from '../../settings/read.ts'

export interface Connections {
  take(): Client
  giveBack(connection: Client): void
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

  function open(): Client {
    const connection = new Client(origin, options)
    all.add(connection)
    return connection
  }

  return {
    take: () => idle.pop() ?? open(),
    giveBack(connection) {
      if (idle.length < settings.UPSTREAM_CONNECTIONS) idle.push(connection)
      else {
        // Of those that streams had on top.
        all.delete(connection)
        void connection.close()
      }
    },
    async close() {
      await Promise.all([...all].map(connection => connection.destroy()))
    },
  }
}
