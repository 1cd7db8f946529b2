// How every client of node-redis is set up here.

import type { Host } from './address.ts'
import { DEADLINE_MS } from './deadline.ts'

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

export interface Security {
  readonly tls?: true
  readonly ca?: Buffer
}

export function clientOptions({ username, password }: Credentials, security: Security = {}) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // Nothing waits for a connection to come back, for this one does not: see line.ts.
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
    socket: socketOptions(security),
  }
}

export function socketOptions(security: Security, { host, port }: Host) {
  return { ...security, host, port, connectTimeout: DEADLINE_MS, reconnectStrategy: false as const }
}

/** The timeouts of node-redis would be a timer for each command, and end too early: see deadline.ts. */
export const COMMAND_OPTIONS = { timeout: 0 }
