// The session of a request: found by the ticket in its cookie, refreshed if due.

import { MenshenError } from '../errors.ts'
import { readCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { runInRequest } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { tokenExpiresAt } from '../session/record.ts'
import { isActivity, isPartOfPage } from '../util/fetch-metadata.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { CallerIdentification } from './admission.ts'
import type { CredentialRequest, IdentifyContext } from './context.ts'

const NO_COOKIES: readonly string[] = []
const VISITOR: CallerIdentification = { cookies: NO_COOKIES }
const FAILED_TICKET: CallerIdentification = { cookies: NO_COOKIES, failedTicket: true }
const PROVIDER_UNAVAILABLE: CallerIdentification = { cookies: NO_COOKIES, isProviderUnavailable: true }

/** The caller by their session, refreshed if due, whatever the request asks for. Returns no promise if the session is cached. */
export function identify(context: IdentifyContext, request: CredentialRequest): MaybePromise<CallerIdentification> {
  const { auth, site } = context
  const cookie = readCookie(request.headers.cookie, auth.cookies.session)
  if (!cookie) return VISITOR
  const ticket = site.findTicketSync(cookie)
  return ticket === undefined
    ? findTicket(context, request, cookie)
    : identifyTicket(context, request, { ticket, cookie: cookie })
}

/** The ticket of a session, and the one in the cookie, which differs at a host of `hosts`. */
interface SessionTicket {
  readonly ticket: string
  readonly cookie: string
}

function identifyTicket(
  context: IdentifyContext,
  request: CredentialRequest,
  tickets: SessionTicket,
): MaybePromise<CallerIdentification> {
  const { sessions } = context.auth
  const { observed } = request
  const { ticket } = tickets
  const cached = sessions.getCached(ticket)
  observed.cacheHit = cached !== undefined
  const loaded = cached ?? sessions.loadSync(ticket)
  return loaded ? identifyLoaded(context, request, tickets, loaded) : loadAndRefresh(context, request, tickets)
}

/** A session that is bound to a device is valid only from that device. */
function identifyLoaded(
  context: IdentifyContext,
  request: CredentialRequest,
  tickets: SessionTicket,
  loaded: LoadedSession,
): MaybePromise<CallerIdentification> {
  if (!loaded.session.device) return signedIn(context, request.headers, tickets, loaded)
  const proven = context.auth.devices.check(request, tickets.ticket, loaded)
  if (proven === loaded) return signedIn(context, request.headers, tickets, loaded)
  return andThen(proven, loaded => {
    if (!loaded) return FAILED_TICKET
    // The device was proven only by what another process has written, so the session has not been refreshed yet.
    if (tokenExpiresAt(loaded.session) <= context.now()) return loadAndRefresh(context, request, tickets)
    return signedIn(context, request.headers, tickets, loaded)
  })
}

async function findTicket(
  context: IdentifyContext,
  request: CredentialRequest,
  cookie: string,
): Promise<CallerIdentification> {
  const ticket = await runInRequest(request.observed, () => context.site.findTicket(cookie))
  return ticket === undefined ? FAILED_TICKET : identifyTicket(context, request, { ticket, cookie: cookie })
}

/** The ticket of the session that the cookie leads to. The session may not exist. */
export async function ticketOf(
  { auth, site }: IdentifyContext,
  { headers }: Pick<GatewayRequest, 'headers'>,
): Promise<string | undefined> {
  const cookie = readCookie(headers.cookie, auth.cookies.session)
  return cookie && site.findTicket(cookie)
}

async function loadAndRefresh(
  context: IdentifyContext,
  request: CredentialRequest,
  tickets: SessionTicket,
): Promise<CallerIdentification> {
  const { auth, site, observe } = context
  // A stolen ticket must not keep a session alive.
  const mayRefresh = (loaded: LoadedSession) => auth.devices.isFromDevice(request, loaded)
  const find = () => observe.measure('session', 'find', () => auth.sessions.getFresh(tickets.ticket, mayRefresh))
  const current = await runInRequest(request.observed, find).catch(unavailableOrThrow)
  if (current === 'unavailable') return PROVIDER_UNAVAILABLE
  if (!current) {
    site.forget(tickets.cookie)
    return FAILED_TICKET
  }
  // The ticket is valid at other instances: it is not counted as failed, and the browser keeps it.
  if (current === 'unknown_provider') return VISITOR
  if (current === 'ended') return { cookies: site.endedCookies() }
  return identifyLoaded(context, request, tickets, current)
}

function unavailableOrThrow(error: unknown): 'unavailable' {
  if (error instanceof MenshenError && error.code === 'provider_unavailable') return 'unavailable'
  throw error
}

function signedIn(
  context: IdentifyContext,
  headers: GatewayRequest['headers'],
  { ticket, cookie }: SessionTicket,
  loaded: LoadedSession,
): CallerIdentification {
  const { settings, site, now, auth } = context
  auth.lostCookies.sessionSeen(loaded.key)
  const isRenewed = wasRefreshed(loaded, settings.REFRESH_LEAD_SECONDS, now()) && !isPartOfPage(headers)
  const cookies = isRenewed ? [site.renewedCookie(cookie, loaded)] : NO_COOKIES
  return { loaded, ticket, cookies }
}

/**
 * A refresh gives the cookie a longer life, and the response that carries it can get lost. The old cookie lives no longer than
 * the refresh lead, so for that long every response carries the new one.
 */
function wasRefreshed({ session, signedInAt }: LoadedSession, leadSeconds: number, now: number): boolean {
  return now - session.tokenIssuedAt <= leadSeconds * 1000 && session.tokenIssuedAt !== signedInAt
}

/** Scripts request these while no user is present: whether the session is still valid, and which applications there are. */
const PASSIVE_PATHS: ReadonlySet<string | undefined> = new Set([OWN_PATHS.me, OWN_PATHS.applications])

/** Notes activity for SESSION_IDLE_MINUTES. */
export function noteActivity(
  { settings, auth }: IdentifyContext,
  request: Pick<GatewayRequest, 'method' | 'headers'> & { readonly path?: string },
  loaded: LoadedSession,
): void {
  if (settings.SESSION_IDLE_MINUTES === 0 || PASSIVE_PATHS.has(request.path)) return
  if (isActivity(request)) auth.sessions.noteActivity(loaded)
}
