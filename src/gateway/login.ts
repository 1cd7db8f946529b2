// GET /login shows the page; POST /login starts an attempt on the server.
import { loginPage } from '../pages/login.ts'
import { ATTEMPT_SECONDS } from '../session/attempts.ts'
import { readReturnPath } from '../session/return-path.ts'
import { missingSettings } from '../settings.ts'
import { jsonAnswer, noticeAnswer, pageAnswer, redirectAnswer } from './answers.ts'
import { readCookie, setCookie } from './cookies.ts'
import type { House } from './house.ts'
import { isByScript, isFromOwnOrigin, type Visit } from './request.ts'

export async function showLogin(house: House, visit: Visit): Promise<Response> {
  const missing = missingSettings(house.settings)
  return pageAnswer(
    house,
    loginPage({
      appName: house.settings.APP_NAME,
      missing,
      authorizationUrl: missing.length > 0 ? '' : house.provider.authorizationUrl(),
      remembered: house.attempts.remembered,
      error: new URLSearchParams(visit.search).get('error') || undefined,
      signedIn: await signedIn(house, visit),
    }),
  )
}

export async function startAttempt(house: House, visit: Visit): Promise<Response> {
  if (!isFromOwnOrigin(visit, house.settings.BASE_URL)) return noticeAnswer(house, 'foreign')
  if (missingSettings(house.settings).length > 0) return redirectAnswer(house, visit.method, '/login')
  const known = readCookie(visit.headers.cookie, house.cookies.attempt)
  const { browser, ...attempt } = await house.attempts.start(known, returnPathOf(house, visit))
  const location = house.provider.authorizationUrl(attempt)
  const cookies = browser ? [setCookie(house.cookies.attempt, browser, ATTEMPT_SECONDS)] : []
  if (isByScript(visit)) return jsonAnswer(house, { state: attempt.state, location }, { cookies })
  return redirectAnswer(house, visit.method, location, cookies)
}

export function returnPathOf(house: House, { headers }: Visit): string | undefined {
  const cookie = readCookie(headers.cookie, house.cookies.returnPath)
  return cookie && readReturnPath(cookie, house.keys.returnPath, house.settings.BASE_URL, house.now())
}

/** The page has to come up even when the store does not. */
async function signedIn(house: House, visit: Visit) {
  const ticket = readCookie(visit.headers.cookie, house.cookies.session)
  if (!ticket) return undefined
  try {
    const opened = await house.sessions.find(ticket)
    if (!opened) return undefined
    const { nickname, username } = opened.session.userInfo
    return { name: nickname || username, continueTo: returnPathOf(house, visit) ?? '/' }
  } catch (error) {
    house.log.error({ err: error }, 'the login page could not ask the store')
    return undefined
  }
}
