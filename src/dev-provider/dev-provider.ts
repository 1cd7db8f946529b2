// The embedded identity provider for development: users sign in with one click, everything else is as strict as a real
// one, and a panel makes it misbehave. It shares no code with the rest, so that it cannot share its mistakes.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApp } from './app.ts'
import { createNodeListener } from './node-listener.ts'
import { DEV_USERS, type DevUser, type UserInfo } from './users.ts'

interface DevProviderOptions {
  /** 0 takes any free port. */
  readonly port: number
  readonly host?: string
  readonly clientId: string
  readonly clientSecret: string
  readonly redirectUri: string
  /** In place of ours. */
  readonly users?: readonly UserInfo[] | undefined
  /** `zh-CN`, `en`, or `auto`, the browser's; a visitor can choose another. */
  readonly language?: string
  readonly now: () => number
}

export interface DevProvider {
  readonly url: string
  readonly users: readonly string[]
  /** From now on; ours if there are none. */
  setUsers(users: readonly UserInfo[] | undefined): void
  close(): Promise<void>
}

/** Rejects with the error of listening as it is, such as EADDRINUSE. */
export async function startDevProvider(options: DevProviderOptions): Promise<DevProvider> {
  const { port, host = '127.0.0.1', clientId, clientSecret, redirectUri, language = 'zh-CN', now } = options
  let users = cardsOf(options.users)
  const closing = new AbortController()
  const app = await createApp({
    client: { id: clientId, secret: clientSecret, redirectUri },
    users: () => users,
    language,
    now,
    closing: closing.signal,
  })

  const server = createServer(createNodeListener(app.fetch))
  server.listen(port, host)
  await once(server, 'listening')

  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    users: users.map(user => user.info.username),
    setUsers(given) {
      users = cardsOf(given)
    },
    close() {
      closing.abort()
      return new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function cardsOf(users: readonly UserInfo[] | undefined): readonly DevUser[] {
  return users ? users.map(info => ({ info })) : DEV_USERS
}
