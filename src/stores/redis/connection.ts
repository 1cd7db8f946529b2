// Connections to Redis. A connection lives from its first answer to its first failure, and a reconnecting client replaces it.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { createClient, RedisClient, RedisCluster } from 'redis'
import { MenshenError } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { phrase, phrasedProblem } from '../../text/text.ts'
import { withDeadline } from '../../util/deadline.ts'
import {
  type ClusterAddress,
  parseRedisAddress,
  type RedisAddress,
  type RedisHost,
  type SentinelAddress,
  type SingleAddress,
} from './address.ts'
import { type Commands, commandsOf, scripts } from './commands.ts'
import { decodeReply, keyOf, type RedisEntry, recordName } from './record.ts'

export interface RedisConnection {
  readonly commands: Commands
  /** Whether keys of different slots cannot change in one step. */
  readonly isCluster: boolean
  /** The `maxmemory-policy`; `undefined` if the server does not report it. */
  readonly evictionPolicy: string | undefined
  /** A cached record that is known to be the latest. */
  known(key: string): RedisEntry | undefined
  /** How often a record was forgotten. While it stays the same, all known records are unchanged; `undefined` while none is known. */
  changes(): number | undefined
  /** Reads a record and caches it. */
  load(key: string): Promise<RedisEntry | undefined>
  /** Like `load`, but always asks the server: the message about a change by another may still be on its way. */
  reload(key: string): Promise<RedisEntry | undefined>
  /** Reads a record without the cache. */
  fetch(key: string): Promise<RedisEntry | undefined>
  /** Writes a record, and caches it if `put` returns true. */
  write(key: string, record: Buffer, put: () => Promise<boolean>): Promise<boolean>
  /** Changes a record that must not be in the cache afterwards. */
  invalidating<Result>(key: string, change: () => Promise<Result>): Promise<Result>
  /** Drops a record from the cache, also for reads and writes in flight. */
  invalidate(key: string): void
  invalidateAll(): void
  lose(reason: unknown): void
  /** Resolves with the reason when the connection is unusable. */
  readonly lost: Promise<unknown>
  close(): Promise<void>
}

export type Connect = () => Promise<RedisConnection>

/** A client or a cluster of node-redis. */
interface NodeRedisClient {
  close(): Promise<unknown>
  destroy(): void
}

const HEARTBEAT_MS = 500
/** The cache is valid if the server has answered a ping that was sent within this time. */
const CACHE_VALID_MS = 2000

interface ConnectionOptions {
  readonly commands: Commands
  readonly isCluster: boolean
  readonly evictionPolicy: string | undefined
  /** Absent if nothing is cached, because the server does not announce changes or there is no room. */
  readonly limits?: ReadCacheLimits
  /** Whether the server announces all changes of a record but our own, so that what was written can be cached. */
  readonly cachesWrites: boolean
}

export function monitorConnection(
  client: NodeRedisClient,
  { commands, isCluster, evictionPolicy, limits, cachesWrites }: ConnectionOptions,
): RedisConnection {
  const fetch = async (key: string) => decodeReply(key, await commands.get(recordName(key)))
  const cache = limits && limits.size > 0 && limits.bytes >= 1 ? createReadCache(limits, fetch) : undefined
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  let isLost = false
  // The clock of the process, not that of the store: this is about the connection.
  let provenAt = performance.now()

  function isTrusted(): boolean {
    return !isLost && performance.now() - provenAt < CACHE_VALID_MS
  }

  function lose(reason: unknown): void {
    if (isLost) return
    isLost = true
    cache?.invalidateAll()
    client.destroy()
    resolve(reason)
  }

  async function listen(): Promise<void> {
    while (!isLost) {
      const askedAt = performance.now()
      // The deadline of any command: with a shorter one, a server that is merely busy would fail all that it is working on.
      await withDeadline(commands.ping(), DEADLINE_MS)
      provenAt = askedAt
      await pause(HEARTBEAT_MS, undefined, { ref: false })
    }
  }
  listen().catch(lose)

  /** A record that was read before the change must not be in the cache after it. */
  async function invalidating<Result>(key: string, change: () => Promise<Result>): Promise<Result> {
    cache?.invalidate(key)
    return change().finally(() => cache?.invalidate(key))
  }

  return {
    commands,
    isCluster,
    evictionPolicy,
    fetch,
    lose,
    lost,

    known: key => (isTrusted() ? cache?.get(key) : undefined),
    changes: () => (isTrusted() ? cache?.changes() : undefined),

    load: key => cache?.load(key) ?? fetch(key),
    reload: key => cache?.reload(key) ?? fetch(key),

    write: (key, record, put) => (cache && cachesWrites ? cache.write(key, record, put) : invalidating(key, put)),
    invalidating,

    invalidate: key => cache?.invalidate(key),
    invalidateAll: () => cache?.invalidateAll(),

    async close() {
      await withDeadline(client.close(), DEADLINE_MS).catch(() => {})
      lose(new Error('The store is closed.'))
    },
  }
}

// Keeps one connection to Redis: opens a new one whenever it is lost, and never gives up.

export interface ReconnectingClient {
  /** Absent while Redis cannot be reached. */
  readonly connection: RedisConnection | undefined
  close(): Promise<void>
}

const NO_EVICTION = 'noeviction'
const INITIAL_BACKOFF_MS = 50
const MAX_BACKOFF_MS = 2000

/** Resolves when the first attempt to connect has succeeded or failed. */
export async function openReconnectingClient(
  connect: Connect,
  store: string,
  report: Report,
): Promise<ReconnectingClient> {
  const closing = new AbortController()
  const tried = Promise.withResolvers<void>()
  let connection: RedisConnection | undefined
  let reportedReason: string | undefined
  let reportedPolicy = NO_EVICTION

  function reportError(error: unknown): void {
    const reason = reasonOf(error)
    if (reason !== reportedReason) report('store_unreachable', { store, reason })
    reportedReason = reason
  }

  function reportEviction(policy = reportedPolicy): void {
    if (policy !== NO_EVICTION && policy !== reportedPolicy)
      report('store_evicts', {
        store,
        policy,
        remedy: 'set maxmemory-policy to noeviction, and give Redis enough memory',
      })
    reportedPolicy = policy
  }

  async function serve(): Promise<void> {
    const opened = await connect()
    if (closing.signal.aborted) return opened.close()
    if (reportedReason !== undefined) report('store_reachable', { store })
    reportedReason = undefined
    reportEviction(opened.evictionPolicy)
    connection = opened
    tried.resolve()
    const reason = await opened.lost
    connection = undefined
    if (!closing.signal.aborted) reportError(reason)
  }

  async function keep(): Promise<void> {
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      await serve().then(() => {
        attempt = 0
      }, reportError)
      tried.resolve()
      await pause(backoffMs(attempt), undefined, { signal: closing.signal }).catch(() => {})
    }
  }
  keep()
  await tried.promise

  return {
    get connection() {
      return connection
    },
    async close() {
      closing.abort()
      await connection?.close()
    },
  }
}

function backoffMs(attempt: number): number {
  const longest = Math.min(INITIAL_BACKOFF_MS * 2 ** attempt, MAX_BACKOFF_MS)
  return longest * (0.5 + Math.random() / 2)
}

/** An AggregateError (two addresses of one name, several sentinels) has no useful message. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

// The options of all clients of node-redis.

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

export const DEADLINE_MS = 2000

export function clientOptions({ username, password }: Credentials, socket: Partial<RedisHost & TlsOptions>) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    socket: { ...socket, connectTimeout: DEADLINE_MS, reconnectStrategy: false as const },
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
  }
}

/**
 * The timeouts of node-redis end when a command is written, not when it is answered, and need a timer per command. DEADLINE_MS
 * covers a whole operation.
 */
export const COMMAND_OPTIONS = { timeout: 0 }

// TLS for addresses with `rediss`.

export interface TlsOptions {
  readonly tls: true
  readonly servername?: string
  readonly ca?: Buffer
}

/** The certificate is read once, when the store is opened, so that an unreadable file stops the start. */
export function tlsOptionsOf({ tls, ca }: Pick<RedisAddress, 'tls' | 'ca'>): (host?: RedisHost) => Partial<TlsOptions> {
  if (!tls) return () => ({})
  const authority = ca === undefined ? {} : { ca: readAuthority(ca) }
  return host => ({ tls: true, ...authority, ...(host && !isIP(host.host) ? { servername: host.host } : {}) })
}

function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    const problem = phrasedProblem({ setting: 'STORE' }, phrase('config.redis_ca', { file }))
    throw new MenshenError('bad_settings', [problem], cause)
  }
}

// A connection to one server, with a cache that the server invalidates (CLIENT TRACKING).
//
// Everything goes through one connection, so that answers and invalidations arrive in the order in which the server made them: a
// caller that learns of a change (such as a released lease) no longer has the records that were cached before it.

// createClient() would build a class of all commands for each connection.
const makeClient = RedisClient.factory({ scripts })

export function toServer(address: SingleAddress, cache: ReadCacheLimits): Connect {
  const tlsOptionsFor = tlsOptionsOf(address)
  return () => connect(address, { ...address.host, ...tlsOptionsFor(address.host) }, cache)
}

export function toPrimary(address: SentinelAddress, cache: ReadCacheLimits): Connect {
  const tlsOptionsFor = tlsOptionsOf(address)
  let newestEpoch = 0
  return async () => {
    const primary = await findPrimary(address, tlsOptionsFor, newestEpoch)
    newestEpoch = primary.epoch
    const connection = await connect(address, { ...primary.server, ...tlsOptionsFor(primary.server) }, cache)
    watchSentinels(address, tlsOptionsFor, connection.lost, named => {
      newestEpoch = Math.max(newestEpoch, named.epoch)
      if (replaces(named, primary)) connection.lose(new Error('The sentinels named another primary.'))
    })
    return connection
  }
}

async function connect(
  address: SingleAddress | SentinelAddress,
  socket: RedisHost & Partial<TlsOptions>,
  cache: ReadCacheLimits,
): Promise<RedisConnection> {
  const { kind, database } = address
  const client = makeClient({
    ...clientOptions(address, socket),
    commandOptions: COMMAND_OPTIONS,
    database,
    emitInvalidate: true,
  })
  client.on('error', () => {}) // until it is supervised, connect() reports it, too
  let evictionPolicy: string | undefined
  try {
    await withDeadline(client.connect(), DEADLINE_MS)
    if (kind === 'sentinel') assertPrimary(await withDeadline(client.sendCommand(['ROLE']), DEADLINE_MS))
    evictionPolicy = await withDeadline(
      readEvictionPolicy(words => client.sendCommand(words)),
      DEADLINE_MS,
    )
    if (evictionPolicy === NO_EVICTION) await withDeadline(skipOwnChanges(client), DEADLINE_MS)
  } catch (error) {
    client.destroy()
    throw error
  }
  const connection = monitorConnection(client, {
    commands: commandsOf(client, address.prefix),
    isCluster: false,
    evictionPolicy,
    limits: cache,
    cachesWrites: evictionPolicy === NO_EVICTION,
  })
  client.on('error', connection.lose)
  client.on('invalidate', (name: Buffer | null) => {
    if (name === null) connection.invalidateAll()
    else connection.invalidate(keyOf(name.toString(), address.prefix))
  })
  return connection
}

/**
 * Asks the server to announce only changes by others. It then does not announce what it evicts during our own commands either, so
 * this is only for servers that evict nothing. A server that does not report its policy may evict.
 */
async function skipOwnChanges(client: { sendCommand(words: readonly string[]): Promise<unknown> }): Promise<void> {
  await client.sendCommand(['CLIENT', 'TRACKING', 'ON', 'NOLOOP'])
}

async function readEvictionPolicy(send: (words: string[]) => Promise<unknown>): Promise<string | undefined> {
  const memory = String(await send(['INFO', 'memory']).catch(() => ''))
  return /^maxmemory_policy:(\S+)\r?$/m.exec(memory)?.[1]
}

/** Sentinels may be late to notice that a server is no longer the primary. */
function assertPrimary(role: unknown): void {
  if (!Array.isArray(role) || role[0] !== 'master')
    throw new Error('The sentinels returned a server that is not the primary.')
}

// Asks the sentinels which server is the primary. They disagree while a failover spreads or the network is divided, and the former
// primary may still answer. Each failover has a number, the config epoch, for which a majority of the sentinels has voted, so the
// highest epoch is right:
//
//    0 s   A is the primary, of epoch 1. Sentinels 1 and 2 lose it; sentinel 3 and this process do not
//   30 s   1 and 2 make B the primary, of epoch 2. 3 still names A
//   32 s   this process asks all: 2 is more than 1, so it leaves A
//   32 s   it connects to B, whichever sentinel answers first: an answer with epoch 1 no longer counts

const makeSentinelClient = RedisClient.factory()
/** How often each sentinel is asked while a connection lasts. */
const WATCH_MS = 2000

type TlsOptionsFor = (host: RedisHost) => Partial<TlsOptions>

interface NamedPrimary {
  readonly server: RedisHost
  /** 0 if the sentinel does not report it. */
  readonly epoch: number
}

/**
 * Takes the first answer that is not older than `newestEpoch`: sentinels that are down must not delay it. If all are older, the
 * sentinels were set up again, or only those of a minority can be reached: then the newest of them.
 */
export async function findPrimary(
  address: SentinelAddress,
  tlsOptionsFor: TlsOptionsFor,
  newestEpoch = 0,
): Promise<NamedPrimary> {
  const answers = address.hosts.map(host => querySentinel({ ...host, ...tlsOptionsFor(host) }, address))
  const older: NamedPrimary[] = []
  const current = answers.map(async answer => {
    const named = await answer
    if (named.epoch >= newestEpoch) return named
    older.push(named)
    throw new Error('The sentinel named a former primary.')
  })
  return Promise.any(current).catch(error => {
    if (older.length === 0) throw error
    return older.reduce((one, other) => (other.epoch > one.epoch ? other : one))
  })
}

/** Each sentinel on its own, so that one that hangs does not delay the answers of the others. */
function watchSentinels(
  address: SentinelAddress,
  tlsOptionsFor: TlsOptionsFor,
  end: Promise<unknown>,
  onAnswer: (named: NamedPrimary) => void,
): void {
  let isOver = false
  end.then(() => {
    isOver = true
  })
  async function watch(sentinel: RedisHost): Promise<void> {
    while (!isOver) {
      await querySentinel(sentinel, address).then(onAnswer, () => {})
      await pause(WATCH_MS, undefined, { ref: false })
    }
  }
  for (const host of address.hosts) watch({ ...host, ...tlsOptionsFor(host) })
}

function replaces(named: NamedPrimary, { server, epoch }: NamedPrimary): boolean {
  const isSame = named.server.host === server.host && named.server.port === server.port
  return named.epoch > epoch && !isSame
}

/** Sentinels often have no password although the servers have one, and then reject it. */
async function querySentinel(sentinel: RedisHost, address: SentinelAddress): Promise<NamedPrimary> {
  try {
    return await getPrimaryAddress(sentinel, {}, address.primary)
  } catch (error) {
    const isRefused = error instanceof Error && error.message.startsWith('NOAUTH')
    if (!isRefused || address.password === undefined) throw error
    return getPrimaryAddress(sentinel, address, address.primary)
  }
}

async function getPrimaryAddress(sentinel: RedisHost, credentials: Credentials, name: string): Promise<NamedPrimary> {
  const client = makeSentinelClient(clientOptions(credentials, sentinel))
  client.on('error', () => {}) // connect() reports it, too
  try {
    await withDeadline(client.connect(), DEADLINE_MS)
    // The epoch first: if a failover ends in between, the new address comes with the old epoch, and not the other way round. The
    // address among the fields is the former one for longer.
    const fields = client.sendCommand(['SENTINEL', 'MASTER', name]).catch(() => [])
    const reply = await withDeadline(client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), DEADLINE_MS)
    if (!Array.isArray(reply))
      throw new Error(`The sentinel at ${sentinel.host}:${sentinel.port} does not know ${name}.`)
    return { server: { host: String(reply[0]), port: Number(reply[1]) }, epoch: epochIn(await fields) }
  } finally {
    client.destroy()
  }
}

/** An array of names and values, or an object, depending on the protocol. */
function epochIn(fields: unknown): number {
  const words: unknown[] = Array.isArray(fields) ? fields : Object.entries(Object(fields)).flat()
  return Number(words[words.indexOf('config-epoch') + 1]) || 0
}

// A connection to a cluster. Records are read from their primaries each time, without a cache: only a single server orders answers
// and invalidations. With several, a lease could appear free before the invalidation of its session arrives.

/** Limits the commands that wait for a node that hangs. Further ones fail immediately. */
const MAX_QUEUED_COMMANDS = 10_000

const makeCluster = RedisCluster.factory({ scripts })

export function toCluster(address: ClusterAddress): Connect {
  // The cluster names its nodes, and the certificate of each has to match that name or address.
  const tls = tlsOptionsOf(address)()
  return async () => {
    const cluster = makeCluster({
      rootNodes: address.hosts.map(host => ({ socket: { ...host, ...tls } })),
      defaults: { ...clientOptions(address, tls), commandsQueueMaxLength: MAX_QUEUED_COMMANDS },
    })
    // Keeps the error of one node: connect() only reports that none of them is available.
    let reason: unknown
    cluster.on('error', error => {
      reason = error
    })
    let evictionPolicy: string | undefined
    try {
      await withDeadline(cluster.connect(), DEADLINE_MS)
      // Any of its nodes represents all, and one that hangs must not prevent the connection.
      const send = (words: string[]) => cluster.sendCommand(undefined, true, words)
      evictionPolicy = await withDeadline(readEvictionPolicy(send), DEADLINE_MS, () => undefined)
    } catch (error) {
      cluster.destroy()
      throw reason ?? error
    }
    const commands = commandsOf(cluster.withCommandOptions(COMMAND_OPTIONS), address.prefix)
    const connection = monitorConnection(cluster, { commands, isCluster: true, evictionPolicy, cachesWrites: false })
    cluster.on('node-error', connection.lose)
    return connection
  }
}

// The records that one connection has read or written. They are valid while the server announces their changes, which it does until
// the connection ends; the cache ends with it.

interface ReadCache {
  get(key: string): RedisEntry | undefined
  /** Reads a record and caches it, unless it is forgotten before the answer arrives. */
  load(key: string): Promise<RedisEntry | undefined>
  /** Forgets the record and loads it. Reads that are already on their way are not waited for: they may be older. */
  reload(key: string): Promise<RedisEntry | undefined>
  /** Writes a record and caches it, unless it is forgotten or read before the answer arrives. */
  write(key: string, record: Buffer, put: () => Promise<boolean>): Promise<boolean>
  invalidate(key: string): void
  invalidateAll(): void
  /** How often a record was forgotten, whether or not it was cached. */
  changes(): number
}

export interface ReadCacheLimits {
  /** The maximum number of records. */
  readonly size: number
  /** The memory that they may take together. */
  readonly bytes: number
}

/** Memory besides the bytes of the record: objects and the row in the cache, as measured. */
const OVERHEAD_BYTES = 900

export function createReadCache(
  { size, bytes }: ReadCacheLimits,
  fetch: (key: string) => Promise<RedisEntry | undefined>,
): ReadCache {
  // Not by `max`, because lru-cache allocates that many rows ahead, which takes 100 ms for 100,000. Both limits hold if each record
  // is at least its share of all bytes.
  const least = Math.ceil(bytes / size)
  const records = new LRUCache<string, RedisEntry>({
    maxSize: Math.floor(bytes),
    sizeCalculation: ({ value }) => Math.max(least, OVERHEAD_BYTES + value.buffer.byteLength),
  })
  /** The last read or write of each key, until its answer arrives or something else has happened to the record. */
  const underway = new Map<string, { readonly reading?: Promise<RedisEntry | undefined> }>()
  let changes = 0

  async function start(key: string): Promise<RedisEntry | undefined> {
    const read = { reading: fetch(key) }
    underway.set(key, read)
    try {
      const record = await read.reading
      if (record && underway.get(key) === read) records.set(key, record)
      return record
    } finally {
      if (underway.get(key) === read) underway.delete(key)
    }
  }

  async function write(key: string, record: Buffer, put: () => Promise<boolean>): Promise<boolean> {
    const own = {}
    invalidate(key)
    underway.set(key, own)
    let isCurrent = false
    try {
      const isWritten = await put()
      isCurrent = isWritten && underway.get(key) === own
      return isWritten
    } finally {
      // A read that began after the write may have been answered before it: a script that the server does not know is sent twice.
      invalidate(key)
      const written = isCurrent ? decodeReply(key, record) : undefined
      if (written) records.set(key, written)
    }
  }

  function invalidate(key: string): void {
    changes++
    records.delete(key)
    underway.delete(key)
  }

  return {
    get: key => records.get(key),

    load: key => underway.get(key)?.reading ?? start(key),

    reload(key) {
      invalidate(key)
      return start(key)
    },

    write,
    invalidate,

    invalidateAll() {
      changes++
      records.clear()
      underway.clear()
    },

    changes: () => changes,
  }
}

// A separate connection for the rate limits, which all instances count together. It may be unavailable at times: then each process
// counts in its own memory.

export interface LimitClient {
  readonly client: object
  /** The prefix of its keys. */
  readonly prefix: string
  close(): void
}

const MAX_RECONNECT_DELAY_MS = 2000

/** `undefined` with sentinels or a cluster, where no single server is authoritative. */
export function openLimitClient(address: string): LimitClient | undefined {
  const target = parseRedisAddress(address)
  if (target.kind !== 'single') return undefined
  const { host, database } = target
  const { socket, ...options } = clientOptions(target, { ...host, ...tlsOptionsOf(target)(host) })
  const reconnectStrategy = (retries: number) => Math.min(50 * 2 ** retries, MAX_RECONNECT_DELAY_MS)
  const client = createClient({
    ...options,
    commandsQueueMaxLength: 1000,
    database,
    socket: { ...socket, reconnectStrategy },
  })
  // The connection of the store reports problems.
  client.on('error', () => {})
  client.connect().catch(() => {})
  return { client, prefix: target.prefix, close: () => client.destroy() }
}
