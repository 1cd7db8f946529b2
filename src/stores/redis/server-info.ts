// The properties of a Redis server that matter to sessions: version, eviction, persistence.
import { RedisClient } from 'redis'
import { withDeadline } from '../../util/deadline.ts'
import { parseRedisAddress, type RedisAddress, type RedisHost } from './address.ts'
import { clientOptions, DEADLINE_MS, findPrimary, type TlsOptions, tlsOptionsOf } from './connection.ts'

export interface RedisServerInfo {
  readonly software: 'Redis' | 'Valkey'
  readonly version: string
  /** The version of Redis whose commands the server supports; Valkey reports one, too. */
  readonly redisVersion: string
  readonly evictionPolicy: string | undefined
  readonly appendOnly: boolean
  /** Whether snapshots are made automatically; `undefined` if the server does not report it. */
  readonly snapshots: boolean | undefined
  readonly lastWriteFailed: boolean
}

const makeClient = RedisClient.factory()

export async function readServerInfo(address: string): Promise<RedisServerInfo> {
  const target = parseRedisAddress(address)
  const client = makeClient(clientOptions(target, await hostOf(target)))
  client.on('error', () => {}) // connect() reports it too
  try {
    await withDeadline(client.connect(), DEADLINE_MS)
    const fields = readInfo(String(await withDeadline(client.sendCommand(['INFO']), DEADLINE_MS)))
    // Hosted servers often refuse it.
    const save = await withDeadline(client.sendCommand(['CONFIG', 'GET', 'save']), DEADLINE_MS).catch(() => undefined)
    return infoFrom(fields, save)
  } finally {
    client.destroy()
  }
}

/** The first node of a cluster represents all. */
async function hostOf(target: RedisAddress): Promise<Partial<RedisHost & TlsOptions>> {
  const tlsTo = tlsOptionsOf(target)
  if (target.kind === 'single') return { ...target.host, ...tlsTo(target.host) }
  const host = target.kind === 'sentinel' ? (await findPrimary(target, tlsTo)).server : target.hosts[0]
  return { ...host, ...tlsTo(host) }
}

function readInfo(text: string): ReadonlyMap<string, string> {
  const lines = text.split(/\r?\n/).filter(line => line.includes(':'))
  return new Map(lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

function infoFrom(info: ReadonlyMap<string, string>, save: unknown): RedisServerInfo {
  const redisVersion = info.get('redis_version') ?? ''
  const valkeyVersion = info.get('valkey_version')
  const schedule = Array.isArray(save) ? save[1] : Object(save).save
  return {
    software: valkeyVersion === undefined ? 'Redis' : 'Valkey',
    version: valkeyVersion ?? redisVersion,
    redisVersion,
    evictionPolicy: info.get('maxmemory_policy'),
    appendOnly: info.get('aof_enabled') === '1',
    snapshots: typeof schedule === 'string' ? schedule !== '' : undefined,
    lastWriteFailed: info.get('rdb_last_bgsave_status') === 'err' || info.get('aof_last_write_status') === 'err',
  }
}
