// What somebody who is signed in and not allowed gets: who they are, and the way to another account.
import { refusedPage } from '../../pages/refused-page.ts'
import { ownPath } from '../../session/return-path.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, pageAnswer } from '../http/page-answers.ts'
import { isByScript, isNavigation, type Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import type { Admission } from './admit.ts'
import { insufficient } from './bearer.ts'

export function refusedAnswer(context: GatewayContext, visit: Visit, admission: Admission): Response {
  const { loaded, bearer, cookies, refusedBy } = admission
  if (bearer)
    return errorAnswer(context, visit, 'refused', { headers: { 'www-authenticate': insufficient(admission) } })
  if (!loaded || isByScript(visit)) return errorAnswer(context, visit, 'refused', { cookies })
  const { settings, providers } = context
  const path = visit.path + visit.search
  const wanted = isNavigation(visit) ? ownPath(path, settings.BASE_URL, providers.callbackPaths) : undefined
  const { requestId } = visit.observed
  const html = refusedPage(languageOf(context, visit), loaded.session, { wanted, requestId, rule: refusedBy })
  return pageAnswer(context, html, { status: 403, cookies })
}
