// A connection to one server, with a cache that the server keeps true (CLIENT TRACKING).
//
// Everything goes through this one connection, so that answers and invalidations come in the order in which the server
// made them: whoever learns of a change (of a lease that is free again, say) has lost what was cached before it.

import { readFileSync } from 'node:fs'
import { createClient } from 'redis'
import { MenshenError } from '../../errors.ts'
import type { Host, SentinelAddress, SingleAddress } from './address.ts'
import { commandsOf, scripts } from './commands.ts'
import { type Connect, superviseConnection } from './connection.ts'
import { inTime } from './deadline.ts'
import { type ClientOptions, clientOptions } from './options.ts'
import { keyOf } from './record.ts'
import { findPrimary } from './sentinels.ts'

export function connectToServer(address: SingleAddress, cacheSize: number): Connect {
  const { hosts, tls, ca, database } = address
  const security = tls ? { tls, ...(ca === undefined ? {} : { ca: readCertificate(ca) }) } : {}
  return () => connect({ ...clientOptions(address, hosts[0], security), database }, cacheSize)
}

export function connectToPrimary(address: SentinelAddress, cacheSize: number): Connect {
  return async () => {
    const primary = await findPrimary(address)
    const connection = await connect({ ...clientOptions(address, primary), database: address.database }, cacheSize)
    return connection
  }
}

async function connect(options: ClientOptions, cacheSize: number) {
  const client = createClient({ ...options, scripts, emitInvalidate: true })
}
