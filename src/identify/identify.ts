// Who is asking, and may they: the session of a ticket, refreshed if due, or a bearer token; then the rules.

import { type DestinationProblem, decideRequest, rulesForRequest, shadowDecision } from '../access/affected-paths.ts'
import { type AuthenticationDemand, type RefusalCode, type Unmet, unmetOf } from '../access/conditions.ts'
import type { ReadTarget } from '../access/request-path.ts'
import type { Subject } from '../access/roles.ts'
import { admits, type Decision, isClosed, lacksScopes } from '../access/rules.ts'
import { decodedPath, shownPath } from '../access/spellings.ts'
import type { Rule } from '../config/config-file.ts'
import { network } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import { fromItsDevice, showsDevice } from '../gateway/bound-sessions.ts'
import type { ApplicationHost, Auth, Observe } from '../gateway/context.ts'
import { callerOf, type Identification, RequestCircumstances } from '../http/caller.ts'
import { clearCookie, endReasonCookie, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import { OWN_PATHS, type OwnPaths } from '../paths.ts'
import { isBound } from '../session/device-binding.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { latestEnd, tokenExpiresAt } from '../session/session-record.ts'
import { bringsToken, isActivity, isForPage, isPartOfPage } from '../util/fetch-metadata.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { audiencesOf, type BearerCaller, type RefusedToken, type TokenClient } from './bearer.ts'
import { type ProtectedResources, type ResourceChallenge, scopesOf } from './protected-resources.ts'

/** What identification and the rules need. */
export interface AdmissionContext {
  readonly settings: Settings
  readonly host: ApplicationHost | undefined
  readonly paths: OwnPaths
  readonly now: () => number
  readonly readTarget: ReadTarget
  readonly auth: Auth
  readonly observe: Observe
  /** `undefined` if no rule admits tokens. */
  readonly resources: ProtectedResources | undefined
}

/** The caller, or why there is none. */
export interface CallerIdentification extends Identification {
  readonly bearer?: BearerCaller
  readonly reidentify?: () => Promise<BearerCaller | undefined>
  /** There is a session, but its access token has expired and the provider cannot be asked now: a visitor's, for this answer. */
  readonly isProviderAway?: true
  /** The store cannot be asked whether the session is still valid, see admit-without-store.ts. */
  readonly isUnconfirmed?: true
  /** The ticket opens no session. */
  readonly failedTicket?: true
  /** The token is not valid. It was counted before the provider was asked about it. */
  readonly failedToken?: true
  /** The address has brought too many tokens: the provider was not asked about this one. */
  readonly isLimited?: true
  /** Where a client that is not admitted learns how to get a token, if the rule takes any. */
  readonly resource?: ResourceChallenge | undefined
  /** The key is not valid, or the rule takes none. */
  readonly keyProblem?: 'invalid_key' | 'key_not_accepted'
  /** A visitor; the rule would admit a program with a key. */
  readonly acceptsKey?: true
}

/** The identification of a signed-in user. */
export type SignedInCaller = CallerIdentification & { readonly loaded: LoadedSession }

export interface Admission extends CallerIdentification {
  /**
   * `limited`: a visitor whose address has shown too many tickets or tokens that are not valid. `step_up`: the rules admit the
   * caller once they have signed in again, or in another way. `unavailable`: the caller has a session, see `isProviderAway`.
   * `unreadable`: the Destination cannot be judged.
   */
  readonly outcome: 'visitor' | 'limited' | 'refused' | 'step_up' | 'unavailable' | 'unreadable' | 'admitted'
  /** Why it is `unreadable`. */
  readonly destinationProblem?: DestinationProblem
  /** The rule that refused. */
  readonly refusedBy?: Rule
  /** The condition of a rule that is not met, though the rule is for this caller. */
  readonly condition?: RefusalCode
  /** What `step_up` has to fulfil. */
  readonly demands?: readonly AuthenticationDemand[]
  /** All scopes that the rules want, if the token of a machine lacks one of them. */
  readonly missingScopes?: readonly string[]
}

const NO_COOKIES: readonly string[] = []
const NOBODY: CallerIdentification = { cookies: NO_COOKIES }
const FAILED_TICKET: CallerIdentification = { cookies: NO_COOKIES, failedTicket: true }
const PROVIDER_AWAY: CallerIdentification = { cookies: NO_COOKIES, isProviderAway: true }

// The session of a ticket.

/** Whose session it is, refreshed if due, whatever the request asks for. Without a promise if the session is cached. */
export function identify(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
): MaybePromise<CallerIdentification> {
  const { auth, host } = context
  const shown = readCookie(request.headers.cookie, auth.cookies.session)
  if (!shown) return NOBODY
  const ticket = host ? host.tickets.getSync(host.name, shown) : shown
  return ticket === undefined
    ? findTicket(context, request, shown)
    : identifyTicket(context, request, { ticket, shown })
}

/** The ticket of a session, and that of the cookie: another one at a host of `hosts`. */
interface ShownTicket {
  readonly ticket: string
  readonly shown: string
}

function identifyTicket(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
  tickets: ShownTicket,
): MaybePromise<CallerIdentification> {
  const { sessions } = context.auth
  const { observed } = request
  const { ticket } = tickets
  const cached = sessions.getCached(ticket)
  observed.cacheHit = cached !== undefined
  const loaded = cached ?? sessions.loadSync(ticket)
  return loaded ? identifyLoaded(context, request, tickets, loaded) : loadAndRefresh(context, request, tickets)
}

/** A session that is bound to a device counts for its device alone. */
function identifyLoaded(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
  tickets: ShownTicket,
  loaded: LoadedSession,
): MaybePromise<CallerIdentification> {
  if (!isBound(loaded.session.device)) return signedIn(context, request.headers, tickets, loaded)
  const proven = fromItsDevice(context, request, tickets.ticket, loaded)
  if (proven === loaded) return signedIn(context, request.headers, tickets, loaded)
  return andThen(proven, loaded => {
    if (!loaded) return FAILED_TICKET
    // It was not refreshed before the device was proven by what another process has written.
    if (tokenExpiresAt(loaded.session) <= context.now()) return loadAndRefresh(context, request, tickets)
    return signedIn(context, request.headers, tickets, loaded)
  })
}

async function findTicket(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
  shown: string,
): Promise<CallerIdentification> {
  const ticket = await runInRequest(request.observed, () => sessionTicket(context, shown))
  return ticket === undefined ? FAILED_TICKET : identifyTicket(context, request, { ticket, shown })
}

/** The ticket of the session that this cookie leads to. A ticket counts at its own host alone. */
async function sessionTicket({ host }: AdmissionContext, shown: string): Promise<string | undefined> {
  return host ? host.tickets.get(host.name, shown) : shown
}

/** The same for a request. It is not known whether there is such a session. */
export async function ticketOf(
  context: AdmissionContext,
  { headers }: Pick<GatewayRequest, 'headers'>,
): Promise<string | undefined> {
  const shown = readCookie(headers.cookie, context.auth.cookies.session)
  return shown && sessionTicket(context, shown)
}

async function loadAndRefresh(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
  tickets: ShownTicket,
): Promise<CallerIdentification> {
  const { auth, observe } = context
  // A stolen ticket must not keep a session alive.
  const mayRefresh = (loaded: LoadedSession) => showsDevice(context, request, loaded)
  const find = () => observe.measure('session', 'find', () => auth.sessions.getFresh(tickets.ticket, mayRefresh))
  const current = await runInRequest(request.observed, find).catch(unlessProviderAway)
  if (current === 'unavailable') return PROVIDER_AWAY
  if (!current) {
    // The ticket of a host leads nowhere any more.
    context.host?.tickets.remove(context.host.name, tickets.shown).catch(() => {})
    return FAILED_TICKET
  }
  if (current === 'ended') return { cookies: endedCookies(context) }
  return identifyLoaded(context, request, tickets, current)
}

function unlessProviderAway(error: unknown): 'unavailable' {
  if (error instanceof MenshenError && error.code === 'provider_unavailable') return 'unavailable'
  throw error
}

/** At a host, the login page is the portal's, which finds the reason by the ticket of its own cookie. */
function endedCookies({ auth, host }: AdmissionContext): readonly string[] {
  const cleared = clearCookie(auth.cookies.session)
  return host ? [cleared] : [cleared, endReasonCookie(auth.cookies, 'refresh_failed')]
}

function signedIn(
  context: AdmissionContext,
  headers: GatewayRequest['headers'],
  { ticket, shown }: ShownTicket,
  loaded: LoadedSession,
): CallerIdentification {
  const { settings, now, auth } = context
  auth.lostCookies.sessionSeen(loaded.key)
  const isRenewed = wasRefreshed(loaded, settings.REFRESH_LEAD_SECONDS, now()) && !isPartOfPage(headers)
  const cookies = isRenewed ? [renewedCookie(context, shown, loaded)] : NO_COOKIES
  return { loaded, ticket, cookies }
}

/**
 * A refresh gives the cookie a longer life, and the answer that brings it can get lost. The old cookie lives no longer than
 * the refresh lead, so for that long every answer brings the new one.
 */
function wasRefreshed({ session, signedInAt }: LoadedSession, leadSeconds: number, now: number): boolean {
  return now - session.tokenIssuedAt <= leadSeconds * 1000 && session.tokenIssuedAt !== signedInAt
}

function renewedCookie(context: AdmissionContext, shown: string, loaded: LoadedSession): string {
  const { now, auth, host } = context
  return host ? hostCookie(context, shown, loaded) : sessionCookie(auth.cookies.session, shown, loaded, now())
}

/**
 * The cookie of a host lives as long as the session may: refreshes happen at other hosts, too, whose answers cannot renew it.
 * Whether the session is still there is asked at every request.
 */
export function hostCookie({ settings, now, auth }: AdmissionContext, ticket: string, { signedInAt }: LoadedSession) {
  const left = latestEnd(signedInAt, settings.SESSION_MAX_HOURS) - now()
  return setCookie(auth.cookies.session, ticket, Math.max(0, Math.round(left / 1000)))
}

export function sessionCookie(name: string, ticket: string, { expiresAt }: LoadedSession, now: number): string {
  return setCookie(name, ticket, Math.max(0, Math.round((expiresAt - now) / 1000)))
}

/** For SESSION_IDLE_MINUTES. Scripts ask `/_menshen/me` whether the session goes on, by which it must not. */
export function noteActivity(
  { settings, auth }: AdmissionContext,
  request: Pick<GatewayRequest, 'method' | 'headers'> & { readonly path?: string },
  loaded: LoadedSession,
): void {
  if (settings.SESSION_IDLE_MINUTES === 0 || request.path === OWN_PATHS.me) return
  if (isActivity(request)) auth.sessions.noteActivity(loaded)
}

// The bearer token of a request without a session.

/** RFC 6750, 2.1. */
const CREDENTIALS = /^bearer +([\w.~+/-]+=*)$/i

/** A token counts only where the rule for the path says so. Everywhere else `Authorization` is for the application. */
export function identifyByToken(
  context: AdmissionContext,
  request: GatewayRequest,
  asked: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<CallerIdentification> {
  const { rules } = context.auth
  if (!rules.hasBearer || !bringsToken(request.headers)) return identification
  const matching = rulesForRequest(rules, asked, context.settings.BASE_URL)
  return matching[0]?.bearer ? identifyToken(context, request, asked, identification.cookies, matching) : identification
}

async function identifyToken(
  { settings, auth, observe }: AdmissionContext,
  request: GatewayRequest,
  { method, path, headers }: GatewayRequest,
  cookies: readonly string[],
  rules: readonly Rule[],
): Promise<CallerIdentification> {
  const token = CREDENTIALS.exec(request.headers.authorization ?? '')?.[1]
  // Made-up tokens must not reach the provider without a limit.
  const bringer: TokenClient = {
    owner: network(request.observed.address),
    count: () => auth.rateLimit.take('ticket', request),
  }
  const found =
    token === undefined
      ? await refuseMalformed(bringer)
      : await runInRequest(request.observed, () => auth.bearers.identify(token, audiencesOf(settings, rules), bringer))
  if (found === 'limited') return { cookies, failedToken: true, isLimited: true }
  if ('who' in found) {
    const reidentify = async () => {
      const { bearers, rules, settings } = auth.currentPolicy()
      const matching = rulesForRequest(rules, { method, path, headers }, settings.BASE_URL)
      if (token === undefined || !matching[0]?.bearer) return undefined
      const latest = await bearers.reidentify(token, audiencesOf(settings, matching))
      return 'who' in latest ? latest : undefined
    }
    return { bearer: found, reidentify, cookies }
  }
  const { refused: reason, detail } = found
  observe.report('token_refused', { ...requestFields(request), reason, ...(detail !== undefined && { detail }) })
  return { cookies, failedToken: true }
}

async function refuseMalformed({ count }: TokenClient): Promise<RefusedToken | 'limited'> {
  return (await count()) ? { refused: 'form' } : 'limited'
}

// The rules.

/** Public pages admit visitors too. A signed-in user is known there as well. */
export function applyRules(
  context: AdmissionContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): Admission {
  const { auth, observe, settings } = context
  const { rules } = auth
  const { method, path } = request
  const caller = callerOf(identification)
  const who = caller?.who
  const shadow = shadowDecision(rules, request, who, settings.BASE_URL)
  const isShadowed = shadow !== undefined && admits(shadow.rule, who)
  const unmetShadow = isShadowed ? unmetBy(context, request, identification, shadow) : undefined
  if (shadow && (!isShadowed || unmetShadow))
    observe.report('shadow_refused', {
      ...requestFields(request, caller),
      rule: unmetShadow?.rule ?? shadow.rule,
      method,
      path: shownPath(decodedPath(path)),
      role: who?.role,
      ...(unmetShadow && { reason: unmetShadow.code }),
    })
  const decision = decideRequest(rules, request, who, settings.BASE_URL)
  const { rule, problem } = decision
  if (problem) return { ...identification, outcome: 'unreadable', destinationProblem: problem }
  const isFor = admits(rule, who)
  const unmet = isFor && decision.conditions && unmetBy(context, request, identification, decision)
  if (isFor && !unmet) return { ...identification, outcome: 'admitted' }
  const denied = { ...identification, resource: context.resources?.challengeOf(rules.rulesFor(method, path)) }
  if (unmet) return notMet(denied, unmet)
  if (!who && identification.isProviderAway) return { ...denied, outcome: 'unavailable' }
  if (!who) return { ...denied, outcome: 'visitor', ...(rule.keys && { acceptsKey: true as const }) }
  const missing = who.isBearer ? missingScopes(rulesForRequest(rules, request, settings.BASE_URL), who) : []
  return {
    ...denied,
    outcome: 'refused',
    ...(!isClosed(rule) && { refusedBy: rule }),
    ...(missing.length > 0 && { missingScopes: missing }),
  }
}

function unmetBy(
  { settings, now }: AdmissionContext,
  request: GatewayRequest,
  identification: CallerIdentification,
  { conditions }: Decision,
): Unmet | undefined {
  const at = now()
  return conditions && unmetOf(conditions, new RequestCircumstances(request, identification, settings.BASE_URL, at), at)
}

function notMet(identification: CallerIdentification, unmet: Unmet): Admission {
  const { rule: refusedBy } = unmet
  // Nobody signs in with a key.
  if (unmet.code === 'step_up' && identification.bearer?.who.keyKind)
    return { ...identification, outcome: 'refused', refusedBy, condition: 'step_up_failed' }
  if (unmet.code === 'step_up') return { ...identification, outcome: 'step_up', refusedBy, demands: unmet.demands }
  return { ...identification, outcome: 'refused', refusedBy, condition: unmet.code }
}

function missingScopes(rules: readonly Rule[], who: Subject): string[] {
  return rules.some(rule => lacksScopes(rule, who)) ? scopesOf(rules) : []
}

/**
 * Counts tickets that failed. A visitor who looks at a page is always led to the login page, and a part of a page counts for
 * nothing: the ticket of a session that has ended comes with each of its images, and must not shut out the rest of the
 * office. Tickets are counted after the store was asked, because others behind the same address may have sessions that this
 * process has not cached.
 */
export function limitFailures(
  { auth }: AdmissionContext,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<Admission> {
  const { failedTicket, failedToken, isLimited, outcome } = admission
  if (outcome !== 'visitor') return admission
  if (isLimited) return { ...admission, outcome: 'limited' }
  const isPageView = request.method === 'GET' && isForPage(request)
  if (!failedTicket || failedToken || isPageView || isPartOfPage(request.headers)) return admission
  return andThen(auth.rateLimit.admits('ticket', request), isWithinLimit =>
    isWithinLimit ? admission : { ...admission, outcome: 'limited' },
  )
}
