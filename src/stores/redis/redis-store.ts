// The store of many machines: Redis from 6.2 on, or Valkey.
//
// A change is resolved when the primary has acknowledged it. What that survives is for its configuration to say: with
// `appendfsync always` a crash of the machine, with `everysec` all but the last second. Replicas follow a moment later,
// so a failover can lose what was acknowledged in that moment. And it must not evict (`maxmemory-policy noeviction`):
// that would sign users out.

import { MenshenError } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { firstVersion } from '../first-version.ts'
import type { Entry, Store, Stored } from '../store.ts'
import { toCluster } from './cluster.ts'
import type { Connect, Connection } from './connection.ts'
import { inTime } from './deadline.ts'
import { isIndexedAlike, newGeneration } from './label-index.ts'
import { addToIndexes, listPage, removeFromIndexes } from './listing.ts'
import { openReconnectingClient } from './reconnecting-client.ts'
import { parseRedisAddress, type RedisAddress } from './redis-address.ts'
import { type Indexed, keptMs, packRecord, packVersion, recordName, unpackRecord } from './redis-record.ts'
import { toPrimary, toServer } from './single.ts'

interface Options {
  readonly address: string
  readonly now: () => number
  readonly report: Report
  /** How many records are kept at hand. */
  readonly cacheSize?: number
}

/** Resolves even if Redis cannot be reached yet: its verbs say so until it can. */
export async function openRedisStore({ address, now, report, cacheSize = 10_000 }: Options): Promise<Store> {
  const target = parseRedisAddress(address)
  const client = await openReconnectingClient(connectorOf(target, cacheSize), target.name, report)

  async function ask<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const { connection } = client
    try {
      if (!connection) throw new Error('There is no connection.')
      return await inTime(work(connection))
    } catch (cause) {
      // The server became a replica, so that the primary is elsewhere.
      if (cause instanceof Error && cause.message.startsWith('READONLY')) connection?.lose(cause)
      throw new MenshenError('store_unavailable', `The store at ${target.name} is not available.`, cause)
    }
  }

  function isLiving({ expiresAt }: Entry): boolean {
    return expiresAt > now()
  }

  function known(key: string): Indexed | undefined {
    const record = client.connection?.known(key)
    return record && isLiving(record) ? record : undefined
  }

  async function find(key: string): Promise<Indexed | undefined> {
    const record = known(key) ?? (await ask(connection => connection.load(key)))
    return record && isLiving(record) ? record : undefined
  }

  /** Nothing that is read before the change may be known after it. */
  async function change<Result>(connection: Connection, key: string, make: () => Promise<Result>): Promise<Result> {
    connection.forget(key)
    return make().finally(() => connection.forget(key))
  }

  /** Writes `entry` in the place of `old`, or where there is nothing. False if it was not so. */
  async function put(connection: Connection, key: string, entry: Entry, old?: Indexed): Promise<boolean> {
    const { commands } = connection
    const generation = old && isIndexedAlike(old, entry) ? old.generation : newGeneration()
    const next = { ...entry, key, generation, version: (old?.version ?? firstVersion()) + 1 }
    const record = packRecord(next)
    const isMoved = generation !== old?.generation
    if (isMoved) await addToIndexes(commands, next, now())
    const version = old ? packVersion(old.version) : Buffer.alloc(0)
    const written = await change(connection, key, () =>
      commands.put(recordName(key), version, now(), record, keptMs(entry, now())),
    )
    const obsolete = written ? old : next
    if (isMoved && obsolete) removeFromIndexes(commands, obsolete)
    return written
  }

  function take(key: string): Promise<Indexed | undefined> {
    return ask(async connection => {
      const reply = await change(connection, key, () => connection.commands.getAndDelete(recordName(key)))
      const old = unpackRecord(key, reply)
      if (old) removeFromIndexes(connection.commands, old)
      return old && isLiving(old) ? old : undefined
    })
  }

  return {
    create: (key, entry) => ask(connection => put(connection, key, entry)),

    async read(key) {
      const record = await find(key)
      return record && handOut(record)
    },

    holds(key, version) {
      return known(key)?.version === version
    },

    async replace(key, entry, version) {
      const given = { ...entry, value: new Uint8Array(entry.value) }
      const old = await find(key)
      return old?.version === version && ask(connection => put(connection, key, given, old))
    },

    async remove(key) {
      return (await take(key)) !== undefined
    },

    async take(key) {
      const taken = await take(key)
      return taken && handOut(taken)
    },

    async list(query) {
      const { entries, ...rest } = await ask(connection => listPage(connection, query, now()))
      return { entries: entries.map(handOut), ...rest }
    },

    async ready() {
      await ask(({ commands }) => commands.ping())
    },

    close: () => client.close(),
  }
}

function connectorOf(address: RedisAddress, cacheSize: number): Connect {
  switch (address.kind) {
    case 'single':
      return toServer(address, cacheSize)
    case 'sentinel':
      return toPrimary(address, cacheSize)
    case 'cluster':
      return toCluster(address)
  }
}

/** Neither side sees what the other does to its bytes. */
function handOut({ key, version, expiresAt, labels, value }: Indexed): Stored {
  return { key, version, expiresAt, labels, value: new Uint8Array(value) }
}
