// GET /login shows the page; POST /login starts an attempt on the server.

import { errorFields, MenshenError } from '../../errors.ts'
import { loginPage, type SignInOption } from '../../pages/login-page.ts'
import { RETURN_FIELD } from '../../pages/notices.ts'
import { displayName } from '../../pages/shown-text.ts'
import { OWN_PATHS } from '../../paths.ts'
import type { Provider } from '../../provider/provider.ts'
import { ATTEMPT_SECONDS, isRemembered, ownPath, readReturnPath } from '../../session/attempts.ts'

import { returnCookieFor, toOwnHost } from '../admission.ts'

import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, readSignedOut, setCookie } from '../cookies.ts'
import { languageOf } from '../language.ts'
import { type GatewayRequest, isByScript, isFromOwnOrigin, isOwnNavigation, requestFields } from '../request.ts'
import { foreignAnswer, jsonAnswer, pageAnswer, redirectAnswer, tooMany } from '../respond.ts'

export async function showLogin(context: GatewayContext, visit: GatewayRequest): Promise<Response> {
  const moved = toOwnHost(context, visit)
  if (moved) return moved
  const { missing } = context.providers
  const query = new URLSearchParams(visit.search)
  const error = query.get('error') || undefined
  const signedOut = readSignedOut(context.cookies, visit.headers.cookie)
  const html = loginPage(languageOf(context, visit), {
    missing,
    ways: await waysIn(context.providers),
    error,
    requestId: error === undefined ? visit.observed.requestId : context.failedRequests.idFor(visit, error),
    signedIn: await signedIn(context, visit),
    signedOut: signedOut?.where,
    wanted: pageWanted(context, visit, query),
  })
  const kept = returnCookies(context, visit, query)
  // Said once, and only by the page itself: HEAD has not shown it.
  if (!signedOut || visit.method !== 'GET') return pageAnswer(context, html, { cookies: kept })
  // What happened here is true in any case.
  if (signedOut.state !== undefined && query.getAll('state').join() !== signedOut.state)
    context.report('sign_out_unconfirmed', requestFields(context, visit))
  return pageAnswer(context, html, { cookies: [...kept, clearCookie(context.cookies.signedOut)] })
}

/** A public page of the application offers to sign in, and wants its visitor back. Another site has no say in it. */
function askedToReturn(context: GatewayContext, visit: GatewayRequest, query: URLSearchParams): string | undefined {
  const isOwn = visit.method === 'GET' && isOwnNavigation(visit, context.settings.BASE_URL)
  return (isOwn && query.get(RETURN_FIELD)) || undefined
}

function returnCookies(context: GatewayContext, visit: GatewayRequest, query: URLSearchParams): string[] {
  const wanted = askedToReturn(context, visit, query)
  return wanted === undefined ? [] : [returnCookieFor(context, wanted)]
}

/** Where the sign-in leads; nothing is said of the home page, where everybody begins. */
function pageWanted(context: GatewayContext, visit: GatewayRequest, query: URLSearchParams): string | undefined {
  const asked = askedToReturn(context, visit, query)
  const { settings, providers } = context
  const wanted =
    asked === undefined ? returnPathOf(context, visit) : ownPath(asked, settings.BASE_URL, providers.callbackPaths)
  return wanted === '/' ? undefined : wanted
}

/** One button for each provider. */
async function waysIn({ all, missing }: GatewayContext['providers']): Promise<SignInOption[]> {
  const ways = all.map(async ({ plan, authorizationUrl }) => {
    const remembered = isRemembered(plan)
    // Where the server need not know of an attempt, the page starts it by itself.
    const direct = remembered || missing.length > 0 ? '' : await authorizationUrl()
    return { id: plan.id, name: plan.name, remembered, authorizationUrl: direct }
  })
  return Promise.all(ways)
}

export async function startAttempt(
  context: GatewayContext,
  visit: GatewayRequest,
  form: URLSearchParams,
): Promise<Response> {
  const { settings, attempts, providers, cookies } = context
  // Before it is counted: another site must not use up what the whole office shares.
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return foreignAnswer(context, visit)
  if (!(await context.rateLimit.admits('sign-in', visit))) return tooMany(context, visit)
  const wanted = form.get('provider')
  const provider = wanted ? providers.get(wanted) : providers.main
  if (!provider || providers.missing.length > 0) return redirectAnswer(context, visit.method, OWN_PATHS.login)
  const known = readCookie(visit.headers.cookie, cookies.attempt)
  const { browser, sent } = await attempts.start(provider.plan, known, returnPathOf(context, visit))
  const location = await provider
    .authorizationUrl(sent)
    .catch(error => whileUnavailable(context, visit, provider, error))
  const kept = browser ? [setCookie(cookies.attempt, browser, ATTEMPT_SECONDS)] : []
  if (isByScript(visit)) return jsonAnswer(context, { state: sent.state, location }, { cookies: kept })
  return redirectAnswer(context, visit.method, location, kept)
}

/** Until the provider has said where its own page is, nobody can go there. */
function whileUnavailable(
  context: Pick<GatewayContext, 'report' | 'settings' | 'failedRequests'>,
  visit: GatewayRequest,
  { plan }: Provider,
  error: unknown,
): string {
  if (!(error instanceof MenshenError)) throw error
  const reason = 'temporarily_unavailable'
  context.report('sign_in_failed', {
    ...errorFields(error),
    ...requestFields(context, visit),
    provider: plan.id,
    reason,
  })
  context.failedRequests.remember(visit, reason)
  return `${OWN_PATHS.login}?error=${reason}`
}

export function returnPathOf(context: GatewayContext, { headers }: GatewayRequest): string | undefined {
  const cookie = readCookie(headers.cookie, context.cookies.returnPath)
  const own = { origin: context.settings.BASE_URL, callbackPaths: context.providers.callbackPaths }
  return cookie && readReturnPath(cookie, context.keys.returnPath, own, context.now())
}

/** The page has to come up even when the store does not. */
async function signedIn(context: GatewayContext, visit: GatewayRequest) {
  const ticket = readCookie(visit.headers.cookie, context.cookies.session)
  if (!ticket) return undefined
  try {
    const loaded = await context.sessions.get(ticket)
    if (!loaded) return undefined
    return { name: displayName(loaded.session.userInfo), continueTo: returnPathOf(context, visit) ?? '/' }
  } catch (error) {
    context.report('login_without_store', { ...errorFields(error), ...requestFields(context, visit) })
    return undefined
  }
}
