// What a request says about itself: its path, who could have sent it, what kind of answer it can use.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import { readTarget } from '../../access/target.ts'
import type { ObservedRequest, Outcome } from '../../observe/observed-request.ts'
import type { RequestTrace } from '../../observe/tracing/trace.ts'
import type { Networks } from '../../settings/networks/networks.ts'
import type { GatewayContext } from '../context.ts'
import type { Peer } from './peer.ts'
import { requestIdOf } from './request-id.ts'
import { clientAddress } from './trusted-proxies.ts'

export interface Visit {
  readonly method: string
  /** In its canonical form. */
  readonly path: string
  /** With its `?`, or empty. */
  readonly search: string
  readonly headers: IncomingHttpHeaders
  /** The same object for every request that comes over the same connection. */
  readonly connection: object
  /** Of whoever is at the other end of it. */
  readonly address: string
  readonly observed: ObservedRequest
}

/** What is read of a request before its body: node:http's own, or what was made of a Request. */
export interface RequestHead extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly socket: Peer
}

/** `undefined` if the path is one that two parsers could read differently. */
export function readVisit(
  { method = 'GET', url = '', headers, socket }: RequestHead,
  observed: ObservedRequest,
): Visit | undefined {
  const target = readTarget(url)
  if (!target) return undefined
  const { path, search } = target
  observed.path = path
  return { method, path, search, headers, connection: socket, address: socket.remoteAddress ?? '', observed }
}

export function readPath({ url = '' }: Pick<RequestHead, 'url'>): string | undefined {
  return readTarget(url)?.path
}

/** From the moment when it arrives. */
export function beginRequest(
  { settings }: Pick<GatewayContext, 'settings'>,
  { method = 'GET', headers, socket }: RequestHead,
): ObservedRequest {
  return new ArrivedRequest(method, headers, socket.remoteAddress ?? '', settings.TRUSTED_PROXIES)
}

/** Whoever sends more than any browser does wants to fill our log. */
const LONGEST_USER_AGENT = 256

/** What only reports need is not made before one asks for it. */
class ArrivedRequest implements ObservedRequest {
  readonly requestId: string
  readonly startedAt = performance.now()
  readonly method: string
  path = ''
  outcome: Outcome = 'own'
  user?: string
  upstream?: string
  askedAt?: number
  isAtHand?: boolean
  status?: number
  trace?: RequestTrace
  isStream?: true
  readonly #headers: IncomingHttpHeaders
  readonly #peer: string
  readonly #proxies: Networks | undefined

  constructor(method: string, headers: IncomingHttpHeaders, peer: string, proxies: Networks | undefined) {
    this.requestId = requestIdOf(proxies, headers, peer)
    this.method = method
    this.#headers = headers
    this.#peer = peer
    this.#proxies = proxies
  }

  get address(): string {
    return clientAddress(this.#proxies, { address: this.#peer, headers: this.#headers })
  }

  get userAgent(): string | undefined {
    return this.#headers['user-agent']?.slice(0, LONGEST_USER_AGENT)
  }
}

/** Of so many names and values Node leaves the rest out of `headers`. */
const MOST_COUNTED = 2000

/** In HTTP/1.1 what has no length has no body: it would be the next request. */
export function bringsBody({ headers, rawHeaders, httpVersionMajor }: IncomingMessage): boolean {
  const hasLength = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  return hasLength || httpVersionMajor !== 1 || rawHeaders.length >= MOST_COUNTED
}

/** Scripts cannot follow a redirect to a login page: they are told by a status instead. */
export function isByScript({ headers }: Visit): boolean {
  const accept = (headers.accept ?? '').toLowerCase()
  return (
    headers['sec-fetch-dest'] === 'empty' ||
    bringsToken(headers) ||
    isSocket(headers) ||
    String(headers['x-requested-with']).toLowerCase() === 'xmlhttprequest' ||
    (accept.includes('json') && !accept.includes('text/html'))
  )
}

/** A client of an API, which has never seen our login page. */
export function bringsToken({ authorization = '' }: IncomingHttpHeaders): boolean {
  return /^bearer(\s|$)/i.test(authorization)
}

/** On plain http browsers do not say what a request is for. Then it may be a part of a page, unless it wants HTML or JSON. */
export function mayBePartOfPage(visit: Visit): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = visit.headers
  if (destination !== undefined) return isPartOfPage(visit.headers)
  return !accept.toLowerCase().includes('text/html') && !isByScript(visit)
}

const PAGES_AND_SCRIPTS = new Set<unknown>(['document', 'empty', 'iframe', 'frame', undefined])

/** An image, a style or a script of a page: a browser keeps them, unless they bring a cookie. */
export function isPartOfPage(headers: IncomingHttpHeaders): boolean {
  return !PAGES_AND_SCRIPTS.has(headers['sec-fetch-dest'])
}

/** A browser shows the answer as a page: it says so, or asks for HTML where browsers do not say what a request is for. */
export function isForPage({ headers }: Visit): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = headers
  return destination === undefined ? accept.toLowerCase().includes('text/html') : destination === 'document'
}

/** Somebody looks at a page: not an icon, an image or a script that the page asks for. */
export function isNavigation({ method, path, headers }: Visit): boolean {
  if (method !== 'GET' || path === '/favicon.ico') return false
  const destination = headers['sec-fetch-dest']
  if (destination !== undefined) return destination === 'document'
  const accept = (headers.accept ?? '*/*').toLowerCase()
  return accept.includes('text/html') || accept === '*/*'
}

/**
 * A page of another site opens a WebSocket: browsers send our cookies along, and only Origin tells. A proxy that asks
 * about it may have kept Upgrade to itself.
 */
export function isForeignSocket({ headers }: Visit, ownOrigin: string): boolean {
  return isSocket(headers) && headers.origin !== undefined && headers.origin !== ownOrigin
}

function isSocket(headers: IncomingHttpHeaders): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' || headers['sec-websocket-key'] !== undefined
}
