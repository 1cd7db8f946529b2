// Who is at the door: finds the session of a request, refreshed if due, and asks the rules.
import type { Opened } from '../session/opened.ts'
import { allows } from '../session/rules.ts'
import { clearCookie, readCookie, setCookie } from './cookies.ts'
import type { House } from './house.ts'
import type { Visit } from './request.ts'

export type Admission = Known | { readonly outcome: 'visitor'; readonly cookies: readonly string[] }

interface Known {
  readonly outcome: 'refused' | 'admitted'
  readonly opened: Opened
  /** What the answer has to set. */
  readonly cookies: readonly string[]
}

export type Admitted = Pick<Known, 'opened' | 'cookies'>

const NO_COOKIES: readonly string[] = []
const VISITOR: Admission = { outcome: 'visitor', cookies: NO_COOKIES }

export async function admit(house: House, { path, headers }: Visit): Promise<Admission> {
  const ticket = readCookie(headers.cookie, house.cookies.session)
  if (!ticket) return VISITOR
  const current = house.sessions.glance(ticket) ?? (await house.sessions.current(ticket))
  if (!current) return VISITOR
  if (current === 'ended') return { outcome: 'visitor', cookies: [clearCookie(house.cookies.session)] }
  const outcome = allows(house.rules, current.session.userRole, path) ? 'admitted' : 'refused'
  return { outcome, opened: current, cookies: renewedCookie(house, ticket, current) }
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
