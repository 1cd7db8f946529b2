// What of an application's answer reaches the browser: everything but what is only for the connection, and what would
// touch our session or let a shared cache keep one user's page for another.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { isSecure } from '../../settings/read.ts'
import type { GatewayContext } from '../context.ts'
import { ourCookies } from '../http/cookies.ts'
import { splitList } from '../http/list-header.ts'
import { safetyHeaders } from '../http/page-answers.ts'
import { REQUEST_ID } from '../http/request-id.ts'
import { namedBy } from './connection-header.ts'
import { ownLocation } from './own-location.ts'

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

const LOCATIONS = ['location', 'content-location']

/** Shared caches of several makers take these for more than Cache-Control. */
const FOR_SHARED_CACHES = ['surrogate-control', 'cdn-cache-control', 'x-accel-expires']

export interface Ours {
  readonly requestId: string
  readonly signedIn: boolean
  readonly cookies: readonly string[]
  /** A browser keeps an image or a script; our cookies, which would forbid it, come with the next page. */
  readonly cookiesCanWait?: boolean
}

export function responseHeaders(
  context: GatewayContext,
  headers: IncomingHttpHeaders,
  { requestId, signedIn, cookies: wanted, cookiesCanWait }: Ours,
): OutgoingHttpHeaders {
  const cookies = cookiesCanWait && isAsset(headers) ? [] : wanted
  const { connection, 'set-cookie': setCookie, 'clear-site-data': cleared } = headers
  const named = namedBy(connection)
  const kept: OutgoingHttpHeaders = {}
  for (const name in headers) {
    if (!HOP_BY_HOP.has(name) && !named?.includes(name) && headers[name] !== undefined) kept[name] = headers[name]
  }
  const theirCookies = setCookie ? [setCookie].flat().filter(cookie => !isOurCookie(context, cookie)) : []
  const setCookies = [...theirCookies, ...cookies]
  if (setCookies.length > 0) kept['set-cookie'] = setCookies
  else if (setCookie) delete kept['set-cookie']
  if (cleared !== undefined && clearsCookies(cleared)) delete kept['clear-site-data']
  for (const name of LOCATIONS) if (name in kept) kept[name] = ownLocations(context, headers[name])
  kept[REQUEST_ID] ??= requestId
  if (isSecure(context.settings))
    kept['strict-transport-security'] ??= safetyHeaders(context)['strict-transport-security']
  if (signedIn || cookies.length > 0) {
    kept['cache-control'] = cookies.length > 0 ? 'no-store' : forOneUser(headers['cache-control'])
    for (const name of FOR_SHARED_CACHES) if (name in kept) delete kept[name]
  }
  return kept
}

function ownLocations({ upstreams, settings }: GatewayContext, value: string | string[] | undefined): string[] {
  return [value ?? ''].flat().map(location => ownLocation(location, upstreams.authorities, settings.BASE_URL))
}

/** Browsers keep what follows an empty name as a cookie without one, and send it back as if that were its name. */
export function isOurCookie(context: GatewayContext, setCookie: string): boolean {
  const [name = ''] = setCookie.replace(/^[\s=]+/, '').split(/[=;]/, 1)
  return ourCookies(context.cookies).has(name.trim().toLowerCase())
}

function clearsCookies(header: string | string[]): boolean {
  return /"cookies"|"\*"/.test(String(header))
}

/** What the application lets browsers keep, and is neither a page nor made for one user. */
function isAsset(headers: IncomingHttpHeaders): boolean {
  const { 'cache-control': cacheControl = '', 'content-type': type = '', 'set-cookie': setCookie } = headers
  if (setCookie || type.toLowerCase().startsWith('text/html')) return false
  return /\bmax-age="?0*[1-9]|\bimmutable\b/i.test(cacheControl) && !/\bno-(store|cache)\b/i.test(cacheControl)
}

/** Without what invites shared caches. */
function forOneUser(cacheControl: string | undefined): string {
  if (cacheControl === undefined) return 'private'
  const directives = splitList(cacheControl).filter(directive => !/^(public|s-maxage|private)\b/i.test(directive))
  return directives.some(directive => /^no-store\b/i.test(directive))
    ? directives.join(', ')
    : ['private', ...directives].join(', ')
}
