// The answer to a request that is not admitted, by the outcome of its admission.

import { errorAnswer, type ResponseAnswer, tooManyAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Admission } from '../identify/admission.ts'
import type { SignInContext } from '../sign-in/context.ts'
import { loginAnswer, refusedAnswer } from '../sign-in/denial.ts'
import { stepUpAnswer } from '../sign-in/step-up.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'

export function denialAnswer(
  context: SignInContext,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<ResponseAnswer> {
  switch (admission.outcome) {
    case 'visitor':
    case 'unavailable':
      return loginAnswer(context, request, admission)
    case 'step_up':
      return stepUpAnswer(context, request, admission)
    case 'limited':
      return tooManyAnswer(context.pages, request)
    case 'unreadable':
      return errorAnswer(context.pages, request, 'bad_request', { outcome: 'refused' })
    default:
      return refusedAnswer(context, request, admission)
  }
}
