// GET /login shows the page; POST /login starts an attempt on the server.

import { factsOf } from '../../errors.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { loginPage } from '../../pages/login-page.ts'
import { ATTEMPT_SECONDS } from '../../session/attempts.ts'
import { readReturnPath } from '../../session/return-path.ts'
import { missingSettings } from '../../settings/read.ts'
import { toOwnHost } from '../admission/own-host.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import { errorAnswer, jsonAnswer, pageAnswer, redirectAnswer, tooMany } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import { isByScript, type Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'

export async function showLogin(context: GatewayContext, visit: Visit): Promise<Response> {
  const moved = toOwnHost(context, visit)
  if (moved) return moved
  const missing = missingSettings(context.settings)
  const signedOut = readCookie(visit.headers.cookie, context.cookies.signedOut)
  const html = loginPage({
    appName: context.settings.APP_NAME,
    missing,
    authorizationUrl: missing.length > 0 ? '' : context.provider.authorizationUrl(),
    remembered: context.attempts.remembered,
    error: new URLSearchParams(visit.search).get('error') || undefined,
    signedIn: await signedIn(context, visit),
    signedOut: signedOut === 'here' || signedOut === 'everywhere' ? signedOut : undefined,
  })
  // Said once, and only by the page itself: HEAD has not shown it.
  const cookies = signedOut && visit.method === 'GET' ? [clearCookie(context.cookies.signedOut)] : []
  return pageAnswer(context, html, { cookies })
}

export async function startAttempt(context: GatewayContext, visit: Visit): Promise<Response> {
  const { settings, attempts, provider, cookies } = context
  // Before it is counted: another site must not use up what the whole office shares.
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return errorAnswer(context, visit, 'foreign')
  if (!(await context.rateLimit.admits('sign-in', visit))) return tooMany(context, visit)
  if (missingSettings(settings).length > 0) return redirectAnswer(context, visit.method, OWN_PATHS.login)
  const known = readCookie(visit.headers.cookie, cookies.attempt)
  const { browser, ...attempt } = await attempts.start(known, returnPathOf(context, visit))
  const location = provider.authorizationUrl(attempt)
  const kept = browser ? [setCookie(cookies.attempt, browser, ATTEMPT_SECONDS)] : []
  if (isByScript(visit)) return jsonAnswer(context, { state: attempt.state, location }, { cookies: kept })
  return redirectAnswer(context, visit.method, location, kept)
}

export function returnPathOf(context: GatewayContext, { headers }: Visit): string | undefined {
  const cookie = readCookie(headers.cookie, context.cookies.returnPath)
  return cookie && readReturnPath(cookie, context.keys.returnPath, context.settings.BASE_URL, context.now())
}

/** The page has to come up even when the store does not. */
async function signedIn(context: GatewayContext, visit: Visit) {
  const ticket = readCookie(visit.headers.cookie, context.cookies.session)
  if (!ticket) return undefined
  try {
    const loaded = await context.sessions.get(ticket)
    if (!loaded) return undefined
    const { nickname, username } = loaded.session.userInfo
    return { name: nickname || username, continueTo: returnPathOf(context, visit) ?? '/' }
  } catch (error) {
    context.report('login_without_store', { ...factsOf(error), ...whoAsks(context, visit) })
    return undefined
  }
}
