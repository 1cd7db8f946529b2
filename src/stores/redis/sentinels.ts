// Asks the sentinels which server is the primary.

import { RedisClient } from 'redis'
import { inTime } from '../deadline.ts'
import { type Credentials, clientOptions, DEADLINE_MS } from './client-options.ts'
import type { Host, SentinelAddress } from './redis-address.ts'
import type { TlsOptions } from './tls-options.ts'

const makeSentinelClient = RedisClient.factory()

type TlsTo = (host: Host) => Partial<TlsOptions>

/** Those that are down or do not know must not delay the answer of those that do. */
export function findPrimary(address: SentinelAddress, tlsTo: TlsTo): Promise<Host> {
  return Promise.any(address.hosts.map(host => askWithOrWithoutPassword({ ...host, ...tlsTo(host) }, address)))
}

/** Sentinels often have no password where the servers have one, and refuse it then. */
async function askWithOrWithoutPassword(sentinel: Host, address: SentinelAddress): Promise<Host> {
  try {
    return await ask(sentinel, {}, address.primary)
  } catch (error) {
    const isRefused = error instanceof Error && error.message.startsWith('NOAUTH')
    if (!isRefused || address.password === undefined) throw error
    return ask(sentinel, address, address.primary)
  }
}

async function ask(sentinel: Host, credentials: Credentials, name: string): Promise<Host> {
  const client = makeSentinelClient(clientOptions(credentials, sentinel))
  client.on('error', () => {}) // connect() says it too
  try {
    await inTime(client.connect(), DEADLINE_MS)
    const reply = await inTime(client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), DEADLINE_MS)
    if (!Array.isArray(reply))
      throw new Error(`The sentinel at ${sentinel.host}:${sentinel.port} does not know ${name}.`)
    return { host: String(reply[0]), port: Number(reply[1]) }
  } finally {
    client.destroy()
  }
}
