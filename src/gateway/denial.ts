// What a caller whom the rules do not admit gets: the way to the login page, a page that says why, or a status for a script.

import type { Role } from '../config/config-file.ts'
import { isLoopback } from '../config/deployment.ts'
import { isTrusted } from '../config/networks.ts'
import { type Outcome, REQUEST_ID, requestFields } from '../observe/observed-request.ts'
import { lostCookiePage, refusedPage, sessionEndedPage } from '../pages/notices.ts'
import { callerOf } from '../proxy/proxy-request.ts'
import { LONGEST_IN_COOKIE, returnQuery, safeReturnPath, signReturnPath } from '../session/attempts.ts'
import { bringsToken, isByScript, isNavigation, isProgram, isShownAsPage } from '../util/fetch-metadata.ts'
import type { Admission, AdmissionContext, CallerIdentification } from './admission.ts'
import { clearCookie, readCookie, setCookie } from './cookies.ts'
import { recordAdmission } from './pipeline.ts'
import type { GatewayRequest } from './request.ts'
import {
  errorAnswer,
  jsonAnswer,
  languageOf,
  type Pages,
  pageAnswer,
  type ResponseAnswer,
  redirectAnswer,
  tooManyAnswer,
} from './respond.ts'

export interface DenialContext extends AdmissionContext {
  readonly pages: Pages
}

/** The answer to a request that is not admitted. */
export function denialAnswer(context: DenialContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const { outcome } = admission
  if (outcome === 'visitor') return loginAnswer(context, request, admission)
  return outcome === 'limited' ? tooManyAnswer(context.pages, request) : refusedAnswer(context, request, admission)
}

// Without a session.

export function loginAnswer(
  context: DenialContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): ResponseAnswer {
  const { pages, auth } = context
  const canFollow = request.method === 'GET' || request.method === 'HEAD'
  if (isProgram(request) || !canFollow) return notSignedInAnswer(pages, request, identification)
  if (isByScript(request)) return unauthenticated(pages, request, identification)
  const moved = ownHostAnswer(pages, request, 'visitor')
  if (moved) return moved
  if (auth.lostCookies.cookieWasLost(request)) return lostCookieAnswer(context, request)
  const { cookies } = identification
  const wanted = isNavigation(request) ? request.path + request.search : undefined
  return redirectAnswer(pages, request.method, pages.paths.login + tabQuery(context, request, wanted), {
    outcome: 'visitor',
    cookies: wanted === undefined ? cookies : [...cookies, returnCookie(context, wanted)],
  })
}

/** A login page may stay open for long in a tab that nobody looks at. */
const TAB_SECONDS = 24 * 3600

/**
 * The return path for the login page of this tab: all tabs share one cookie. Every browser's user agent begins with Mozilla;
 * other clients have no tabs, and get the plain path unless the cookie cannot hold theirs.
 */
function tabQuery({ now, auth, pages }: DenialContext, { headers }: GatewayRequest, wanted = '/'): string {
  const path = safeReturnPath(wanted, pages.settings.BASE_URL, pages.paths.signIn)
  if (path === undefined || path === '/') return ''
  if (!headers['user-agent']?.startsWith('Mozilla/') && path.length <= LONGEST_IN_COOKIE) return ''
  return returnQuery(path, signReturnPath(path, now() + TAB_SECONDS * 1000, auth.keys.returnPath))
}

/** For the form of a login page. */
export function signedForForm({ now, auth }: DenialContext, path: string): string {
  return signReturnPath(path, now() + TAB_SECONDS * 1000, auth.keys.returnPath)
}

function lostCookieAnswer({ pages, observe }: DenialContext, request: GatewayRequest): ResponseAnswer {
  const { headers } = request
  const { BASE_URL } = pages.settings
  const otherHost = headers.host === new URL(BASE_URL).host ? undefined : headers.host
  observe.report('cookie_lost', { ...requestFields(request), baseUrl: BASE_URL, host: headers.host })
  const { requestId } = request.observed
  const html = lostCookiePage(languageOf(pages, request), { baseUrl: BASE_URL, otherHost, requestId })
  return pageAnswer(pages, html, { status: 400, outcome: 'visitor' })
}

/** A form that was sent after the session had ended, or a program: never the login page. A browser gets a page that says so. */
function notSignedInAnswer(
  pages: Pages,
  request: GatewayRequest,
  identification: CallerIdentification,
): ResponseAnswer {
  const isPage = isShownAsPage(request) && !bringsToken(request.headers) && request.headers.upgrade === undefined
  if (!isPage) return unauthenticated(pages, request, identification)
  const { requestId } = request.observed
  return pageAnswer(pages, sessionEndedPage(languageOf(pages, request), request.method === 'POST', requestId), {
    status: 401,
    outcome: 'visitor',
    cookies: identification.cookies,
    headers: { 'www-authenticate': visitorChallenge(request, identification) },
  })
}

export function unauthenticated(
  pages: Pages,
  request: GatewayRequest,
  identification: CallerIdentification,
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
): ResponseAnswer {
  return jsonAnswer(
    pages,
    {
      error: 'unauthenticated',
      message: languageOf(pages, request).t('session.unauthenticated'),
      login: pages.paths.login,
      requestId: request.observed.requestId,
      ...more,
    },
    {
      status: 401,
      outcome: 'visitor',
      cookies: identification.cookies,
      headers: { ...headers, 'www-authenticate': visitorChallenge(request, identification) },
    },
  )
}

/** The `WWW-Authenticate` of a denial by status; `undefined` where none belongs. */
export function challengeFor(request: GatewayRequest, admission: Admission): string | undefined {
  if (admission.outcome === 'visitor') return visitorChallenge(request, admission)
  return admission.outcome === 'refused' && admission.bearer ? scopeChallenge(admission) : undefined
}

/** RFC 9110 wants one with every 401. No name for cookies is registered; browsers do not ask for a password by this one. */
function visitorChallenge({ headers }: GatewayRequest, { failedToken }: CallerIdentification): string {
  if (failedToken) return 'Bearer error="invalid_token"'
  return bringsToken(headers) ? 'Bearer' : 'Cookie realm="menshen"'
}

/** RFC 6750, 3: the token is valid, but not enough; with the scopes that are missing. */
function scopeChallenge({ missingScopes }: Admission): string {
  const challenge = 'Bearer error="insufficient_scope"'
  return missingScopes ? `${challenge}, scope="${missingScopes.join(' ')}"` : challenge
}

const RETURN_SECONDS = 600

/** The cookie that leads back to the page after the sign-in. */
export function returnCookie({ now, auth, pages }: DenialContext, wanted: string): string {
  const { cookies, keys } = auth
  const path = safeReturnPath(wanted, pages.settings.BASE_URL, pages.paths.signIn)
  // None is better than the page that was wanted before this one.
  if (!path || path.length > LONGEST_IN_COOKIE) return clearCookie(cookies.returnPath)
  const value = signReturnPath(path, now() + RETURN_SECONDS * 1000, keys.returnPath)
  return setCookie(cookies.returnPath, value, RETURN_SECONDS)
}

// This machine has several names. A browser that comes under another one than BASE_URL's could never sign in there, because
// cookies belong to one name: it is sent to the same page under the right one.

/** With a proxy that sends its own Host, that would repeat for ever. A browser that comes back with this cookie was redirected just now. */
const REDIRECTED_SECONDS = 5

/** `undefined` if the host is the right one, or the request is not for a page in a browser. */
export function ownHostAnswer(pages: Pages, request: GatewayRequest, outcome: Outcome): ResponseAnswer | undefined {
  const { settings, cookies } = pages
  const { method, path, search, headers } = request
  if (method !== 'GET' || headers['sec-fetch-dest'] !== 'document') return undefined
  if (!isOtherNameOf(settings.BASE_URL, headers.host)) return undefined
  if (isTrusted(settings.TRUSTED_PROXIES, request.address) || readCookie(headers.cookie, cookies.moved))
    return undefined
  return redirectAnswer(pages, method, settings.BASE_URL + path + search, {
    outcome,
    cookies: [setCookie(cookies.moved, 'yes', REDIRECTED_SECONDS)],
  })
}

function isOtherNameOf(baseUrl: string, host: string | undefined): boolean {
  const address = `http://${host}`
  if (!isLoopback(baseUrl) || !URL.canParse(address) || !isLoopback(address)) return false
  return new URL(address).hostname !== new URL(baseUrl).hostname
}

// Signed in, and not allowed: the page says who the user is, and offers another account.

export function refusedAnswer({ pages }: DenialContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const { loaded, bearer, cookies, refusedBy } = admission
  const outcome = 'refused'
  if (bearer)
    return errorAnswer(pages, request, 'refused', {
      outcome,
      headers: { 'www-authenticate': scopeChallenge(admission) },
    })
  // Without a rule, no other account would be admitted either.
  if (!loaded || !refusedBy || isByScript(request)) return errorAnswer(pages, request, 'refused', { outcome, cookies })
  const path = request.path + request.search
  const wanted = isNavigation(request) ? safeReturnPath(path, pages.settings.BASE_URL, pages.paths.signIn) : undefined
  const { requestId } = request.observed
  const html = refusedPage(languageOf(pages, request), loaded.session, { wanted, requestId, rule: refusedBy })
  return pageAnswer(pages, html, { status: 403, outcome, cookies })
}

// A page of an embedding application that wants more than the rules say: a signed-in user, or one of a few roles.

/** For a request that the rules have admitted. A caller without what the page wants gets the same answer as from a rule. */
export function createRequire(context: DenialContext, request: GatewayRequest, admission: Admission) {
  return (roles?: readonly Role[]): Response | undefined => {
    const role = callerOf(admission)?.who.role
    if (role !== undefined && (!roles || roles.includes(role))) return undefined
    const outcome = role === undefined ? 'visitor' : 'refused'
    const refusedBy = roles && { path: request.path, roles }
    const denied = recordAdmission(context, request, { ...admission, outcome, ...(refusedBy && { refusedBy }) })
    const { response } = denialAnswer(context, request, denied)
    response.headers.set(REQUEST_ID, request.observed.requestId)
    return response
  }
}
