// Who is asking, and may they: session or token, refreshed if due, then the rules; and the answer if not.

import { decodedPath } from '../access/request-path.ts'
import type { Subject } from '../access/roles.ts'
import { admits, lacksScopes } from '../access/rules.ts'
import type { Role, Rule } from '../config/config-file.ts'
import { isLoopback } from '../config/deployment.ts'
import { runInRequest } from '../observe/observed-request.ts'
import { lostCookiePage, refusedPage } from '../pages/notices.ts'
import { OWN_PATHS } from '../paths.ts'
import { ownPath, signReturnPath } from '../session/attempts.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { Identified } from './assertions.ts'
import { type BearerCaller, INVALID_TOKEN, insufficient, withBearer } from './bearer-callers.ts'
import type { GatewayContext } from './context.ts'
import { clearCookie, readCookie, setCookie } from './cookies.ts'
import { languageOf } from './language.ts'
import {
  bringsToken,
  type GatewayRequest,
  isByScript,
  isForPage,
  isNavigation,
  isPartOfPage,
  isTrusted,
  REQUEST_ID,
  requestFields,
} from './request.ts'
import { errorAnswer, jsonAnswer, pageAnswer, redirectAnswer, tooMany } from './respond.ts'

export interface Caller {
  /** Absent for a visitor. */
  readonly loaded?: LoadedSession
  /** A machine, in place of a session. */
  readonly bearer?: BearerCaller
  /** Whose that token is by the configuration in use by then; `undefined` if it does not count any more. */
  readonly identifyAgain?: () => Promise<BearerCaller | undefined>
  /** What the answer has to set. */
  readonly cookies: readonly string[]
  /** A ticket was shown that leads nowhere. */
  readonly failedTicket?: true
  /** A token was brought that is not valid. It was counted before anybody was asked about it. */
  readonly failedToken?: true
  /** Nobody was asked about it: its address has brought too many. */
  readonly isLimited?: true
}

/** Of somebody who is signed in. */
export type SignedInCaller = Caller & { readonly loaded: LoadedSession }

export interface Admission extends Caller {
  /** `limited`: a visitor whose address has shown too many tickets or tokens that lead nowhere. */
  readonly outcome: 'visitor' | 'limited' | 'refused' | 'admitted'
  /** The rule that refused. */
  readonly refusedBy?: Rule
  /** All scopes that the rules want, if the token of a machine lacks one of them. */
  readonly missingScopes?: readonly string[]
}

const NO_COOKIES: readonly string[] = []
const NOBODY: Caller = { cookies: NO_COOKIES }
const FAILED: Caller = { cookies: NO_COOKIES, failedTicket: true }

/** Every way in passes here. What is asked for is another request where a proxy asks about it. */
export function admit(
  context: GatewayContext,
  request: GatewayRequest,
  asked: GatewayRequest = request,
): MaybePromise<Admission> {
  const caller = identify(context, request)
  return caller instanceof Promise
    ? caller.then(known => admitCaller(context, request, asked, known))
    : admitCaller(context, request, asked, caller)
}

function admitCaller(
  context: GatewayContext,
  request: GatewayRequest,
  asked: GatewayRequest,
  caller: Caller,
): MaybePromise<Admission> {
  if (caller.loaded) return note(context, asked, judge(context, asked, caller))
  return andThen(admitOther(context, request, asked, caller), admission => note(context, asked, admission))
}

/** For those who observe. */
export function note(context: GatewayContext, request: GatewayRequest, admission: Admission): Admission {
  const { outcome } = admission
  const { observed, method, path } = request
  observed.outcome = outcome === 'limited' ? 'refused' : outcome
  const known = identified(admission)
  if (known) observed.user = known.session.userInfo.username
  if (outcome === 'refused')
    context.report('refused', { ...requestFields(context, request, known), method, path, role: known?.who.role })
  return admission
}

/** A machine or a visitor. */
function admitOther(
  context: GatewayContext,
  request: GatewayRequest,
  asked: GatewayRequest,
  caller: Caller,
): MaybePromise<Admission> {
  return andThen(withBearer(context, request, asked, caller), caller =>
    limitFailures(context, asked, judge(context, asked, caller)),
  )
}

/**
 * Whoever looks at a page is always led to the login page, and what belongs to a page counts for nothing: the ticket of a
 * session that has ended comes with each of its images, and must not shut out the rest of the office. Only tickets that failed
 * are counted, and so after the store was asked: others behind the same address may have sessions that are not at hand here.
 */
function limitFailures(
  { rateLimit }: Pick<GatewayContext, 'rateLimit'>,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<Admission> {
  const { failedTicket, failedToken, isLimited, outcome } = admission
  if (outcome !== 'visitor') return admission
  if (isLimited) return { ...admission, outcome: 'limited' }
  const isPageView = request.method === 'GET' && isForPage(request)
  if (!failedTicket || failedToken || isPageView || isPartOfPage(request.headers)) return admission
  return andThen(rateLimit.admits('ticket', request), isWithinLimit =>
    isWithinLimit ? admission : { ...admission, outcome: 'limited' },
  )
}

/** Whose session it is, refreshed if due, wherever the request wants to go. */
export function identify(
  context: GatewayContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
): MaybePromise<Caller> {
  const { headers, observed } = request
  const ticket = readCookie(headers.cookie, context.cookies.session)
  if (!ticket) return NOBODY
  const cached = context.sessions.getCached(ticket)
  observed.isAtHand = cached !== undefined
  const loaded = cached ?? context.sessions.openSync(ticket)
  return loaded ? signedIn(context, headers, ticket, loaded) : identifyAnew(context, request, ticket)
}

async function identifyAnew(
  context: GatewayContext,
  { headers, observed }: Pick<GatewayRequest, 'headers' | 'observed'>,
  ticket: string,
): Promise<Caller> {
  const { sessions, measure } = context
  const current = await runInRequest(observed, () => measure('session', 'find', () => sessions.getFresh(ticket)))
  if (!current) return FAILED
  if (current === 'ended') return { cookies: [clearCookie(context.cookies.session)] }
  return signedIn(context, headers, ticket, current)
}

function signedIn(
  context: GatewayContext,
  headers: GatewayRequest['headers'],
  ticket: string,
  loaded: LoadedSession,
): Caller {
  context.lostCookies.sessionSeen(loaded.key)
  const cookies =
    isRenewed(context, loaded) && !isPartOfPage(headers) ? [sessionCookie(context, ticket, loaded)] : NO_COOKIES
  return { loaded, cookies }
}

/** Public pages admit visitors too, and know who is there if somebody is signed in. */
function judge(context: GatewayContext, request: GatewayRequest, caller: Caller): Admission {
  const { rules, report } = context
  const { method } = request
  const path = decodedPath(request.path)
  const known = identified(caller)
  const who = known?.who
  const shadow = rules.shadowRuleFor(method, path, who)
  if (shadow && !admits(shadow, who))
    report('shadow_refused', { ...requestFields(context, request, known), rule: shadow, method, path, role: who?.role })
  const rule = rules.ruleFor(method, path, who)
  if (admits(rule, who)) return { ...caller, outcome: 'admitted' }
  if (!who) return { ...caller, outcome: 'visitor' }
  const missing = who.isBearer ? missingScopes(rules.rulesFor(method, path), who) : []
  return { ...caller, outcome: 'refused', refusedBy: rule, ...(missing.length > 0 && { missingScopes: missing }) }
}

function missingScopes(rules: readonly Rule[], who: Subject): string[] {
  if (!rules.some(rule => lacksScopes(rule, who))) return []
  return [...new Set(rules.flatMap(({ scopes = [] }) => scopes))]
}

/** Whoever it is that a request is for; `undefined` for a visitor. */
export function identified({ loaded, bearer }: Caller): Identified | undefined {
  return loaded ?? bearer
}

export function sessionCookie(
  { cookies, now }: Pick<GatewayContext, 'cookies' | 'now'>,
  ticket: string,
  { expiresAt }: LoadedSession,
): string {
  return setCookie(cookies.session, ticket, Math.max(0, Math.round((expiresAt - now()) / 1000)))
}

/**
 * A refresh gives the cookie a longer life, and the answer that brings it can get lost. The old one lives no longer than
 * the refresh lead, so for that long it is brought again and again.
 */
function isRenewed(
  { settings, now }: Pick<GatewayContext, 'settings' | 'now'>,
  { session, signedInAt }: LoadedSession,
): boolean {
  const recent = now() - session.tokenIssuedAt <= settings.REFRESH_LEAD_SECONDS * 1000
  return recent && session.tokenIssuedAt !== signedInAt
}

// What somebody without a session gets: the way to the login page, or a status that a script understands.

const RETURN_SECONDS = 600

export function toLogin(context: GatewayContext, request: GatewayRequest, caller: Caller): Response {
  const { cookies } = caller
  const canFollow = request.method === 'GET' || request.method === 'HEAD'
  if (isByScript(request) || !canFollow) return unauthenticated(context, request, caller)
  const moved = toOwnHost(context, request)
  if (moved) return moved
  if (context.lostCookies.cookieWasLost(request)) return lostCookie(context, request)
  return redirectAnswer(context, request.method, OWN_PATHS.login, [...cookies, ...returnCookie(context, request)])
}

function lostCookie(context: GatewayContext, request: GatewayRequest): Response {
  const { headers } = request
  const { BASE_URL } = context.settings
  const otherHost = headers.host === new URL(BASE_URL).host ? undefined : headers.host
  context.report('cookie_lost', { ...requestFields(context, request), baseUrl: BASE_URL, host: headers.host })
  const { requestId } = request.observed
  const html = lostCookiePage(languageOf(context, request), { baseUrl: BASE_URL, otherHost, requestId })
  return pageAnswer(context, html, { status: 400 })
}

export function unauthenticated(
  context: GatewayContext,
  request: GatewayRequest,
  caller: Caller,
  more: object = {},
): Response {
  return jsonAnswer(
    context,
    {
      error: 'unauthenticated',
      message: languageOf(context, request).t('session.unauthenticated'),
      login: OWN_PATHS.login,
      requestId: request.observed.requestId,
      ...more,
    },
    { status: 401, cookies: caller.cookies, headers: { 'www-authenticate': challengeFor(request, caller) } },
  )
}

/** RFC 9110 wants one with every 401. There is no registered name for cookies; browsers do not ask for a password by this one. */
export function challengeFor({ headers }: GatewayRequest, { failedToken }: Caller): string {
  if (failedToken) return INVALID_TOKEN
  return bringsToken(headers) ? 'Bearer' : 'Cookie realm="menshen"'
}

function returnCookie(context: GatewayContext, request: GatewayRequest): string[] {
  return isNavigation(request) ? [returnCookieFor(context, request.path + request.search)] : []
}

export function returnCookieFor(
  context: Pick<GatewayContext, 'settings' | 'cookies' | 'keys' | 'now' | 'providers'>,
  wanted: string,
): string {
  const path = ownPath(wanted, context.settings.BASE_URL, context.providers.callbackPaths)
  // Nothing is better than the page that was wanted before this one.
  if (!path) return clearCookie(context.cookies.returnPath)
  const value = signReturnPath(path, context.now() + RETURN_SECONDS * 1000, context.keys.returnPath)
  return setCookie(context.cookies.returnPath, value, RETURN_SECONDS)
}

// What somebody gets whom the rules do not admit.

/** `undefined` for whoever is admitted. */
export function denialResponse(
  context: GatewayContext,
  request: GatewayRequest,
  admission: Admission,
): Response | undefined {
  const { outcome } = admission
  if (outcome === 'visitor') return toLogin(context, request, admission)
  if (outcome === 'limited') return tooMany(context, request)
  return outcome === 'refused' ? refusedAnswer(context, request, admission) : undefined
}

// What somebody who is signed in and not allowed gets: who they are, and the way to another account.

export function refusedAnswer(context: GatewayContext, request: GatewayRequest, admission: Admission): Response {
  const { loaded, bearer, cookies, refusedBy } = admission
  if (bearer)
    return errorAnswer(context, request, 'refused', { headers: { 'www-authenticate': insufficient(admission) } })
  if (!loaded || isByScript(request)) return errorAnswer(context, request, 'refused', { cookies })
  const { settings, providers } = context
  const path = request.path + request.search
  const wanted = isNavigation(request) ? ownPath(path, settings.BASE_URL, providers.callbackPaths) : undefined
  const { requestId } = request.observed
  const html = refusedPage(languageOf(context, request), loaded.session, { wanted, requestId, rule: refusedBy })
  return pageAnswer(context, html, { status: 403, cookies })
}

// What a single page of an application wants beyond the rules: somebody who is signed in, or one of a few roles.

/** Of a request that the rules have admitted. Whoever does not have what the page wants gets what the rules would say. */
export function createRequire(context: GatewayContext, request: GatewayRequest, admission: Admission) {
  return (roles?: readonly Role[]): Response | undefined => {
    const role = identified(admission)?.who.role
    if (role !== undefined && (!roles || roles.includes(role))) return undefined
    const outcome = role === undefined ? 'visitor' : 'refused'
    const answer = denialResponse(
      context,
      request,
      note(context, request, { ...admission, outcome, ...(roles && { refusedBy: { path: request.path, roles } }) }),
    )
    answer?.headers.set(REQUEST_ID, request.observed.requestId)
    return answer
  }
}

// This machine has several names. A browser that comes under another one than BASE_URL's could never sign in there, because
// cookies belong to one name: it is sent to the same page under the right one.

/** A proxy that writes its own Host would make a circle of it. A browser that comes back with this cookie was in one. */
const CIRCLE_SECONDS = 5

/** `undefined` if it is at the right place, or is no browser that looks at a page. */
export function toOwnHost(context: GatewayContext, request: GatewayRequest): Response | undefined {
  const { settings, cookies } = context
  const { method, path, search, headers } = request
  if (method !== 'GET' || headers['sec-fetch-dest'] !== 'document') return undefined
  if (!isOtherNameOf(settings.BASE_URL, headers.host)) return undefined
  if (isTrusted(settings.TRUSTED_PROXIES, request.address) || readCookie(headers.cookie, cookies.moved))
    return undefined
  return redirectAnswer(context, method, settings.BASE_URL + path + search, [
    setCookie(cookies.moved, 'yes', CIRCLE_SECONDS),
  ])
}

function isOtherNameOf(baseUrl: string, host: string | undefined): boolean {
  const address = `http://${host}`
  if (!isLoopback(baseUrl) || !URL.canParse(address) || !isLoopback(address)) return false
  return new URL(address).hostname !== new URL(baseUrl).hostname
}

// Breaks the circle of a browser that does not keep our cookie: it signs in, lands without a session, is sent to sign in
// again, and never learns why. A landing is expected right after each sign-in, on the same connection. Whoever has shown
// the new session once, on any connection, has kept the cookie: if it is gone later, they have signed out.

export interface LostCookieDetector {
  /** This browser was just given the cookie of this session, and sent to this location. */
  expect(request: GatewayRequest, location: string, sessionKey: string): void
  /** A request has shown this session. */
  sessionSeen(sessionKey: string): void
  /** Whether this visit is such a landing, and the cookie is not there. */
  cookieWasLost(request: GatewayRequest): boolean
}

/** A browser follows a redirect at once; this is ample for a slow line. */
const LANDS_WITHIN_MS = 60_000

interface Landing {
  readonly location: string
  readonly sessionKey: string
}

export function createLostCookieDetector({
  settings,
  now,
}: Pick<GatewayContext, 'settings' | 'now'>): LostCookieDetector {
  const expected = new WeakMap<object, Landing>()
  /** Until when each new session may be seen for the first time, the oldest first. */
  const unseen = new Map<string, number>()

  function forgetLate(): void {
    for (const [sessionKey, until] of unseen) {
      if (now() < until) return
      unseen.delete(sessionKey)
    }
  }

  return {
    expect(request, location, sessionKey) {
      // A proxy's connection belongs to many browsers.
      if (isTrusted(settings.TRUSTED_PROXIES, request.address)) return
      forgetLate()
      unseen.set(sessionKey, now() + LANDS_WITHIN_MS)
      expected.set(request.connection, { location: location.replace(/#.*$/, ''), sessionKey })
    },
    sessionSeen(sessionKey) {
      // Every request of a user comes here, and nearly always nobody has just signed in.
      if (unseen.size > 0) unseen.delete(sessionKey)
    },
    cookieWasLost({ connection, path, search, headers }) {
      const landing = expected.get(connection)
      if (!landing) return false
      expected.delete(connection)
      forgetLate()
      const isUnseen = unseen.delete(landing.sessionKey)
      // What somebody types in, or follows within a page, is no landing.
      const site = headers['sec-fetch-site']
      const fromProvider = site === 'cross-site' || site === 'same-site'
      return isUnseen && landing.location === path + search && fromProvider && headers.cookie === undefined
    },
  }
}
