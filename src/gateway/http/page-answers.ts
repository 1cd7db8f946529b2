// The answers that our own routes give, each with the headers that keep it private and harmless.
import { isTooLong } from '../../access/target.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { NOTICES, type NoticeName, noticePage, noticeText } from '../../pages/notice-page.ts'
import { ownPath } from '../../session/return-path.ts'
import { isSecure } from '../../settings/read.ts'
import type { GatewayContext } from '../context.ts'
import { languageOf } from '../language/language-of.ts'
import { isByScript, type RequestHead, type Visit } from './request.ts'
import { commonHeaders, withRequestId } from './request-id.ts'
import { whoAsks } from './who-asks.ts'

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

export function noticeAnswer(context: GatewayContext, visit: Visit, name: NoticeName, extra: Extra = {}): Response {
  return pageAnswer(context, noticePage(languageOf(context, visit), name), { status: NOTICES[name].status, ...extra })
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
export function foreignAnswer(context: GatewayContext, visit: Visit, cookies: readonly string[] = []): Response {
  tellOfForeign(context, visit)
  return errorAnswer(context, visit, 'foreign', { cookies })
}

export function tooMany(context: GatewayContext, visit: Visit): Response {
  visit.observed.outcome = 'refused'
  return errorAnswer(context, visit, 'too_many', { headers: { 'retry-after': '60' } })
}

/** A name of a host has 253 letters; whoever sends more wants to fill our log. */
const LONGEST_ORIGIN = 300

export function tellOfForeign(context: Pick<GatewayContext, 'settings' | 'report'>, visit: Visit): void {
  const { method, path, headers, observed } = visit
  const { origin } = headers
  context.report('foreign_origin', {
    ...whoAsks(context, visit),
    method,
    path,
    ...(origin && { origin: origin.slice(0, LONGEST_ORIGIN) }),
  })
  observed.outcome = 'refused'
}

/** The application has no room for this request now. */
export function busyAnswer(context: GatewayContext, visit: Visit): Response {
  return errorAnswer(context, visit, 'busy', { headers: { 'retry-after': '5' } })
}

/** The same in whichever form the request can use; `isUser` if that somebody is signed in is worth a word. */
export function errorAnswer(
  context: GatewayContext,
  visit: Visit,
  name: NoticeName,
  { isUser, ...extra }: Extra & { isUser?: boolean } = {},
): Response {
  const { status } = NOTICES[name]
  const words = languageOf(context, visit)
  const message = noticeText(words, name, isUser)
  const { requestId } = visit.observed
  if (isByScript(visit)) return jsonAnswer(context, { error: name, message, requestId }, { status, ...extra })
  const { BASE_URL } = context.settings
  const retryPath = PASSING.has(status) ? retryPathOf(visit, BASE_URL, context.providers.callbackPaths) : undefined
  return pageAnswer(context, noticePage(words, name, { retryPath, isUser, requestId }), { status, ...extra })
}

/** What may be over in a moment. */
const PASSING = new Set<number>([502, 503, 504])

/** Only what changes nothing is tried again; a proxy's question is not what the browser has asked for. */
function retryPathOf(
  { method, path, search }: Visit,
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
  { observed }: Pick<Visit, 'observed'>,
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
