// What somebody gets whom the rules do not admit.
import type { GatewayContext } from '../context.ts'
import { tooMany } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import type { Admission } from './admit.ts'
import { refusedAnswer } from './refused.ts'
import { toLogin } from './visitor.ts'

/** `undefined` for whoever is admitted. */
export function turnedAway(context: GatewayContext, visit: Visit, admission: Admission): Response | undefined {
  const { outcome } = admission
  if (outcome === 'visitor') return toLogin(context, visit, admission)
  if (outcome === 'limited') return tooMany(context, visit)
  return outcome === 'refused' ? refusedAnswer(context, visit, admission) : undefined
}
