// A connection to one server, with a cache that the server keeps true (CLIENT TRACKING).
//
// Everything goes through this one connection, so that answers and invalidations come in the order in which the server
// made them: whoever learns of a change (of a lease that is free again, say) has lost what was cached before it.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { RedisClient } from 'redis'
import { MenshenError } from '../../errors.ts'
import { COMMAND_OPTIONS, clientOptions, type Security } from './client-options.ts'
import { commandsOf, scripts } from './commands.ts'
import { type Connect, type Connection, superviseConnection } from './connection.ts'
import { inTime } from './deadline.ts'
import type { Host, SentinelAddress, SingleAddress } from './redis-address.ts'
import { keyOf } from './redis-record.ts'
import { findPrimary } from './sentinels.ts'

// createClient() would make a class of all commands anew for each connection.
const makeClient = RedisClient.factory({ scripts })

export function toServer(address: SingleAddress, cacheSize: number): Connect {
  const { host, tls, ca } = address
  const security = tls ? securityOf(host, ca) : {}
  return () => connect(address, { ...host, ...security }, cacheSize)
}

export function toPrimary(address: SentinelAddress, cacheSize: number): Connect {
  return async () => connect(address, await findPrimary(address), cacheSize)
}

async function connect(
  address: SingleAddress | SentinelAddress,
  socket: Host & Partial<Security>,
  cacheSize: number,
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
    await inTime(client.connect())
    if (kind === 'sentinel') assertPrimary(await inTime(client.sendCommand(['ROLE'])))
  } catch (error) {
    client.destroy()
    throw error
  }
  const connection = superviseConnection(client, commandsOf(client), cacheSize)
  client.on('error', connection.lose)
  client.on('invalidate', (name: Buffer | null) => {
    if (name === null) connection.forgetAll()
    else connection.forget(keyOf(name.toString()))
  })
  return connection
}

/** Sentinels may be late to know that a server is the primary no more. */
function assertPrimary(role: unknown): void {
  if (!Array.isArray(role) || role[0] !== 'master')
    throw new Error('The sentinels named a server that is not the primary.')
}

export function securityOf({ host }: Host, ca: string | undefined): Security {
  return {
    tls: true,
    ...(isIP(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca: readCertificate(ca) }),
  }
}

function readCertificate(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new MenshenError('bad_settings', `STORE names ${file} as ca, which cannot be read.`, cause)
  }
}
