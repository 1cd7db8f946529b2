// What a request says about itself: its path, who could have sent it, what kind of answer it can use.

import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import { readTarget } from '../access/request-path.ts'
import { type Networks, plainAddress, withoutPort } from '../config/networks.ts'
import { type ObservedRequest, type Outcome, observedFields, type RequestTrace } from '../observe/observed-request.ts'
import { splitList } from '../proxy/response-headers.ts'
import { identityFields } from '../session/session-facts.ts'
import type { GatewayContext } from './context.ts'

export interface GatewayRequest {
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
export function readGatewayRequest(
  { method = 'GET', url = '', headers, socket }: RequestHead,
  observed: ObservedRequest,
): GatewayRequest | undefined {
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
export function isByScript({ headers }: GatewayRequest): boolean {
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
export function mayBePartOfPage(request: GatewayRequest): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = request.headers
  if (destination !== undefined) return isPartOfPage(request.headers)
  return !accept.toLowerCase().includes('text/html') && !isByScript(request)
}

const PAGES_AND_SCRIPTS = new Set<unknown>(['document', 'empty', 'iframe', 'frame', undefined])

/** An image, a style or a script of a page: a browser keeps them, unless they bring a cookie. */
export function isPartOfPage(headers: IncomingHttpHeaders): boolean {
  return !PAGES_AND_SCRIPTS.has(headers['sec-fetch-dest'])
}

/** A browser shows the answer as a page: it says so, or asks for HTML where browsers do not say what a request is for. */
export function isForPage({ headers }: GatewayRequest): boolean {
  const { accept = '', 'sec-fetch-dest': destination } = headers
  return destination === undefined ? accept.toLowerCase().includes('text/html') : destination === 'document'
}

/** Somebody looks at a page: not an icon, an image or a script that the page asks for. */
export function isNavigation({ method, path, headers }: GatewayRequest): boolean {
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
export function isForeignSocket({ headers }: GatewayRequest, ownOrigin: string): boolean {
  return isSocket(headers) && headers.origin !== undefined && headers.origin !== ownOrigin
}

function isSocket(headers: IncomingHttpHeaders): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' || headers['sec-websocket-key'] !== undefined
}

// The other end of a connection, and its address, by which requests are counted.

export interface Peer {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean
}

/** Node keeps an address once it was read; after a reset there is none to read any more. */
export function rememberAddress({ remoteAddress: _ }: Peer): void {}

/**
 * Whether a connection was reset before the address of its other end was read: nobody waits for an answer, and the request
 * could not be counted. A Unix socket is no such connection: it has no address at either end.
 */
export function wasReset(socket: Peer): boolean {
  if (socket.remoteAddress !== undefined) return false
  return socket.destroyed === true || socket.localAddress !== undefined
}

// The name of a request, by which its answer, its log lines and what a user reads out on the phone are found together.

export const REQUEST_ID = 'x-request-id'

const USABLE = /^[A-Za-z0-9_-]{8,128}$/
/** Nothing that is easily taken for something else when it is read out. */
const LETTERS = '23456789abcdefghijkmnpqrstuvwxyz'
const LENGTH = 12

/** The letters of many ids, made at once. */
let pool = ''
let used = 0

export function newRequestId(): string {
  if (used === pool.length) refill()
  used += LENGTH
  return pool.slice(used - LENGTH, used)
}

function refill(): void {
  const letters = randomBytes(LENGTH * 256)
  for (const [place, byte] of letters.entries()) letters[place] = LETTERS.charCodeAt(byte & 31)
  pool = letters.toString('latin1')
  used = 0
}

/** What many answers have in common: names and values in turn, as Node sends them fastest, with a last place for the id. */
export function commonHeaders(headers: Readonly<Record<string, string>>): readonly string[] {
  const list: string[] = []
  for (const name in headers) list.push(name, headers[name] ?? '')
  list.push(REQUEST_ID, '')
  return list
}

/** A copy of common headers for the answer to one request. */
export function withRequestId(common: readonly string[], requestId: string): string[] {
  const copy = common.slice()
  copy[copy.length - 1] = requestId
  return copy
}

export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && USABLE.test(text)
}

/** The one that a trusted proxy has given it, else a new one. */
export function requestIdOf(proxies: Networks | undefined, headers: IncomingHttpHeaders, address: string): string {
  const given = headers[REQUEST_ID]
  return isRequestId(given) && isTrusted(proxies, address) ? given : newRequestId()
}

// Whom to believe about where a request came from: X-Forwarded-* and X-Original-* count only from proxies that the
// settings name.

export { plainAddress }

export function isTrusted(proxies: Networks | undefined, address: string): boolean {
  return proxies?.has(address) ?? false
}

/** Whoever the nearest proxy that is not ours saw. */
export function clientAddress(
  proxies: Networks | undefined,
  { address, headers }: Pick<GatewayRequest, 'address' | 'headers'>,
): string {
  const chain = [...splitList(headers['x-forwarded-for']).map(withoutPort), address]
  for (const hop of chain.reverse()) if (!isTrusted(proxies, hop)) return plainAddress(hop)
  return plainAddress(chain.at(-1) ?? address)
}

// Where a request came from, as far as the browser tells: one of our own pages, the user's own hand, or another site.
// Browsers say it (`Sec-Fetch-*`) on https and on loopback; on plain http there is the Origin of a POST at most.

/** A browser, or something that pretends to be one, looks ahead without being asked. */
const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

/** Of a POST: sent by one of our own pages, or by something that is no browser (those name the origin of every POST). */
export function isFromOwnOrigin(request: Pick<GatewayRequest, 'headers'>, ownOrigin: string): boolean {
  const { origin, referer, 'sec-fetch-site': site } = request.headers
  if (isPrefetch(request)) return false
  if (origin !== undefined && origin !== 'null' && origin !== ownOrigin) return false
  if (site !== undefined) return isOwnSite(site)
  if (origin !== undefined) return origin === ownOrigin
  return referer === undefined || (URL.canParse(referer) && new URL(referer).origin === ownOrigin)
}

/**
 * Of a GET: typed in, or a link of one of our own pages, and opened as a page. Without the browser's word it could come
 * from anywhere: an image of the application sends the same referrer as its links, and another site can send none.
 */
export function isOwnNavigation(request: Pick<GatewayRequest, 'headers'>, ownOrigin: string): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-dest': destination, 'sec-fetch-mode': mode = 'navigate' } = request.headers
  const isPage = destination === 'document' && mode === 'navigate'
  return isPage && isOwnSite(site) && isFromOwnOrigin(request, ownOrigin)
}

/** An image, a frame, a script, or a page that nobody looks at yet. Where the browser says nothing, it may be a page. */
export function isNoPage(request: Pick<GatewayRequest, 'headers'>): boolean {
  const { 'sec-fetch-dest': destination = 'document' } = request.headers
  return destination !== 'document' || isPrefetch(request)
}

function isPrefetch({ headers }: Pick<GatewayRequest, 'headers'>): boolean {
  return PREFETCH_HEADERS.some(name => headers[name] !== undefined)
}

function isOwnSite(site: string | string[] | undefined): boolean {
  return site === 'same-origin' || site === 'none'
}

// Who is behind a request, for reports: without it, one client's repeats would hide another's first.

export function requestFields(
  { settings }: Pick<GatewayContext, 'settings'>,
  { observed, ...request }: Pick<GatewayRequest, 'address' | 'headers' | 'observed'>,
  known?: Parameters<typeof identityFields>[0],
) {
  return {
    ...observedFields(observed),
    address: clientAddress(settings.TRUSTED_PROXIES, request),
    ...(known && identityFields(known)),
  }
}
