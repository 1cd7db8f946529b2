// A test sign-in of the doctor. It takes the usual way to the provider and back but opens no session; the doctor gets the result.

import type { Settings } from '../config/settings.ts'
import { whatFailed } from '../doctor/finding.ts'
import { refreshNote, remedyForError, remedyForFailure } from '../doctor/sign-in-remedy.ts'
import { explainMapping, failedMapping, type MappingReport } from '../doctor/test-sign-ins.ts'
import { errorFields, MenshenError } from '../errors.ts'
import {
  errorAnswer,
  foreignAnswer,
  noticeAnswer,
  type OwnAnswer,
  redirectAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import { browserSecret, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import type { Refusal } from '../provider/demands.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { Provider, SignInCalls } from '../provider/provider.ts'
import { phrase } from '../text/text.ts'
import { isNotDocument } from '../util/fetch-metadata.ts'
import type { Attempt } from './attempts.ts'
import type { SignInContext } from './context.ts'

/** GET /_menshen/doctor/sign-in?ticket=…: the address that the doctor has printed. */
export async function startTestSignIn(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { auth, pages, doctor } = context
  const { providers, attempts, cookies } = auth
  if (isNotDocument(request)) return foreignAnswer(context, request)
  const ticket = new URLSearchParams(request.search).get('ticket') ?? ''
  const testSignIn = await doctor.testSignIns.begin(ticket)
  const provider = testSignIn && providers.get(testSignIn.provider)
  if (!provider) {
    const isWithinLimit = await auth.rateLimit.admits('ticket', request)
    return isWithinLimit ? errorAnswer(pages, request, 'not_found') : tooManyAnswer(pages, request)
  }
  const known = readCookie(request.headers.cookie, cookies.attempt)
  // Regardless of STATE_CHECK, only the browser that started a test sign-in may finish it.
  const plan = { ...provider.plan, stateCheck: 'bound' as const }
  const { browser = '', authorization: sent } = await attempts.start(plan, known, {
    testSignIn: { ticket, show: testSignIn.show },
  })
  try {
    const location = await provider.authorizationUrl(sent)
    return redirectAnswer(pages, request.method, location, {
      cookies: [setCookie(cookies.attempt, browser, attempts.seconds)],
    })
  } catch (error) {
    return endTestSignIn(context, request, ticket, failedMappingOf(context.settings, provider.plan, error))
  }
}

export interface RedeemableCode {
  readonly code: string
  readonly state: string
}

type TestedProvider = SignInCalls & Pick<Provider, 'plan'>

export type TestAttempt = Attempt & { readonly testSignIn: NonNullable<Attempt['testSignIn']> }

/** Handles the return from the provider. */
export async function finishTestSignIn(
  context: SignInContext,
  request: GatewayRequest,
  provider: TestedProvider,
  code: RedeemableCode,
  { testSignIn, ...attempt }: TestAttempt,
): Promise<OwnAnswer> {
  const mapping = await tryMapping(context, provider, code, attempt, testSignIn.show)
  return endTestSignIn(context, request, testSignIn.ticket, mapping)
}

/** The provider came back with an error: if that was a test sign-in, the doctor gets it as the result. */
export async function failTestSignIn(
  { auth, observe, doctor }: SignInContext,
  request: GatewayRequest,
  refusal: Refusal,
): Promise<void> {
  const { error } = refusal
  const state = new URLSearchParams(request.search).get('state')
  const browser = state && browserSecret(auth.cookies, request.headers.cookie, state)
  if (!browser || !state) return
  try {
    const begun = await auth.attempts.find(browser, state)
    if (!begun?.testSignIn || !(await auth.attempts.take(browser, state))) return
    const problem = phrase('came_back_with_error', { error: error.replace(/[^\w.-]/g, '?').slice(0, 60) })
    const cause = await auth.providers.get(begun.provider)?.explain(refusal)
    const seen = cause ? phrase('with_cause', { seen: problem, cause: cause.what }) : problem
    const remedy = remedyForError(error, cause)
    await doctor.testSignIns.finish(begun.testSignIn.ticket, failedMapping(begun.provider ?? '', seen, remedy))
  } catch (failure) {
    observe.report('sign_in_failed', {
      ...errorFields(failure),
      ...requestFields(request),
      reason: 'callback_error',
    })
  }
}

async function tryMapping(
  { settings, auth }: SignInContext,
  provider: TestedProvider,
  { code, state }: RedeemableCode,
  { verifier, nonce, startedAt }: Attempt,
  show: boolean,
): Promise<MappingReport> {
  try {
    const tokens = await provider.redeem({ code, state, verifier, nonce, startedAt })
    using discarding = new DisposableStack()
    discarding.defer(() => auth.providers.get(provider.plan.id)?.discard(tokens))
    const mapping = explainMapping(await provider.fetchClaims(tokens, code), provider.plan, auth.roles, show)
    const isShort = provider.plan.refreshes && tokens.refreshToken === undefined
    return isShort ? { ...mapping, notes: [refreshNote(provider.plan, tokens.expiresIn)] } : mapping
  } catch (error) {
    return failedMappingOf(settings, provider.plan, error)
  }
}

function failedMappingOf(settings: Settings, plan: ProviderPlan, error: unknown): MappingReport {
  if (!(error instanceof MenshenError)) throw error
  return failedMapping(plan.id, whatFailed(error), remedyForFailure(error, plan, settings.BASE_URL + plan.callbackPath))
}

async function endTestSignIn(
  context: SignInContext,
  request: GatewayRequest,
  ticket: string,
  mapping: MappingReport,
): Promise<OwnAnswer> {
  await context.doctor.testSignIns.finish(ticket, mapping)
  return noticeAnswer(context.pages, request, 'trial_done')
}
