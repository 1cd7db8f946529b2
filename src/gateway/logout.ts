// GET and POST /logout: the local session ends first and always, then the provider is told.
import { factsOf } from '../errors.ts'
import { confirmSignOutPage } from '../pages/notice.ts'
import type { Session } from '../session/record.ts'
import type { Known } from './admission.ts'
import { noticeAnswer, pageAnswer, redirectAnswer } from './answers.ts'
import { clearCookie, readCookie } from './cookies.ts'
import type { House } from './house.ts'
import { isFromOwnOrigin, type Visit } from './request.ts'

export async function signOut(house: House, visit: Visit): Promise<Response> {
  const { settings, cookies, sessions, log } = house
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return pageAnswer(house, confirmSignOutPage(settings.APP_NAME))
  const ticket = readCookie(visit.headers.cookie, cookies.session)
  const session = ticket && (await sessions.close(ticket))
  if (session) {
    log.info({ user: session.userInfo.username }, 'signed out')
    if (settings.LOGOUT_STYLE === 'server') await tellProvider(house, session)
  }
  const throughProvider = session && settings.LOGOUT_STYLE === 'browser'
  const location = throughProvider ? house.provider.signOutUrl() : '/login'
  return redirectAnswer(house, visit.method, location, [clearCookie(cookies.session)])
}

/** Every session of this user, on every device. */
export async function signOutEverywhere(house: House, visit: Visit, { opened }: Known): Promise<Response> {
  const { settings, cookies, sessions, log } = house
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return noticeAnswer(house, 'foreign')
  const { session } = opened
  const ended = await sessions.endAllOf(session.userInfo.sub)
  log.info({ user: session.userInfo.username, ended }, 'signed out everywhere')
  if (settings.LOGOUT_STYLE === 'server') await tellProvider(house, session)
  const location = settings.LOGOUT_STYLE === 'browser' ? house.provider.signOutUrl() : '/login'
  return redirectAnswer(house, visit.method, location, [clearCookie(cookies.session)])
}

async function tellProvider({ provider, log }: House, session: Session): Promise<void> {
  try {
    await provider.signOut(session.refreshToken)
  } catch (error) {
    log.warn(factsOf(error), 'the provider could not be told of a sign-out')
  }
}
