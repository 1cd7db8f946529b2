// What somebody without a session gets: the way to the login page, or a status that a script understands.
import { OWN_PATHS } from '../../own-paths.ts'
import { lostCookiePage } from '../../pages/lost-cookie-page.ts'
import { ownPath, signReturnPath } from '../../session/return-path.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, setCookie } from '../http/cookies.ts'
import { jsonAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { bringsToken, isByScript, isNavigation, type Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { languageOf } from '../language/language-of.ts'
import type { Caller } from './admit.ts'
import { INVALID_TOKEN } from './bearer.ts'
import { toOwnHost } from './own-host.ts'

const RETURN_SECONDS = 600

export function toLogin(context: GatewayContext, visit: Visit, caller: Caller): Response {
  const { cookies } = caller
  const canFollow = visit.method === 'GET' || visit.method === 'HEAD'
  if (isByScript(visit) || !canFollow) return unauthenticated(context, visit, caller)
  const moved = toOwnHost(context, visit)
  if (moved) return moved
  if (context.lostCookies.cookieWasLost(visit)) return lostCookie(context, visit)
  return redirectAnswer(context, visit.method, OWN_PATHS.login, [...cookies, ...returnCookie(context, visit)])
}

function lostCookie(context: GatewayContext, visit: Visit): Response {
  const { headers } = visit
  const { BASE_URL } = context.settings
  const otherHost = headers.host === new URL(BASE_URL).host ? undefined : headers.host
  context.report('cookie_lost', { ...whoAsks(context, visit), baseUrl: BASE_URL, host: headers.host })
  const { requestId } = visit.observed
  const html = lostCookiePage(languageOf(context, visit), { baseUrl: BASE_URL, otherHost, requestId })
  return pageAnswer(context, html, { status: 400 })
}

export function unauthenticated(context: GatewayContext, visit: Visit, caller: Caller, more: object = {}): Response {
  return jsonAnswer(
    context,
    {
      error: 'unauthenticated',
      message: languageOf(context, visit).t('session.unauthenticated'),
      login: OWN_PATHS.login,
      requestId: visit.observed.requestId,
      ...more,
    },
    { status: 401, cookies: caller.cookies, headers: { 'www-authenticate': challengeFor(visit, caller) } },
  )
}

/** RFC 9110 wants one with every 401. There is no registered name for cookies; browsers do not ask for a password by this one. */
export function challengeFor({ headers }: Visit, { failedToken }: Caller): string {
  if (failedToken) return INVALID_TOKEN
  return bringsToken(headers) ? 'Bearer' : 'Cookie realm="menshen"'
}

function returnCookie(context: GatewayContext, visit: Visit): string[] {
  return isNavigation(visit) ? [returnCookieFor(context, visit.path + visit.search)] : []
}

export function returnCookieFor(
  context: Pick<GatewayContext, 'settings' | 'cookies' | 'keys' | 'now' | 'providers'>,
  wanted: string,
): string {
  const path = ownPath(wanted, context.settings.BASE_URL, context.providers.callbackPaths)
  // Nothing is better than the page that was wanted before this one.
  if (!path) return clearCookie(context.cookies.returnPath)
  const value = signReturnPath(path, context.now() + RETURN_SECONDS * 1000, context.keys.returnPath)
  return setCookie(context.cookies.returnPath, value, RETURN_SECONDS)
}
