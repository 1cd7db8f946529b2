// Who is at the door: finds the session of a request, refreshed if due, and asks the rules.

import { readablePath } from '../../access/canonical-path.ts'
import type { Who } from '../../access/roles.ts'
import { admits, lacksScopes } from '../../access/rules.ts'
import { during } from '../../observe/observed-request.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { Rule } from '../../settings/config/config-file.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import { andThen, type MaybePromise } from '../http/maybe-promise.ts'
import { isForPage, isPartOfPage, type Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import type { Identified } from '../identity/identity-headers.ts'
import { withBearer } from './bearer.ts'
import type { BearerCaller } from './bearer-callers.ts'

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
export function admit(context: GatewayContext, visit: Visit, asked: Visit = visit): MaybePromise<Admission> {
  const caller = identify(context, visit)
  return caller instanceof Promise
    ? caller.then(known => admitCaller(context, visit, asked, known))
    : admitCaller(context, visit, asked, caller)
}

function admitCaller(context: GatewayContext, visit: Visit, asked: Visit, caller: Caller): MaybePromise<Admission> {
  if (caller.loaded) return note(context, asked, judge(context, asked, caller))
  return andThen(admitOther(context, visit, asked, caller), admission => note(context, asked, admission))
}

/** For those who observe. */
export function note(context: GatewayContext, visit: Visit, admission: Admission): Admission {
  const { outcome } = admission
  const { observed, method, path } = visit
  observed.outcome = outcome === 'limited' ? 'refused' : outcome
  const known = identified(admission)
  if (known) observed.user = known.session.userInfo.username
  if (outcome === 'refused')
    context.report('refused', { ...whoAsks(context, visit, known), method, path, role: known?.who.role })
  return admission
}

/** A machine or a visitor. */
function admitOther(context: GatewayContext, visit: Visit, asked: Visit, caller: Caller): MaybePromise<Admission> {
  return andThen(withBearer(context, visit, asked, caller), caller =>
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
  visit: Visit,
  admission: Admission,
): MaybePromise<Admission> {
  const { failedTicket, failedToken, isLimited, outcome } = admission
  if (outcome !== 'visitor') return admission
  if (isLimited) return { ...admission, outcome: 'limited' }
  const isPageView = visit.method === 'GET' && isForPage(visit)
  if (!failedTicket || failedToken || isPageView || isPartOfPage(visit.headers)) return admission
  return andThen(rateLimit.admits('ticket', visit), isWithinLimit =>
    isWithinLimit ? admission : { ...admission, outcome: 'limited' },
  )
}

/** Whose session it is, refreshed if due, wherever the request wants to go. */
export function identify(context: GatewayContext, visit: Pick<Visit, 'headers' | 'observed'>): MaybePromise<Caller> {
  const { headers, observed } = visit
  const ticket = readCookie(headers.cookie, context.cookies.session)
  if (!ticket) return NOBODY
  const cached = context.sessions.getCached(ticket)
  observed.isAtHand = cached !== undefined
  const loaded = cached ?? context.sessions.openAtOnce(ticket)
  return loaded ? signedIn(context, headers, ticket, loaded) : identifyAnew(context, visit, ticket)
}

async function identifyAnew(
  context: GatewayContext,
  { headers, observed }: Pick<Visit, 'headers' | 'observed'>,
  ticket: string,
): Promise<Caller> {
  const { sessions, measure } = context
  const current = await during(observed, () => measure('session', 'find', () => sessions.getFresh(ticket)))
  if (!current) return FAILED
  if (current === 'ended') return { cookies: [clearCookie(context.cookies.session)] }
  return signedIn(context, headers, ticket, current)
}

function signedIn(context: GatewayContext, headers: Visit['headers'], ticket: string, loaded: LoadedSession): Caller {
  context.lostCookies.sessionSeen(loaded.key)
  const cookies =
    isRenewed(context, loaded) && !isPartOfPage(headers) ? [sessionCookie(context, ticket, loaded)] : NO_COOKIES
  return { loaded, cookies }
}

/** Public pages admit visitors too, and know who is there if somebody is signed in. */
function judge(context: GatewayContext, visit: Visit, caller: Caller): Admission {
  const { rules, report } = context
  const { method } = visit
  const path = readablePath(visit.path)
  const known = identified(caller)
  const who = known?.who
  const shadow = rules.shadowRuleFor(method, path, who)
  if (shadow && !admits(shadow, who))
    report('shadow_refused', { ...whoAsks(context, visit, known), rule: shadow, method, path, role: who?.role })
  const rule = rules.ruleFor(method, path, who)
  if (admits(rule, who)) return { ...caller, outcome: 'admitted' }
  if (!who) return { ...caller, outcome: 'visitor' }
  const missing = who.isBearer ? missingScopes(rules.rulesFor(method, path), who) : []
  return { ...caller, outcome: 'refused', refusedBy: rule, ...(missing.length > 0 && { missingScopes: missing }) }
}

function missingScopes(rules: readonly Rule[], who: Who): string[] {
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
