// How every client of node-redis is set up here.

import type { Host } from './redis-address.ts'
import type { TlsOptions } from './tls-options.ts'

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

export const DEADLINE_MS = 2000

export function clientOptions({ username, password }: Credentials, socket: Partial<Host & TlsOptions>) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    socket: { ...socket, connectTimeout: DEADLINE_MS, reconnectStrategy: false as const },
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
  }
}

/**
 * The timeouts of node-redis end when a command is written and not when it is answered, and would be a timer for each.
 * DEADLINE_MS is for the whole of it.
 */
export const COMMAND_OPTIONS = { timeout: 0 }
