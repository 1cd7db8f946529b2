// POST /_menshen/account/end: a user ends another device of their own, or all others. Nobody else's session can be meant.
import { OWN_PATHS } from '../../own-paths.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import { shortKey } from '../../session/session-facts.ts'
import { userIdOf } from '../../session/session-record.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { foreignAnswer, redirectAnswer } from '../http/page-answers.ts'
import { isFromOwnOrigin } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { endedCookie } from '../people/ended-cookie.ts'

export async function endDevices(
  context: GatewayContext,
  visit: Visit,
  { loaded, cookies }: SignedInCaller,
  form: URLSearchParams,
): Promise<Response> {
  const { settings, report } = context
  if (!isFromOwnOrigin(visit, settings.BASE_URL)) return foreignAnswer(context, visit, cookies)
  const key = form.get('session') ?? ''
  const ended = form.has('others') ? await endOthers(context, loaded) : await endOne(context, loaded, key)
  // Whose they were is the user; which one it was is not the session that asks.
  const whose = whoAsks(context, visit, { session: loaded.session })
  if (ended > 0)
    report('session_ended', { ...whose, ...(form.has('others') ? {} : { session: shortKey(key) }), by: 'user', ended })
  // The same whether there was no such session or it is somebody else's.
  return redirectAnswer(context, visit.method, OWN_PATHS.account, [...cookies, endedCookie(context.cookies, { ended })])
}

async function endOthers({ sessions }: Pick<GatewayContext, 'sessions'>, loaded: LoadedSession): Promise<number> {
  return (await sessions.endOthersOf(userIdOf(loaded.session), loaded.key)).count
}

/** This very session ends by signing out. */
async function endOne(
  { sessions }: Pick<GatewayContext, 'sessions'>,
  loaded: LoadedSession,
  key: string,
): Promise<number> {
  const isOther = /^[\w-]{43}$/.test(key) && key !== loaded.key
  return isOther ? Number(await sessions.endOneOf(userIdOf(loaded.session), key)) : 0
}
