// A connection to one server, with a cache that the server keeps true (CLIENT TRACKING).
//
// Everything goes through this one connection, so that answers and invalidations come in the order in which the server
// made them: whoever learns of a change (of a lease that is free again, say) has lost what was cached before it.

import { readFileSync } from 'node:fs'
import { createClient } from 'redis'
import { MenshenError } from '../../errors.ts'
import type { Host, SentinelAddress, SingleAddress } from './address.ts'
import { commandsOf, scripts } from './commands.ts'
import { type Connect, type Connection, superviseConnection } from './connection.ts'
import { inTime } from './deadline.ts'
import { COMMAND_OPTIONS, clientOptions, type Security } from './options.ts'
import { keyOf } from './record.ts'
import { findPrimary } from './sentinels.ts'

export function toServer(address: SingleAddress, cacheSize: number): Connect {
  const { hosts, tls, ca } = address
  const security = tls ? { tls, ...(ca === undefined ? {} : { ca: readCertificate(ca) }) } : {}
  return () => connect(address, { ...hosts[0], ...security }, cacheSize)
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
  const client = createClient({
    ...clientOptions(address, socket),
    commandOptions: COMMAND_OPTIONS,
    database,
    scripts,
    emitInvalidate: true,
  })
  client.on('error', () => {}) // until it is supervised, connect() says it too
  try {
    await inTime(client.connect())
    if (kind === 'sentinel') await inTime(provePrimary(() => client.sendCommand(['ROLE'])))
  } catch (error) {
    client.destroy()
    throw error
  }
  const connection = superviseConnection(client, commandsOf(client), cacheSize)
  client.on('error', connection.lose)
  client.on('invalidate', (name: Buffer | null) => {
    const key = name === null ? undefined : keyOf(name.toString())
    if (name === null || key !== undefined) connection.forget(key)
  })
  return connection
}

/** Sentinels may be late to know that a server is not the primary any more, and it may not know it either. */
async function provePrimary(askRole: () => Promise<unknown>): Promise<void> {
  const reply = await askRole()
  if (!Array.isArray(reply) || String(reply[0]) !== 'master')
    throw new Error('The sentinels named a server that is no primary.')
}

function readCertificate(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new MenshenError('bad_settings', `STORE names ${file} as ca, which cannot be read.`, cause)
  }
}
