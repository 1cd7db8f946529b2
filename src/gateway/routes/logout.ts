// GET and POST /logout: the local session ends first and always, then the provider is told.

import type { Settings } from '../../config/settings.ts'
import { errorFields } from '../../errors.ts'
import { requestFields } from '../../observe/observed-request.ts'
import { confirmSignOutPage, RETURN_FIELD } from '../../pages/notices.ts'
import { userIdOf } from '../../session/session-record.ts'
import type { ClosedSession } from '../../session/sessions.ts'
import { newTicket } from '../../session/ticket.ts'
import { isFromOwnOrigin, isOwnNavigation } from '../../util/fetch-metadata.ts'
import type { SignedInCaller } from '../admission.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, type SignedOut, signedOutCookie } from '../cookies.ts'
import { returnCookie } from '../denial.ts'
import type { GatewayRequest } from '../request.ts'
import { foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../respond.ts'

/** The query that always asks first: for a redirect back to the question, which would count as a navigation of our own. */
export const ASK_FIRST = '?ask'

export async function signOut(
  context: GatewayContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { auth, observe } = context
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  if (!isDeliberate(context.settings, request)) return askFirst(context, request, ticket)
  const closed = ticket && (await auth.sessions.close(ticket))
  const wanted = form.get(RETURN_FIELD)
  const cookies = wanted ? [returnCookie(context, wanted)] : []
  if (!closed) return signedOut(context, request, { location: context.paths.login }, 'here', cookies)
  observe.report('sign_out', requestFields(request, closed))
  await auth.hooks.signOut(request, closed)
  return signedOut(context, request, await leaveProvider(context, request, closed), 'here', cookies)
}

/** Every session of this user, on every device. */
export async function signOutEverywhere(
  context: GatewayContext,
  request: GatewayRequest,
  { loaded }: SignedInCaller,
): Promise<OwnAnswer> {
  const { settings, auth, observe } = context
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  const { count: ended } = await auth.sessions.endAllOf(userIdOf(loaded.session))
  observe.report('sign_out', { ...requestFields(request, loaded), ended })
  await auth.hooks.signOut(request, loaded)
  return signedOut(context, request, await leaveProvider(context, request, loaded), 'everywhere')
}

/** No image, frame, look ahead or link of another site. */
function isDeliberate({ BASE_URL }: Settings, request: GatewayRequest): boolean {
  if (request.search === ASK_FIRST) return false
  return request.method === 'POST' ? isFromOwnOrigin(request, BASE_URL) : isOwnNavigation(request, BASE_URL)
}

async function askFirst(
  context: GatewayContext,
  request: GatewayRequest,
  ticket: string | undefined,
): Promise<OwnAnswer> {
  // Browsers send no cookie with a POST of another site: then only the next page can tell.
  const maySignOut = request.method === 'POST' || (ticket && (await context.auth.sessions.get(ticket)))
  if (!maySignOut) return redirectAnswer(context.pages, request.method, context.paths.login)
  return pageAnswer(context.pages, confirmSignOutPage(languageOf(context.pages, request)))
}

/** Where the browser goes, and the state if that is through the provider. */
interface ProviderSignOut {
  readonly location: string
  readonly state?: string
}

/** The Back button shows no page of a user who has signed out, not even one that the browser has cached. */
const FORGET_PAGES = { 'clear-site-data': '"cache"' }

function signedOut(
  context: GatewayContext,
  request: GatewayRequest,
  { location, state }: ProviderSignOut,
  where: SignedOut['where'],
  more: readonly string[] = [],
): OwnAnswer {
  const { cookies } = context.auth
  return redirectAnswer(context.pages, request.method, location, {
    cookies: [clearCookie(cookies.session), signedOutCookie(cookies, { where, state }), ...more],
    headers: FORGET_PAGES,
  })
}

/** Signs out at the provider, by a call or through the browser. Its failure never fails a sign-out. */
async function leaveProvider(
  context: GatewayContext,
  request: GatewayRequest,
  closed: ClosedSession,
): Promise<ProviderSignOut> {
  const { session } = closed
  const provider = context.auth.providers.get(session.provider)
  if (!provider) return { location: context.paths.login }
  const state = newTicket()
  const tell = (error: unknown) =>
    context.observe.report('provider_not_told', {
      ...errorFields(error),
      ...requestFields(request, closed),
      provider: provider.plan.id,
    })
  const [location] = await Promise.all([
    provider.signOutUrl(session, state).catch(tell),
    provider.signOut(session).catch(tell),
  ])
  if (!location) return { location: context.paths.login }
  return location.includes(state) ? { location, state } : { location }
}
