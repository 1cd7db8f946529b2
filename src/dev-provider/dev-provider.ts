// The embedded identity provider for development: users sign in with one click, everything else is as strict as a real
// one, and a panel makes it misbehave. It shares no code with the rest, so that it cannot share its mistakes.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { createApp } from './app.ts'
import { DEV_USERS } from './users.ts'

interface DevProviderOptions {
  /** 0 takes any free port. */
  readonly port: number
  readonly host?: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  readonly now: () => number
}

export interface DevProvider {
  readonly url: string
  readonly users: readonly string[]
  close(): Promise<void>
}

/** Rejects with the error of listening as it is, such as EADDRINUSE. */
export async function startDevProvider(options: DevProviderOptions): Promise<DevProvider> {
  const { port, host = '127.0.0.1', clientId, clientSecret, redirectUri, now } = options
  const closing = new AbortController()
  const app = await createApp({ id: clientId, secret: clientSecret, redirectUri }, now, closing.signal)

  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }))
  server.listen(port, host)
  await once(server, 'listening')

  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    users: DEV_USERS.map(user => user.info.username),
    close() {
      closing.abort()
      return new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}
