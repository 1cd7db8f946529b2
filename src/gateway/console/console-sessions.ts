// GET /_menshen/console/sessions: who is signed in, the newest first, or everything of one user name.

import { sessionsPage } from '../../pages/console/sessions-page.ts'
import { storeAwayPage } from '../../pages/console/store-away-page.ts'
import { loadDeviceNames } from '../../pages/device-name.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { clearCookie } from '../http/cookies.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { readEnded } from '../people/ended-cookie.ts'
import { ifReachable } from '../people/if-reachable.ts'
import { viewerOf } from './viewer.ts'

const PAGE_SIZE = 50

export async function showSessions(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { loaded, cookies } = caller
  const words = languageOf(context, visit)
  const query = new URLSearchParams(visit.search)
  const username = query.get('username')?.trim() ?? ''
  const after = query.get('after') ?? ''
  const [found, deviceName] = await Promise.all([
    ifReachable(context, visit, find(context, username, after)),
    loadDeviceNames(),
  ])
  if (!found) return pageAnswer(context, storeAwayPage(words, viewerOf(caller), 'sessions'), { status: 503, cookies })
  const ended = readEnded(context.cookies, visit.headers.cookie)
  const page = sessionsPage(words, {
    ...found,
    viewer: viewerOf(caller),
    now: context.now(),
    ownKey: loaded.key,
    providerNames: context.providers.names,
    deviceName,
    username,
    isFirst: after === '',
    ended,
  })
  return pageAnswer(context, page, { cookies: ended ? [...cookies, clearCookie(context.cookies.ended)] : cookies })
}

async function find({ sessions }: Pick<GatewayContext, 'sessions'>, username: string, after: string) {
  const limit = PAGE_SIZE
  if (username) return sessions.list({ username, limit, ...(after && { after }) })
  const [page, count] = await Promise.all([
    sessions.newest({ limit, ...(after && { before: after }) }),
    sessions.count(),
  ])
  return { ...page, count }
}
