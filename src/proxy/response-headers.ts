// Which headers of an application's answer reach the browser: all but those that are only for the connection, would touch
// our session, or would let a shared cache give one user's page to another.

import type { IncomingHttpHeaders } from 'node:http'
import { REQUEST_ID } from '../observe/observed-request.ts'
import { connectionHeaders, type HeaderList, splitList } from '../util/header-list.ts'
import { CACHE_HEADERS } from '../util/header-names.ts'
import { memoize } from '../util/recent.ts'
import { prefixedCookie, prefixedLocation, prefixedPath, type WithPrefix } from './stripped-prefix.ts'

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

interface AnsweringUpstream extends WithPrefix {
  /** The hosts and ports by which it refers to itself. */
  readonly authorities: readonly string[]
}

/** What we add to an answer. */
export interface AnswerAdditions {
  /** Which application answers. */
  readonly upstream: AnsweringUpstream
  /** The path that the browser requested. */
  readonly path: string
  readonly requestId: string
  readonly signedIn: boolean
  readonly cookies: readonly string[]
  /**
   * The request may be for an image or a script that browsers cache. Our cookies would prevent that, and can come with the next
   * page.
   */
  readonly cookiesCanWait?: boolean
}

export type ResponseHeaders = (headers: IncomingHttpHeaders, ours: AnswerAdditions) => HeaderList

export interface ResponseHeadersOptions {
  readonly baseUrl: string
  /** The hosts and ports of all applications, with the prefix that each does not see. */
  readonly authorities: ReadonlyMap<string, string>
  isOwnCookie(setCookie: string): boolean
  readonly transportSecurity: string | undefined
}

export function createResponseHeaders({
  baseUrl,
  authorities,
  isOwnCookie,
  transportSecurity,
}: ResponseHeadersOptions): ResponseHeaders {
  const ownAuthorities = new Set([baseUrl, `http://${new URL(baseUrl).host}`].map(url => authorityOf(new URL(url))))
  const ownLocations = (value: string | string[], { upstream, path }: AnswerAdditions) => {
    const prefixOf = (authority: string) =>
      upstream.authorities.includes(authority) || ownAuthorities.has(authority)
        ? upstream.strippedPrefix
        : authorities.get(authority)
    return [value].flat().map(location => prefixedLocation(upstream, ownLocation(location, prefixOf, baseUrl), path))
  }
  const toPrivate = memoize(MAX_CACHED_VALUES, withoutSharedCaching)

  return (headers, ours) => {
    const { requestId, signedIn, cookies: wanted, cookiesCanWait } = ours
    const cookies = cookiesCanWait && wanted.length > 0 && isAsset(headers) ? [] : wanted
    const isPersonal = signedIn || cookies.length > 0
    const named = connectionHeaders(oneText(headers.connection))
    const kept: HeaderList = []
    let hasId = false
    let hasSecurity = transportSecurity === undefined
    let length: string | undefined
    for (const name in headers) {
      const value = headers[name]
      if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name)) continue
      if (name === 'set-cookie' || (isPersonal && CACHE_HEADERS.has(name))) continue
      if (name === 'clear-site-data' && clearsCookies(value)) continue
      if (name === 'content-length') {
        length = value as string
        continue
      }
      if (name === REQUEST_ID) hasId = true
      else if (name === TRANSPORT_SECURITY) hasSecurity = true
      kept.push(name, LOCATIONS.has(name) ? ownLocations(value, ours) : value)
    }
    const theirs = headers['set-cookie']
    if (theirs || cookies.length > 0) {
      const setCookies = [theirs ?? []]
        .flat()
        .filter(cookie => !isOwnCookie(cookie))
        .map(cookie => prefixedCookie(ours.upstream, cookie, ours.path))
      setCookies.push(...cookies)
      if (setCookies.length > 0) kept.push('set-cookie', setCookies)
    }
    if (!hasId) kept.push(REQUEST_ID, requestId)
    if (!hasSecurity && transportSecurity) kept.push(TRANSPORT_SECURITY, transportSecurity)
    if (isPersonal)
      kept.push('cache-control', cookies.length > 0 ? 'no-store' : toPrivate(oneText(headers['cache-control']) ?? ''))
    // Last, because after a length Node treats the bytes of a Content-Disposition as UTF-8, and refuses to send them.
    if (length !== undefined) kept.push('content-length', length)
    return kept
  }
}

/** A proxy in front may treat trailers as headers, so the same names are left out. */
export function keptTrailers(trailers: IncomingHttpHeaders): [name: string, value: string][] {
  const kept: [name: string, value: string][] = []
  for (const name in trailers) {
    const value = trailers[name]
    if (value === undefined || NOT_IN_TRAILERS.has(name)) continue
    if (typeof value === 'string') kept.push([name, value])
    else for (const one of value) kept.push([name, one])
  }
  return kept
}

export function clearsCookies(header: string | string[]): boolean {
  return /"cookies"|"\*"/.test(String(header))
}

/** undici returns a list for a header that occurs several times, whatever its type says. */
function oneText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'object' ? value.join(', ') : value
}

/** The application lets browsers cache it, and it is neither a page nor made for one user. */
function isAsset(headers: IncomingHttpHeaders): boolean {
  const [cacheControl, type] = [oneText(headers['cache-control']) ?? '', oneText(headers['content-type']) ?? '']
  if (headers['set-cookie'] || type.toLowerCase().includes('text/html')) return false
  return /\bmax-age="?0*[1-9]|\bimmutable\b/i.test(cacheControl) && !/\bno-(store|cache)\b/i.test(cacheControl)
}

/** Applications use few values; one that makes up new ones must not fill the memory. */
const MAX_CACHED_VALUES = 100

/** Without the directives for shared caches. */
function withoutSharedCaching(cacheControl: string): string {
  const directives = splitList(cacheControl).filter(directive => !/^(public|s-maxage|private)\b/i.test(directive))
  return directives.some(directive => /^no-store\b/i.test(directive))
    ? directives.join(', ')
    : ['private', ...directives].join(', ')
}

// A redirect of an application to its own address becomes one to ours: browsers cannot reach the application.

/** An absolute address, with or without its scheme: the authority, and the rest. */
const ABSOLUTE = /^(?:https?:)?\/\/([^/\\?#]+)(.*)$/is

/** The path below `baseUrl`, with the prefix of its application; the address of anything else stays as it is. */
function ownLocation(location: string, prefixOf: (authority: string) => string | undefined, baseUrl: string): string {
  const [, authority, rest = ''] = ABSOLUTE.exec(location) ?? []
  // An address with a user name is not ours to rewrite.
  if (authority === undefined || authority.includes('@')) return location
  const url = URL.parse(location, baseUrl)
  const prefix = url ? prefixOf(authorityOf(url)) : undefined
  if (prefix === undefined) return location
  // The rest as it was sent: only the application knows its encoding.
  return baseUrl + prefixedPath(prefix, rest.startsWith('/') ? rest : `/${rest}`)
}

/** Host and port without the scheme: one port is one application, and it may have been told that the browser uses https. */
export function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname.replace(/\.$/, '')}:${port || (protocol === 'https:' ? 443 : 80)}`
}
