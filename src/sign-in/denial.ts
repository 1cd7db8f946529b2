// The answer to a caller whom the rules do not admit.
//
//                        a page in a browser                    a script or a program
//   not signed in        redirect to /login, or straight to     401, JSON
//                        the provider with AUTO_SIGN_IN
//   …with a form         401, a page: the session has ended     401, JSON
//   not allowed          403, a page with another account       403, JSON
//   not from there, or   403, a page that names the condition   403, JSON
//   not at this time
//   provider unavailable 503                                    503

import type { RefusalCode } from '../access/conditions.ts'
import { isLoopback } from '../config/deployment.ts'
import { isTrusted } from '../config/networks.ts'
import type { Role } from '../config/role-names.ts'
import { MenshenError } from '../errors.ts'
import {
  errorAnswer,
  jsonAnswer,
  languageOf,
  type Pages,
  pageAnswer,
  type ResponseAnswer,
  redirectAnswer,
} from '../http/answers.ts'
import { callerOf } from '../http/caller.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { MAX_PATH_LENGTH_IN_COOKIE, returnQuery, safeReturnPath, signReturnPath } from '../http/return-path.ts'
import type { Admission, CallerIdentification } from '../identify/admission.ts'
import { recordAdmission } from '../identify/admit.ts'
import { REQUEST_ID, type RequestOutcome, requestFields } from '../observe/observed-request.ts'
import {
  conditionPage,
  conditionText,
  lostCookiePage,
  NOTICES,
  refusedPage,
  sessionEndedPage,
} from '../pages/notices.ts'
import type { Provider } from '../provider/provider.ts'
import { hasToken, isByScript, isNavigation, isProgram, isShownAsPage, loadsPage } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import { automaticProvider, startAutomatically } from './auto-sign-in.ts'
import { scopeChallenge, visitorChallenge } from './challenge.ts'
import type { SignInContext } from './context.ts'

// Not signed in.

/** A redirect to the login page, or straight to the provider. */
export function loginAnswer(
  context: SignInContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<ResponseAnswer> {
  const answer = loginPageAnswer(context, request, identification)
  const provider = answer.leadsToLogin && automaticProvider(context, request)
  return provider ? redirectToProvider(context, request, provider, answer) : answer
}

/** Without `leadsToLogin`, another answer takes precedence over the login page. */
interface LoginAnswer extends ResponseAnswer {
  readonly leadsToLogin?: true
}

async function redirectToProvider(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  loginPage: ResponseAnswer,
): Promise<ResponseAnswer> {
  const wanted = returnPathTo(context.pages, request.path + request.search) ?? '/'
  const started = await startAutomatically(context, request, provider, wanted)
  if (!started) return loginPage
  return redirectAnswer(context.pages, request.method, started.location, {
    outcome: 'visitor',
    cookies: [...loginPage.response.headers.getSetCookie(), ...started.cookies],
  })
}

function loginPageAnswer(
  context: SignInContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): LoginAnswer {
  const { pages, auth, site } = context
  if (identification.isProviderUnavailable) return providerUnavailableAnswer(pages, request)
  const canFollow = request.method === 'GET' || request.method === 'HEAD'
  if (isProgram(request) || !canFollow) return notSignedInAnswer(pages, request, identification)
  if (isByScript(request) || (acceptsPrograms(identification) && !loadsPage(request)))
    return unauthenticated(pages, request, identification)
  if (!site.isAuthHost)
    return (
      (isNavigation({ ...request, method: 'GET' }) && site.handoffAnswer(context, request, identification)) ||
      unauthenticated(pages, request, identification)
    )
  const moved = ownHostAnswer(pages, request, 'visitor')
  if (moved) return moved
  if (auth.lostCookies.cookieWasLost(request)) return lostCookieAnswer(context, request)
  const { cookies } = identification
  const wanted = isNavigation(request) ? request.path + request.search : undefined
  const redirect = redirectAnswer(pages, request.method, pages.paths.login + tabQuery(context, request, wanted), {
    outcome: 'visitor',
    cookies: wanted === undefined ? cookies : [...cookies, returnCookie(context, wanted)],
  })
  return { ...redirect, leadsToLogin: true }
}

/** The caller is signed in: neither a login page nor a 401 would be correct. */
function providerUnavailableAnswer(pages: Pages, request: GatewayRequest): ResponseAnswer {
  return errorAnswer(pages, request, 'provider_unavailable', { headers: { 'retry-after': '5' }, outcome: 'error' })
}

/** A program sends its credentials after a 401, and would mistake a login page for the result. */
function acceptsPrograms({ acceptsKey, resource }: CallerIdentification): boolean {
  return acceptsKey === true || resource !== undefined
}

/** A login page may stay open for a long time in a background tab. */
const TAB_SECONDS = 24 * 3600

/**
 * The return path for the login page of this tab, because all tabs share one cookie. Every browser's user agent begins with Mozilla;
 * other clients have no tabs, and get the plain path unless the cookie cannot hold theirs.
 */
function tabQuery(context: SignInContext, { headers }: GatewayRequest, wanted = '/'): string {
  const path = returnPathTo(context.pages, wanted)
  if (path === undefined || path === '/') return ''
  if (!headers['user-agent']?.startsWith('Mozilla/') && path.length <= MAX_PATH_LENGTH_IN_COOKIE) return ''
  return returnQuery(path, signedForForm(context, path))
}

/** The signed return path for a login page, which may stay open for a long time. */
export function signedForForm({ now, auth }: SignInContext, path: string): string {
  return signReturnPath(path, now() + TAB_SECONDS * 1000, auth.keys.returnPath)
}

function lostCookieAnswer({ pages, observe }: SignInContext, request: GatewayRequest): ResponseAnswer {
  const { headers } = request
  const { BASE_URL } = pages.settings
  const otherHost = headers.host === new URL(BASE_URL).host ? undefined : headers.host
  observe.report('cookie_lost', { ...requestFields(request), baseUrl: BASE_URL, host: headers.host })
  const { requestId } = request.observed
  const html = lostCookiePage(languageOf(pages, request), { baseUrl: BASE_URL, otherHost, requestId })
  return pageAnswer(pages, html, { status: 400, outcome: 'visitor' })
}

/** For a form that was sent after the session had ended, and for programs: never the login page. A browser gets a page that says so. */
function notSignedInAnswer(
  pages: Pages,
  request: GatewayRequest,
  identification: CallerIdentification,
): ResponseAnswer {
  const { keyProblem } = identification
  const isPage =
    keyProblem === undefined &&
    isShownAsPage(request) &&
    !hasToken(request.headers) &&
    request.headers.upgrade === undefined
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
  if (identification.isProviderUnavailable) return providerUnavailableAnswer(pages, request)
  return jsonAnswer(
    pages,
    {
      error: identification.keyProblem ?? 'unauthenticated',
      message: languageOf(pages, request).t(`session.${identification.keyProblem ?? 'unauthenticated'}`),
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

/** Where a sign-in may lead back to; `undefined` for our own sign-in pages and for other sites. */
function returnPathTo({ settings, paths }: Pages, wanted: string): string | undefined {
  return safeReturnPath(wanted, settings.BASE_URL, paths.signIn)
}

const RETURN_SECONDS = 600

/** The cookie that leads back to the page after the sign-in. */
export function returnCookie({ now, auth, pages }: SignInContext, wanted: string): string {
  const { cookies, keys } = auth
  const path = returnPathTo(pages, wanted)
  // No cookie is better than the cookie of the previous page.
  if (!path || path.length > MAX_PATH_LENGTH_IN_COOKIE) return clearCookie(cookies.returnPath)
  const value = signReturnPath(path, now() + RETURN_SECONDS * 1000, keys.returnPath)
  return setCookie(cookies.returnPath, value, RETURN_SECONDS)
}

// This machine has several names (localhost, 127.0.0.1). Cookies belong to one name, so a browser can sign in only under the name in
// BASE_URL: it is redirected to the same page there.

/** A proxy that sends its own Host would cause a loop. A browser that comes back with this cookie was redirected just now. */
const REDIRECTED_SECONDS = 5

/** `undefined` if the host is the right one, or the request is not for a page in a browser. */
export function ownHostAnswer(
  pages: Pages,
  request: GatewayRequest,
  outcome: RequestOutcome,
): ResponseAnswer | undefined {
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

// Signed in, but not allowed: the page shows who the user is, and offers another account.

export function refusedAnswer(context: SignInContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const { pages } = context
  const { loaded, program, cookies, refusedBy, condition } = admission
  const outcome = 'refused'
  if (condition) return conditionAnswer(context, request, admission, condition)
  if (program) {
    // A key has no scopes.
    const headers = program.who.keyKind ? {} : { 'www-authenticate': scopeChallenge(admission) }
    return errorAnswer(pages, request, 'refused', { outcome, headers })
  }
  // Without a rule, no other account would be admitted either.
  if (!loaded || !refusedBy || isByScript(request)) return errorAnswer(pages, request, 'refused', { outcome, cookies })
  const wanted = isNavigation(request) ? returnPathTo(pages, request.path + request.search) : undefined
  const { requestId } = request.observed
  const html = refusedPage(languageOf(pages, request), loaded.session, { wanted, requestId, rule: refusedBy })
  return pageAnswer(pages, html, { status: 403, outcome, cookies })
}

/** The rule admits the caller, but not from this address, not now, or not with this kind of sign-in. */
function conditionAnswer(
  context: SignInContext,
  request: GatewayRequest,
  { cookies, refusedBy, loaded, program }: Admission,
  condition: RefusalCode,
): ResponseAnswer {
  const { pages } = context
  const words = languageOf(pages, request)
  const { status } = NOTICES[condition]
  const { requestId } = request.observed
  const hours = condition === 'outside_hours' ? refusedBy?.hours : undefined
  const extra = { status, outcome: 'refused', cookies } as const
  if (isByScript(request) || program) {
    const message = conditionText(words, condition, refusedBy)
    return jsonAnswer(pages, { error: condition, message, requestId, ...(hours && { hours }) }, extra)
  }
  const path = returnPathTo(pages, request.path + request.search)
  const mayHelp = condition === 'step_up_failed' && loaded && request.method === 'GET'
  const signInAgain = mayHelp && path ? signedForForm(context, path) : undefined
  return pageAnswer(pages, conditionPage(words, condition, { rule: refusedBy, requestId, signInAgain }), extra)
}

// A page of an embedding application that requires more than the rules do: a signed-in user, or one of a few roles.

/** For a request that the rules have admitted. A caller who does not meet the page's requirement gets the same answer as from a rule. */
export function createRequire(context: SignInContext, request: GatewayRequest, admission: Admission) {
  return (roles?: readonly Role[]): Response | undefined => {
    // The method `includes` of a text would compare parts of names.
    if (roles !== undefined && !Array.isArray(roles))
      throw new MenshenError('bad_settings', "require: expected a list of roles, for example require(['developer']).")
    const role = callerOf(admission)?.who.role
    if (role !== undefined && (!roles || roles.includes(role))) return undefined
    const outcome = role === undefined ? 'visitor' : 'refused'
    const refusedBy = roles && { path: request.path, roles }
    const denied = recordAdmission(context, request, { ...admission, outcome, ...(refusedBy && { refusedBy }) })
    // Synchronous: with AUTO_SIGN_IN the login page redirects to the provider.
    const { response } =
      outcome === 'visitor' ? loginPageAnswer(context, request, denied) : refusedAnswer(context, request, denied)
    response.headers.set(REQUEST_ID, request.observed.requestId)
    return response
  }
}
