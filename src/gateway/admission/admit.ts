// Who is at the door: finds the session of a request, refreshed if due, and asks the rules.

import { readablePath } from '../../access/canonical-path.ts'
import { admits } from '../../access/rules.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie, readCookie, setCookie } from '../http/cookies.ts'
import { andThen, type MaybePromise } from '../http/maybe-promise.ts'
import type { Visit } from '../http/request.ts'

export interface Caller {
  /** Absent for a visitor. */
  readonly loaded?: LoadedSession
  /** What the answer has to set. */
  readonly cookies: readonly string[]
  /** A ticket was shown that leads nowhere. */
  readonly failedTicket?: true
}

/** Of somebody who is signed in. */
export type SignedInCaller = Caller & { readonly loaded: LoadedSession }

export interface Admission extends Caller {
  readonly outcome: 'visitor' | 'refused' | 'admitted'
}

const NO_COOKIES: readonly string[] = []
const NOBODY: Caller = { cookies: NO_COOKIES }
const FAILED: Caller = { cookies: NO_COOKIES, failedTicket: true }

export function admit(context: GatewayContext, visit: Visit): MaybePromise<Admission> {
  return andThen(identify(context, visit), caller => judge(context, visit.method, visit.path, caller))
}

export function identify(context: GatewayContext, { headers }: Pick<Visit, 'headers'>): MaybePromise<Caller> {
  const ticket = readCookie(headers.cookie, context.cookies.session)
  if (!ticket) return NOBODY
  const loaded = context.sessions.getCached(ticket)
  return loaded ? signedIn(context, ticket, loaded) : identifyAnew(context, ticket)
}

async function identifyAnew(context: GatewayContext, ticket: string): Promise<Caller> {
  const current = await context.sessions.getFresh(ticket)
  if (!current) return FAILED
  if (current === 'ended') return { cookies: [clearCookie(context.cookies.session)] }
  return signedIn(context, ticket, current)
}

function signedIn(context: GatewayContext, ticket: string, loaded: LoadedSession): Caller {
  return { loaded, cookies: renewedCookie(context, ticket, loaded) }
}

/** Public pages admit visitors too, and know who is there if somebody is signed in. */
export function judge(context: GatewayContext, method: string, canonical: string, caller: Caller): Admission {
  const { loaded } = caller
  const path = readablePath(canonical)
  const role = loaded?.session.userRole
  const shadow = context.rules.shadowRuleFor(method, path, role)
  if (shadow && !admits(shadow, role)) context.report('shadow_refused', { rule: shadow, method, path, role })
  if (admits(context.rules.ruleFor(method, path, role), role)) return { ...caller, outcome: 'admitted' }
  return { ...caller, outcome: loaded ? 'refused' : 'visitor' }
}

export function sessionCookie(context: GatewayContext, ticket: string, { expiresAt }: LoadedSession): string {
  return setCookie(context.cookies.session, ticket, Math.max(0, Math.round((expiresAt - context.now()) / 1000)))
}

/**
 * A refresh gives the cookie a longer life, and the answer that brings it can get lost. The old one lives no longer than
 * the refresh lead, so for that long every answer brings it again.
 */
function renewedCookie(context: GatewayContext, ticket: string, loaded: LoadedSession): readonly string[] {
  const { tokenIssuedAt } = loaded.session
  const recent = context.now() - tokenIssuedAt <= context.settings.REFRESH_LEAD_SECONDS * 1000
  return recent && tokenIssuedAt !== loaded.signedInAt ? [sessionCookie(context, ticket, loaded)] : NO_COOKIES
}
