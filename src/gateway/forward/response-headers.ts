// What of an application's answer reaches the browser: everything but what is only for the connection, and what would
// touch our session or let a shared cache keep one user's page for another.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { safetyHeaders } from '../answers.ts'
import { ourCookies } from '../cookies.ts'
import type { House } from '../house.ts'
import { splitList } from '../trust.ts'

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/** Shared caches of several makers take these for more than Cache-Control. */
const FOR_SHARED_CACHES = ['surrogate-control', 'cdn-cache-control', 'x-accel-expires']

export function responseHeaders(
  house: House,
  headers: IncomingHttpHeaders,
  { signedIn, cookies }: { signedIn: boolean; cookies: readonly string[] },
): OutgoingHttpHeaders {
  const named = new Set(splitList(headers.connection).map(name => name.toLowerCase()))
  const kept: OutgoingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!HOP_BY_HOP.has(name) && !named.has(name) && value !== undefined) kept[name] = value
  }
  const theirCookies = [headers['set-cookie'] ?? []].flat().filter(cookie => !isOurCookie(house, cookie))
  const setCookies = [...theirCookies, ...cookies]
  if (setCookies.length > 0) kept['set-cookie'] = setCookies
  else delete kept['set-cookie']
  if (clearsCookies(headers['clear-site-data'])) delete kept['clear-site-data']
  const { 'strict-transport-security': httpsOnly } = safetyHeaders(house)
  if (httpsOnly) kept['strict-transport-security'] ??= httpsOnly
  if (signedIn || cookies.length > 0) {
    kept['cache-control'] = cookies.length > 0 ? 'no-store' : forOneUser(headers['cache-control'])
    for (const name of FOR_SHARED_CACHES) delete kept[name]
  }
  return kept
}

/** Browsers keep what follows an empty name as a cookie without one, and send it back as if that were its name. */
export function isOurCookie(house: House, setCookie: string): boolean {
  const [name = ''] = setCookie.replace(/^[\s=]+/, '').split(/[=;]/, 1)
  return ourCookies(house.cookies).has(name.trim().toLowerCase())
}

function clearsCookies(header: string | string[] | undefined): boolean {
  return /"cookies"|"\*"/.test(String(header ?? ''))
}

/** Without what invites shared caches. */
function forOneUser(cacheControl: string | undefined): string {
  const directives = splitList(cacheControl).filter(directive => !/^(public|s-maxage|private)\b/i.test(directive))
  return directives.some(directive => /^no-store\b/i.test(directive))
    ? directives.join(', ')
    : ['private', ...directives].join(', ')
}
