// What a caller whom the rules do not admit gets: the way to the login page, a page that says why, or a status for a script.

import type { IncomingHttpHeaders } from 'node:http'
import { type RefusalCode, requestFor } from '../access/conditions.ts'
import type { Role } from '../config/config-file.ts'
import { isLoopback } from '../config/deployment.ts'
import { isTrusted } from '../config/networks.ts'
import {
  errorAnswer,
  jsonAnswer,
  languageOf,
  type Pages,
  pageAnswer,
  type ResponseAnswer,
  redirectAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import { callerOf } from '../http/caller.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { LONGEST_IN_COOKIE, returnQuery, safeReturnPath, signReturnPath } from '../http/return-path.ts'
import type { Admission, CallerIdentification } from '../identify/admission.ts'
import { recordAdmission } from '../identify/admit.ts'
import { challengeParameters, metadataParameter, scopeParameters } from '../identify/protected-resources.ts'
import { type Outcome, REQUEST_ID, requestFields } from '../observe/observed-request.ts'
import {
  conditionPage,
  conditionText,
  lostCookiePage,
  NOTICES,
  refusedPage,
  sessionEndedPage,
} from '../pages/notices.ts'
import type { Provider } from '../provider/provider.ts'
import {
  bringsToken,
  isBrowser,
  isByScript,
  isGit,
  isNavigation,
  isProgram,
  isShownAsPage,
  isWebDav,
  loadsPage,
  sendsPassword,
} from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import { automaticProvider, startAutomatically } from './auto-sign-in.ts'
import type { SignInContext } from './context.ts'

/** The answer to a request that is not admitted. */
export function denialAnswer(
  context: SignInContext,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<ResponseAnswer> {
  const { outcome } = admission
  if (outcome === 'visitor' || outcome === 'unavailable') return loginAnswer(context, request, admission)
  if (outcome === 'unreadable') return errorAnswer(context.pages, request, 'bad_request', { outcome: 'refused' })
  return outcome === 'limited' ? tooManyAnswer(context.pages, request) : refusedAnswer(context, request, admission)
}

// Without a session.

/** The way to the login page, or straight to the provider. */
export function loginAnswer(
  context: SignInContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<ResponseAnswer> {
  const answer = loginPageAnswer(context, request, identification)
  const provider = answer.leadsToLogin && automaticProvider(context, request)
  return provider ? redirectToProvider(context, request, provider, answer) : answer
}

/** A redirect to the login page, unless something else is to be said first. */
interface LoginAnswer extends ResponseAnswer {
  readonly leadsToLogin?: true
}

async function redirectToProvider(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  loginPage: ResponseAnswer,
): Promise<ResponseAnswer> {
  const { settings, paths } = context
  const wanted = safeReturnPath(request.path + request.search, settings.BASE_URL, paths.signIn) ?? '/'
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
  if (identification.isProviderAway) return providerAwayAnswer(pages, request)
  const canFollow = request.method === 'GET' || request.method === 'HEAD'
  if (isProgram(request) || !canFollow) return notSignedInAnswer(pages, request, identification)
  if (isByScript(request) || (acceptsPrograms(identification) && !loadsPage(request)))
    return unauthenticated(pages, request, identification)
  if (!site.isAuthHost)
    return (
      (isNavigation({ ...request, method: 'GET' }) && site.handoff(context, request, identification)) ||
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

/** The caller is signed in: neither a login page nor a 401 would be true. */
function providerAwayAnswer(pages: Pages, request: GatewayRequest): ResponseAnswer {
  return errorAnswer(pages, request, 'provider_unavailable', { headers: { 'retry-after': '5' }, outcome: 'error' })
}

/** A program without credentials sends them once it gets 401; a login page would be its result. */
function acceptsPrograms({ acceptsKey, resource }: CallerIdentification): boolean {
  return acceptsKey === true || resource !== undefined
}

/** A login page may stay open for long in a tab that nobody looks at. */
const TAB_SECONDS = 24 * 3600

/**
 * The return path for the login page of this tab: all tabs share one cookie. Every browser's user agent begins with Mozilla;
 * other clients have no tabs, and get the plain path unless the cookie cannot hold theirs.
 */
function tabQuery({ now, auth, pages }: SignInContext, { headers }: GatewayRequest, wanted = '/'): string {
  const path = safeReturnPath(wanted, pages.settings.BASE_URL, pages.paths.signIn)
  if (path === undefined || path === '/') return ''
  if (!headers['user-agent']?.startsWith('Mozilla/') && path.length <= LONGEST_IN_COOKIE) return ''
  return returnQuery(path, signReturnPath(path, now() + TAB_SECONDS * 1000, auth.keys.returnPath))
}

/** For the form of a login page. */
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

/** A form that was sent after the session had ended, or a program: never the login page. A browser gets a page that says so. */
function notSignedInAnswer(
  pages: Pages,
  request: GatewayRequest,
  identification: CallerIdentification,
): ResponseAnswer {
  const { keyProblem } = identification
  const isPage =
    keyProblem === undefined &&
    isShownAsPage(request) &&
    !bringsToken(request.headers) &&
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
  if (identification.isProviderAway) return providerAwayAnswer(pages, request)
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

/** The `WWW-Authenticate` of a denial by status; `undefined` where none belongs. */
export function challengeFor(request: GatewayRequest, admission: Admission): string | undefined {
  if (admission.outcome === 'visitor') return visitorChallenge(request, admission)
  if (admission.outcome === 'step_up') return stepUpChallenge(admission)
  return admission.outcome === 'refused' && admission.bearer && !admission.bearer.who.keyKind && !admission.condition
    ? scopeChallenge(admission)
    : undefined
}

const PASSWORD_CHALLENGE = 'Basic realm="menshen"'

/** RFC 9110 wants one with every 401. No name for cookies is registered; browsers do not ask for a password by this one. */
function visitorChallenge(
  { method, headers }: GatewayRequest,
  { failedToken, resource, acceptsKey }: CallerIdentification,
): string {
  const parameters = [...(failedToken ? ['error="invalid_token"'] : []), ...challengeParameters(resource)]
  const forToken = parameters.length > 0 ? `Bearer ${parameters.join(', ')}` : undefined
  // Git and WebDAV clients send a key as a password once they are asked for one. A browser would ask its user.
  // Clients of WebDAV call themselves Mozilla, too. A script of a page can use these methods as well.
  const sentPassword = sendsPassword(headers)
  const mayTakePassword = headers['sec-fetch-mode'] === undefined && (isWebDav(method) || sentPassword)
  const takesPassword = !isBrowser(headers) || mayTakePassword
  const forKey = acceptsKey && !bringsToken(headers) && takesPassword ? PASSWORD_CHALLENGE : undefined
  // A client that sent a wrong password asks for another one only if Basic is among the challenges.
  if (forToken && forKey && (!failedToken || sentPassword)) return bothChallenges(headers, forToken, forKey)
  return forToken ?? forKey ?? (bringsToken(headers) ? 'Bearer' : 'Cookie realm="menshen"')
}

/** In one line, as a Response has it. JGit and MCP clients read the scheme at its beginning alone. */
function bothChallenges(headers: IncomingHttpHeaders, forToken: string, forKey: string): string {
  return isGit(headers) ? `${forKey}, ${forToken}` : `${forToken}, ${forKey}`
}

/** RFC 6750, 3: the token is valid, but not enough; with all scopes that it needs, if it lacks one of them. */
function scopeChallenge({ missingScopes, resource }: Admission): string {
  const wanted = missingScopes ? scopeParameters(missingScopes) : []
  // Where no other scope would help, nobody is sent to get another token.
  const metadata = missingScopes && resource ? [metadataParameter(resource)] : []
  return ['Bearer error="insufficient_scope"', ...wanted, ...metadata].join(', ')
}

/** RFC 9470, 3. The values have no quotes: the configuration was checked. */
export function stepUpChallenge({ demands = [], resource }: Admission): string {
  const { maxAge, acr } = requestFor(demands)
  return [
    'Bearer error="insufficient_user_authentication"',
    ...(acr.length > 0 ? [`acr_values="${acr.join(' ')}"`] : []),
    ...(maxAge === undefined ? [] : [`max_age="${maxAge}"`]),
    ...challengeParameters(resource),
  ].join(', ')
}

const RETURN_SECONDS = 600

/** The cookie that leads back to the page after the sign-in. */
export function returnCookie({ now, auth, pages }: SignInContext, wanted: string): string {
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

export function refusedAnswer(context: SignInContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const { pages } = context
  const { loaded, bearer, cookies, refusedBy, condition } = admission
  const outcome = 'refused'
  if (condition) return conditionAnswer(context, request, admission, condition)
  if (bearer?.who.keyKind) return errorAnswer(pages, request, 'refused', { outcome })
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

/** The rule is for the caller, but not from there, not now, or not signed in like this. */
function conditionAnswer(
  context: SignInContext,
  request: GatewayRequest,
  { cookies, refusedBy, loaded, bearer }: Admission,
  condition: RefusalCode,
): ResponseAnswer {
  const { pages } = context
  const words = languageOf(pages, request)
  const { status } = NOTICES[condition]
  const { requestId } = request.observed
  const hours = condition === 'outside_hours' ? refusedBy?.hours : undefined
  const extra = { status, outcome: 'refused', cookies } as const
  if (isByScript(request) || bearer) {
    const message = conditionText(words, condition, hours)
    return jsonAnswer(pages, { error: condition, message, requestId, ...(hours && { hours }) }, extra)
  }
  const path = safeReturnPath(request.path + request.search, pages.settings.BASE_URL, pages.paths.signIn)
  const mayHelp = condition === 'step_up_failed' && loaded && request.method === 'GET'
  const signInAgain = mayHelp && path ? signedForForm(context, path) : undefined
  return pageAnswer(pages, conditionPage(words, condition, { hours, requestId, signInAgain }), extra)
}

// A page of an embedding application that wants more than the rules say: a signed-in user, or one of a few roles.

/** For a request that the rules have admitted. A caller without what the page wants gets the same answer as from a rule. */
export function createRequire(context: SignInContext, request: GatewayRequest, admission: Admission) {
  return (roles?: readonly Role[]): Response | undefined => {
    const role = callerOf(admission)?.who.role
    if (role !== undefined && (!roles || roles.includes(role))) return undefined
    const outcome = role === undefined ? 'visitor' : 'refused'
    const refusedBy = roles && { path: request.path, roles }
    const denied = recordAdmission(context, request, { ...admission, outcome, ...(refusedBy && { refusedBy }) })
    // Without waiting: with AUTO_SIGN_IN the login page leads on to the provider.
    const { response } =
      outcome === 'visitor' ? loginPageAnswer(context, request, denied) : refusedAnswer(context, request, denied)
    response.headers.set(REQUEST_ID, request.observed.requestId)
    return response
  }
}
