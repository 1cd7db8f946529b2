// What an application is told with a forwarded request: the browser's own headers less everything that is only for the
// connection, that could be a lie about who is there, or that is ours.
import type { IncomingMessage } from 'node:http'
import type { Opened } from '../../session/opened.ts'
import { ourCookies } from '../cookies.ts'
import type { House } from '../house.ts'
import type { Visit } from '../request.ts'
import { type Soon, whenThere } from '../soon.ts'
import { isTrusted, plainAddress, splitList } from '../trust.ts'
import { namedBy } from './connection.ts'

/** Meant for one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Claims about where a request came from and what it first asked for, which some applications believe more than the
 * request itself; what is true of them we say ourselves. `Expect` has been answered by us.
 */
const CLAIMS = /^(host|expect|forwarded|x-real-ip|x-rewrite-url|x-(forwarded|original)-.*)$/

/** What is the same for every request. */
interface Lasting {
  readonly ours: readonly string[]
  readonly ourCookies: ReadonlySet<string>
  /** By the name as it was sent. */
  readonly fates: Map<string, Fate>
}

type Fate = 'dropped' | 'kept' | 'filtered'

const lasting = new WeakMap<House, Lasting>()
/** Browsers use a few dozen names; somebody who makes up new ones must not fill our memory. */
const MOST_FATES = 1000

/** Names and values in turn. */
export function requestHeaders(
  house: House,
  upstreamHost: string,
  { rawHeaders }: IncomingMessage,
  visit: Visit,
  opened: Opened | undefined,
): Soon<string[]> {
  const { settings, identities } = house
  const { host, connection, te } = visit.headers
  const { ours, ourCookies, fates } = lasting.get(house) ?? makeLasting(house)
  const named = namedBy(connection)?.map(plainName)
  const headers = ['host', settings.UPSTREAM_HOST_HEADER === 'browser' && host ? host : upstreamHost]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const fate = fates.get(name) ?? decideFate(house, fates, name)
    if (fate === 'dropped' || named?.includes(plainName(name))) continue
    const value = rawHeaders[i + 1] as string
    const kept = fate === 'filtered' ? withoutOurs(ourCookies, value) : value
    if (kept || fate === 'kept') headers.push(name, kept)
  }
  if (te !== undefined && splitList(te).includes('trailers')) headers.push('te', 'trailers')
  headers.push('x-forwarded-for', forwardedFor(house, visit), ...ours)
  if (!opened) return headers
  return whenThere(identities.headersFor(opened), identity => {
    for (const name in identity) headers.push(name, identity[name] as string)
    if (settings.FORWARD_ACCESS_TOKEN) headers.push('authorization', `Bearer ${opened.session.accessToken}`)
    return headers
  })
}

function makeLasting(house: House): Lasting {
  const own = new URL(house.settings.BASE_URL)
  const made = {
    ours: ['x-forwarded-proto', own.protocol.slice(0, -1), 'x-forwarded-host', own.host],
    ourCookies: ourCookies(house.cookies),
    fates: new Map(),
  }
  lasting.set(house, made)
  return made
}

function decideFate(house: House, fates: Map<string, Fate>, name: string): Fate {
  const fate = fateOf(house, plainName(name))
  if (fates.size >= MOST_FATES) fates.clear()
  fates.set(name, fate)
  return fate
}

function fateOf({ settings, identities }: House, plain: string): Fate {
  if (HOP_BY_HOP.has(plain) || CLAIMS.test(plain) || identities.names.has(plain)) return 'dropped'
  if (plain === 'authorization' && settings.FORWARD_ACCESS_TOKEN) return 'dropped'
  return plain === 'cookie' ? 'filtered' : 'kept'
}

/** Many applications cannot tell dashes from underscores, and some not from any other sign, so neither must we. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

function withoutOurs(ourCookies: ReadonlySet<string>, header: string): string {
  const isTheirs = (pair: string) => !ourCookies.has((pair.split('=', 1)[0] as string).trim().toLowerCase())
  if (!header.includes(';')) return isTheirs(header) ? header.trim() : ''
  return header.split(';').filter(isTheirs).join(';').trim()
}

function forwardedFor({ settings }: House, { address, headers }: Visit): string {
  const peer = plainAddress(address)
  const before = headers['x-forwarded-for']
  if (before === undefined || !isTrusted(settings.TRUSTED_PROXIES, address)) return peer
  return [...splitList(before), peer].join(', ')
}
