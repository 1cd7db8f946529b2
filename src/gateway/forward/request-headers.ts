// What an application is told with a forwarded request: the browser's own headers less everything that is only for the
// connection, that could be a lie about who is there, or that is ours.
import type { IncomingMessage } from 'node:http'
import { plainName } from '../../settings/header-names.ts'
import { type Caller, identified } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { ourCookies } from '../http/cookies.ts'
import { splitList } from '../http/list-header.ts'
import { andThen, type MaybePromise } from '../http/maybe-promise.ts'
import type { Visit } from '../http/request.ts'
import { REQUEST_ID } from '../http/request-id.ts'
import { isTrusted, plainAddress } from '../http/trusted-proxies.ts'
import { namedBy } from './connection-header.ts'
import { createHeaderPolicies } from './header-policy.ts'
import type { Upstream } from './upstreams.ts'

/** Names and values in turn. */
export type RequestHeaders = (
  upstream: Pick<Upstream, 'host' | 'audience'>,
  request: IncomingMessage,
  visit: Visit,
  caller: Caller,
) => MaybePromise<string[]>

export function createRequestHeaders(
  context: Pick<GatewayContext, 'settings' | 'identities' | 'cookies'>,
): RequestHeaders {
  const { settings, identities } = context
  const { protocol, host: ownHost } = new URL(settings.BASE_URL)
  const scheme = protocol.slice(0, -1)
  const withoutOurs = createCookieFilter(ourCookies(context.cookies))
  const headerOf = createHeaderPolicies(settings, identities.names)

  return (upstream, { rawHeaders }, visit, caller) => {
    const { loaded, bearer } = caller
    const { host, connection, te } = visit.headers
    const named = namedBy(connection)?.map(plainName)
    const headers = ['host', settings.UPSTREAM_HOST_HEADER === 'browser' && host ? host : upstream.host]
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const { name, plain, policy } = headerOf(rawHeaders[i] as string, i / 2)
      if (policy === 'dropped' || named?.includes(plain)) continue
      // The token was for us.
      if (bearer && plain === 'authorization') continue
      const value = rawHeaders[i + 1] as string
      const kept = policy === 'filtered' ? withoutOurs(value) : value
      if (kept || policy === 'kept') headers.push(name, kept)
    }
    if (te !== undefined && splitList(te).includes('trailers')) headers.push('te', 'trailers')
    headers.push('x-forwarded-for', forwardedFor(context, visit))
    headers.push('x-forwarded-proto', scheme, 'x-forwarded-host', ownHost, REQUEST_ID, visit.observed.requestId)
    const who = identified(caller)
    if (!who) return headers
    return andThen(identities.headersFor(who, upstream.audience, visit.observed), identity => {
      for (const name in identity) headers.push(name, identity[name] as string)
      const token = loaded ? bearerOf(loaded.session.accessToken) : visit.headers.authorization
      if (settings.FORWARD_ACCESS_TOKEN && token) headers.push('authorization', token)
      return headers
    })
  }
}

/** Of a Cookie header, what is not ours, in one piece as it was sent: most of a browser's cookies are the application's. */
export function createCookieFilter(ours: ReadonlySet<string>): (header: string) => string {
  const shortest = Math.min(...[...ours].map(name => name.length))

  return header => {
    let kept: string | undefined
    let keptFrom = 0
    let equals = -1
    for (let start = 0, end = 0; start <= header.length; start = end + 1) {
      end = indexOrEnd(header, ';', start)
      // Not for each anew: in a header without any, this would look through all of it again and again.
      if (equals < start) equals = indexOrEnd(header, '=', start)
      const nameEnd = Math.min(equals, end)
      // Most names are too short to be one of ours: they need not be cut out and looked up.
      if (nameEnd - start < shortest || !ours.has(header.slice(start, nameEnd).trim().toLowerCase())) continue
      if (start > keptFrom) kept = joined(kept, header.slice(keptFrom, start - 1))
      keptFrom = end + 1
    }
    if (keptFrom <= header.length) kept = joined(kept, header.slice(keptFrom))
    return kept?.trim() ?? ''
  }
}

function joined(before: string | undefined, piece: string): string {
  return before === undefined ? piece : `${before};${piece}`
}

function indexOrEnd(text: string, sign: string, from: number): number {
  const index = text.indexOf(sign, from)
  return index < 0 ? text.length : index
}

function forwardedFor({ settings }: Pick<GatewayContext, 'settings'>, { address, headers }: Visit): string {
  const peer = plainAddress(address)
  const before = headers['x-forwarded-for']
  if (before === undefined || !isTrusted(settings.TRUSTED_PROXIES, address)) return peer
  return [...splitList(before), peer].join(', ')
}

/** At some providers (WeCom) there is no token of the user's. */
function bearerOf(accessToken: string): string | undefined {
  return accessToken ? `Bearer ${accessToken}` : undefined
}
