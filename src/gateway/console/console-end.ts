// Ending a session or all of its user from the console: GET /_menshen/console/sessions/end asks, POST /_menshen/console/end does.
import { OWN_PATHS } from '../../own-paths.ts'
import { endQuestionPage } from '../../pages/console/end-question-page.ts'
import { loadDeviceNames } from '../../pages/device-name.ts'
import { shortKey } from '../../session/session-facts.ts'
import type { Listed } from '../../session/session-listing.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { foreignAnswer, pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { languageOf } from '../language/language-of.ts'
import { type Ended, endedCookie } from '../people/ended-cookie.ts'
import { viewerOf } from './viewer.ts'

export async function askToEnd(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { loaded, cookies } = caller
  const query = new URLSearchParams(visit.search)
  const session = await getListed(context, query.get('session'))
  if (!session) return backToList(context, visit, cookies, { ended: 0 })
  const deviceName = await loadDeviceNames()
  const page = endQuestionPage(languageOf(context, visit), {
    viewer: viewerOf(caller),
    session,
    deviceName,
    isOwn: session.key === loaded.key,
    all: query.has('all'),
  })
  return pageAnswer(context, page, { cookies })
}

export async function endSession(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  const { sessions, settings, providers, report } = context
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return foreignAnswer(context, visit, cookies)
  const listed = await getListed(context, form.get('session'))
  if (!listed) return backToList(context, visit, cookies, { ended: 0 })
  const { key, publicPart } = listed
  const ended = form.has('all') ? (await sessions.endAllLike(key)).count : Number(await sessions.end(key))
  if (ended > 0)
    report('session_ended', {
      ...whoAsks(context, visit),
      session: shortKey(key),
      ...(publicPart && { user: publicPart.username, provider: publicPart.provider ?? providers.main.plan.id }),
      by: 'developer',
      byUser: loaded.session.userInfo.username,
      ended,
    })
  return backToList(context, visit, cookies, { ended, ...(publicPart && { user: publicPart.username }) })
}

/** Leases and attempts live in the same store, and have other keys. */
export function isSessionKey(key: string): boolean {
  return /^[\w-]{43}$/.test(key)
}

async function getListed(
  { sessions }: Pick<GatewayContext, 'sessions'>,
  key: string | null,
): Promise<Listed | undefined> {
  return key && isSessionKey(key) ? sessions.getListed(key) : undefined
}

function backToList(context: GatewayContext, visit: Visit, cookies: readonly string[], ended: Ended): Response {
  const said = endedCookie(context.cookies, ended)
  return redirectAnswer(context, visit.method, OWN_PATHS.consoleSessions, [...cookies, said])
}
