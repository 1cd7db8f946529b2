// Who is behind a request, for reports: without it, one client's repeats would hide another's first.

import type { LoadedSession } from '../../session/session-cache.ts'
import { sessionFacts, userFacts } from '../../session/session-facts.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

/** Whoever sends more than any browser does wants to fill our log. */
const LONGEST_USER_AGENT = 256

/** Somebody who is signed in, or just was. */
type Known = Pick<LoadedSession, 'session'> & Partial<Pick<LoadedSession, 'key'>>

export function whoAsks(
  { settings }: Pick<GatewayContext, 'settings'>,
  { observed, ...visit }: Pick<Visit, 'address' | 'headers' | 'observed'>,
  known?: Known,
) {
  const { 'user-agent': userAgent } = visit.headers
  return {
    requestId: observed.requestId,
    address: clientAddress(settings.TRUSTED_PROXIES, visit),
    ...(userAgent === undefined ? {} : { userAgent: userAgent.slice(0, LONGEST_USER_AGENT) }),
    ...(known && factsOf(known)),
  }
}

function factsOf({ key, session }: Known) {
  return key === undefined ? userFacts(session) : sessionFacts({ key, session })
}
