// Who is asking, and may they: the session of a ticket, refreshed if due, or a bearer token; then the rules.

import type { Subject } from '../access/roles.ts'
import { admits, isClosed, lacksScopes } from '../access/rules.ts'
import { decodedPath, shownPath } from '../access/spellings.ts'
import type { Rule } from '../config/config-file.ts'
import { network } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import { requestFields, runInRequest } from '../observe/observed-request.ts'
import type { OwnPaths } from '../paths.ts'
import { callerOf, type Identification } from '../proxy/proxy-request.ts'
import type { LoadedSession } from '../session/session-cache.ts'
import { bringsToken, isForPage, isPartOfPage } from '../util/fetch-metadata.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import { audiencesOf, type BearerCaller, type RefusedToken, type TokenClient } from './bearer-callers.ts'
import type { Auth, Observe } from './context.ts'
import { clearCookie, readCookie, setCookie } from './cookies.ts'
import type { GatewayRequest } from './request.ts'

/** What identification and the rules need. */
export interface AdmissionContext {
  readonly settings: Settings
  readonly paths: OwnPaths
  readonly now: () => number
  readonly auth: Auth
  readonly observe: Observe
}

/** The caller, or why there is none. */
export interface CallerIdentification extends Identification {
  readonly bearer?: BearerCaller
  readonly reidentify?: () => Promise<BearerCaller | undefined>
  /** The ticket opens no session. */
  readonly failedTicket?: true
  /** The token is not valid. It was counted before the provider was asked about it. */
  readonly failedToken?: true
  /** The address has brought too many tokens: the provider was not asked about this one. */
  readonly isLimited?: true
}

/** The identification of a signed-in user. */
export type SignedInCaller = CallerIdentification & { readonly loaded: LoadedSession }

export interface Admission extends CallerIdentification {
  /** `limited`: a visitor whose address has shown too many tickets or tokens that are not valid. */
  readonly outcome: 'visitor' | 'limited' | 'refused' | 'admitted'
  /** The rule that refused. */
  readonly refusedBy?: Rule
  /** All scopes that the rules want, if the token of a machine lacks one of them. */
  readonly missingScopes?: readonly string[]
}

const NO_COOKIES: readonly string[] = []
const NOBODY: CallerIdentification = { cookies: NO_COOKIES }
const FAILED_TICKET: CallerIdentification = { cookies: NO_COOKIES, failedTicket: true }

// The session of a ticket.

/** Whose session it is, refreshed if due, whatever the request asks for. Without a promise if the session is cached. */
export function identify(
  context: AdmissionContext,
  request: Pick<GatewayRequest, 'headers' | 'observed'>,
): MaybePromise<CallerIdentification> {
  const { cookies, sessions } = context.auth
  const { headers, observed } = request
  const ticket = readCookie(headers.cookie, cookies.session)
  if (!ticket) return NOBODY
  const cached = sessions.getCached(ticket)
  observed.cacheHit = cached !== undefined
  const loaded = cached ?? sessions.loadSync(ticket)
  return loaded ? signedIn(context, headers, ticket, loaded) : loadAndRefresh(context, request, ticket)
}

async function loadAndRefresh(
  context: AdmissionContext,
  { headers, observed }: Pick<GatewayRequest, 'headers' | 'observed'>,
  ticket: string,
): Promise<CallerIdentification> {
  const { auth, observe } = context
  const find = () => observe.measure('session', 'find', () => auth.sessions.getFresh(ticket))
  const current = await runInRequest(observed, find)
  if (!current) return FAILED_TICKET
  if (current === 'ended') return { cookies: [clearCookie(auth.cookies.session)] }
  return signedIn(context, headers, ticket, current)
}

function signedIn(
  { settings, now, auth }: AdmissionContext,
  headers: GatewayRequest['headers'],
  ticket: string,
  loaded: LoadedSession,
): CallerIdentification {
  auth.lostCookies.sessionSeen(loaded.key)
  const isRenewed = wasRefreshed(loaded, settings.REFRESH_LEAD_SECONDS, now()) && !isPartOfPage(headers)
  const cookies = isRenewed ? [sessionCookie(auth.cookies.session, ticket, loaded, now())] : NO_COOKIES
  return { loaded, ticket, cookies }
}

/**
 * A refresh gives the cookie a longer life, and the answer that brings it can get lost. The old cookie lives no longer than
 * the refresh lead, so for that long every answer brings the new one.
 */
function wasRefreshed({ session, signedInAt }: LoadedSession, leadSeconds: number, now: number): boolean {
  return now - session.tokenIssuedAt <= leadSeconds * 1000 && session.tokenIssuedAt !== signedInAt
}

export function sessionCookie(name: string, ticket: string, { expiresAt }: LoadedSession, now: number): string {
  return setCookie(name, ticket, Math.max(0, Math.round((expiresAt - now) / 1000)))
}

// The bearer token of a request without a session.

/** RFC 6750, 2.1. */
const CREDENTIALS = /^bearer +([\w.~+/-]+=*)$/i

/** A token counts only where the rule for the path says so. Everywhere else `Authorization` is for the application. */
export function identifyByToken(
  context: AdmissionContext,
  request: GatewayRequest,
  { method, path }: GatewayRequest,
  identification: CallerIdentification,
): MaybePromise<CallerIdentification> {
  const { rules } = context.auth
  if (!rules.hasBearer || !bringsToken(request.headers)) return identification
  const matching = rules.rulesFor(method, path)
  return matching[0]?.bearer
    ? identifyToken(context, request, { method, path }, identification.cookies, matching)
    : identification
}

async function identifyToken(
  { settings, auth, observe }: AdmissionContext,
  request: GatewayRequest,
  { method, path }: Pick<GatewayRequest, 'method' | 'path'>,
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
      const matching = rules.rulesFor(method, path)
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
  { auth, observe }: AdmissionContext,
  request: GatewayRequest,
  identification: CallerIdentification,
): Admission {
  const { rules } = auth
  const { method, path } = request
  const caller = callerOf(identification)
  const who = caller?.who
  const shadow = rules.shadowRuleFor(method, path, who)
  if (shadow && !admits(shadow, who))
    observe.report('shadow_refused', {
      ...requestFields(request, caller),
      rule: shadow,
      method,
      path: shownPath(decodedPath(path)),
      role: who?.role,
    })
  const rule = rules.ruleFor(method, path, who)
  if (admits(rule, who)) return { ...identification, outcome: 'admitted' }
  if (!who) return { ...identification, outcome: 'visitor' }
  const missing = who.isBearer ? missingScopes(rules.rulesFor(method, path), who) : []
  return {
    ...identification,
    outcome: 'refused',
    ...(!isClosed(rule) && { refusedBy: rule }),
    ...(missing.length > 0 && { missingScopes: missing }),
  }
}

function missingScopes(rules: readonly Rule[], who: Subject): string[] {
  if (!rules.some(rule => lacksScopes(rule, who))) return []
  return [...new Set(rules.flatMap(({ scopes = [] }) => scopes))]
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
