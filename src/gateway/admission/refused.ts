// What somebody who is signed in and not allowed gets: who they are, and the way to another account.
import { refusedPage } from '../../pages/refused-page.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, pageAnswer } from '../http/page-answers.ts'
import { isByScript, type Visit } from '../http/request.ts'
import type { Caller } from './admit.ts'
import { INSUFFICIENT } from './bearer.ts'

export function refusedAnswer(context: GatewayContext, visit: Visit, { loaded, bearer, cookies }: Caller): Response {
  if (bearer) return errorAnswer(context, visit, 'refused', { headers: { 'www-authenticate': INSUFFICIENT } })
  if (!loaded || isByScript(visit)) return errorAnswer(context, visit, 'refused', { cookies })
  return pageAnswer(context, refusedPage(context.settings.APP_NAME, loaded.session), { status: 403, cookies })
}
