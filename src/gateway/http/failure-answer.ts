// What the user gets when something of ours failed: a page (or JSON for a script), never a stack.
import { factsOf, MenshenError } from '../../errors.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer } from './page-answers.ts'
import type { Visit } from './request.ts'
import { whoAsks } from './who-asks.ts'

const RETRY_AFTER = { 'retry-after': '5' }

export function failureAnswer(context: GatewayContext, visit: Visit, error: unknown): Response {
  context.report('request_failed', {
    ...factsOf(error),
    ...whoAsks(context, visit),
    method: visit.method,
    path: visit.path,
  })
  const unavailable = error instanceof MenshenError && error.code === 'store_unavailable'
  return unavailable
    ? errorAnswer(context, visit, 'unavailable', { headers: RETRY_AFTER })
    : errorAnswer(context, visit, 'broken')
}
