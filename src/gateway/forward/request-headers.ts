// What an application is told with a forwarded request: the browser's own headers less everything that is only for the
// connection, that could be a lie about who is there, or that is ours.
import type { IncomingMessage } from 'node:http'
import type { Opened } from '../../session/opened.ts'
import { ourCookies } from '../cookies.ts'
import type { House } from '../house.ts'
import type { Visit } from '../request.ts'
import { isTrusted, plainAddress, splitList } from '../trust.ts'

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

/** Names and values in turn. */
export async function requestHeaders(
  house: House,
  upstreamHost: string,
  { rawHeaders }: IncomingMessage,
  visit: Visit,
  opened: Opened | undefined,
): Promise<string[]> {
  const { settings, identities } = house
  const { host, connection } = visit.headers
  const own = new URL(settings.BASE_URL)
  const named = new Set(splitList(connection).map(plainName))
  const headers = ['host', settings.UPSTREAM_HOST_HEADER === 'browser' && host ? host : upstreamHost]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const plain = plainName(name)
    if (HOP_BY_HOP.has(plain) || CLAIMS.test(plain) || named.has(plain) || identities.names.has(plain)) continue
    if (plain === 'authorization' && settings.FORWARD_ACCESS_TOKEN) continue
    const value = plain === 'cookie' ? withoutOurs(house, rawHeaders[i + 1] as string) : (rawHeaders[i + 1] as string)
    if (value || plain !== 'cookie') headers.push(name, value)
  }
  if (splitList(visit.headers.te).includes('trailers')) headers.push('te', 'trailers')
  headers.push('x-forwarded-for', forwardedFor(house, visit))
  headers.push('x-forwarded-proto', own.protocol.slice(0, -1), 'x-forwarded-host', own.host)
  if (opened) {
    for (const [name, value] of Object.entries(await identities.headersFor(opened))) headers.push(name, value)
    if (settings.FORWARD_ACCESS_TOKEN) headers.push('authorization', `Bearer ${opened.session.accessToken}`)
  }
  return headers
}

/** Many applications cannot tell dashes from underscores, and some not from any other sign, so neither must we. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

function withoutOurs(house: House, header: string): string {
  const names = ourCookies(house.cookies)
  return header
    .split(';')
    .filter(pair => !names.has((pair.split('=', 1)[0] ?? '').trim().toLowerCase()))
    .join(';')
    .trim()
}

function forwardedFor({ settings }: House, { address, headers }: Visit): string {
  const peer = plainAddress(address)
  const before = isTrusted(settings.TRUSTED_PROXIES, address) ? splitList(headers['x-forwarded-for']) : []
  return [...before, peer].join(', ')
}
