// What the user gets when something of ours failed: a page (or JSON for a script), never a stack.
import { type ErrorCode, factsOf, MenshenError } from '../../errors.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer } from './page-answers.ts'
import type { Visit } from './request.ts'
import { whoAsks } from './who-asks.ts'

/** What may be over in a moment. Of the provider's these are about tokens that machines bring. */
const PASSING = new Set<ErrorCode>(['store_unavailable', 'provider_unreachable', 'provider_answer', 'provider_busy'])
const RETRY_AFTER = { 'retry-after': '5' }

export function failureAnswer(context: GatewayContext, visit: Visit, error: unknown): Response {
  const { method, path, observed } = visit
  const { user } = observed
  context.report('request_failed', {
    ...factsOf(error),
    ...whoAsks(context, visit),
    ...(user === undefined ? {} : { user }),
    method,
    path,
  })
  observed.outcome = 'error'
  const unavailable = error instanceof MenshenError && PASSING.has(error.code)
  return unavailable
    ? errorAnswer(context, visit, 'unavailable', { headers: RETRY_AFTER })
    : errorAnswer(context, visit, 'broken')
}
