// GET /login shows the page; POST /login starts an attempt on the server.

import { factsOf } from '../../errors.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { loginPage } from '../../pages/login-page.ts'
import { ATTEMPT_SECONDS } from '../../session/attempts.ts'
import { readReturnPath } from '../../session/return-path.ts'
import { missingSettings } from '../../settings/read.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie, setCookie } from '../http/cookies.ts'
import { jsonAnswer, noticeAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isByScript, isFromOwnOrigin, type Visit } from '../http/request.ts'

export async function showLogin(context: GatewayContext, visit: Visit): Promise<Response> {
  const missing = missingSettings(context.settings)
  return pageAnswer(
    context,
    loginPage({
      appName: context.settings.APP_NAME,
      missing,
      authorizationUrl: missing.length > 0 ? '' : context.provider.authorizationUrl(),
      remembered: context.attempts.remembered,
      error: new URLSearchParams(visit.search).get('error') || undefined,
      signedIn: await signedIn(context, visit),
    }),
  )
}

export async function startAttempt(context: GatewayContext, visit: Visit): Promise<Response> {
  if (!isFromOwnOrigin(visit, context.settings.BASE_URL)) return noticeAnswer(context, 'foreign')
  if (missingSettings(context.settings).length > 0) return redirectAnswer(context, visit.method, OWN_PATHS.login)
  const known = readCookie(visit.headers.cookie, context.cookies.attempt)
  const { browser, ...attempt } = await context.attempts.start(known, returnPathOf(context, visit))
  const location = context.provider.authorizationUrl(attempt)
  const cookies = browser ? [setCookie(context.cookies.attempt, browser, ATTEMPT_SECONDS)] : []
  if (isByScript(visit)) return jsonAnswer(context, { state: attempt.state, location }, { cookies })
  return redirectAnswer(context, visit.method, location, cookies)
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
    context.report('login_without_store', factsOf(error))
    return undefined
  }
}
