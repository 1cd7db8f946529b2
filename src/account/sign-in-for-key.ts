// A personal key outlives the session that creates it. So only a user who has just signed in can create one, not a session that was
// left open or that a script uses.

import { type AuthenticationDemand, demandsKey } from '../access/conditions.ts'
import { readTarget } from '../access/request-path.ts'
import { languageOf, type OwnAnswer, pageAnswer, type ResponseAnswer, redirectAnswer } from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { SignedInCaller } from '../identify/admission.ts'
import { admit } from '../identify/admit.ts'
import { OWN_PATHS } from '../paths.ts'
import type { LoadedSession } from '../session/cache.ts'
import { authenticationOf } from '../session/record.ts'
import { stepUpChallenge } from '../sign-in/challenge.ts'
import type { SignInContext } from '../sign-in/context.ts'
import { loginAnswer } from '../sign-in/denial.ts'
import { startStepUp, stepUp, stepUpPath } from '../sign-in/step-up.ts'
import { signInForKeyPage } from './key-section.ts'

const KEY_MAX_AGE_SECONDS = 600
const KEY_DEMANDS: readonly AuthenticationDemand[] = [{ maxAge: KEY_MAX_AGE_SECONDS }]

/** What keeps a user from creating a key: a sign-in that is too old, or a provider that has not confirmed a new one. */
export function keyObstacle(loaded: LoadedSession, now: number): 'step_up' | 'step_up_failed' | undefined {
  const { time = 0, promptedAt = 0, failed } = authenticationOf(loaded)
  if (now - Math.max(time, promptedAt) <= KEY_MAX_AGE_SECONDS * 1000) return undefined
  return failed === demandsKey(KEY_DEMANDS) ? 'step_up_failed' : 'step_up'
}

/** The answer to the form for a new key. `query` has the fields of the form, for the account page after the sign-in. */
export function keyStepUpAnswer(
  { pages }: SignInContext,
  request: GatewayRequest,
  { cookies }: SignedInCaller,
  query: string,
): ResponseAnswer {
  const path = stepUpPath({ method: request.method, path: request.path + query })
  return pageAnswer(pages, signInForKeyPage(languageOf(pages, request), path, KEY_MAX_AGE_SECONDS / 60), {
    status: 401,
    outcome: 'refused',
    cookies,
    headers: { 'www-authenticate': stepUpChallenge({ cookies, outcome: 'step_up', demands: KEY_DEMANDS }) },
  })
}

/** GET /_menshen/step-up at BASE_URL: signs the user in again for a new key, or for the request that it names. */
export async function stepUpOrKey(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const target = readTarget(new URLSearchParams(request.search).get('path') ?? '')
  if (target?.path !== OWN_PATHS.accountKeys) return stepUp(context, request)
  const admission = await admit(context, request)
  const { loaded } = admission
  if (!loaded) return loginAnswer(context, request, admission)
  const account = OWN_PATHS.account + target.search
  return keyObstacle(loaded, context.now())
    ? startStepUp(context, request, loaded, KEY_DEMANDS, account, { isPrompted: true })
    : redirectAnswer(context.pages, request.method, account)
}
