// Answers of our own: pages, JSON, redirects and errors, and sending them.

import type { IncomingHttpHeaders } from 'node:http'
import { LRUCache } from 'lru-cache'
import { isTooLong } from '../access/request-path.ts'
import { isLoopback } from '../config/deployment.ts'
import { isSecure } from '../config/read.ts'
import type { Settings } from '../config/settings.ts'
import { type ErrorCode, errorFields, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import {
  CLIENT_CLOSED_REQUEST,
  type ObservedRequest,
  REQUEST_ID,
  type RequestOutcome,
  requestFields,
} from '../observe/observed-request.ts'
import type { Branding } from '../pages/branding.ts'
import { NOTICES, type NoticeName, noticePage, noticeText } from '../pages/notices.ts'
import type { Languages, Words } from '../pages/words.ts'
import { isApiPath, OWN_PATHS, type OwnPaths } from '../paths.ts'
import { headerLines } from '../server/fast-path.ts'
import type { IdentityHeaders } from '../session/cache.ts'
import { isByScript } from '../util/fetch-metadata.ts'
import { atMost } from '../util/recent.ts'
import type { ProxyRequest } from './caller.ts'
import { type CookieNames, readCookie, setCookie } from './cookies.ts'
import { safeReturnPath } from './return-path.ts'

/** What our own answers are built from. */
export interface Pages {
  readonly settings: Settings
  readonly languages: Languages
  readonly branding: Branding
  readonly cookies: CookieNames
  readonly paths: OwnPaths
}

/** For answers that are also reported. */
export interface ReportedPages {
  readonly pages: Pages
  readonly observe: { readonly report: Report }
}

/** `outcome` is how the metrics count a request that gets this answer. */
export interface ResponseAnswer {
  readonly outcome: RequestOutcome
  readonly response: Response
  /** Replaces the body of `response` if many answers share it, so that none of them needs a copy. */
  readonly sharedBody?: Uint8Array<ArrayBuffer>
}

/** A status and headers, without a body. */
export interface StatusAnswer {
  readonly outcome: RequestOutcome
  readonly status: number
  readonly common: CommonHeaders
  /** The caller's identity, if it is sent to a proxy. */
  readonly identity?: IdentityHeaders | undefined
  readonly requestId: string
  /** Headers that only this answer has: names and values in turn. */
  readonly more: readonly string[]
}

export type OwnAnswer = ResponseAnswer | StatusAnswer

interface AnswerOptions {
  /** Default `own`. */
  readonly outcome?: RequestOutcome
  readonly status?: number
  readonly cookies?: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
}

export function pageAnswer(pages: Pages, html: string, extra: AnswerOptions = {}): ResponseAnswer {
  return answer(pages, html, { ...extra, headers: { ...pageHeaders(pages), ...extra.headers } })
}

export function pageHeaders(pages: Pages): Record<string, string> {
  return {
    ...safetyHeaders(pages.settings),
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': CONTENT_POLICY,
    // With `no-referrer` a form would be posted with `Origin: null`, like one of another site.
    'referrer-policy': 'same-origin',
  }
}

export function jsonAnswer(pages: Pages, body: object, extra: AnswerOptions = {}): ResponseAnswer {
  return answer(pages, JSON.stringify(body), {
    ...extra,
    headers: { 'content-type': 'application/json; charset=utf-8', ...extra.headers },
  })
}

export function textAnswer(pages: Pages, body: string, extra: AnswerOptions = {}): ResponseAnswer {
  return answer(pages, body, { ...extra, headers: { 'content-type': 'text/plain; charset=utf-8', ...extra.headers } })
}

/** 204. */
export function noContentAnswer(pages: Pages): ResponseAnswer {
  return answer(pages, null, { status: 204 })
}

export function noticeAnswer(
  pages: Pages,
  request: ProxyRequest,
  name: NoticeName,
  extra: AnswerOptions = {},
): ResponseAnswer {
  return pageAnswer(pages, noticePage(languageOf(pages, request), name), { status: NOTICES[name].status, ...extra })
}

/** The address could not be read, so nothing else is known about the request. */
export function unreadableAnswer(
  pages: Pages,
  { headers, url }: { readonly headers: IncomingHttpHeaders; readonly url?: string | undefined },
  requestId: string,
): ResponseAnswer {
  const name = unreadableName(url)
  const words = languageOf(pages, { headers })
  const { status } = NOTICES[name]
  if (isByScript({ headers }) || isApiPath(url?.split('?', 1)[0] ?? ''))
    return jsonAnswer(
      pages,
      { error: name, message: noticeText(words, name), requestId },
      { status, outcome: 'refused' },
    )
  return pageAnswer(pages, noticePage(words, name, { requestId }), { status, outcome: 'refused' })
}

/** Why an address cannot be read. */
export function unreadableName(url = ''): 'uri_too_long' | 'bad_request' {
  return isTooLong(url) ? 'uri_too_long' : 'bad_request'
}

/** Refuses a request of another site that only our own pages may send. */
export function foreignAnswer(
  { pages, observe }: ReportedPages,
  request: ProxyRequest,
  cookies: readonly string[] = [],
): ResponseAnswer {
  reportForeign(observe.report, request)
  return errorAnswer(pages, request, 'foreign', { cookies, outcome: 'refused' })
}

/** The name of a host has 253 letters at most; a longer one would only fill the log. */
const MAX_ORIGIN_LENGTH = 300

export function reportForeign(report: Report, request: ProxyRequest): void {
  const { method, path, headers } = request
  const { origin } = headers
  report('foreign_origin', {
    ...requestFields(request),
    method,
    path,
    ...(origin && { origin: origin.slice(0, MAX_ORIGIN_LENGTH) }),
  })
}

export function tooManyAnswer(pages: Pages, request: ProxyRequest): ResponseAnswer {
  return errorAnswer(pages, request, 'too_many', { headers: { 'retry-after': '60' }, outcome: 'refused' })
}

/** There is no room for this request now. */
export function busyAnswer(pages: Pages, request: ProxyRequest, extra: AnswerOptions = {}): ResponseAnswer {
  return errorAnswer(pages, request, 'busy', { headers: { 'retry-after': '5' }, ...extra })
}

/** JSON for a script, else a page; `isUser` if the page may say that the user is signed in. */
export function errorAnswer(
  pages: Pages,
  request: ProxyRequest,
  name: NoticeName,
  { isUser, ...extra }: AnswerOptions & { isUser?: boolean } = {},
): ResponseAnswer {
  const { status } = NOTICES[name]
  const words = languageOf(pages, request)
  const message = noticeText(words, name, isUser)
  const { requestId } = request.observed
  if (isByScript(request) || isApiPath(request.path))
    return jsonAnswer(pages, { error: name, message, requestId }, { status, ...extra })
  const retryPath = TEMPORARY.has(status) ? retryPathOf(pages, request) : undefined
  const retrySeconds = AUTO_RETRY_STATUSES.has(status)
    ? Number(extra.headers?.['retry-after'] ?? RETRY_SECONDS)
    : undefined
  const html = noticePage(words, name, { retryPath, retrySeconds, isUser, requestId })
  return pageAnswer(pages, html, { status, ...extra })
}

const TEMPORARY = new Set<number>([502, 503, 504])
/** The page retries automatically. Not for an application that is too slow: each try would cost it as much as the first. */
const AUTO_RETRY_STATUSES = new Set<number>([502, 503])
/** The delay if the answer has no `retry-after`. */
const RETRY_SECONDS = 5

/** Only a request that changes nothing can be repeated; a forward-auth check is not what the browser has requested. */
function retryPathOf({ settings, paths }: Pages, { method, path, search }: ProxyRequest): string | undefined {
  const isCheck = path === OWN_PATHS.check || path === OWN_PATHS.forward || path.startsWith(OWN_PATHS.authz)
  return method === 'GET' && !isCheck ? safeReturnPath(path + search, settings.BASE_URL, paths.signIn) : undefined
}

/** Ends a sign-in: a 302 without the objects of a Response, which take longer than anything else in that answer. */
export function signedInAnswer(
  pages: Pages,
  { observed }: ProxyRequest,
  location: string,
  cookies: readonly string[],
  more: Readonly<Record<string, string>> = {},
): StatusAnswer {
  const common = new CommonHeaders({ ...safetyHeaders(pages.settings), ...more, location, 'content-length': '0' })
  const setCookies = cookies.flatMap(cookie => ['set-cookie', cookie])
  return { outcome: 'own', status: 302, common, requestId: observed.requestId, more: setCookies }
}

/** For a client that disconnected before it got an answer. The outcome of the request does not change. */
export function clientClosedAnswer({ outcome, requestId }: ObservedRequest): StatusAnswer {
  return { outcome, status: CLIENT_CLOSED_REQUEST, common: NO_HEADERS, requestId, more: [] }
}

/** 302, or 303 after a POST: the browser must not send the body again. */
export function redirectAnswer(
  pages: Pages,
  method: string,
  location: string,
  { headers, ...extra }: AnswerOptions = {},
): ResponseAnswer {
  const status = method === 'GET' || method === 'HEAD' ? 302 : 303
  return answer(pages, null, { status, ...extra, headers: { ...headers, location } })
}

/**
 * Allows only our own scripts and styles. `form-action` has to allow the redirects of the provider, because Chromium applies
 * it to each redirect of the sign-in form.
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

export function safetyHeaders(settings: Settings): Record<string, string> {
  const transportSecurity = transportSecurityOf(settings)
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    ...(transportSecurity ? { 'strict-transport-security': transportSecurity } : {}),
  }
}

/** `undefined` for loopback: a browser would require https of every other program on this machine. */
export function transportSecurityOf(settings: Settings): string | undefined {
  const { BASE_URL, HSTS_MAX_AGE } = settings
  return isSecure(settings) && !isLoopback(BASE_URL) && HSTS_MAX_AGE > 0 ? `max-age=${HSTS_MAX_AGE}` : undefined
}

function answer(
  { settings }: Pages,
  body: string | null,
  { outcome = 'own', status = 200, cookies = [], headers = {} }: AnswerOptions,
): ResponseAnswer {
  const all = new Headers({ ...safetyHeaders(settings), ...headers })
  for (const cookie of cookies) all.append('set-cookie', cookie)
  return { outcome, response: new Response(body, { status, headers: all }) }
}

/** The language of an answer: the one chosen in this browser on one of our pages, otherwise the one that PAGE_LANGUAGE sets. */
export function languageOf(pages: Pages, { headers }: { readonly headers: IncomingHttpHeaders }): Words {
  return chosenLanguage(pages, { headers }) ?? pages.languages.preferred(headers['accept-language'])
}

export function chosenLanguage(
  { languages, cookies }: Pages,
  { headers }: { readonly headers: IncomingHttpHeaders },
): Words | undefined {
  const chosen = readCookie(headers.cookie, cookies.language)
  return chosen ? languages.get(chosen) : undefined
}

const YEAR_SECONDS = 365 * 86_400

export function languageCookie({ cookies }: Pages, lang: string): string {
  return setCookie(cookies.language, lang, YEAR_SECONDS)
}

/** The headers that many answers share. The id of the request follows them. */
export class CommonHeaders {
  /** Names and values in turn, the form that Node sends fastest. */
  readonly #list: readonly string[]
  #startOfOk: string | undefined

  constructor(headers: Readonly<Record<string, string>>) {
    this.#list = Object.entries(headers).flat()
  }

  /** The shared headers, and those that only the answer to one request has. */
  listFor({ requestId, identity, more = NONE }: OwnHeaders): string[] {
    return [...this.#list, ...(identity?.pairs ?? NONE), REQUEST_ID, requestId, ...more]
  }

  /** The head of a 200, up to the headers that Node adds. */
  headOfOk({ requestId, identity, more = NONE }: OwnHeaders): string {
    this.#startOfOk ??= `HTTP/1.1 200 OK\r\n${headerLines(this.#list)}`
    if (identity) identity.lines ??= headerLines(identity.pairs)
    return `${this.#startOfOk}${identity?.lines ?? ''}${REQUEST_ID}: ${requestId}\r\n${headerLines(more)}`
  }
}

type OwnHeaders = Pick<StatusAnswer, 'requestId' | 'identity'> & Partial<Pick<StatusAnswer, 'more'>>

const NONE: readonly string[] = []

const NO_HEADERS = new CommonHeaders({})

// The answer after an internal error: a page, or JSON for a script, never a stack.

/** Failures that may be over in a moment. Those of the provider concern bearer tokens. */
const TEMPORARY_FAILURES = new Set<ErrorCode>([
  'store_unavailable',
  'provider_unreachable',
  'provider_answer',
  'provider_busy',
  'provider_unavailable',
])

export function failureAnswer(
  { pages, observe }: ReportedPages,
  request: ProxyRequest,
  error: unknown,
): ResponseAnswer {
  reportFailure(observe.report, request, error)
  if (!isTemporary(error)) return errorAnswer(pages, request, 'broken', { outcome: 'error' })
  const name = error.code === 'provider_unavailable' ? error.code : 'unavailable'
  return errorAnswer(pages, request, name, { headers: { 'retry-after': '5' }, outcome: 'error' })
}

/** Whether a later attempt may succeed. */
export function isTemporary(error: unknown): error is MenshenError {
  return error instanceof MenshenError && TEMPORARY_FAILURES.has(error.code)
}

export function reportFailure(report: Report, request: ProxyRequest, error: unknown): void {
  const { method, observed } = request
  const { user, path } = observed
  report('request_failed', {
    ...errorFields(error),
    ...requestFields(request),
    ...(user === undefined ? {} : { user }),
    method,
    path,
  })
}

/** For pages that can do without the store: `undefined`, and a line in the log, while it is unavailable. */
export async function ifStoreAvailable<T>(
  report: Report,
  request: ProxyRequest,
  result: Promise<T>,
): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'store_unavailable') throw error
    const { method, path } = request
    report('request_failed', { ...errorFields(error), ...requestFields(request), method, path })
    return undefined
  }
}

// What the login page after a redirect shows about the request that failed: its id, and whether the store was the cause. That request
// is found by the browser's address and User-Agent. Two browsers that look the same at the same moment have the same problem.

export interface FailedRequests {
  remember(request: ProxyRequest, error: string, isByStore?: boolean): void
  /** Whether the request that led to this page failed because of the store. */
  isByStore(request: ProxyRequest, error: string): boolean
  /** The id of the request that led to this page, or the page's own if that is unknown. */
  idFor(request: ProxyRequest, error: string): string
}

const FAILED_REQUEST_TTL_MS = 60_000
const MAX_FAILED_REQUESTS = 10_000

export function createFailedRequests(): FailedRequests {
  const failures = new LRUCache<string, FailedRequest>({ ...atMost(MAX_FAILED_REQUESTS), ttl: FAILED_REQUEST_TTL_MS })

  function browserOf({ observed, headers }: ProxyRequest, error: string): string {
    const { 'user-agent': userAgent = '' } = headers
    return JSON.stringify([observed.address, userAgent.slice(0, 256), error])
  }

  return {
    remember(request, error, isByStore = false) {
      failures.set(browserOf(request, error), { id: request.observed.requestId, isByStore })
    },
    isByStore: (request, error) => failures.get(browserOf(request, error))?.isByStore ?? false,
    idFor: (request, error) => failures.get(browserOf(request, error))?.id ?? request.observed.requestId,
  }
}

interface FailedRequest {
  readonly id: string
  readonly isByStore: boolean
}
