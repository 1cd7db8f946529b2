// GET and POST /logout: the local session ends first and always, then the provider is told.

import { errorFields } from '../../errors.ts'
import { confirmSignOutPage, RETURN_FIELD } from '../../pages/notices.ts'
import { OWN_PATHS } from '../../paths.ts'

import { userIdOf } from '../../session/session-record.ts'
import type { ClosedSession } from '../../session/sessions.ts'
import { newTicket } from '../../session/ticket.ts'
import { returnCookieFor, type SignedInCaller } from '../admission.ts'

import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, type SignedOut, signedOutCookie } from '../cookies.ts'
import { tellOfSignOut } from '../hooks.ts'
import { languageOf } from '../language.ts'
import { type GatewayRequest, isFromOwnOrigin, isOwnNavigation, requestFields } from '../request.ts'
import { foreignAnswer, pageAnswer, redirectAnswer } from '../respond.ts'

/** Asks first, whoever comes: for a redirect back to the question, which would count as our own. */
export const ASK_FIRST = `${OWN_PATHS.logout}?ask`

export async function signOut(
  context: GatewayContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<Response> {
  const { cookies, sessions, report } = context
  const ticket = readCookie(request.headers.cookie, cookies.session)
  if (!isDeliberate(context, request)) return askFirst(context, request, ticket)
  const closed = ticket && (await sessions.close(ticket))
  const wanted = form.get(RETURN_FIELD)
  const kept = wanted ? [returnCookieFor(context, wanted)] : []
  if (!closed) return signedOut(context, request, { location: OWN_PATHS.login }, 'here', kept)
  report('sign_out', requestFields(context, request, closed))
  await tellOfSignOut(context, request, closed)
  return signedOut(context, request, await leaveProvider(context, request, closed), 'here', kept)
}

/** Every session of this user, on every device. */
export async function signOutEverywhere(
  context: GatewayContext,
  request: GatewayRequest,
  { loaded }: SignedInCaller,
): Promise<Response> {
  const { settings, sessions, report } = context
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  const { count: ended } = await sessions.endAllOf(userIdOf(loaded.session))
  report('sign_out', { ...requestFields(context, request, loaded), ended })
  await tellOfSignOut(context, request, loaded)
  return signedOut(context, request, await leaveProvider(context, request, loaded), 'everywhere')
}

/** No image, frame, look ahead or link of another site. */
function isDeliberate({ settings }: Pick<GatewayContext, 'settings'>, request: GatewayRequest): boolean {
  const { BASE_URL } = settings
  if (request.path + request.search === ASK_FIRST) return false
  return request.method === 'POST' ? isFromOwnOrigin(request, BASE_URL) : isOwnNavigation(request, BASE_URL)
}

async function askFirst(
  context: GatewayContext,
  request: GatewayRequest,
  ticket: string | undefined,
): Promise<Response> {
  // Browsers keep our cookie from a POST of another site: then only the next page can tell.
  const maySignOut = request.method === 'POST' || (ticket && (await context.sessions.get(ticket)))
  if (!maySignOut) return redirectAnswer(context, request.method, OWN_PATHS.login)
  return pageAnswer(context, confirmSignOutPage(languageOf(context, request)))
}

/** Where the browser goes, and with which state if that is through the provider. */
interface WayOut {
  readonly location: string
  readonly state?: string
}

/** The Back button shows no page of somebody who has left, not even one that the application let the browser keep. */
const FORGET_PAGES = { 'clear-site-data': '"cache"' }

function signedOut(
  context: GatewayContext,
  request: GatewayRequest,
  way: WayOut,
  where: SignedOut['where'],
  kept: readonly string[] = [],
): Response {
  const { cookies } = context
  const all = [clearCookie(cookies.session), signedOutCookie(cookies, { where, state: way.state }), ...kept]
  return redirectAnswer(context, request.method, way.location, all, FORGET_PAGES)
}

/** Tells the provider, or says where the browser does. It never stands in the way of a sign-out. */
async function leaveProvider(context: GatewayContext, request: GatewayRequest, closed: ClosedSession): Promise<WayOut> {
  const { session } = closed
  const provider = context.providers.get(session.provider)
  if (!provider) return { location: OWN_PATHS.login }
  const state = newTicket()
  const tell = (error: unknown) =>
    context.report('provider_not_told', {
      ...errorFields(error),
      ...requestFields(context, request, closed),
      provider: provider.plan.id,
    })
  const [location] = await Promise.all([
    provider.signOutUrl(session, state).catch(tell),
    provider.signOut(session).catch(tell),
  ])
  if (!location) return { location: OWN_PATHS.login }
  return location.includes(state) ? { location, state } : { location }
}
