// A trial sign-in of the doctor: the same way to the provider and back, at the end of which nobody is signed in and the
// doctor is told what came.

import { whatFailed } from '../../doctor/finding.ts'
import { refreshNote, remedyForError, remedyForFailure } from '../../doctor/sign-in-remedy.ts'
import { explainMapping, failedMapping, type Mapping } from '../../doctor/test-sign-ins.ts'
import { errorFields, MenshenError } from '../../errors.ts'
import { phrase } from '../../phrases.ts'
import type { Refusal } from '../../provider/demands.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import type { Provider, SignInCalls } from '../../provider/provider.ts'
import { ATTEMPT_SECONDS, type Attempt } from '../../session/attempts.ts'
import type { GatewayContext } from '../context.ts'
import { readCookie, setCookie } from '../cookies.ts'
import { type GatewayRequest, isNoPage, requestFields } from '../request.ts'
import { errorAnswer, foreignAnswer, noticeAnswer, redirectAnswer, tooMany } from '../respond.ts'

/** GET /_menshen/doctor/sign-in?ticket=…: the address that the doctor has printed. */
export async function startTrial(context: GatewayContext, request: GatewayRequest): Promise<Response> {
  const { trials, providers, attempts, cookies } = context
  if (isNoPage(request)) return foreignAnswer(context, request)
  const ticket = new URLSearchParams(request.search).get('ticket') ?? ''
  const trial = await trials.begin(ticket)
  const provider = trial && providers.get(trial.provider)
  if (!provider) {
    const isWithinLimit = await context.rateLimit.admits('ticket', request)
    return isWithinLimit ? errorAnswer(context, request, 'not_found') : tooMany(context, request)
  }
  const known = readCookie(request.headers.cookie, cookies.attempt)
  // Whatever is enough for others: nobody but this browser may end what it began.
  const plan = { ...provider.plan, stateCheck: 'bound' as const }
  const { browser = '', sent } = await attempts.start(plan, known, undefined, { ticket, show: trial.show })
  try {
    const location = await provider.authorizationUrl(sent)
    return redirectAnswer(context, request.method, location, [setCookie(cookies.attempt, browser, ATTEMPT_SECONDS)])
  } catch (error) {
    return endTrial(context, request, ticket, failureOf(context, provider.plan, error))
  }
}

export interface Returned {
  readonly code: string
  readonly state: string
}

type AskedProvider = SignInCalls & Pick<Provider, 'plan'>

/** Back from the provider. */
export async function finishTrial(
  context: GatewayContext,
  request: GatewayRequest,
  provider: AskedProvider,
  returned: Returned,
  { trial, ...attempt }: Attempt & { readonly trial: NonNullable<Attempt['trial']> },
): Promise<Response> {
  return endTrial(context, request, trial.ticket, await tryMapping(context, provider, returned, attempt, trial.show))
}

/** The provider came back with an error: if that was the end of a trial, the doctor wants to know. */
export async function failTrial(context: GatewayContext, request: GatewayRequest, refusal: Refusal): Promise<void> {
  const { error } = refusal
  const browser = readCookie(request.headers.cookie, context.cookies.attempt)
  const state = new URLSearchParams(request.search).get('state')
  if (!browser || !state) return
  try {
    const begun = await context.attempts.find(browser, state)
    if (!begun?.trial || !(await context.attempts.take(browser, state))) return
    const problem = phrase('came_back_with_error', { error: error.replace(/[^\w.-]/g, '?').slice(0, 60) })
    const cause = await context.providers.get(begun.provider)?.explain(refusal)
    const seen = cause ? phrase('with_cause', { seen: problem, cause: cause.what }) : problem
    const remedy = remedyForError(error, cause)
    await context.trials.finish(begun.trial.ticket, failedMapping(begun.provider ?? '', seen, remedy))
  } catch (failure) {
    context.report('sign_in_failed', {
      ...errorFields(failure),
      ...requestFields(context, request),
      reason: 'callback_error',
    })
  }
}

async function tryMapping(
  context: Pick<GatewayContext, 'roles' | 'settings'>,
  provider: AskedProvider,
  { code, state }: Returned,
  { verifier, nonce, startedAt }: Attempt,
  show: boolean,
): Promise<Mapping> {
  try {
    const tokens = await provider.redeem({ code, state, verifier, nonce, startedAt })
    const mapping = explainMapping(await provider.fetchClaims(tokens, code), provider.plan, context.roles, show)
    const isShort = provider.plan.refreshes && tokens.refreshToken === undefined
    return isShort ? { ...mapping, notes: [refreshNote(provider.plan, tokens.expiresIn)] } : mapping
  } catch (error) {
    return failureOf(context, provider.plan, error)
  }
}

function failureOf({ settings }: Pick<GatewayContext, 'settings'>, plan: ProviderPlan, error: unknown): Mapping {
  if (!(error instanceof MenshenError)) throw error
  return failedMapping(plan.id, whatFailed(error), remedyForFailure(error, plan, settings.BASE_URL + plan.callbackPath))
}

async function endTrial(
  context: GatewayContext,
  request: GatewayRequest,
  ticket: string,
  mapping: Mapping,
): Promise<Response> {
  await context.trials.finish(ticket, mapping)
  return noticeAnswer(context, request, 'trial_done')
}
