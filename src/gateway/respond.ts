// Answers of our own: pages, JSON, redirects and errors, and sending them.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { isTooLong } from '../access/request-path.ts'
import { isSecure } from '../config/read.ts'
import { type ErrorCode, errorFields, MenshenError } from '../errors.ts'
import { NOTICES, type NoticeName, noticePage, noticeText } from '../pages/notices.ts'
import { OWN_PATHS } from '../paths.ts'
import { ownPath } from '../session/attempts.ts'
import type { GatewayContext } from './context.ts'
import { languageOf } from './language.ts'
import {
  clientAddress,
  commonHeaders,
  type GatewayRequest,
  isByScript,
  REQUEST_ID,
  type RequestHead,
  requestFields,
  withRequestId,
} from './request.ts'

interface Extra {
  readonly status?: number
  readonly cookies?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

export function pageAnswer(context: GatewayContext, html: string, extra: Extra = {}): Response {
  return answer(context, html, { ...extra, headers: { ...pageHeaders(context), ...extra.headers } })
}

export function pageHeaders(context: GatewayContext): Record<string, string> {
  return {
    ...safetyHeaders(context),
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': CONTENT_POLICY,
    // With `no-referrer` a form would be posted with `Origin: null`, and could not be told from a foreign one.
    'referrer-policy': 'same-origin',
  }
}

export function jsonAnswer(context: GatewayContext, body: object, extra: Extra = {}): Response {
  return answer(context, JSON.stringify(body), {
    ...extra,
    headers: { 'content-type': 'application/json; charset=utf-8', ...extra.headers },
  })
}

export function textAnswer(context: GatewayContext, body: string, extra: Extra = {}): Response {
  return answer(context, body, { ...extra, headers: { 'content-type': 'text/plain; charset=utf-8', ...extra.headers } })
}

export function noticeAnswer(
  context: GatewayContext,
  request: GatewayRequest,
  name: NoticeName,
  extra: Extra = {},
): Response {
  return pageAnswer(context, noticePage(languageOf(context, request), name), { status: NOTICES[name].status, ...extra })
}

/** The address could not be read, so nothing else is known of the request. */
export function unreadableAnswer(
  context: GatewayContext,
  { headers, url }: Pick<RequestHead, 'headers' | 'url'>,
  requestId: string,
): Response {
  const name = unreadableName(url)
  const words = languageOf(context, { headers })
  return pageAnswer(context, noticePage(words, name, { requestId }), { status: NOTICES[name].status })
}

/** Why an address cannot be read. */
export function unreadableName(url = ''): 'uri_too_long' | 'bad_request' {
  return isTooLong(url) ? 'uri_too_long' : 'bad_request'
}

/** Something that only our own pages may ask for came from another site. */
export function foreignAnswer(
  context: GatewayContext,
  request: GatewayRequest,
  cookies: readonly string[] = [],
): Response {
  tellOfForeign(context, request)
  return errorAnswer(context, request, 'foreign', { cookies })
}

export function tooMany(context: GatewayContext, request: GatewayRequest): Response {
  request.observed.outcome = 'refused'
  return errorAnswer(context, request, 'too_many', { headers: { 'retry-after': '60' } })
}

/** A name of a host has 253 letters; whoever sends more wants to fill our log. */
const LONGEST_ORIGIN = 300

export function tellOfForeign(context: Pick<GatewayContext, 'settings' | 'report'>, request: GatewayRequest): void {
  const { method, path, headers, observed } = request
  const { origin } = headers
  context.report('foreign_origin', {
    ...requestFields(context, request),
    method,
    path,
    ...(origin && { origin: origin.slice(0, LONGEST_ORIGIN) }),
  })
  observed.outcome = 'refused'
}

/** The application has no room for this request now. */
export function busyAnswer(context: GatewayContext, request: GatewayRequest): Response {
  return errorAnswer(context, request, 'busy', { headers: { 'retry-after': '5' } })
}

/** The same in whichever form the request can use; `isUser` if that somebody is signed in is worth a word. */
export function errorAnswer(
  context: GatewayContext,
  request: GatewayRequest,
  name: NoticeName,
  { isUser, ...extra }: Extra & { isUser?: boolean } = {},
): Response {
  const { status } = NOTICES[name]
  const words = languageOf(context, request)
  const message = noticeText(words, name, isUser)
  const { requestId } = request.observed
  if (isByScript(request)) return jsonAnswer(context, { error: name, message, requestId }, { status, ...extra })
  const { BASE_URL } = context.settings
  const retryPath = PASSING.has(status) ? retryPathOf(request, BASE_URL, context.providers.callbackPaths) : undefined
  return pageAnswer(context, noticePage(words, name, { retryPath, isUser, requestId }), { status, ...extra })
}

/** What may be over in a moment. */
const PASSING = new Set<number>([502, 503, 504])

/** Only what changes nothing is tried again; a proxy's question is not what the browser has asked for. */
function retryPathOf(
  { method, path, search }: GatewayRequest,
  ownOrigin: string,
  callbackPaths: ReadonlySet<string>,
): string | undefined {
  const isQuestion = path === OWN_PATHS.check || path === OWN_PATHS.forward
  return method === 'GET' && !isQuestion ? ownPath(path + search, ownOrigin, callbackPaths) : undefined
}

/** A status and headers, without a body: names and values in turn, which node:http sends as they are. */
export interface StatusAnswer {
  readonly status: number
  readonly headers: string[]
}

export type OwnAnswer = StatusAnswer | Response

/** The end of a sign-in: 302 without the objects of a Response, which take longer than anything else in that answer. */
export function signedInAnswer(
  context: Pick<GatewayContext, 'settings'>,
  { observed }: Pick<GatewayRequest, 'observed'>,
  location: string,
  cookies: readonly string[],
): StatusAnswer {
  const common = commonHeaders({ ...safetyHeaders(context), location, 'content-length': '0' })
  const headers = withRequestId(common, observed.requestId)
  for (const cookie of cookies) headers.push('set-cookie', cookie)
  return { status: 302, headers }
}

/** 302, or 303 after a POST: the browser must not send the body again. */
export function redirectAnswer(
  context: GatewayContext,
  method: string,
  location: string,
  cookies: readonly string[] = [],
  headers: Readonly<Record<string, string>> = {},
): Response {
  const status = method === 'GET' || method === 'HEAD' ? 302 : 303
  return answer(context, null, { status, cookies, headers: { ...headers, location } })
}

/**
 * Nothing but our own scripts and styles. `form-action` has to let the sign-in form through to wherever the provider's
 * own redirects lead, because Chromium holds a form to it along the whole way.
 */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self' http: https:",
  "base-uri 'none'",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function safetyHeaders(context: Pick<GatewayContext, 'settings'>): Record<string, string> {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...(isSecure(context.settings) ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  }
}

function answer(
  context: GatewayContext,
  body: string | null,
  { status = 200, cookies = [], headers = {} }: Extra,
): Response {
  const all = new Headers({ ...safetyHeaders(context), ...headers })
  for (const cookie of cookies) all.append('set-cookie', cookie)
  return new Response(body, { status, headers: all })
}

// Writes a Response to a node:http response: whole if all of it is there, else as it comes.

type Reader = ReadableStreamDefaultReader<Uint8Array>
type Read = Awaited<ReturnType<Reader['read']>>

interface Beginning {
  readonly chunks: readonly Uint8Array[]
  /** What is still being waited for; absent if that was all. */
  readonly next?: Promise<Read>
}

/** What is gathered before it is sent. */
const MOST_AT_ONCE = 256 * 1024

export async function send(response: ServerResponse, answer: Response, requestId: string): Promise<void> {
  const { 'set-cookie': _, ...plain } = Object.fromEntries(answer.headers)
  const cookies = answer.headers.getSetCookie()
  const headers = { ...plain, ...(cookies.length > 0 ? { 'set-cookie': cookies } : {}), [REQUEST_ID]: requestId }
  const reader: Reader | undefined = answer.body?.getReader()
  const { chunks, next }: Beginning = reader ? await readBeginning(reader) : { chunks: [] }
  if (reader && next) return sendOn(response, answer.status, headers, reader, { chunks, next })
  const body = Buffer.concat(chunks)
  response.writeHead(answer.status, { ...headers, 'content-length': body.length })
  response.end(body)
  drain(response.req)
}

/** What is at hand: nearly always all of it. */
async function readBeginning(reader: Reader): Promise<Beginning> {
  const chunks: Uint8Array[] = []
  for (let size = 0; ; ) {
    const next = reader.read()
    const read = size < MOST_AT_ONCE ? await Promise.race([next, nextTurn()]) : undefined
    if (!read) return { chunks, next }
    if (read.done) return { chunks }
    chunks.push(read.value)
    size += read.value.length
  }
}

async function sendOn(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  reader: Reader,
  beginning: Required<Beginning>,
): Promise<void> {
  const stop = () => void reader.cancel().catch(() => {})
  // Whoever has gone does not come to ask for it.
  beginning.next.catch(() => {})
  response.once('close', stop)
  response.writeHead(status, headers)
  response.flushHeaders()
  drain(response.req)
  if (response.req.method === 'HEAD') return void response.end()
  try {
    await pipeline(Readable.from(chunksOf(reader, beginning)), response)
  } catch (error) {
    // Whoever has gone needs no more of it.
    if (!response.destroyed) throw error
  }
}

async function* chunksOf(reader: Reader, { chunks, next }: Required<Beginning>): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (let read = await next; !read.done; read = await reader.read()) yield read.value
}

/**
 * Asks for the body. Not while an earlier answer of the same connection is still on its way: Node would put the words
 * between the head and the body of this one.
 */
export function sayContinue(response: ServerResponse): void {
  if (response.socket) response.writeContinue()
}

// What the user gets when something of ours failed: a page (or JSON for a script), never a stack.

/** What may be over in a moment. Of the provider's these are about tokens that machines bring. */
const PASSING_FAILURES = new Set<ErrorCode>([
  'store_unavailable',
  'provider_unreachable',
  'provider_answer',
  'provider_busy',
])
const RETRY_AFTER = { 'retry-after': '5' }

export function failureAnswer(context: GatewayContext, request: GatewayRequest, error: unknown): Response {
  const { method, path, observed } = request
  const { user } = observed
  context.report('request_failed', {
    ...errorFields(error),
    ...requestFields(context, request),
    ...(user === undefined ? {} : { user }),
    method,
    path,
  })
  observed.outcome = 'error'
  const unavailable = error instanceof MenshenError && PASSING_FAILURES.has(error.code)
  return unavailable
    ? errorAnswer(context, request, 'unavailable', { headers: RETRY_AFTER })
    : errorAnswer(context, request, 'broken')
}

// Which request it was that failed when /login says so: a redirect has led there, and the id of the page itself would lead
// nowhere. It is told by what the browser shows of itself; whoever shares that at the same moment has the same trouble.

export interface FailedRequests {
  remember(request: GatewayRequest, error: string): void
  /** The id of the request that led to this page, or of the page where that is not known. */
  idFor(request: GatewayRequest, error: string): string
}

const KEPT_MS = 60_000
const MOST_KEPT = 10_000

export function createFailedRequests({ settings }: Pick<GatewayContext, 'settings'>): FailedRequests {
  const ids = new LRUCache<string, string>({ max: MOST_KEPT, ttl: KEPT_MS })

  function browserOf(request: GatewayRequest, error: string): string {
    const { 'user-agent': userAgent = '' } = request.headers
    return JSON.stringify([clientAddress(settings.TRUSTED_PROXIES, request), userAgent.slice(0, 256), error])
  }

  return {
    remember: (request, error) => void ids.set(browserOf(request, error), request.observed.requestId),
    idFor: (request, error) => ids.get(browserOf(request, error)) ?? request.observed.requestId,
  }
}

// The body of a request that nobody reads.

/** It is thrown away, so that the next request on the connection is heard; its deadline is the client's. */
export function drain(request: IncomingMessage): void {
  if (!request.complete) request.resume()
}
