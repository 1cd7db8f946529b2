// Parses the Redis addresses of the setting STORE.
//
//   redis://[user:password@]host[:port][/db]
//   redis+sentinel://[user:password@]host[:port],host[:port],…/MASTERNAME[/db]
//   redis+cluster://[user:password@]host[:port],host[:port],…
//
// With `rediss` in place of `redis`, every connection is TLS: to the server, to the sentinels and the primary that they
// name, to all nodes of the cluster. Then `?ca=FILE` may follow, the certificate of a private authority. `?prefix=NAME` replaces
// `menshen` at the beginning of all key names, for several installations in one database.

import { closestName } from '../../config/suggestions.ts'
import { MenshenError } from '../../errors.ts'
import { type Phrase, phrase, phrasedProblem } from '../../text/text.ts'

export interface RedisHost {
  readonly host: string
  readonly port: number
}

interface Common {
  /** For display: without the password. */
  readonly name: string
  readonly username?: string
  readonly password?: string
  readonly tls: boolean
  /** A file with the certificate of a private authority. */
  readonly ca?: string
  /** What the names of all keys begin with. */
  readonly prefix: string
}

export interface SingleAddress extends Common {
  readonly kind: 'single'
  readonly host: RedisHost
  readonly database: number
}

export interface SentinelAddress extends Common {
  readonly kind: 'sentinel'
  readonly hosts: readonly RedisHost[]
  readonly primary: string
  readonly database: number
}

export interface ClusterAddress extends Common {
  readonly kind: 'cluster'
  readonly hosts: readonly RedisHost[]
}

export type RedisAddress = SingleAddress | SentinelAddress | ClusterAddress

const LOGIN = '(?:(?<username>[^:@/?#]*):(?<password>[^@/?#]+)@)?'
const HOSTS = '(?<hosts>[^@/?#]+)'
const DATABASE = '(?:/(?<database>\\d{1,4}))?/?'
const OPTIONS = '(?:\\?(?<options>[^#]+))?'
const SINGLE = new RegExp(`^redis(?<tls>s?)://${LOGIN}${HOSTS}${DATABASE}${OPTIONS}$`)
const SENTINEL = new RegExp(`^redis(?<tls>s?)\\+sentinel://${LOGIN}${HOSTS}/(?<primary>[^/?#]+)${DATABASE}${OPTIONS}$`)
const CLUSTER = new RegExp(`^redis(?<tls>s?)\\+cluster://${LOGIN}${HOSTS}/?${OPTIONS}$`)
const HOST = /^(?:\[(?<ipv6>[\da-f:.]+)\]|(?<name>[^\s:,[\]]+))(?::(?<port>\d{1,5}))?$/i

/** Without braces, which determine the slot in a cluster, and without characters that have a meaning in the patterns of ACLs. */
const PREFIX = /^[\w.:-]{1,64}$/
const DEFAULT_PREFIX = 'menshen'

const REDIS_PORT = 6379
const SENTINEL_PORT = 26379

export function parseRedisAddress(text: string): RedisAddress {
  const problem = optionProblem(text)
  if (problem) throw new MenshenError('bad_settings', [phrasedProblem({ setting: 'STORE' }, problem)])
  const address = readAddress(text)
  if (address) return address
  throw new MenshenError('bad_settings', [phrasedProblem({ setting: 'STORE' }, phrase('config.redis_address'))])
}

const OPTION_NAMES = ['ca', 'prefix']

/** Names the parameter that is wrong, and nothing else: the rest of the address may contain a password. */
function optionProblem(text: string): Phrase | undefined {
  const [, options = ''] = /^[^?]*\?([^#]*)$/.exec(text) ?? []
  for (const [name, value] of new URLSearchParams(options)) {
    const shown = name.replace(/[^\w.-]/g, '').slice(0, 40)
    const likely = closestName(name, OPTION_NAMES)
    if (!OPTION_NAMES.includes(name))
      return likely
        ? phrase('config.redis_parameter_likely', { name: shown, likely })
        : phrase('config.redis_parameter', { name: shown })
    if (name === 'prefix' && !PREFIX.test(value)) return phrase('config.redis_prefix')
  }
  return undefined
}

function readAddress(text: string): RedisAddress | undefined {
  try {
    const address = readSingle(text) ?? readSentinel(text) ?? readCluster(text)
    return address?.ca !== undefined && !address.tls ? undefined : address
  } catch {
    return undefined // an invalid % escape, or an unknown option
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

function common(text: string, { username, password, tls, options }: Record<string, string | undefined>): Common {
  const { ca, prefix = DEFAULT_PREFIX } = readOptions(options)
  if (!PREFIX.test(prefix)) throw new URIError('a prefix of other signs')
  return {
    name: text.replace(/\/\/.*@/, '//'),
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    tls: tls === 's',
    ...(ca === undefined ? {} : { ca }),
    prefix,
  }
}

/** Each option at most once, and no unknown ones: a typo must not be taken for the default. */
function readOptions(text = ''): { ca?: string; prefix?: string } {
  const pairs = text.split('&').filter(Boolean)
  const options = pairs.map(pair => /^(ca|prefix)=(.+)$/.exec(pair) ?? [])
  const names = options.map(([, name]) => name)
  if (names.includes(undefined) || new Set(names).size < names.length) throw new URIError('an unknown option')
  return Object.fromEntries(options.map(([, name, value = '']) => [name, decodeURIComponent(value)]))
}

function readHosts(list: string, defaultPort: number): RedisHost[] | undefined {
  const hosts = list.split(',').map(text => readHost(text, defaultPort))
  return hosts.every(host => host !== undefined) ? hosts : undefined
}

function readHost(text: string, defaultPort: number): RedisHost | undefined {
  const { ipv6, name, port = defaultPort } = HOST.exec(text)?.groups ?? {}
  const host = ipv6 ?? name
  return host && Number(port) > 0 && Number(port) < 65_536 ? { host, port: Number(port) } : undefined
}
