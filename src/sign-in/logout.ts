// GET and POST /logout: the local session always ends first, then the provider is notified.

import type { Settings } from '../config/settings.ts'
import { errorFields } from '../errors.ts'
import { foreignAnswer, languageOf, type OwnAnswer, pageAnswer, redirectAnswer } from '../http/answers.ts'
import { clearCookie, type SignOutNotice } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { ticketOf } from '../identify/session.ts'
import { requestFields } from '../observe/observed-request.ts'
import { confirmSignOutPage, RETURN_FIELD } from '../pages/notices.ts'
import { sessionFields } from '../session/fields.ts'
import { userIdOf } from '../session/record.ts'
import type { ClosedSession } from '../session/sessions.ts'
import { newTicket } from '../session/ticket.ts'
import { isFromOwnOrigin, isOwnForm, isOwnNavigation } from '../util/fetch-metadata.ts'
import type { NextPage, SignInContext } from './context.ts'

/** The query that always asks first: for a redirect back to the question, which would count as a navigation of our own. */
export const CONFIRM_QUERY = '?ask'

export async function signOut(
  context: SignInContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { auth, observe } = context
  const ticket = await ticketOf(context, request)
  if (!isUserNavigation(context.settings, request)) return askConfirmation(context, request, ticket)
  const closed =
    ticket &&
    (await auth.sessions.close(ticket, unconfirmed => {
      // The user has asked for it: the provider is told even if the sign-out has to be repeated.
      void tellProvider(context, request, unconfirmed)
    }))
  const next = context.site.nextSignIn(context, request, form.get(RETURN_FIELD))
  if (!closed) return signedOut(context, request, next, 'here')
  observe.report('sign_out', { ...requestFields(request), ...sessionFields(closed) })
  await auth.onSignOut(ticket, closed)
  await auth.hooks.signOut(request, closed)
  return signedOut(context, request, await leaveProvider(context, request, closed, next), 'here')
}

/** Ends every session of this user, on every device, and all personal keys. */
export async function signOutEverywhere(
  context: SignInContext,
  request: GatewayRequest,
  { loaded, ticket }: SignedInCaller,
): Promise<OwnAnswer> {
  const { settings, auth, observe } = context
  if (!isOwnForm(request, settings.BASE_URL)) return foreignAnswer(context, request)
  const user = userIdOf(loaded.session)
  const endKeys = async () => {
    const revoked = await auth.personalKeys.endAllOf(user)
    if (revoked > 0) observe.report('key_revoked', { ...requestFields(request, loaded), by: 'user', revoked })
  }
  // The keys first, because the user could not try again once the session is gone; and last, because a session may create one until it ends.
  await endKeys()
  const { count: ended } = await auth.sessions.endAllOf(user)
  await endKeys()
  observe.report('sign_out', { ...requestFields(request, loaded), ended })
  if (ticket !== undefined) await auth.onSignOut(ticket, loaded)
  await auth.hooks.signOut(request, loaded)
  const next = context.site.nextSignIn(context, request, null)
  return signedOut(context, request, await leaveProvider(context, request, loaded, next), 'everywhere')
}

/** Not an image, a frame, a prefetch or a link of another site. */
function isUserNavigation({ BASE_URL }: Settings, request: GatewayRequest): boolean {
  if (request.search === CONFIRM_QUERY) return false
  return request.method === 'POST' ? isFromOwnOrigin(request, BASE_URL) : isOwnNavigation(request, BASE_URL)
}

async function askConfirmation(
  context: SignInContext,
  request: GatewayRequest,
  ticket: string | undefined,
): Promise<OwnAnswer> {
  // Browsers send no cookie with a POST from another site, so only the next page can find out whether there is a session.
  const maySignOut = request.method === 'POST' || (ticket && (await context.auth.sessions.get(ticket)))
  if (!maySignOut)
    return redirectAnswer(context.pages, request.method, context.site.nextSignIn(context, request, null).location)
  return pageAnswer(context.pages, confirmSignOutPage(languageOf(context.pages, request)))
}

/** The Back button must not show pages of a user who has signed out, not even cached ones. */
const CLEAR_CACHE_HEADERS = { 'clear-site-data': '"cache"' }

function signedOut(
  context: SignInContext,
  request: GatewayRequest,
  { location, state, cookies: more }: NextPage,
  where: SignOutNotice['where'],
): OwnAnswer {
  const { auth, site, pages } = context
  const cookies = [
    clearCookie(auth.cookies.session),
    ...auth.devices.clearCookies(request),
    ...site.signedOutCookies(context, request, { where, state }),
    ...more,
  ]
  return redirectAnswer(pages, request.method, location, {
    cookies,
    headers: CLEAR_CACHE_HEADERS,
  })
}

/** Signs out at the provider, by a call or through the browser. Its failure never fails a sign-out. */
async function leaveProvider(
  context: SignInContext,
  request: GatewayRequest,
  closed: ClosedSession,
  next: NextPage,
): Promise<NextPage> {
  const { session } = closed
  const provider = context.auth.providers.get(session.provider)
  if (!provider) return next
  const state = newTicket()
  const [location] = await Promise.all([
    provider.signOutUrl(session, state).catch(error => reportNotTold(context, request, closed, error)),
    tellProvider(context, request, closed),
  ])
  if (!location) return next
  return { ...next, location, ...(location.includes(state) && { state }) }
}

/** Signs out at the provider by a call, and revokes the tokens. Never rejects. */
async function tellProvider(context: SignInContext, request: GatewayRequest, closed: ClosedSession): Promise<void> {
  const provider = context.auth.providers.get(closed.session.provider)
  await provider?.signOut(closed.session).catch(error => reportNotTold(context, request, closed, error))
}

function reportNotTold(
  { auth, observe }: SignInContext,
  request: GatewayRequest,
  closed: ClosedSession,
  error: unknown,
): void {
  observe.report('provider_not_told', {
    ...errorFields(error),
    ...requestFields(request),
    ...sessionFields(closed),
    provider: auth.providers.get(closed.session.provider)?.plan.id,
  })
}
