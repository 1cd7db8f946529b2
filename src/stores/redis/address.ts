// Reads the addresses that the setting STORE can have for Redis. No input or output: it also serves to check the setting.
//
//   redis://[user:password@]host[:port][/db]
//   rediss://[user:password@]host[:port][/db][?ca=FILE]
//   redis+sentinel://[user:password@]host[:port],host[:port],…/MASTERNAME[/db]
//   redis+cluster://[user:password@]host[:port],host[:port],…

import { MenshenError } from '../../errors.ts'

export interface Host {
  readonly host: string
  readonly port: number
}

interface Common {
  /** For people: without the password. */
  readonly name: string
  readonly hosts: readonly [Host, ...Host[]]
  readonly username?: string
  readonly password?: string
}

export interface SingleAddress extends Common {
  readonly kind: 'single'
  readonly database: number
  readonly tls: boolean
  /** A file with the certificate of a private authority. */
  readonly ca?: string
}

export interface SentinelAddress extends Common {
  readonly kind: 'sentinel'
  readonly database: number
  readonly primary: string
}

export interface ClusterAddress extends Common {
  readonly kind: 'cluster'
}

export type RedisAddress = SingleAddress | SentinelAddress | ClusterAddress

const ADDRESS =
  /^(?<scheme>redis|rediss|redis\+sentinel|redis\+cluster):\/\/(?:(?<username>[^:@/?#]*):(?<password>[^@/?#]+)@)?(?<hosts>[^@/?#]+)(?<path>(?:\/[^/?#]+)*)\/?(?:\?ca=(?<ca>[^&#]+))?$/
const HOST = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<name>[^\s:[\]]+))(?::(?<port>\d{1,5}))?$/i
const DATABASE = /^\d{1,4}$/

const REDIS_PORT = 6379
const SENTINEL_PORT = 26379

export function isRedisAddress(text: string): boolean {
  return readAddress(text) !== undefined
}

export function parseRedisAddress(text: string): RedisAddress {
  const address = readAddress(text)
  if (address) return address
  const forms = 'redis://, rediss://, redis+sentinel://host,host/MASTERNAME or redis+cluster://host,host'
  const remedy = 'with special characters of a password written as %40 and the like'
  throw new MenshenError('bad_settings', `STORE is not a Redis address; expected ${forms}, ${remedy}.`)
}

function readAddress(text: string): RedisAddress | undefined {
  const { scheme, username, password, hosts: list = '', path = '', ca } = ADDRESS.exec(text)?.groups ?? {}
  const hosts = readHosts(list, scheme === 'redis+sentinel' ? SENTINEL_PORT : REDIS_PORT)
  if (!scheme || !hosts || (ca !== undefined && scheme !== 'rediss')) return undefined
  try {
    const common = {
      name: `${scheme}://${list}${path}`,
      hosts,
      ...(username ? { username: decodeURIComponent(username) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
    }
    const parts = path.split('/').slice(1).map(decodeURIComponent)
    if (scheme === 'redis+cluster') return parts.length === 0 ? { ...common, kind: 'cluster' } : undefined

    const primary = scheme === 'redis+sentinel' ? parts.shift() : undefined
    const [database = '0', ...rest] = parts
    if (!DATABASE.test(database) || rest.length > 0) return undefined
    if (scheme === 'redis+sentinel')
      return primary === undefined ? undefined : { ...common, kind: 'sentinel', primary, database: Number(database) }
    if (hosts.length > 1) return undefined
    const tls = scheme === 'rediss'
    return { ...common, kind: 'single', database: Number(database), tls, ...(ca ? { ca: decodeURIComponent(ca) } : {}) }
  } catch {
    return undefined // a % that encodes nothing
  }
}

function readHosts(list: string, defaultPort: number): [Host, ...Host[]] | undefined {
  const hosts = list.split(',').flatMap(text => readHost(text, defaultPort) ?? [])
  const [first, ...others] = hosts
  return first && hosts.length === list.split(',').length ? [first, ...others] : undefined
}

function readHost(text: string, defaultPort: number): Host | undefined {
  const { ipv6, name, port = String(defaultPort) } = HOST.exec(text)?.groups ?? {}
  const host = ipv6 ?? name
  return host && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : undefined
}
