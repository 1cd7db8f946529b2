// GET /_menshen/console: what is wrong now, and the plots.
import { OWN_PATHS } from '../../own-paths.ts'
import { overviewPage } from '../../pages/console/overview-page.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { overviewView, rangeOf } from './overview-view.ts'
import { viewerOf } from './viewer.ts'

export async function showOverview(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { cookies } = caller
  // The list of sessions was here once, and may be among somebody's bookmarks.
  if (new URLSearchParams(visit.search).has('username'))
    return redirectAnswer(context, visit.method, OWN_PATHS.consoleSessions + visit.search, cookies)
  const view = await overviewView(context, rangeOf(visit))
  return pageAnswer(context, overviewPage(languageOf(context, visit), viewerOf(caller), view), { cookies })
}
