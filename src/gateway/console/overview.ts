// GET /_menshen/console: what is wrong now.
import { OWN_PATHS } from '../../own-paths.ts'
import { overviewPage } from '../../pages/console/overview-page.ts'
import { adviceFor } from '../../settings/advice.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer, redirectAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'

export async function showOverview(
  context: GatewayContext,
  visit: Visit,
  { cookies }: SignedInCaller,
): Promise<Response> {
  // The list of sessions was here once, and may be among somebody's bookmarks.
  if (new URLSearchParams(visit.search).has('username'))
    return redirectAnswer(context, visit.method, OWN_PATHS.consoleSessions + visit.search, cookies)
  const plans = context.providers.all.map(({ plan }) => plan)
  const warnings = adviceFor(context.settings, plans).map(({ code }) => code)
  return pageAnswer(context, overviewPage(languageOf(context, visit), { warnings }), { cookies })
}
