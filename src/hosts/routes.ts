// Routes of the handoff from BASE_URL to a host of `hosts` (see handoff.ts): GET /_menshen/enter at BASE_URL,
// GET /_menshen/entered at the host; and the routes that a host leaves to BASE_URL.

import { readTarget } from '../access/request-path.ts'
import type { Rules } from '../access/rules.ts'
import type { GatewayContext } from '../gateway/context.ts'
import {
  chosenLanguage,
  errorAnswer,
  foreignAnswer,
  languageCookie,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  type ResponseAnswer,
  redirectAnswer,
  signedInAnswer,
} from '../http/answers.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { readReturnPath, safeReturnPath } from '../http/return-path.ts'
import type { RouteTable } from '../http/route-table.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { applyRules } from '../identify/apply-rules.ts'
import { identify } from '../identify/session.ts'
import { requestFields } from '../observe/observed-request.ts'
import { handoffPage, RETURN_FIELD } from '../pages/notices.ts'
import { OWN_PATHS, type OwnPaths } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { isTicket } from '../session/ticket.ts'
import { guarded } from '../sign-in/guarded.ts'
import { startStepUp } from '../sign-in/step-up.ts'
import { isFromOwnOrigin, isNotDocument, isOwnNavigation } from '../util/fetch-metadata.ts'
import type { AuthHostContext, HostContext } from './context.ts'
import { authHostLogin, type HostPage, hasNonce, readHostPage } from './handoff.ts'
import { hostCookie } from './site.ts'
import { HANDOFF_BACKOFF_SECONDS, type HandoffCode } from './tickets.ts'

// GET /_menshen/enter?to=<address>&n=<hash of the nonce> at BASE_URL.

interface EntryRequest {
  readonly wanted: HostPage
  readonly challenge: string
}

/** The answer to a request that cannot be an entry, signed in or not. */
function refuseHandoff(context: AuthHostContext, request: GatewayRequest): OwnAnswer | undefined {
  if (isNotDocument(request)) return foreignAnswer(context, request)
  return readEntry(context, request) ? undefined : errorAnswer(context.pages, request, 'bad_request')
}

function readEntry({ hosts, paths }: AuthHostContext, { search }: GatewayRequest): EntryRequest | undefined {
  const query = new URLSearchParams(search)
  const [to, ...moreTo] = query.getAll('to')
  const [challenge, ...moreN] = query.getAll('n')
  if (to === undefined || challenge === undefined || !isTicket(challenge)) return undefined
  if (moreTo.length > 0 || moreN.length > 0) return undefined
  const wanted = readHostPage(to, hosts, paths)
  return wanted && { wanted, challenge }
}

/** Sends a signed-in user to the host. */
async function handOffToHost(
  context: AuthHostContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, ticket, cookies } = caller
  const { hosts, pages, observe } = context
  const entry = readEntry(context, request)
  if (!entry || ticket === undefined) return errorAnswer(pages, request, 'bad_request')
  const { challenge, wanted } = entry
  const { host, origin, path } = wanted
  if (!hosts.mayHandOff(loaded.key, origin + path)) {
    observe.report('host_entry_failed', { ...requestFields(request, loaded), host, reason: 'repeated' })
    return errorAnswer(pages, request, 'entry_failed', { cookies, outcome: 'refused' })
  }
  const rules = hosts.rules.get(host)
  const stepUp = rules && (await stepUpForHost(context, request, caller, rules, path))
  if (stepUp) return stepUp
  const language = chosenLanguage(pages, request)?.lang
  const code = await hosts.codes.issue(host, { challenge, ticket, path, language })
  const location = `${origin}${OWN_PATHS.handoffDone}?code=${code}`
  if (!isEndOfSignIn(request, loaded, context.now())) return signedInAnswer(pages, request, location, cookies)
  const html = handoffPage(languageOf(pages, request), host, location)
  return pageAnswer(pages, html, { cookies, headers: { refresh: `1; url=${location}` } })
}

const SIGN_IN_WINDOW_MS = 10_000

/**
 * Whether the browser may still be following redirects from a form of the provider, whose policy (`form-action`) allows BASE_URL
 * but no other hosts. One of our pages ends that chain.
 */
function isEndOfSignIn({ headers }: GatewayRequest, { signedInAt }: LoadedSession, now: number): boolean {
  const site = headers['sec-fetch-site']
  return (site === 'cross-site' || site === 'same-site') && now - signedInAt < SIGN_IN_WINDOW_MS
}

/**
 * At BASE_URL, before the handoff to a host: whether its rules require another sign-in for the page there. `wanted` is the
 * path that was requested at the host, with its query.
 */
async function stepUpForHost(
  context: AuthHostContext,
  request: GatewayRequest,
  { loaded, ...identification }: SignedInCaller,
  rules: Rules,
  wanted: string,
): Promise<ResponseAnswer | undefined> {
  const isPageOfOurs = wanted.startsWith(`${OWN_PATHS.stepUp}?`)
  const query = new URLSearchParams(isPageOfOurs ? wanted.slice(OWN_PATHS.stepUp.length) : '')
  const target = readTarget(query.get('path') ?? wanted)
  const method = query.get('method') ?? 'GET'
  if (!target || !/^[A-Z-]+$/.test(method)) return undefined
  const atHost = { ...context, auth: { ...context.auth, rules } }
  const verdict = applyRules(atHost, { ...request, ...target, method }, { ...identification, loaded })
  if (verdict.outcome !== 'step_up') return undefined
  return startStepUp(context, request, loaded, verdict.demands ?? [], request.path + request.search)
}

// GET /_menshen/entered?code=<code> at a host.

type EntryFailure = 'unknown_code' | 'other_browser' | 'session_ended'

async function finishHandoff(context: HostContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { host, auth, pages, observe } = context
  // Checked before the code is spent: no image or frame of another site may enter.
  if (isNotDocument(request)) return foreignAnswer(context, request)
  const [code = '', ...more] = new URLSearchParams(request.search).getAll('code')
  const entry = more.length === 0 ? await host.codes.take(host.name, code) : undefined
  if (!entry) return failedEntry(context, request, 'unknown_code')
  if (!hasNonce(context, request, entry.challenge)) return failedEntry(context, request, 'other_browser', entry)
  // Rejects while its tokens have expired and the provider cannot be reached: the page says so.
  const loaded = await auth.sessions.getFresh(entry.ticket)
  if (!loaded || typeof loaded === 'string') return failedEntry(context, request, 'session_ended', entry)
  const { cookies } = auth
  const previous = readCookie(request.headers.cookie, cookies.session)
  const ticket = await host.tickets.create(host.name, entry.ticket, loaded)
  if (previous) await host.tickets.remove(host.name, previous)
  observe.report('host_entered', { ...requestFields(request, loaded), host: host.name })
  return signedInAnswer(pages, request, entry.path, [
    hostCookie(cookies, ticket, loaded, context.settings, context.now()),
    clearCookie(cookies.handoff),
    ...(entry.language === undefined || chosenLanguage(pages, request) ? [] : [languageCookie(pages, entry.language)]),
  ])
}

/** Redirects to the page once more, and the second time within a few seconds shows an error page, so that there is no loop. */
async function failedEntry(
  context: HostContext,
  request: GatewayRequest,
  reason: EntryFailure,
  entry?: HandoffCode,
): Promise<OwnAnswer> {
  const { host, auth, pages, observe } = context
  const { handoffFailed } = auth.cookies
  const location = entry?.path ?? '/'
  // Another tab of this browser was faster, or the user has come back with a button of the browser.
  if ((await identify(context, request)).loaded) return redirectAnswer(pages, request.method, location)
  observe.report('host_entry_failed', { ...requestFields(request), host: host.name, reason })
  // Counted by session and page, not by a cookie: the browser may keep none, and each of its tabs fails separately.
  const isFirst = entry
    ? await host.codes.isFirstFailure(host.name, entry)
    : !readCookie(request.headers.cookie, handoffFailed)
  if (!isFirst) return errorAnswer(pages, request, 'entry_failed', { outcome: 'refused' })
  return redirectAnswer(pages, request.method, location, {
    outcome: 'visitor',
    // The code is spent now: if the browser sends it again, it is unknown.
    cookies: [setCookie(handoffFailed, 'yes', HANDOFF_BACKOFF_SECONDS)],
  })
}

// What a host leaves to BASE_URL: the login page, the callback, the account page, the portal and the console.

async function toAuthHost(context: HostContext, request: GatewayRequest, form: URLSearchParams): Promise<OwnAnswer> {
  const { host, pages, paths } = context
  const { method, path, search } = request
  if (path === paths.login) return toLogin(context, request, form)
  // A form of one of these pages belongs to BASE_URL, which does not accept it from here.
  const isRead = method === 'GET' || method === 'HEAD'
  return redirectAnswer(pages, method, host.authUrl + (isRead ? path + search : pageOf(path)))
}

function pageOf(path: string): string {
  return [OWN_PATHS.account, OWN_PATHS.portal, OWN_PATHS.console].find(page => path.startsWith(page)) ?? '/'
}

/** Links of the application and the buttons of our own pages lead back to this host; any other request only to the login page. */
async function toLogin(context: HostContext, request: GatewayRequest, form: URLSearchParams): Promise<OwnAnswer> {
  const { host, pages, paths } = context
  const { method } = request
  const wanted = method === 'POST' ? pageOfButton(context, request, form) : pageOfLink(context, request)
  if (wanted === undefined) return redirectAnswer(pages, method, host.authUrl + paths.login)
  const { location, cookie } = authHostLogin(context, host, request, wanted)
  return redirectAnswer(pages, method, location, { cookies: [cookie] })
}

function pageOfLink({ settings, paths }: HostContext, request: GatewayRequest): string | undefined {
  const { method, headers, search } = request
  const isLink = headers['sec-fetch-site'] === 'same-origin' && isOwnNavigation(request, settings.BASE_URL)
  if (method !== 'GET' || !isLink) return undefined
  const asked = new URLSearchParams(search).get(RETURN_FIELD) ?? '/'
  return safeReturnPath(asked, settings.BASE_URL, paths.signIn) ?? '/'
}

/** The return path of the button that signs in again after a failed step-up. We have signed it. */
function pageOfButton(
  { now, auth, settings, paths }: HostContext,
  request: GatewayRequest,
  form: URLSearchParams,
): string | undefined {
  const signed = form.get(RETURN_FIELD)
  if (!signed || !isFromOwnOrigin(request, settings.BASE_URL)) return undefined
  const own = { origin: settings.BASE_URL, signInPaths: paths.signIn }
  return readReturnPath(signed, auth.keys.returnPath, own, now())
}

const handOffSignedIn = guarded(handOffToHost)

/** A visitor signs in first and comes back. */
async function handOff(context: AuthHostContext, request: GatewayRequest, form: URLSearchParams): Promise<OwnAnswer> {
  return refuseHandoff(context, request) ?? handOffSignedIn(context, request, form)
}

async function notFound({ pages }: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  return errorAnswer(pages, request, 'not_found')
}

/** The routes of BASE_URL without hosts, where the paths of a handoff do not exist. */
export const CLOSED_HANDOFF_ROUTES: RouteTable<GatewayContext> = {
  [OWN_PATHS.handoff]: { GET: notFound },
  [OWN_PATHS.handoffDone]: { GET: notFound },
}

/** The route of BASE_URL if there are hosts. */
export const HANDOFF_ROUTES: RouteTable<AuthHostContext> = { [OWN_PATHS.handoff]: { GET: handOff } }

const TO_AUTH_HOST = { GET: toAuthHost, HEAD: toAuthHost, POST: toAuthHost }

/** The routes of a host: sign-in, account, portal and console are at BASE_URL. */
export function hostRoutes({ login, callback }: OwnPaths): RouteTable<HostContext> {
  const left = Object.values(OWN_PATHS).filter(
    path =>
      path.startsWith(OWN_PATHS.account) ||
      path.startsWith(OWN_PATHS.console) ||
      path === OWN_PATHS.portal ||
      path === OWN_PATHS.doctorSignIn,
  )
  return {
    ...Object.fromEntries([...left, login, callback].map(path => [path, TO_AUTH_HOST])),
    [OWN_PATHS.handoffDone]: { GET: finishHandoff },
  }
}
