// A connection of its own for the rate limits, which all instances count together. It may come and go: the limits have
// each process's own memory to fall back on.

import { createClient } from 'redis'
import { parseRedisAddress } from './redis-address.ts'
import { clientOptions, tlsOptionsOf } from './redis-connection.ts'

export interface LimitClient {
  readonly client: object
  /** What the names of its keys begin with. */
  readonly prefix: string
  close(): void
}

const LONGEST_WAIT_MS = 2000

/** `undefined` where there is no one server to count at: with sentinels or a cluster. */
export function openLimitClient(address: string): LimitClient | undefined {
  const target = parseRedisAddress(address)
  if (target.kind !== 'single') return undefined
  const { host, database } = target
  const { socket, ...options } = clientOptions(target, { ...host, ...tlsOptionsOf(target)(host) })
  const reconnectStrategy = (retries: number) => Math.min(50 * 2 ** retries, LONGEST_WAIT_MS)
  const client = createClient({
    ...options,
    commandsQueueMaxLength: 1000,
    database,
    socket: { ...socket, reconnectStrategy },
  })
  // The store's own connection says what is wrong.
  client.on('error', () => {})
  client.connect().catch(() => {})
  return { client, prefix: target.prefix, close: () => client.destroy() }
}
