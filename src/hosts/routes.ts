// The way from the portal to a host of `hosts` (see host-entry.ts): GET /_menshen/enter at the portal, GET /_menshen/entered at
// the host; and what a host leaves to the portal.

import type { ApplicationHost, GatewayContext } from '../gateway/context.ts'
import {
  chosenLanguage,
  errorAnswer,
  foreignAnswer,
  languageCookie,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  redirectAnswer,
  signedInAnswer,
} from '../http/answers.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { readReturnPath, safeReturnPath } from '../http/return-path.ts'
import { hostCookie, identify, type SignedInCaller } from '../identify/identify.ts'
import { requestFields } from '../observe/observed-request.ts'
import { enteringPage, RETURN_FIELD } from '../pages/notices.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { isTicket } from '../session/ticket.ts'
import { stepUpForHost } from '../sign-in/step-up.ts'
import { isFromOwnOrigin, isNoPage, isOwnNavigation } from '../util/fetch-metadata.ts'
import { hasNonce, portalLogin, readWanted, type WantedPage } from './handoff.ts'
import { ENTRY_BRAKE_SECONDS, type EntryCode } from './tickets.ts'

// GET /_menshen/enter?to=<address>&n=<hash of the nonce> at the portal.

interface EntryRequest {
  readonly wanted: WantedPage
  readonly challenge: string
}

/** The answer to a request that cannot be an entry, signed in or not. */
export function refuseEntry(context: GatewayContext, request: GatewayRequest): OwnAnswer | undefined {
  if (!context.entries) return errorAnswer(context.pages, request, 'not_found')
  if (isNoPage(request)) return foreignAnswer(context, request)
  return readEntry(context, request) ? undefined : errorAnswer(context.pages, request, 'bad_request')
}

function readEntry({ entries, paths }: GatewayContext, { search }: GatewayRequest): EntryRequest | undefined {
  const query = new URLSearchParams(search)
  const [to, ...moreTo] = query.getAll('to')
  const [challenge, ...moreN] = query.getAll('n')
  if (!entries || to === undefined || challenge === undefined || !isTicket(challenge)) return undefined
  if (moreTo.length > 0 || moreN.length > 0) return undefined
  const wanted = readWanted(to, entries, paths)
  return wanted && { wanted, challenge }
}

/** For a signed-in user. */
export async function enterHost(
  context: GatewayContext,
  request: GatewayRequest,
  caller: SignedInCaller,
): Promise<OwnAnswer> {
  const { loaded, ticket, cookies } = caller
  const { entries, pages, observe } = context
  const entry = readEntry(context, request)
  if (!entries || !entry || ticket === undefined) return errorAnswer(pages, request, 'bad_request')
  const { challenge, wanted } = entry
  const { host, origin, path } = wanted
  if (!entries.mayEnter(loaded.key, origin + path)) {
    observe.report('host_entry_failed', { ...requestFields(request, loaded), host, reason: 'repeated' })
    return errorAnswer(pages, request, 'entry_failed', { cookies, outcome: 'refused' })
  }
  const rules = entries.rulesOf(host)
  const stepUp = rules && (await stepUpForHost(context, request, caller, rules, path))
  if (stepUp) return stepUp
  const language = chosenLanguage(pages, request)?.lang
  const code = await entries.codes.issue(host, { challenge, ticket, path, language })
  const location = `${origin}${OWN_PATHS.entered}?code=${code}`
  if (!isEndOfSignIn(request, loaded, context.now())) return signedInAnswer(pages, request, location, cookies)
  const html = enteringPage(languageOf(pages, request), host, location)
  return pageAnswer(pages, html, { cookies, headers: { refresh: `1; url=${location}` } })
}

const SIGN_IN_ENDS_WITHIN_MS = 10_000

/**
 * The browser may still be on the way that began with a form of the provider, whose policy (`form-action`) lets it get to the
 * portal and not to other hosts. A page of ours ends that way.
 */
function isEndOfSignIn({ headers }: GatewayRequest, { signedInAt }: LoadedSession, now: number): boolean {
  const site = headers['sec-fetch-site']
  return (site === 'cross-site' || site === 'same-site') && now - signedInAt < SIGN_IN_ENDS_WITHIN_MS
}

// GET /_menshen/entered?code=<code> at a host.

type EntryFailure = 'unknown_code' | 'other_browser' | 'session_ended'

export async function finishEntry(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { host, auth, pages, observe } = context
  if (!host) return errorAnswer(pages, request, 'not_found')
  // Before the code is spent: no image or frame of another site enters.
  if (isNoPage(request)) return foreignAnswer(context, request)
  const [code = '', ...more] = new URLSearchParams(request.search).getAll('code')
  const entry = more.length === 0 ? await host.codes.take(host.name, code) : undefined
  if (!entry) return failedEntry(context, host, request, 'unknown_code')
  if (!hasNonce(context, request, entry.challenge)) return failedEntry(context, host, request, 'other_browser', entry)
  // Rejects while its tokens have expired and the provider cannot be reached: the page says so.
  const loaded = await auth.sessions.getFresh(entry.ticket)
  if (!loaded || loaded === 'ended') return failedEntry(context, host, request, 'session_ended', entry)
  const { cookies } = auth
  const previous = readCookie(request.headers.cookie, cookies.session)
  const ticket = await host.tickets.create(host.name, entry.ticket, loaded)
  if (previous) await host.tickets.remove(host.name, previous)
  observe.report('host_entered', { ...requestFields(request, loaded), host: host.name })
  return signedInAnswer(pages, request, entry.path, [
    hostCookie(context, ticket, loaded),
    clearCookie(cookies.entry),
    ...(entry.language === undefined || chosenLanguage(pages, request) ? [] : [languageCookie(pages, entry.language)]),
  ])
}

/** To the page once more, and the second time within a few seconds a page that says so: never round in circles. */
async function failedEntry(
  context: GatewayContext,
  host: ApplicationHost,
  request: GatewayRequest,
  reason: EntryFailure,
  entry?: EntryCode,
): Promise<OwnAnswer> {
  const { auth, pages, observe } = context
  const { entryFailed } = auth.cookies
  const location = entry?.path ?? '/'
  // Another tab of this browser was faster, or the user has come back by a button of the browser.
  if ((await identify(context, request)).loaded) return redirectAnswer(pages, request.method, location)
  observe.report('host_entry_failed', { ...requestFields(request), host: host.name, reason })
  // By the session and the page, not by a cookie: the browser may keep none, and its tabs fail each on their own.
  const isFirst = entry
    ? await host.codes.isFirstFailure(host.name, entry)
    : !readCookie(request.headers.cookie, entryFailed)
  if (!isFirst) return errorAnswer(pages, request, 'entry_failed', { outcome: 'refused' })
  return redirectAnswer(pages, request.method, location, {
    outcome: 'visitor',
    // The code is spent now: with the same one again, it is unknown.
    cookies: [setCookie(entryFailed, 'yes', ENTRY_BRAKE_SECONDS)],
  })
}

// What a host leaves to the portal: the login page, the callback, the account page and the console.

export async function toPortal(
  context: GatewayContext,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { host, pages, paths } = context
  if (!host) return errorAnswer(pages, request, 'not_found')
  const { method, path, search } = request
  if (path === paths.login) return toPortalLogin(context, host, request, form)
  // A form of one of these pages is one of the portal, which does not take it from here.
  const isRead = method === 'GET' || method === 'HEAD'
  return redirectAnswer(pages, method, host.portal + (isRead ? path + search : pageOf(path)))
}

function pageOf(path: string): string {
  return [OWN_PATHS.account, OWN_PATHS.console].find(page => path.startsWith(page)) ?? '/'
}

/** Links of the application and the buttons of our own pages lead back to this host; any other request just to the login page. */
async function toPortalLogin(
  context: GatewayContext,
  host: ApplicationHost,
  request: GatewayRequest,
  form: URLSearchParams,
): Promise<OwnAnswer> {
  const { pages, paths } = context
  const { method } = request
  const wanted = method === 'POST' ? pageOfButton(context, request, form) : pageOfLink(context, request)
  if (wanted === undefined) return redirectAnswer(pages, method, host.portal + paths.login)
  const { location, cookie } = portalLogin(context, host, request, wanted)
  return redirectAnswer(pages, method, location, { cookies: [cookie] })
}

function pageOfLink({ settings, paths }: GatewayContext, request: GatewayRequest): string | undefined {
  const { method, headers, search } = request
  const isLink = headers['sec-fetch-site'] === 'same-origin' && isOwnNavigation(request, settings.BASE_URL)
  if (method !== 'GET' || !isLink) return undefined
  const asked = new URLSearchParams(search).get(RETURN_FIELD) ?? '/'
  return safeReturnPath(asked, settings.BASE_URL, paths.signIn) ?? '/'
}

/** The button that signs in again after a step-up that failed. We have signed its page. */
function pageOfButton(
  { now, auth, settings, paths }: GatewayContext,
  request: GatewayRequest,
  form: URLSearchParams,
): string | undefined {
  const signed = form.get(RETURN_FIELD)
  if (!signed || !isFromOwnOrigin(request, settings.BASE_URL)) return undefined
  const own = { origin: settings.BASE_URL, signInPaths: paths.signIn }
  return readReturnPath(signed, auth.keys.returnPath, own, now())
}
