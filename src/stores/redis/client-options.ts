// How every client of node-redis is set up here.

import { DEADLINE_MS } from './deadline.ts'
import type { Host } from './redis-address.ts'
import type { TlsOptions } from './tls-options.ts'

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

export function clientOptions({ username, password }: Credentials, socket: Partial<Host & TlsOptions>) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    socket: { ...socket, connectTimeout: DEADLINE_MS, reconnectStrategy: false as const },
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
  }
}

/** The timeouts of node-redis would be a timer for each command, and end too early: see deadline.ts. */
export const COMMAND_OPTIONS = { timeout: 0 }
