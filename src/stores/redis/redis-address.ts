// Reads the addresses that the setting STORE can have for Redis.
//
//   redis://[user:password@]host[:port][/db]
//   redis+sentinel://[user:password@]host[:port],host[:port],…/MASTERNAME[/db]
//   redis+cluster://[user:password@]host[:port],host[:port],…
//
// With `rediss` in place of `redis`, every connection is TLS: to the server, to the sentinels and the primary that they
// name, to all nodes of the cluster. Then `?ca=FILE` may follow, the certificate of a private authority.

import { MenshenError } from '../../errors.ts'

export interface Host {
  readonly host: string
  readonly port: number
}

interface Common {
  /** For people: without the password. */
  readonly name: string
  readonly username?: string
  readonly password?: string
  readonly tls: boolean
  /** A file with the certificate of a private authority. */
  readonly ca?: string
}

export interface SingleAddress extends Common {
  readonly kind: 'single'
  readonly host: Host
  readonly database: number
}

export interface SentinelAddress extends Common {
  readonly kind: 'sentinel'
  readonly hosts: readonly Host[]
  readonly primary: string
  readonly database: number
}

export interface ClusterAddress extends Common {
  readonly kind: 'cluster'
  readonly hosts: readonly Host[]
}

export type RedisAddress = SingleAddress | SentinelAddress | ClusterAddress

const LOGIN = '(?:(?<username>[^:@/?#]*):(?<password>[^@/?#]+)@)?'
const HOSTS = '(?<hosts>[^@/?#]+)'
const DATABASE = '(?:/(?<database>\\d{1,4}))?/?'
const AUTHORITY = '(?:\\?ca=(?<ca>[^&#]+))?'
const SINGLE = new RegExp(`^redis(?<tls>s?)://${LOGIN}${HOSTS}${DATABASE}${AUTHORITY}$`)
const SENTINEL = new RegExp(
  `^redis(?<tls>s?)\\+sentinel://${LOGIN}${HOSTS}/(?<primary>[^/?#]+)${DATABASE}${AUTHORITY}$`,
)
const CLUSTER = new RegExp(`^redis(?<tls>s?)\\+cluster://${LOGIN}${HOSTS}/?${AUTHORITY}$`)
const HOST = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<name>[^\s:,[\]]+))(?::(?<port>\d{1,5}))?$/i

const REDIS_PORT = 6379
const SENTINEL_PORT = 26379

export function parseRedisAddress(text: string): RedisAddress {
  const address = readAddress(text)
  if (address) return address
  const forms =
    'redis://, redis+sentinel://host,host/MASTERNAME or redis+cluster://host,host, each with rediss for TLS (and ?ca=FILE)'
  const remedy = 'with special characters of a password written as %40 and the like'
  throw new MenshenError('bad_settings', `STORE is not a Redis address; expected ${forms}, ${remedy}.`)
}

function readAddress(text: string): RedisAddress | undefined {
  try {
    const address = readSingle(text) ?? readSentinel(text) ?? readCluster(text)
    return address?.ca !== undefined && !address.tls ? undefined : address
  } catch {
    return undefined // a % that encodes nothing
  }
}

function readSingle(text: string): SingleAddress | undefined {
  const { hosts = '', database = '0', ...rest } = SINGLE.exec(text)?.groups ?? {}
  const host = readHost(hosts, REDIS_PORT)
  return host && { kind: 'single', ...common(text, rest), host, database: Number(database) }
}

function readSentinel(text: string): SentinelAddress | undefined {
  const { hosts: list = '', primary, database = '0', ...rest } = SENTINEL.exec(text)?.groups ?? {}
  const hosts = readHosts(list, SENTINEL_PORT)
  if (!hosts || primary === undefined) return undefined
  const name = decodeURIComponent(primary)
  return { kind: 'sentinel', ...common(text, rest), hosts, primary: name, database: Number(database) }
}

function readCluster(text: string): ClusterAddress | undefined {
  const { hosts: list = '', ...rest } = CLUSTER.exec(text)?.groups ?? {}
  const hosts = readHosts(list, REDIS_PORT)
  return hosts && { kind: 'cluster', ...common(text, rest), hosts }
}

function common(text: string, { username, password, tls, ca }: Record<string, string | undefined>): Common {
  return {
    name: text.replace(/\/\/.*@/, '//'),
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    tls: tls === 's',
    ...(ca === undefined ? {} : { ca: decodeURIComponent(ca) }),
  }
}

function readHosts(list: string, defaultPort: number): Host[] | undefined {
  const hosts = list.split(',').map(text => readHost(text, defaultPort))
  return hosts.every(host => host !== undefined) ? hosts : undefined
}

function readHost(text: string, defaultPort: number): Host | undefined {
  const { ipv6, name, port = defaultPort } = HOST.exec(text)?.groups ?? {}
  const host = ipv6 ?? name
  return host && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : undefined
}
