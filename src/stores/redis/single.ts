// A connection to one server, with a cache that the server keeps true (CLIENT TRACKING).
//
// Everything goes through this one connection, so that answers and invalidations come in the order in which the server
// made them: whoever learns of a change (of a lease that is free again, say) has lost what was cached before it.

import { RedisClient } from 'redis'
import { inTime } from '../deadline.ts'
import { COMMAND_OPTIONS, clientOptions, DEADLINE_MS } from './client-options.ts'
import { commandsOf } from './commands.ts'
import { type Connect, type Connection, superviseConnection } from './connection.ts'
import type { ReadCacheLimits } from './read-cache.ts'
import type { Host, SentinelAddress, SingleAddress } from './redis-address.ts'
import { keyOf } from './redis-record.ts'
import { scripts } from './scripts.ts'
import { findPrimary } from './sentinels.ts'
import { type TlsOptions, tlsOptionsOf } from './tls-options.ts'

// createClient() would make a class of all commands anew for each connection.
const makeClient = RedisClient.factory({ scripts })

export function toServer(address: SingleAddress, cache: ReadCacheLimits): Connect {
  const tlsTo = tlsOptionsOf(address)
  return () => connect(address, { ...address.host, ...tlsTo(address.host) }, cache)
}

export function toPrimary(address: SentinelAddress, cache: ReadCacheLimits): Connect {
  const tlsTo = tlsOptionsOf(address)
  return async () => {
    const primary = await findPrimary(address, tlsTo)
    return connect(address, { ...primary, ...tlsTo(primary) }, cache)
  }
}

async function connect(
  address: SingleAddress | SentinelAddress,
  socket: Host & Partial<TlsOptions>,
  cache: ReadCacheLimits,
): Promise<Connection> {
  const { kind, database } = address
  const client = makeClient({
    ...clientOptions(address, socket),
    commandOptions: COMMAND_OPTIONS,
    database,
    emitInvalidate: true,
  })
  client.on('error', () => {}) // until it is supervised, connect() says it too
  try {
    await inTime(client.connect(), DEADLINE_MS)
    if (kind === 'sentinel') assertPrimary(await inTime(client.sendCommand(['ROLE']), DEADLINE_MS))
  } catch (error) {
    client.destroy()
    throw error
  }
  const connection = superviseConnection(client, commandsOf(client, address.prefix), cache)
  client.on('error', connection.lose)
  client.on('invalidate', (name: Buffer | null) => {
    if (name === null) connection.forgetAll()
    else connection.forget(keyOf(name.toString(), address.prefix))
  })
  return connection
}

/** Sentinels may be late to know that a server is the primary no more. */
function assertPrimary(role: unknown): void {
  if (!Array.isArray(role) || role[0] !== 'master')
    throw new Error('The sentinels named a server that is not the primary.')
}
