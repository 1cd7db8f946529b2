// What of an application's answer reaches the browser: everything but what is only for the connection, and what would
// touch our session or let a shared cache keep one user's page for another.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
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
  const setCookies = [...theirCookies(house, headers['set-cookie']), ...cookies]
  if (setCookies.length > 0) kept['set-cookie'] = setCookies
  else delete kept['set-cookie']
  if (clearsCookies(headers['clear-site-data'])) delete kept['clear-site-data']
  if (cookies.length > 0) kept['cache-control'] = 'no-store'
  else if (signedIn) kept['cache-control'] = forOneUser(headers['cache-control'])
  return kept
}

function theirCookies(house: House, setCookies: string[] | string | undefined): string[] {
  const names = ourCookies(house.cookies)
  return [setCookies ?? []].flat().filter(cookie => !names.has((cookie.split('=', 1)[0] ?? '').trim().toLowerCase()))
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
