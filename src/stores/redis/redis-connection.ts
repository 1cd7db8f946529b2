// One connection to Redis, from its first answer to its first failure. It never reconnects: reconnecting-client.ts replaces it.

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { createClient, RedisClient, RedisCluster } from 'redis'
import { MenshenError } from '../../errors.ts'
import type { Report } from '../../events.ts'
import { withDeadline } from '../../util/deadline.ts'
import {
  type ClusterAddress,
  type Host,
  parseRedisAddress,
  type RedisAddress,
  type SentinelAddress,
  type SingleAddress,
} from './redis-address.ts'
import { type Commands, commandsOf, scripts } from './redis-commands.ts'
import { decodeReply, type Indexed, keyOf, recordName } from './redis-record.ts'

export interface RedisConnection {
  readonly commands: Commands
  /** A record that is known to be the latest without asking. */
  known(key: string): Indexed | undefined
  /** Asks for a record, and knows it from then on. */
  load(key: string): Promise<Indexed | undefined>
  /** Asks for a record. */
  fetch(key: string): Promise<Indexed | undefined>
  /** Drops what is known of a record, and lets nothing be known by reads that are underway. */
  forget(key: string): void
  forgetAll(): void
  lose(reason: unknown): void
  /** Resolves with the reason when the connection is of no use any more. */
  readonly lost: Promise<unknown>
  close(): Promise<void>
}

export type Connect = () => Promise<RedisConnection>

/** What node-redis calls a client or a cluster. */
interface SupervisedClient {
  close(): Promise<unknown>
  destroy(): void
}

const HEARTBEAT_MS = 500
const SILENCE_MS = 1000
/** What was read counts as long as the server has answered something that it was asked within this time. */
const TRUST_MS = 2000

/** Without `limits` nothing is cached: the server does not say what changes, or there is no room. */
export function superviseConnection(
  client: SupervisedClient,
  commands: Commands,
  limits: ReadCacheLimits | undefined,
): RedisConnection {
  const fetch = async (key: string) => decodeReply(key, await commands.get(recordName(key)))
  const cache = limits && limits.size > 0 && limits.bytes >= 1 ? createReadCache(limits, fetch) : undefined
  const { promise: lost, resolve } = Promise.withResolvers<unknown>()
  let isLost = false
  // By the clock of the process and not by that of the store: this is about the wire.
  let provenAt = performance.now()

  function lose(reason: unknown): void {
    if (isLost) return
    isLost = true
    cache?.forgetAll()
    client.destroy()
    resolve(reason)
  }

  async function listen(): Promise<void> {
    while (!isLost) {
      const askedAt = performance.now()
      await withDeadline(commands.ping(), SILENCE_MS)
      provenAt = askedAt
      await pause(HEARTBEAT_MS, undefined, { ref: false })
    }
  }
  listen().catch(lose)

  return {
    commands,
    fetch,
    lose,
    lost,

    known(key) {
      const isTrusted = !isLost && performance.now() - provenAt < TRUST_MS
      return isTrusted ? cache?.get(key) : undefined
    },

    load: key => cache?.load(key) ?? fetch(key),

    forget: key => cache?.forget(key),
    forgetAll: () => cache?.forgetAll(),

    async close() {
      await withDeadline(client.close(), DEADLINE_MS).catch(() => {})
      lose(new Error('The store is closed.'))
    },
  }
}

// Keeps one connection to Redis: makes a new one whenever it is lost, and never gives up.

export interface ReconnectingClient {
  /** Absent while Redis cannot be reached. */
  readonly connection: RedisConnection | undefined
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2000

/** Resolves when the first attempt to connect has ended, well or not. */
export async function openReconnectingClient(
  connect: Connect,
  store: string,
  report: Report,
): Promise<ReconnectingClient> {
  const closing = new AbortController()
  const tried = Promise.withResolvers<void>()
  let connection: RedisConnection | undefined
  let told: string | undefined

  function tell(error: unknown): void {
    const reason = reasonOf(error)
    if (reason !== told) report('store_unreachable', { store, reason })
    told = reason
  }

  async function serve(): Promise<void> {
    const opened = await connect()
    if (closing.signal.aborted) return opened.close()
    if (told !== undefined) report('store_reachable', { store })
    told = undefined
    connection = opened
    tried.resolve()
    const reason = await opened.lost
    connection = undefined
    if (!closing.signal.aborted) tell(reason)
  }

  async function keep(): Promise<void> {
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      await serve().then(() => {
        attempt = 0
      }, tell)
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
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS)
  return longest * (0.5 + Math.random() / 2)
}

/** Errors of several attempts at once (two addresses of one name, several sentinels) have no words of their own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

// How every client of node-redis is set up here.

export interface Credentials {
  readonly username?: string
  readonly password?: string
}

export const DEADLINE_MS = 2000

export function clientOptions({ username, password }: Credentials, socket: Partial<Host & TlsOptions>) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    socket: { ...socket, connectTimeout: DEADLINE_MS, reconnectStrategy: false as const },
    disableOfflineQueue: true,
    maintNotifications: 'disabled' as const,
  }
}

/**
 * The timeouts of node-redis end when a command is written and not when it is answered, and would be a timer for each.
 * DEADLINE_MS is for the whole of it.
 */
export const COMMAND_OPTIONS = { timeout: 0 }

// How connections to Redis are secured, if the address says `rediss`.

export interface TlsOptions {
  readonly tls: true
  readonly servername?: string
  readonly ca?: Buffer
}

/** The certificate is read once, when the store is opened: a file that cannot be read stops the start. */
export function tlsOptionsOf({ tls, ca }: Pick<RedisAddress, 'tls' | 'ca'>): (host?: Host) => Partial<TlsOptions> {
  if (!tls) return () => ({})
  const authority = ca === undefined ? {} : { ca: readAuthority(ca) }
  return host => ({ tls: true, ...authority, ...(host && !isIP(host.host) ? { servername: host.host } : {}) })
}

function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (cause) {
    throw new MenshenError('bad_settings', `STORE names ${file} as ca, which cannot be read.`, cause)
  }
}

// A connection to one server, with a cache that the server keeps true (CLIENT TRACKING).
//
// Everything goes through this one connection, so that answers and invalidations come in the order in which the server
// made them: whoever learns of a change (of a lease that is free again, say) has lost what was cached before it.

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
): Promise<RedisConnection> {
  const { kind, database } = address
  const client = makeClient({
    ...clientOptions(address, socket),
    commandOptions: COMMAND_OPTIONS,
    database,
    emitInvalidate: true,
  })
  client.on('error', () => {}) // until it is supervised, connect() says it too
  try {
    await withDeadline(client.connect(), DEADLINE_MS)
    if (kind === 'sentinel') assertPrimary(await withDeadline(client.sendCommand(['ROLE']), DEADLINE_MS))
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

// Asks the sentinels which server is the primary.

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
    await withDeadline(client.connect(), DEADLINE_MS)
    const reply = await withDeadline(client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]), DEADLINE_MS)
    if (!Array.isArray(reply))
      throw new Error(`The sentinel at ${sentinel.host}:${sentinel.port} does not know ${name}.`)
    return { host: String(reply[0]), port: Number(reply[1]) }
  } finally {
    client.destroy()
  }
}

// A connection to a cluster. Records are read from their primaries each time: the cache of single.ts is right because one
// server puts answers and invalidations in order, and here there are several. A lease could be seen to be free before it
// is known that its session has changed.

const NO_CACHE = undefined
/** At a node that hangs: whatever comes on top fails at once. */
const MOST_WAITING = 10_000

const makeCluster = RedisCluster.factory({ scripts })

export function toCluster(address: ClusterAddress): Connect {
  // The cluster itself names its nodes, and each has to prove the name or address that it has there.
  const tls = tlsOptionsOf(address)()
  return async () => {
    const cluster = makeCluster({
      rootNodes: address.hosts.map(host => ({ socket: { ...host, ...tls } })),
      defaults: { ...clientOptions(address, tls), commandsQueueMaxLength: MOST_WAITING },
    })
    // Of one node of several; connect() would only say that none of them is available.
    let reason: unknown
    cluster.on('error', error => {
      reason = error
    })
    try {
      await withDeadline(cluster.connect(), DEADLINE_MS)
    } catch (error) {
      cluster.destroy()
      throw reason ?? error
    }
    const connection = superviseConnection(
      cluster,
      commandsOf(cluster.withCommandOptions(COMMAND_OPTIONS), address.prefix),
      NO_CACHE,
    )
    cluster.on('node-error', connection.lose)
    return connection
  }
}

// The records that one connection has read. They are valid while the server promises to say when they change. The promise ends
// with the connection, and so does its cache.

interface ReadCache {
  get(key: string): Indexed | undefined
  /** Reads a record and keeps it, unless it is forgotten before the answer is here. */
  load(key: string): Promise<Indexed | undefined>
  forget(key: string): void
  forgetAll(): void
}

export interface ReadCacheLimits {
  /** How many records at most. */
  readonly size: number
  /** How much memory they may take together. */
  readonly bytes: number
}

/** Beside the bytes that came from the server: the objects around them and their places in the cache, as measured. */
const OVERHEAD_BYTES = 900

export function createReadCache(
  { size, bytes }: ReadCacheLimits,
  fetch: (key: string) => Promise<Indexed | undefined>,
): ReadCache {
  // Not by `max`: lru-cache makes room for that many ahead, which takes 100 ms for 100,000. A record that takes at least its
  // share of all bytes keeps both limits.
  const least = Math.ceil(bytes / size)
  const records = new LRUCache<string, Indexed>({
    maxSize: Math.floor(bytes),
    sizeCalculation: ({ value }) => Math.max(least, OVERHEAD_BYTES + value.buffer.byteLength),
  })
  const underway = new Map<string, Promise<Indexed | undefined>>()

  async function start(key: string): Promise<Indexed | undefined> {
    const reading = fetch(key)
    underway.set(key, reading)
    try {
      const record = await reading
      if (record && underway.get(key) === reading) records.set(key, record)
      return record
    } finally {
      if (underway.get(key) === reading) underway.delete(key)
    }
  }

  return {
    get: key => records.get(key),

    load: key => underway.get(key) ?? start(key),

    forget(key) {
      records.delete(key)
      underway.delete(key)
    },

    forgetAll() {
      records.clear()
      underway.clear()
    },
  }
}

// A separate connection for the rate limits, which all instances count together. It may come and go: without it each process
// counts in its own memory.

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
