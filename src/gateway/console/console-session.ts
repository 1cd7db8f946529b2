// GET /_menshen/console/session: one session, alive or ended, and what the audit trail tells of it.
import { type SessionView, sessionPage } from '../../pages/console/session-page.ts'
import { storeAwayPage } from '../../pages/console/store-away-page.ts'
import { loadDeviceNames } from '../../pages/device-name.ts'
import { shortKey } from '../../session/session-facts.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { ifReachable } from '../people/if-reachable.ts'
import { isSessionKey } from './console-end.ts'
import { viewerOf } from './viewer.ts'

const MOST_EVENTS = 50

export async function showSession(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { loaded, cookies } = caller
  const key = new URLSearchParams(visit.search).get('key') ?? ''
  if (!isSessionKey(key)) return errorAnswer(context, visit, 'not_found', { cookies })
  const words = languageOf(context, visit)
  const found = await ifReachable(context, visit, find(context, key))
  if (!found) return pageAnswer(context, storeAwayPage(words, viewerOf(caller), 'sessions'), { status: 503, cookies })
  // Of a session that nobody ever had there is nothing to tell.
  if (!found.session && found.events.length === 0) return errorAnswer(context, visit, 'not_found', { cookies })
  const names = { providers: context.providers.names, deviceName: await loadDeviceNames() }
  const page = sessionPage(words, { ...found, viewer: viewerOf(caller), key, isOwn: key === loaded.key, names })
  return pageAnswer(context, page, { cookies })
}

/** The trail knows a session by its short key. */
async function find(
  { sessions, auditTrail }: Pick<GatewayContext, 'sessions' | 'auditTrail'>,
  key: string,
): Promise<Pick<SessionView, 'session' | 'events' | 'areMore'>> {
  const [session, { events, next }] = await Promise.all([
    sessions.getListed(key),
    auditTrail.find({ session: shortKey(key), limit: MOST_EVENTS }),
  ])
  return { session, events, areMore: next !== undefined && events.length === MOST_EVENTS }
}
