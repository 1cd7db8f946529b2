// Our own routes for signed-in users: everyone else is sent to the login page, or gets a refusal.

import { type OwnAnswer, redirectAnswer, tooManyAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Handler } from '../http/route-table.ts'
import type { Admission, SignedInCaller } from '../identify/admission.ts'
import { admit } from '../identify/admit.ts'
import { isByScript, isForPage, isFromOwnOrigin } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { SignInContext } from './context.ts'
import { loginAnswer, refusedAnswer } from './denial.ts'

export type GuardedHandler<Context> = (
  context: Context,
  request: GatewayRequest,
  caller: SignedInCaller,
  form: URLSearchParams,
) => Promise<OwnAnswer>

/** For signed-in users whom the rules admit. */
export function guarded<Context extends SignInContext>(
  handler: GuardedHandler<Context>,
  admitCaller: (context: Context, request: GatewayRequest) => MaybePromise<Admission> = admit,
): Handler<Context> {
  return async (context, request, form) => {
    const { settings, pages } = context
    const admission = await admitCaller(context, request)
    const { outcome, loaded, cookies } = admission
    if (outcome === 'limited') return tooManyAnswer(pages, request)
    if (!loaded && !admission.isProviderUnavailable && isOwnForm(request, settings.BASE_URL))
      return redirectAnswer(pages, request.method, pages.paths.login, { cookies, outcome: 'visitor' })
    if (!loaded) return loginAnswer(context, request, admission)
    if (outcome === 'refused') return refusedAnswer(context, request, admission)
    return handler(context, request, { ...admission, loaded }, form)
  }
}

/** Whether a user pressed a button on one of our pages after the session had ended. */
function isOwnForm(request: GatewayRequest, ownOrigin: string): boolean {
  return request.method === 'POST' && isForPage(request) && !isByScript(request) && isFromOwnOrigin(request, ownOrigin)
}
