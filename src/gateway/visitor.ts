// What somebody without a session gets: the way to the login page, or a status that a script understands.
import { lostCookiePage } from '../pages/lost-cookie.ts'
import { ownPath, signReturnPath } from '../session/return-path.ts'
import { jsonAnswer, pageAnswer, redirectAnswer } from './answers.ts'
import { clearCookie, setCookie } from './cookies.ts'
import type { House } from './house.ts'
import { isByScript, isNavigation, type Visit } from './request.ts'

const RETURN_SECONDS = 600

export function toLogin(house: House, visit: Visit, cookies: readonly string[]): Response {
  const canFollow = visit.method === 'GET' || visit.method === 'HEAD'
  if (isByScript(visit) || !canFollow) return unauthenticated(house, cookies)
  if (house.landings.isLost(visit)) return lostCookie(house, visit)
  return redirectAnswer(house, visit.method, '/login', [...cookies, ...returnCookie(house, visit)])
}

function lostCookie(house: House, { headers }: Visit): Response {
  const { APP_NAME, BASE_URL } = house.settings
  const otherHost = headers.host === new URL(BASE_URL).host ? undefined : headers.host
  house.log.warn({ baseUrl: BASE_URL, host: headers.host }, 'a browser signed in but did not keep the cookie')
  return pageAnswer(house, lostCookiePage({ appName: APP_NAME, baseUrl: BASE_URL, otherHost }), { status: 400 })
}

export function unauthenticated(house: House, cookies: readonly string[]): Response {
  return jsonAnswer(
    house,
    { error: 'unauthenticated', message: '请先登录。', login: '/login' },
    { status: 401, cookies },
  )
}

function returnCookie(house: House, visit: Visit): string[] {
  if (!isNavigation(visit)) return []
  const path = ownPath(visit.path + visit.search, house.settings.BASE_URL)
  // Nothing is better than the page that was wanted before this one.
  if (!path) return [clearCookie(house.cookies.returnPath)]
  const value = signReturnPath(path, house.now() + RETURN_SECONDS * 1000, house.keys.returnPath)
  return [setCookie(house.cookies.returnPath, value, RETURN_SECONDS)]
}
