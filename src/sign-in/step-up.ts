// Step-up: the rules admit a user only after another sign-in, because too much time has passed or another method is required. A page
// redirects to the provider, a form gets a page that explains what to do, a script gets a status (RFC 9470). The callback replaces
// the session, and the rules check the new one, because what was asked of the provider proves nothing.

import { type Authentication, type AuthenticationDemand, demandsKey, meets, requestFor } from '../access/conditions.ts'
import { readTarget } from '../access/request-path.ts'
import {
  errorAnswer,
  jsonAnswer,
  languageOf,
  type OwnAnswer,
  pageAnswer,
  type ResponseAnswer,
  redirectAnswer,
  tooManyAnswer,
} from '../http/answers.ts'
import type { GatewayRequest } from '../http/request.ts'
import { safeReturnPath } from '../http/return-path.ts'
import type { Admission } from '../identify/admission.ts'
import { admit, recordAdmission } from '../identify/admit.ts'
import { applyRules } from '../identify/apply-rules.ts'
import { requestFields } from '../observe/observed-request.ts'
import { sessionEndedPage, stepUpDonePage } from '../pages/notices.ts'
import { OWN_PATHS } from '../paths.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { TokenSet } from '../provider/token.ts'
import type { LoadedSession } from '../session/cache.ts'
import { authenticationOf } from '../session/record.ts'
import { hasToken, isByScript, isNavigation, isShownAsPage } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { Attempt } from './attempts.ts'
import { stepUpChallenge } from './challenge.ts'
import type { SignInContext } from './context.ts'
import { loginAnswer, refusedAnswer } from './denial.ts'
import { startAttempt } from './start.ts'

/** The answer to a request that the rules admit after another sign-in. */
export function stepUpAnswer(
  context: SignInContext,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<ResponseAnswer> {
  const { loaded, demands = [] } = admission
  if (loaded && isNavigation(request) && !isByScript(request))
    // A host leaves it to BASE_URL, and gets a ticket for the new session.
    return (
      context.site.handoffAnswer(context, request, admission) ??
      startStepUp(context, request, loaded, demands, request.path + request.search)
    )
  return loaded && isShownAsPage(request) && !hasToken(request.headers)
    ? formAnswer(context, request, admission)
    : scriptAnswer(context, request, admission)
}

// A page: to the provider, and back.

interface StepUpOptions {
  /** The provider has to prompt the user in any case, even a provider that does not send `auth_time`. */
  readonly isPrompted?: true
}

export async function startStepUp(
  context: SignInContext,
  request: GatewayRequest,
  loaded: LoadedSession,
  demands: readonly AuthenticationDemand[],
  wanted: string,
  options: StepUpOptions = {},
): Promise<ResponseAnswer> {
  const { auth, pages, observe } = context
  const provider = auth.providers.get(loaded.session.provider)
  if (!provider || (provider.plan.kind !== 'oidc' && wantsIdToken(demands))) return refuse(context, request, loaded)
  if (!(await auth.rateLimit.admits('sign-in', request))) return tooManyAnswer(pages, request)
  const returnPath = safeReturnPath(wanted, pages.settings.BASE_URL, pages.paths.signIn)
  const { time = 0 } = authenticationOf(loaded)
  const stepUp = { sub: loaded.session.userInfo.sub, time, demands: [...demands], ...options }
  const { location, cookies } = await startAttempt(context, request, provider, {
    kept: { ...(returnPath && { returnPath }), stepUp },
    params: paramsFor(provider.plan, demands, options),
    isByPage: true,
  })
  observe.report('step_up_started', { ...requestFields(request, loaded), path: request.path, method: request.method })
  return redirectAnswer(pages, request.method, location, { outcome: 'refused', cookies })
}

function wantsIdToken(demands: readonly AuthenticationDemand[]): boolean {
  return demands.some(({ acr, amr }) => (acr ?? amr) !== undefined)
}

/** The provider of this user issues no id_token, so no sign-in could ever meet the rule. */
function refuse(context: SignInContext, request: GatewayRequest, loaded: LoadedSession): ResponseAnswer {
  const refused: Admission = { loaded, cookies: [], outcome: 'refused', condition: 'step_up_failed' }
  return refusedAnswer(context, request, recordAdmission(context, request, refused))
}

/** The plan's parameters stay, unless the rules need more. A provider that only knows its own users gets the usual request. */
function paramsFor(
  { kind, authorization }: Pick<ProviderPlan, 'kind' | 'authorization'>,
  demands: readonly AuthenticationDemand[],
  { isPrompted }: StepUpOptions,
): Record<string, string> {
  if (kind === 'company_token') return {}
  const { maxAge, acr } = requestFor(demands)
  const configured = Number(authorization.params.max_age ?? Number.POSITIVE_INFINITY)
  return {
    ...(maxAge !== undefined && { max_age: String(Math.min(maxAge, configured)) }),
    ...(acr.length > 0 && { acr_values: acr.join(' ') }),
    // Nothing else makes the provider ask again.
    ...(((isPrompted && kind === 'oidc') || (maxAge === undefined && acr.length === 0)) && {
      prompt: withLogin(authorization.params.prompt),
    }),
  }
}

/** Google issues a refresh token only with `consent`, so a configured prompt stays. */
function withLogin(configured = ''): string {
  const others = configured.split(' ').filter(value => value !== '' && value !== 'none' && value !== 'login')
  return ['login', ...others].join(' ')
}

// A form, or a page in a frame: what was entered is not lost while the page stays open.

function formAnswer({ pages }: SignInContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const { requestId } = request.observed
  const html = sessionEndedPage(languageOf(pages, request), request.method !== 'GET', requestId, stepUpPath(request))
  return pageAnswer(pages, html, {
    status: 401,
    outcome: 'refused',
    cookies: admission.cookies,
    headers: { 'www-authenticate': stepUpChallenge(admission) },
  })
}

/** Where a new tab signs in for a request that it cannot repeat itself. */
export function stepUpPath({ method, path }: Pick<GatewayRequest, 'method' | 'path'>): string {
  return `${OWN_PATHS.stepUp}?${new URLSearchParams({ method, path })}`
}

function scriptAnswer({ pages }: SignInContext, request: GatewayRequest, admission: Admission): ResponseAnswer {
  const body = {
    error: 'step_up_required',
    message: languageOf(pages, request).t('step_up.required'),
    ...(admission.loaded && { login: stepUpPath(request) }),
    requestId: request.observed.requestId,
  }
  return jsonAnswer(pages, body, {
    status: 401,
    outcome: 'refused',
    cookies: admission.cookies,
    headers: { 'www-authenticate': stepUpChallenge(admission) },
  })
}

/** GET /_menshen/step-up: signs in again for the request that it names, if the rules require it, and reports when that is done. */
export async function stepUp(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { pages } = context
  const admission = await admit(context, request)
  const { loaded, cookies } = admission
  if (!loaded) return loginAnswer(context, request, admission)
  const query = new URLSearchParams(request.search)
  const target = readTarget(query.get('path') ?? '')
  const method = query.get('method') ?? 'GET'
  if (!target || !/^[A-Z-]+$/.test(method)) return errorAnswer(pages, request, 'bad_request')
  const asked = { ...request, ...target, method }
  const verdict = applyRules(context, asked, admission)
  if (verdict.outcome === 'step_up')
    return (
      context.site.handoffAnswer(context, request, admission) ??
      startStepUp(context, request, loaded, verdict.demands ?? [], request.path + request.search)
    )
  if (verdict.outcome !== 'admitted') {
    const denied = recordAdmission(context, asked, verdict)
    if (denied.outcome === 'unreadable') return errorAnswer(pages, request, 'bad_request', { outcome: 'refused' })
    return refusedAnswer(context, request, denied)
  }
  return pageAnswer(pages, stepUpDonePage(languageOf(pages, request), asked.method !== 'GET'), { cookies })
}

// The callback.

type StepUp = NonNullable<Attempt['stepUp']>

/** How the user of a step-up is signed in now. */
export function authenticationAfter(stepUp: StepUp, tokens: TokenSet): Authentication {
  const { demands } = stepUp
  const known = knownAfter(stepUp, tokens)
  const isMet = known.promptedAt !== undefined || demands.every(demand => meets(known, demand, tokens.receivedAt))
  return isMet ? known : { ...known, failed: demandsKey(demands) }
}

function knownAfter({ time, demands, isPrompted }: StepUp, { authentication, receivedAt }: TokenSet): Authentication {
  if (!authentication) return { time: receivedAt }
  const isAged = demands.some(({ maxAge }) => maxAge !== undefined)
  if (!isAged || authentication.time !== undefined) return authentication
  // Without auth_time nothing proves that the provider has asked again: the time stays as it was.
  return { ...authentication, time, ...(isPrompted && { promptedAt: receivedAt }) }
}
