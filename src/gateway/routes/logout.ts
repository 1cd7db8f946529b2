// GET and POST /logout: the local session ends first and always, then the provider is told.

import { factsOf } from '../../errors.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { confirmSignOutPage } from '../../pages/notice-page.ts'
import type { Session } from '../../session/session-record.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie } from '../http/cookies.ts'
import { noticeAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin, type Visit } from '../http/request.ts'

export async function signOut(context: GatewayContext, visit: Visit): Promise<Response> {
  const { settings, cookies, sessions, report } = context
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return pageAnswer(context, confirmSignOutPage(settings.APP_NAME))
  const ticket = readCookie(visit.headers.cookie, cookies.session)
  const session = ticket && (await sessions.close(ticket))
  if (session) {
    report('sign_out', { user: session.userInfo.username, sub: session.userInfo.sub })
    if (settings.LOGOUT_STYLE === 'server') await tellProvider(context, session)
  }
  const throughProvider = session && settings.LOGOUT_STYLE === 'browser'
  const location = throughProvider ? context.provider.signOutUrl() : OWN_PATHS.login
  return redirectAnswer(context, visit.method, location, [clearCookie(cookies.session)])
}

/** Every session of this user, on every device. */
export async function signOutEverywhere(
  context: GatewayContext,
  visit: Visit,
  { loaded }: SignedInCaller,
): Promise<Response> {
  const { settings, cookies, sessions, report } = context
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return noticeAnswer(context, 'foreign')
  const { session } = loaded
  const ended = await sessions.endAllOf(session.userInfo.sub)
  report('sign_out', { user: session.userInfo.username, sub: session.userInfo.sub, ended })
  if (settings.LOGOUT_STYLE === 'server') await tellProvider(context, session)
  const location = settings.LOGOUT_STYLE === 'browser' ? context.provider.signOutUrl() : OWN_PATHS.login
  return redirectAnswer(context, visit.method, location, [clearCookie(cookies.session)])
}

async function tellProvider(
  { provider, report }: Pick<GatewayContext, 'provider' | 'report'>,
  session: Session,
): Promise<void> {
  try {
    await provider.signOut(session.refreshToken)
  } catch (error) {
    report('provider_not_told', factsOf(error))
  }
}
