// GET /_menshen/console/sessions: who is signed in; POST /_menshen/console/end ends one session, or all of a user.

import { OWN_PATHS } from '../../own-paths.ts'
import { sessionsPage } from '../../pages/console/sessions-page.ts'
import { shortKey } from '../../session/session-facts.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { foreignAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { languageOf } from '../language/language-of.ts'

const PAGE_SIZE = 50

export async function showSessions(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
): Promise<Response> {
  const query = new URLSearchParams(visit.search)
  const username = query.get('username')?.trim() ?? ''
  const after = query.get('after')
  const { sessions, next } = await context.sessions.list({
    limit: PAGE_SIZE,
    ...(username && { username }),
    ...(after && { after }),
  })
  const view = {
    sessions,
    ownKey: loaded.key,
    providerNames: context.providers.names,
    username,
    next,
  }
  return pageAnswer(context, sessionsPage(languageOf(context, visit), view), { cookies })
}

export async function endSession(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  if (!isFromOwnOrigin(visit, context.settings.BASE_URL)) return foreignAnswer(context, visit, cookies)
  const key = form.get('session') ?? ''
  // Only what looks like a session's key: leases and attempts live in the same store.
  if (/^[\w-]{43}$/.test(key)) {
    const whose = (await context.sessions.getListed(key))?.publicPart
    const ended = form.has('all')
      ? (await context.sessions.endAllLike(key)).count
      : Number(await context.sessions.end(key))
    if (ended > 0)
      context.report('session_ended', {
        ...whoAsks(context, visit),
        session: shortKey(key),
        ...(whose && { user: whose.username, provider: whose.provider ?? context.providers.main.plan.id }),
        by: 'developer',
        byUser: loaded.session.userInfo.username,
        ended,
      })
  }
  return redirectAnswer(context, visit.method, OWN_PATHS.consoleSessions, cookies)
}
