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

export async function showLogin(context: GatewayContext, request: GatewayRequest): Promise<Response> {
  const moved = toOwnHost(context, request)
  if (moved) return moved
  const { missing } = context.providers
  const query = new URLSearchParams(request.search)
  const error = query.get('error') || undefined
  const signedOut = readSignedOut(context.cookies, request.headers.cookie)
  const html = loginPage(languageOf(context, request), {
    missing,
    ways: await waysIn(context.providers),
    error,
    requestId: error === undefined ? request.observed.requestId : context.failedRequests.idFor(request, error),
    signedIn: await signedIn(context, request),
    signedOut: signedOut?.where,
    wanted: pageWanted(context, request, query),
  })
  const kept = returnCookies(context, request, query)
  // Said once, and only by the page itself: HEAD has not shown it.
  if (!signedOut || request.method !== 'GET') return pageAnswer(context, html, { cookies: kept })
  // What happened here is true in any case.
  if (signedOut.state !== undefined && query.getAll('state').join() !== signedOut.state)
    context.report('sign_out_unconfirmed', requestFields(context, request))
  return pageAnswer(context, html, { cookies: [...kept, clearCookie(context.cookies.signedOut)] })
}

/** A public page of the application offers to sign in, and wants its visitor back. Another site has no say in it. */
function askedToReturn(context: GatewayContext, request: GatewayRequest, query: URLSearchParams): string | undefined {
  const isOwn = request.method === 'GET' && isOwnNavigation(request, context.settings.BASE_URL)
  return (isOwn && query.get(RETURN_FIELD)) || undefined
}

function returnCookies(context: GatewayContext, request: GatewayRequest, query: URLSearchParams): string[] {
  const wanted = askedToReturn(context, request, query)
  return wanted === undefined ? [] : [returnCookieFor(context, wanted)]
}

/** Where the sign-in leads; nothing is said of the home page, where everybody begins. */
function pageWanted(context: GatewayContext, request: GatewayRequest, query: URLSearchParams): string | undefined {
  const asked = askedToReturn(context, request, query)
  const { settings, providers } = context
  const wanted =
    asked === undefined ? returnPathOf(context, request) : ownPath(asked, settings.BASE_URL, providers.callbackPaths)
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
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<Response> {
  const { settings, attempts, providers, cookies } = context
  // Before it is counted: another site must not use up what the whole office shares.
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  if (!(await context.rateLimit.admits('sign-in', request))) return tooMany(context, request)
  const wanted = form.get('provider')
  const provider = wanted ? providers.get(wanted) : providers.main
  if (!provider || providers.missing.length > 0) return redirectAnswer(context, request.method, OWN_PATHS.login)
  const known = readCookie(request.headers.cookie, cookies.attempt)
  const { browser, sent } = await attempts.start(provider.plan, known, returnPathOf(context, request))
  const location = await provider
    .authorizationUrl(sent)
    .catch(error => whileUnavailable(context, request, provider, error))
  const kept = browser ? [setCookie(cookies.attempt, browser, ATTEMPT_SECONDS)] : []
  if (isByScript(request)) return jsonAnswer(context, { state: sent.state, location }, { cookies: kept })
  return redirectAnswer(context, request.method, location, kept)
}

/** Until the provider has said where its own page is, nobody can go there. */
function whileUnavailable(
  context: Pick<GatewayContext, 'report' | 'settings' | 'failedRequests'>,
  request: GatewayRequest,
  { plan }: Provider,
  error: unknown,
): string {
  if (!(error instanceof MenshenError)) throw error
  const reason = 'temporarily_unavailable'
  context.report('sign_in_failed', {
    ...errorFields(error),
    ...requestFields(context, request),
    provider: plan.id,
    reason,
  })
  context.failedRequests.remember(request, reason)
  return `${OWN_PATHS.login}?error=${reason}`
}

export function returnPathOf(context: GatewayContext, { headers }: GatewayRequest): string | undefined {
  const cookie = readCookie(headers.cookie, context.cookies.returnPath)
  const own = { origin: context.settings.BASE_URL, callbackPaths: context.providers.callbackPaths }
  return cookie && readReturnPath(cookie, context.keys.returnPath, own, context.now())
}

/** The page has to come up even when the store does not. */
async function signedIn(context: GatewayContext, request: GatewayRequest) {
  const ticket = readCookie(request.headers.cookie, context.cookies.session)
  if (!ticket) return undefined
  try {
    const loaded = await context.sessions.get(ticket)
    if (!loaded) return undefined
    return { name: displayName(loaded.session.userInfo), continueTo: returnPathOf(context, request) ?? '/' }
  } catch (error) {
    context.report('login_without_store', { ...errorFields(error), ...requestFields(context, request) })
    return undefined
  }
}
