// A request as the gateway reads it: its path, its id, and the address of its client.

import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import { type ReadTarget, readTarget } from '../access/request-path.ts'
import { isTrusted, type Networks, plainAddress, withoutPort } from '../config/networks.ts'
import {
  type ObservedRequest,
  REQUEST_ID,
  type RequestOutcome,
  type RequestTrace,
} from '../observe/observed-request.ts'
import { createRecent } from '../util/recent.ts'
import type { ProxyRequest } from './caller.ts'

export interface GatewayRequest extends ProxyRequest {
  /** One object for all requests on the same connection. */
  readonly connection: object
}

/** The part of a request before its body: from node:http, or made from a Request. */
export interface RequestHead extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly socket: Peer
}

/** `undefined` if the path is refused. */
export function readGatewayRequest(
  parse: ReadTarget,
  { method = 'GET', url = '', headers, socket }: RequestHead,
  observed: ObservedRequest,
): GatewayRequest | undefined {
  const target = parse(url)
  if (!target) return undefined
  const { path, search } = target
  observed.path = path
  return { method, path, search, headers, connection: socket, address: socket.remoteAddress ?? '', observed }
}

export function readPath({ url = '' }: Pick<RequestHead, 'url'>): string | undefined {
  return readTarget(url)?.path
}

/** Starts the observation of a request that has just arrived. */
export type BeginRequest = (head: Omit<RequestHead, 'url'>) => ObservedRequest

export function createBeginRequest(proxies: Networks | undefined): BeginRequest {
  const newId = createRequestIds()
  const addressOf = createClientAddress(proxies)
  return ({ method = 'GET', headers, socket }) => {
    const peer = socket.remoteAddress ?? ''
    const given = headers[REQUEST_ID]
    // Only a trusted proxy may name a request.
    const requestId = isRequestId(given) && isTrusted(proxies, peer) ? given : newId()
    return new ArrivedRequest(requestId, method, headers, peer, addressOf)
  }
}

/** No browser sends more; a longer one would only fill the log. */
const MAX_USER_AGENT_LENGTH = 256

/** What only reports need is computed on demand. */
class ArrivedRequest implements ObservedRequest {
  readonly requestId: string
  readonly startedAt = performance.now()
  readonly method: string
  host?: string
  path = ''
  outcome: RequestOutcome = 'own'
  user?: string
  upstream?: string
  askedAt?: number
  cacheHit?: boolean
  status?: number
  trace?: RequestTrace
  isStream?: true
  readonly #headers: IncomingHttpHeaders
  readonly #peer: string
  readonly #addressOf: ClientAddress

  constructor(requestId: string, method: string, headers: IncomingHttpHeaders, peer: string, addressOf: ClientAddress) {
    this.requestId = requestId
    this.method = method
    this.#headers = headers
    this.#peer = peer
    this.#addressOf = addressOf
  }

  get address(): string {
    return this.#addressOf(this.#peer, this.#headers)
  }

  get userAgent(): string | undefined {
    return this.#headers['user-agent']?.slice(0, MAX_USER_AGENT_LENGTH)
  }
}

type ClientAddress = (peer: string, headers: IncomingHttpHeaders) => string

const MAX_CACHED_ADDRESSES = 10_000
const MAX_CACHED_LENGTH = 100

/**
 * The address that a trusted proxy forwards is parsed once: rules with networks need it for every request, and parsing a list takes
 * 2 µs, a twentieth of a signed-in check.
 */
function createClientAddress(proxies: Networks | undefined): ClientAddress {
  const cached = createRecent<string>(MAX_CACHED_ADDRESSES)
  return (peer, headers) => {
    const { 'x-forwarded-for': forwarded } = headers
    // Most requests: only trusted proxies are believed.
    if (forwarded === undefined || !isTrusted(proxies, peer)) return plainAddress(peer)
    if (typeof forwarded !== 'string') return clientAddress(proxies, peer, headers)
    const known = cached.get(forwarded)
    if (known !== undefined) return known
    const address = clientAddress(proxies, peer, headers)
    // The list may be empty, or have no address but the proxy's own.
    if (forwarded.length > MAX_CACHED_LENGTH || address === plainAddress(peer)) return address
    cached.set(forwarded, address)
    return address
  }
}

/** More than any chain of proxies has. Hops further away are not read. */
const MAX_HOPS = 100

/** The address of the client, or of the nearest proxy that is not trusted. */
function clientAddress(proxies: Networks | undefined, peer: string, headers: IncomingHttpHeaders): string {
  const list = String(headers['x-forwarded-for'] ?? '')
  let hop = peer
  for (let end = list.length, hops = 0; end > 0 && hops < MAX_HOPS && isTrusted(proxies, hop); hops++) {
    const comma = list.lastIndexOf(',', end - 1)
    const part = list.slice(comma + 1, end).trim()
    if (part) hop = withoutPort(part)
    end = comma
  }
  return plainAddress(hop)
}

/** In HTTP/1.1 a request without a length has no body: more bytes would be the next request. */
export function hasBody({ headers, httpVersionMajor }: IncomingMessage): boolean {
  const hasLength = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
  return hasLength || httpVersionMajor !== 1
}

// The other end of a connection.

export interface Peer {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean
}

/**
 * Whether a connection was reset before the address of its other end was read: no client waits for an answer, and the request
 * could not be counted. A Unix socket has no address at either end.
 */
export function wasReset(socket: Peer): boolean {
  if (socket.remoteAddress !== undefined) return false
  return socket.destroyed === true || socket.localAddress !== undefined
}

// The id of a request: its answer, its log lines and the page that a user sees all carry it.

const USABLE = /^[A-Za-z0-9_-]{8,128}$/
/** No two characters look or sound alike when an id is read out. */
const LETTERS = '23456789abcdefghijkmnpqrstuvwxyz'
const LENGTH = 12
const IDS_PER_BATCH = 256

export function newRequestId(): string {
  return randomLetters(LENGTH)
}

/** Generates the letters of many ids in one batch: 0.3 µs per id instead of 5, which is more than a tenth of a signed-in check. */
function createRequestIds(): () => string {
  let pool = ''
  let used = 0
  return () => {
    if (used === pool.length) {
      pool = randomLetters(LENGTH * IDS_PER_BATCH)
      used = 0
    }
    used += LENGTH
    return pool.slice(used - LENGTH, used)
  }
}

function randomLetters(count: number): string {
  const letters = randomBytes(count)
  for (let index = 0; index < count; index++) letters[index] = LETTERS.charCodeAt((letters[index] ?? 0) & 31)
  return letters.toString('latin1')
}

function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && USABLE.test(text)
}

const MAX_LOGGED_LENGTH = 256

/** A path for the log as it was sent, with everything escaped that could confuse a terminal. */
export function rawPath(path: string): string {
  const escaped = path.replace(/[^\x21-\x7e]/gu, encodeURIComponent)
  return escaped.length > MAX_LOGGED_LENGTH ? `${escaped.slice(0, MAX_LOGGED_LENGTH)}…` : escaped
}
