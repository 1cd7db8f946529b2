// The store for several machines: Redis 6.2 or later.
//
// A change resolves when the primary has acknowledged it. What survives a crash depends on the configuration of Redis: with
// `appendfsync always` everything, with `everysec` all but the last second. Replicas are a moment behind, so a failover can lose the
// changes of that moment. Redis must not evict (`maxmemory-policy noeviction`): that would sign users out.

import type { Report } from '../../events.ts'
import { phrase, phrasedError } from '../../text/text.ts'
import { withDeadline } from '../../util/deadline.ts'
import { newFreshness, type Store, type StoredEntry } from '../store.ts'
import { parseRedisAddress, type RedisAddress } from './address.ts'
import {
  type Connect,
  DEADLINE_MS,
  openReconnectingClient,
  type ReadCacheLimits,
  type ReconnectingClient,
  type RedisConnection,
  toCluster,
  toPrimary,
  toServer,
} from './connection.ts'

import { NEWEST, putRecord, readLabelPage, readNewestPage, takeRecord } from './indexes.ts'
import type { RedisEntry } from './record.ts'
import { createRedisTrail } from './trail.ts'

interface RedisStoreOptions {
  readonly address: string
  readonly now: () => number
  readonly report: Report
  /** The limits of the read cache. */
  readonly cache?: ReadCacheLimits
}

const SMALL_CACHE: ReadCacheLimits = { size: 10_000, bytes: 16 * 1024 * 1024 }

/** Resolves even if Redis cannot be reached yet: until then every operation fails. */
export async function openRedisStore({ address, now, report, cache = SMALL_CACHE }: RedisStoreOptions): Promise<Store> {
  const target = parseRedisAddress(address)
  const client = await openReconnectingClient(connectorOf(target, cache), target.name, report)
  const run = createRunner(client, target.name)
  const generation = createGenerations(client)

  function ifUnexpired(record: RedisEntry | undefined): RedisEntry | undefined {
    return record && record.expiresAt > now() ? record : undefined
  }

  function known(key: string): RedisEntry | undefined {
    return ifUnexpired(client.connection?.known(key))
  }

  async function find(key: string): Promise<RedisEntry | undefined> {
    return known(key) ?? ifUnexpired(await run(connection => connection.load(key)))
  }

  async function take(key: string): Promise<RedisEntry | undefined> {
    return ifUnexpired(await run(connection => takeRecord(connection, key)))
  }

  return {
    trail: createRedisTrail(run),

    create: (key, entry) => run(connection => putRecord(connection, { key, entry }, now)),

    async read(key) {
      const record = await find(key)
      return record && copyEntry(record)
    },

    async readLatest(key) {
      const record = ifUnexpired(await run(connection => connection.reload(key)))
      return record && copyEntry(record)
    },

    isCurrent(key, version, freshness = newFreshness()) {
      const current = generation()
      if (current === undefined) return false
      if (freshness.validIn !== current) {
        const record = client.connection?.known(key)
        if (record?.version !== version) return false
        freshness.validIn = current
        freshness.validUntil = record.expiresAt
      }
      return freshness.validUntil > now()
    },

    async replace(key, entry, version) {
      const given = { ...entry, value: new Uint8Array(entry.value) }
      const old = await find(key)
      if (old?.version !== version) return undefined
      return run(connection => putRecord(connection, { key, entry: given, old }, now))
    },

    async remove(key) {
      return (await take(key)) !== undefined
    },

    async take(key) {
      const taken = await take(key)
      return taken && copyEntry(taken)
    },

    async list(query) {
      const { entries, ...rest } = await run(connection => readLabelPage(connection, query, now()))
      return { entries: entries.map(copyEntry), ...rest }
    },

    async newest(query) {
      const { entries, ...rest } = await run(connection => readNewestPage(connection, query, now()))
      return { entries: entries.map(copyEntry), ...rest }
    },

    count: () => run(({ commands }) => commands.countAbove(NEWEST[1], now())),

    async ready() {
      await run(({ commands }) => commands.ping())
    },

    close: () => client.close(),
  }
}

/**
 * Counts the generations of the cache: a change of any record begins a new one, and so does a new connection. Within a generation, a
 * known record is unchanged and does not have to be looked up. `undefined` while nothing is known; no generation is 0.
 */
function createGenerations(client: ReconnectingClient): () => number | undefined {
  let generation = 0
  let seen: RedisConnection | undefined
  let seenChanges = 0
  return () => {
    const { connection } = client
    const changes = connection?.changes()
    if (changes === undefined) return undefined
    if (connection !== seen || changes !== seenChanges) generation++
    seen = connection
    seenChanges = changes
    return generation
  }
}

type Run = <Result>(work: (connection: RedisConnection) => Promise<Result>) => Promise<Result>

/** Runs an operation on the current connection, with a deadline. */
function createRunner(client: ReconnectingClient, name: string): Run {
  return async work => {
    const { connection } = client
    try {
      if (!connection) throw new Error('Not connected.')
      return await withDeadline(work(connection), DEADLINE_MS)
    } catch (cause) {
      // The server became a replica: another one is the primary.
      if (cause instanceof Error && cause.message.startsWith('READONLY')) connection?.lose(cause)
      throw phrasedError('store_unavailable', phrase('store_is_away', { name }), cause)
    }
  }
}

function connectorOf(address: RedisAddress, cache: ReadCacheLimits): Connect {
  switch (address.kind) {
    case 'single':
      return toServer(address, cache)
    case 'sentinel':
      return toPrimary(address, cache)
    case 'cluster':
      return toCluster(address)
  }
}

/** A copy, so that neither side sees changes by the other. */
function copyEntry({ generation: _, value, ...stored }: RedisEntry): StoredEntry {
  return { ...stored, value: new Uint8Array(value) }
}
