// Who is at the door: finds the session of a request, refreshed if due, and asks the rules.
import type { Opened } from '../session/opened.ts'
import { admits } from '../session/rules.ts'
import { clearCookie, readCookie, setCookie } from './cookies.ts'
import type { House } from './house.ts'
import { readablePath } from './path.ts'
import type { Visit } from './request.ts'
import { type Soon, whenThere } from './soon.ts'

export interface Identity {
  /** Absent for a visitor. */
  readonly opened?: Opened
  /** What the answer has to set. */
  readonly cookies: readonly string[]
  /** A ticket was shown that leads nowhere. */
  readonly failedTicket?: true
}

/** Of somebody who is signed in. */
export type Known = Identity & { readonly opened: Opened }

export interface Admission extends Identity {
  readonly outcome: 'visitor' | 'refused' | 'admitted'
}

const NO_COOKIES: readonly string[] = []
const NOBODY: Identity = { cookies: NO_COOKIES }
const FAILED: Identity = { cookies: NO_COOKIES, failedTicket: true }

export function admit(house: House, visit: Visit): Soon<Admission> {
  return whenThere(identify(house, visit), identity => judge(house, visit.method, visit.path, identity))
}

export function identify(house: House, { headers }: Pick<Visit, 'headers'>): Soon<Identity> {
  const ticket = readCookie(headers.cookie, house.cookies.session)
  if (!ticket) return NOBODY
  const opened = house.sessions.glance(ticket)
  return opened ? known(house, ticket, opened) : identifyAnew(house, ticket)
}

async function identifyAnew(house: House, ticket: string): Promise<Identity> {
  const current = await house.sessions.current(ticket)
  if (!current) return FAILED
  if (current === 'ended') return { cookies: [clearCookie(house.cookies.session)] }
  return known(house, ticket, current)
}

function known(house: House, ticket: string, opened: Opened): Identity {
  return { opened, cookies: renewedCookie(house, ticket, opened) }
}

/** Public pages admit visitors too, and know who is there if somebody is signed in. */
export function judge(house: House, method: string, canonical: string, identity: Identity): Admission {
  const { opened } = identity
  const path = readablePath(canonical)
  const role = opened?.session.userRole
  const shadow = house.rules.shadowRuleFor(method, path)
  if (shadow && !admits(shadow, role))
    house.log.warn({ rule: shadow, method, path, role }, 'a shadow rule would have refused')
  if (admits(house.rules.ruleFor(method, path, role), role)) return { ...identity, outcome: 'admitted' }
  return { ...identity, outcome: opened ? 'refused' : 'visitor' }
}

export function sessionCookie(house: House, ticket: string, { expiresAt }: Opened): string {
  return setCookie(house.cookies.session, ticket, Math.max(0, Math.round((expiresAt - house.now()) / 1000)))
}

/**
 * A refresh gives the cookie a longer life, and the answer that brings it can get lost. The old one lives no longer than
 * the refresh lead, so for that long every answer brings it again.
 */
function renewedCookie(house: House, ticket: string, opened: Opened): readonly string[] {
  const { tokenIssuedAt } = opened.session
  const recent = house.now() - tokenIssuedAt <= house.settings.REFRESH_LEAD_SECONDS * 1000
  return recent && tokenIssuedAt !== opened.signedInAt ? [sessionCookie(house, ticket, opened)] : NO_COOKIES
}
