// What of an application's answer reaches the browser: everything but what is only for the connection, and what would
// touch our session or let a shared cache keep one user's page for another.

import type { IncomingHttpHeaders } from 'node:http'
import { REQUEST_ID } from '../observe/observed-request.ts'
import { connectionHeaders, splitList } from '../util/header-list.ts'

// Headers that tell shared caches what they may keep. An answer for one user carries none of them but our own Cache-Control.

/** Besides Cache-Control. Caches of several makers prefer these to it (RFC 9213 and its predecessors). */
export const FOR_SHARED_CACHES: readonly string[] = [
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'edge-control',
  'netlify-cdn-cache-control',
  'surrogate-control',
  'vercel-cdn-cache-control',
  'x-accel-expires',
]

/** All of them, in lower case. */
export const CACHE_HEADERS: ReadonlySet<string> = new Set(['cache-control', ...FOR_SHARED_CACHES])

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

const LOCATIONS = new Set(['location', 'content-location'])

const TRANSPORT_SECURITY = 'strict-transport-security'

const NOT_IN_TRAILERS = new Set([
  ...HOP_BY_HOP,
  ...LOCATIONS,
  ...CACHE_HEADERS,
  ...['set-cookie', 'clear-site-data', 'content-length', TRANSPORT_SECURITY],
])

export interface Ours {
  readonly requestId: string
  readonly signedIn: boolean
  readonly cookies: readonly string[]
  /** A browser keeps an image or a script; our cookies, which would forbid it, come with the next page. */
  readonly cookiesCanWait?: boolean
}

/** Names and values in turn. A value may be several, each of which is sent as a header of its own. */
export type HeaderList = (string | string[])[]

export type ResponseHeaders = (headers: IncomingHttpHeaders, ours: Ours) => HeaderList

export interface ResponseHeadersOptions {
  readonly baseUrl: string
  /** The hosts and ports of all applications. */
  readonly authorities: ReadonlySet<string>
  isOwnCookie(setCookie: string): boolean
  readonly transportSecurity: string | undefined
}

export function createResponseHeaders({
  baseUrl,
  authorities,
  isOwnCookie,
  transportSecurity,
}: ResponseHeadersOptions): ResponseHeaders {
  const ownLocations = (value: string | string[]) =>
    [value].flat().map(location => ownLocation(location, authorities, baseUrl))
  const forOneUser = createPrivateCaching()

  return (headers, { requestId, signedIn, cookies: wanted, cookiesCanWait }) => {
    const cookies = cookiesCanWait && wanted.length > 0 && isAsset(headers) ? [] : wanted
    const isPersonal = signedIn || cookies.length > 0
    const named = connectionHeaders(oneText(headers.connection))
    const kept: HeaderList = []
    let hasId = false
    let hasSecurity = transportSecurity === undefined
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || HOP_BY_HOP.has(name) || named?.includes(name)) continue
      if (name === 'set-cookie' || (isPersonal && CACHE_HEADERS.has(name))) continue
      if (name === 'clear-site-data' && clearsCookies(value)) continue
      if (name === REQUEST_ID) hasId = true
      else if (name === TRANSPORT_SECURITY) hasSecurity = true
      kept.push(name, LOCATIONS.has(name) ? ownLocations(value) : value)
    }
    const theirs = headers['set-cookie']
    if (theirs || cookies.length > 0) {
      const setCookies = [theirs ?? []].flat().filter(cookie => !isOwnCookie(cookie))
      setCookies.push(...cookies)
      if (setCookies.length > 0) kept.push('set-cookie', setCookies)
    }
    if (!hasId) kept.push(REQUEST_ID, requestId)
    if (!hasSecurity && transportSecurity) kept.push(TRANSPORT_SECURITY, transportSecurity)
    if (isPersonal)
      kept.push('cache-control', cookies.length > 0 ? 'no-store' : forOneUser(oneText(headers['cache-control'])))
    return kept
  }
}

/** A proxy in front may count them among the headers: what is not passed on as it is there is not passed on here. */
export function keptTrailers(trailers: IncomingHttpHeaders): [name: string, value: string][] {
  return Object.entries(trailers).flatMap(([name, value]) =>
    NOT_IN_TRAILERS.has(name) ? [] : [value ?? []].flat().map((one): [string, string] => [name, one]),
  )
}

/** Browsers keep what follows an empty name as a cookie without one, and send it back as if that were its name. */
export function createOwnCookieTest(ownCookies: ReadonlySet<string>): (setCookie: string) => boolean {
  return setCookie => {
    const [name = ''] = setCookie.replace(/^[\s=]+/, '').split(/[=;]/, 1)
    return ownCookies.has(name.trim().toLowerCase())
  }
}

function clearsCookies(header: string | string[]): boolean {
  return /"cookies"|"\*"/.test(String(header))
}

/** A header may come in several lines, whatever its type says: then undici gives a list. */
function oneText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

/** What the application lets browsers keep, and is neither a page nor made for one user. */
function isAsset(headers: IncomingHttpHeaders): boolean {
  const [cacheControl, type] = [oneText(headers['cache-control']) ?? '', oneText(headers['content-type']) ?? '']
  if (headers['set-cookie'] || type.toLowerCase().includes('text/html')) return false
  return /\bmax-age="?0*[1-9]|\bimmutable\b/i.test(cacheControl) && !/\bno-(store|cache)\b/i.test(cacheControl)
}

/** An application uses a few values again and again; one that makes up new ones must not fill our memory. */
const MOST_REMEMBERED = 100

function createPrivateCaching(): (cacheControl: string | undefined) => string {
  const known = new Map<string, string>()
  return (cacheControl = '') => {
    const before = known.get(cacheControl)
    if (before !== undefined) return before
    const answer = withoutSharing(cacheControl)
    if (known.size >= MOST_REMEMBERED) known.clear()
    known.set(cacheControl, answer)
    return answer
  }
}

/** Without what invites shared caches. */
function withoutSharing(cacheControl: string): string {
  const directives = splitList(cacheControl).filter(directive => !/^(public|s-maxage|private)\b/i.test(directive))
  return directives.some(directive => /^no-store\b/i.test(directive))
    ? directives.join(', ')
    : ['private', ...directives].join(', ')
}

// An application that redirects to its own address means ours: nobody but the gateway can reach that one.

/** An absolute address, or one without its scheme: who is addressed, and what follows. */
const ABSOLUTE = /^(?:https?:)?\/\/([^/\\?#]+)(.*)$/is

/** The same place under `baseUrl`, if the address is one of `authorities`; what leads elsewhere stays as it is. */
export function ownLocation(location: string, authorities: ReadonlySet<string>, baseUrl: string): string {
  const [, authority, rest = ''] = ABSOLUTE.exec(location) ?? []
  // Whoever names a user means more than the address.
  if (authority === undefined || authority.includes('@')) return location
  const url = URL.parse(location, baseUrl)
  if (!url || !authorities.has(authorityOf(url))) return location
  // The rest as it was sent: in which encoding, only the application knows.
  return baseUrl + (rest.startsWith('/') ? rest : `/${rest}`)
}

/** Host and port without the scheme: one port is one application, and it may have been told that the browser uses https. */
export function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
}
