// GET /login shows the page; POST /login starts an attempt on the server.

import { errorFields, MenshenError } from '../errors.ts'
import {
  errorAnswer,
  foreignAnswer,
  jsonAnswer,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  redirectAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import { clearCookie, clearEndReason, readCookie, readEndReason, readSignedOut, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { readReturnPath, safeReturnPath, signedInQuery } from '../http/return-path.ts'
import { requestFields } from '../observe/observed-request.ts'
import { FRAGMENT_FIELD, loginPage, type SignInOption, VISITOR_FIELD } from '../pages/login-page.ts'
import { deviceProofNotice, RETURN_FIELD } from '../pages/notices.ts'
import { displayName } from '../pages/shown-text.ts'
import type { Provider } from '../provider/provider.ts'
import type { Providers } from '../provider/providers.ts'
import type { EndReason } from '../session/end-reasons.ts'
import { withDeadline } from '../util/deadline.ts'
import { isByScript, isFromOtherSite, isFromOwnOrigin, isNotDocument, isOwnNavigation } from '../util/fetch-metadata.ts'
import { type ReturnTarget, storesAttempt } from './attempts.ts'
import { automaticProvider, manualCookies, startAutomatically } from './auto-sign-in.ts'
import type { SignInAuth, SignInContext } from './context.ts'
import { ownHostAnswer, returnCookie, signedForForm } from './denial.ts'
import { startAttempt } from './start.ts'

export async function showLogin(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { auth, pages, observe } = context
  const moved = ownHostAnswer(pages, request, 'own')
  if (moved) return moved
  const { missing } = auth.providers
  const query = queryOf(request)
  const wanted = wantedPath(context, request, query)
  const error = query.get('error') || undefined
  const signedOutAtHost = context.site.signedOutAtHost(query)
  const signedOut = readSignedOut(auth.cookies, request.headers.cookie)
  if (error === undefined && !signedOut && !signedOutAtHost) {
    const onward =
      (await deviceProofPage(context, request, wanted)) ?? (await redirectToProvider(context, request, query))
    if (onward) return onward
  }
  const [signedIn, isStoreUnavailable] = await Promise.all([
    signedInUser(context, request, wanted),
    detectStoreOutage(context, request),
  ])
  const html = loginPage(languageOf(pages, request), {
    missing,
    ways: await signInOptions(auth.providers, wanted !== undefined && wanted !== '/'),
    lastUsed: lastProvider(auth, request),
    error,
    requestId: error === undefined ? request.observed.requestId : observe.failedRequests.idFor(request, error),
    signedIn,
    isStoreUnavailable,
    isStoreFailure: error !== undefined && observe.failedRequests.isByStore(request, error),
    endReason: signedIn ? undefined : await endReasonOf(context, request),
    signedOut: signedOutAtHost ? 'here' : signedOut?.where,
    // The home page is not mentioned: everyone starts there.
    wanted: wanted === undefined || wanted === '/' ? undefined : context.site.displayReturnPath(wanted),
    signed: wanted === undefined || wanted === '/' ? undefined : signedForForm(context, wanted),
  })
  const cookies = [
    ...returnCookies(context, request, query),
    ...(signedOutAtHost ? manualCookies(context, request, 'signed-out') : []),
    ...(isShown(request) ? clearEndReason(auth.cookies, request.headers.cookie) : []),
  ]
  // The page shows it once; HEAD does not show it.
  if (!signedOut || request.method !== 'GET') return pageAnswer(pages, html, { cookies })
  // The local session has ended in any case.
  if (signedOut.state !== undefined && query.getAll('state').join() !== signedOut.state)
    observe.report('sign_out_unconfirmed', requestFields(request))
  return pageAnswer(pages, html, { cookies: [...cookies, clearCookie(auth.cookies.signedOut)] })
}

/**
 * With AUTO_SIGN_IN, a visitor whom another page sent here is redirected to the provider: from a page behind a proxy that asks by
 * status, from one for which the application requires a user, or by a link on a public page. Opened directly, the login page has no
 * page to return to.
 */
async function redirectToProvider(
  context: SignInContext,
  request: GatewayRequest,
  query: URLSearchParams,
): Promise<OwnAnswer | undefined> {
  const provider = automaticProvider(context, request)
  const wanted = provider && pathInQuery(context, request, query)
  if (!provider || wanted === undefined || (await signedInUser(context, request, undefined))) return undefined
  const started = await startAutomatically(context, request, provider, wanted)
  if (!started) return undefined
  const cookies = [...returnCookies(context, request, query), ...started.cookies]
  return redirectAnswer(context.pages, request.method, started.location, { cookies })
}

/**
 * A link on another site leads here when the second cookie has expired: browsers renew it only for a request from a page of our own
 * site. So one of our own pages makes that request.
 */
async function deviceProofPage(
  context: SignInContext,
  request: GatewayRequest,
  wanted = '/',
): Promise<OwnAnswer | undefined> {
  if (!isFromOtherSite(request) || !(await context.auth.devices.couldProve(request))) return undefined
  const html = deviceProofNotice(languageOf(context.pages, request), wanted)
  return pageAnswer(context.pages, html, { headers: { refresh: `1; url=${wanted}` } })
}

/** Why the session of this browser ended. The page shows it once; HEAD and a page that is not displayed do not use it up. */
async function endReasonOf({ auth }: SignInContext, request: GatewayRequest): Promise<EndReason | undefined> {
  const { cookie } = request.headers
  const ticket = readCookie(cookie, auth.cookies.session)
  if (!isShown(request)) return undefined
  // `signedInUser` has reported a store that is unavailable.
  const noted = ticket && (await auth.sessions.takeEndReason(ticket).catch(() => undefined))
  return noted || readEndReason(auth.cookies, cookie)
}

function isShown(request: GatewayRequest): boolean {
  return request.method === 'GET' && !isNotDocument(request)
}

const STORE_DEADLINE_MS = 1000

/** Whether the store is unavailable. Shown before the user leaves, because no sign-in at the provider could succeed. */
async function detectStoreOutage({ store, observe }: SignInContext, request: GatewayRequest): Promise<boolean> {
  try {
    return await withDeadline(
      store.ready().then(() => false),
      STORE_DEADLINE_MS,
      () => true,
    )
  } catch (error) {
    observe.report('login_without_store', { ...errorFields(error), ...requestFields(request) })
    return true
  }
}

/** The return path from a public page of the application that offers to sign in. Another site cannot set it. */
function askedToReturn(context: SignInContext, request: GatewayRequest, query: URLSearchParams): string | undefined {
  const isOwn = request.method === 'GET' && isOwnNavigation(request, context.settings.BASE_URL)
  return (isOwn && query.get(RETURN_FIELD)) || undefined
}

function returnCookies(context: SignInContext, request: GatewayRequest, query: URLSearchParams): string[] {
  const wanted = askedToReturn(context, request, query)
  return wanted === undefined ? [] : [returnCookie(context, wanted)]
}

/** A return path in the query has no other parameters after it. */
function queryOf({ search }: GatewayRequest): URLSearchParams {
  return new URLSearchParams(signedInQuery(search) === undefined ? search : '')
}

/** Where the sign-in of this tab leads. */
function wantedPath(context: SignInContext, request: GatewayRequest, query: URLSearchParams): string | undefined {
  const isAsked = askedToReturn(context, request, query) !== undefined
  return pathInQuery(context, request, query) ?? (isAsked ? undefined : returnPathOf(context, request))
}

/** The page that the address of this login page names. */
function pathInQuery(context: SignInContext, request: GatewayRequest, query: URLSearchParams): string | undefined {
  const asked = askedToReturn(context, request, query)
  const { settings, paths } = context
  if (asked !== undefined) return safeReturnPath(asked, settings.BASE_URL, paths.signIn)
  const signed = signedInQuery(request.search)
  return signed ? verifiedPath(context, signed) : undefined
}

/** One button for each provider. */
async function signInOptions({ all, missing }: Providers, hasReturnPath: boolean): Promise<SignInOption[]> {
  const options = all.map(async ({ plan, authorizationUrl }) => {
    const isStored = storesAttempt(plan)
    // If the server does not have to know of an attempt, the page can start it without us.
    const direct = isStored || missing.length > 0 ? '' : await authorizationUrl()
    return {
      id: plan.id,
      name: plan.label,
      preset: plan.preset,
      remembered: isStored || hasReturnPath,
      authorizationUrl: direct,
    }
  })
  return Promise.all(options)
}

// With several providers, the one that this browser signed in with last comes first.

const LAST_PROVIDER_SECONDS = 365 * 86_400

export function lastProviderCookies({ providers, cookies }: SignInAuth, { plan }: Provider): string[] {
  return providers.all.length > 1 ? [setCookie(cookies.provider, plan.id, LAST_PROVIDER_SECONDS)] : []
}

/** The id of a configured provider; other values of the cookie are ignored. */
function lastProvider({ providers, cookies }: SignInAuth, { headers }: GatewayRequest): string | undefined {
  const id = readCookie(headers.cookie, cookies.provider)
  return providers.all.length > 1 ? providers.all.find(({ plan }) => plan.id === id)?.plan.id : undefined
}

export async function startSignIn(
  context: SignInContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { settings, auth, pages } = context
  const { providers } = auth
  // Checked before the request is counted: another site must not use up the limit of the whole office.
  if (!isFromOwnOrigin(request, settings.BASE_URL)) return foreignAnswer(context, request)
  if (!(await auth.rateLimit.admits('sign-in', request))) return tooManyAnswer(pages, request)
  const wanted = form.get('provider')
  const provider = wanted ? providers.get(wanted) : providers.main
  if (!provider || providers.missing.length > 0) return redirectAnswer(pages, request.method, pages.paths.login)
  const asked = wantedByForm(context, request, form)
  if (form.has(VISITOR_FIELD) && (await signedInUser(context, request, undefined)))
    return continueAnswer(context, request, (asked.returnPath ?? '/') + (asked.fragment ?? ''))
  const started = await startAttempt(context, request, provider, { kept: asked }).catch(storeUnavailableOrThrow)
  if (started === 'store_away') {
    context.observe.report('login_without_store', requestFields(request))
    return errorAnswer(pages, request, 'sign_in_unavailable', { headers: { 'retry-after': '5' }, outcome: 'error' })
  }
  const { state, location } = started
  const { manual } = auth.cookies
  // The user has clicked.
  const clicked = readCookie(request.headers.cookie, manual) === undefined ? [] : [clearCookie(manual)]
  const failed = started.isAtProvider ? [] : manualCookies(context, request, 'failed')
  const cookies = [...started.cookies, ...(failed.length > 0 ? failed : clicked)]
  if (isByScript(request)) return jsonAnswer(pages, { state, location }, { cookies })
  return redirectAnswer(pages, request.method, location, { cookies })
}

function storeUnavailableOrThrow(error: unknown): 'store_away' {
  if (error instanceof MenshenError && error.code === 'store_unavailable') return 'store_away'
  throw error
}

/** Another tab has signed in since this login page was shown. */
function continueAnswer({ pages }: SignInContext, request: GatewayRequest, location: string): OwnAnswer {
  return isByScript(request) ? jsonAnswer(pages, { location }) : redirectAnswer(pages, request.method, location)
}

const MAX_FRAGMENT_LENGTH = 2048

/** The page of this tab. A form without one, such as that of a program, uses the page in the cookie. */
function wantedByForm(context: SignInContext, request: GatewayRequest, form: URLSearchParams): ReturnTarget {
  const signed = form.get(RETURN_FIELD)
  const returnPath = (signed && verifiedPath(context, signed)) || returnPathOf(context, request)
  const fragment = form.get(FRAGMENT_FIELD) ?? undefined
  const isUsable =
    fragment !== undefined && /^(?:#[\x21-\x7e]*)?$/.test(fragment) && fragment.length <= MAX_FRAGMENT_LENGTH
  return { ...(returnPath && { returnPath }), ...(isUsable && { fragment }) }
}

export function returnPathOf(context: SignInContext, { headers }: GatewayRequest): string | undefined {
  const cookie = readCookie(headers.cookie, context.auth.cookies.returnPath)
  return cookie && verifiedPath(context, cookie)
}

function verifiedPath({ now, auth, pages }: SignInContext, signed: string): string | undefined {
  const own = { origin: pages.settings.BASE_URL, signInPaths: pages.paths.signIn }
  return readReturnPath(signed, auth.keys.returnPath, own, now())
}

/** The page works even while the store is unavailable. */
async function signedInUser(context: SignInContext, request: GatewayRequest, wanted: string | undefined) {
  const { auth } = context
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  if (!ticket) return undefined
  try {
    const loaded = await auth.sessions.get(ticket)
    if (!loaded || !auth.providers.get(loaded.session.provider)) return undefined
    if (!(await auth.devices.check(request, ticket, loaded))) return undefined
    return { name: displayName(loaded.session.userInfo), continueTo: wanted ?? '/' }
  } catch (error) {
    context.observe.report('login_without_store', { ...errorFields(error), ...requestFields(request) })
    return undefined
  }
}
