// What an application has of a request, in the one form that the gateway reads: node:http's, or a Request of the web.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { areOfTheWeb, isRequest } from '../http/form.ts'
import type { Peer } from '../http/peer.ts'
import type { RequestHead } from '../http/request.ts'

/** What only the program knows of a request. */
export interface RequestSource {
  /**
   * The address at the other end of the connection. Without one (a Request has none) nobody is a trusted proxy, and nothing
   * is counted by address.
   */
  readonly address?: string | undefined
  /** The connection itself, for a program that has it: its address is read, and who has reset it is not waited for. */
  readonly socket?: Peer | undefined
}

/** A request, or no more of it than its headers. */
export interface WithHeaders {
  readonly headers: IncomingHttpHeaders | Headers
}

export function headOf(request: IncomingMessage | Request, source: RequestSource): RequestHead {
  const headers = headersOf(request)
  const { address, socket = address === undefined ? undefined : { remoteAddress: address } } = source
  if (!isRequest(request)) return headOfMessage(request, headers, socket)
  const { pathname, search, host } = new URL(request.url)
  return {
    method: request.method,
    url: pathname + search,
    headers: { host, ...headers },
    socket: socket ?? {},
  }
}

/** Below a path of its own, Express cuts that path off `url` and keeps the whole. */
function headOfMessage(
  request: IncomingMessage & { readonly originalUrl?: unknown },
  headers: IncomingHttpHeaders,
  given: Peer | undefined,
): RequestHead {
  const { method = 'GET', originalUrl } = request
  const url = typeof originalUrl === 'string' ? originalUrl : (request.url ?? '')
  return { method, url, headers, socket: given ?? request.socket ?? {} }
}

/** A header that stands there several times is one text everywhere but in what was put together by hand. */
export function headersOf({ headers = {} }: Partial<WithHeaders>): IncomingHttpHeaders {
  if (areOfTheWeb(headers)) return Object.fromEntries(headers)
  for (const name in headers) if (Array.isArray(headers[name]) && name !== 'set-cookie') return withoutLists(headers)
  return headers
}

function withoutLists(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, joined(name, value)]))
}

function joined(name: string, value: string | string[] | undefined): string | string[] | undefined {
  if (!Array.isArray(value) || name === 'set-cookie') return value
  return value.join(name === 'cookie' ? '; ' : ', ')
}
