// GET /_menshen/console/audit: what happened, the newest first.
import { auditPage } from '../../pages/console/audit-page.ts'
import { loadDeviceNames } from '../../pages/device-name.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { ifReachable } from '../people/if-reachable.ts'
import { filterOf, readQuestion } from './audit-question.ts'
import { viewerOf } from './viewer.ts'

const PAGE_SIZE = 50

export async function showAudit(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const question = readQuestion(visit)
  const { before } = question
  const query = { ...filterOf(question), ...(before && { before }), limit: PAGE_SIZE }
  const page = await ifReachable(context, visit, context.auditTrail.find(query))
  const view = {
    viewer: viewerOf(caller),
    question,
    page,
    pageSize: PAGE_SIZE,
    keep: context.settings.AUDIT_KEEP,
    names: { providers: context.providers.names, deviceName: await loadDeviceNames() },
  }
  return pageAnswer(context, auditPage(languageOf(context, visit), view), {
    cookies: caller.cookies,
    ...(page === undefined && { status: 503 }),
  })
}
