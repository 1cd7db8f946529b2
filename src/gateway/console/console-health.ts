// GET /_menshen/console/health: what the doctor finds, for developers.
import { healthPage } from '../../pages/console/health-page.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'

export async function showHealth(
  context: GatewayContext,
  visit: Visit,
  { cookies }: SignedInCaller,
): Promise<Response> {
  return pageAnswer(context, healthPage(languageOf(context, visit), await context.examine()), { cookies })
}
