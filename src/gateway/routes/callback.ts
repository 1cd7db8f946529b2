// GET /callback, or with several providers GET /callback/<id>: the eight steps of the specification, in its order. Nothing is sent to the provider before the checks
// have passed, and no answer leaves before the session is safely stored.

import { network } from '../../config/networks.ts'
import { errorFields, isLoginError, MenshenError } from '../../errors.ts'
import { OWN_PATHS } from '../../paths.ts'
import { FORM_POST_SENTENCE, type Refusal, sentenceOf } from '../../provider/demands.ts'
import type { ProviderPlan } from '../../provider/plan.ts'
import type { Provider, SignInCalls } from '../../provider/provider.ts'
import { scopeOf } from '../../provider/providers.ts'
import { type Attempt, isRemembered, looksLikeState } from '../../session/attempts.ts'
import type { SignedIn } from '../../session/session-record.ts'
import { sessionCookie } from '../admission.ts'
import type { GatewayContext } from '../context.ts'
import { CLEAR_FRAGMENT, clearCookie, FRAGMENT_COOKIE, readCookie } from '../cookies.ts'
import { dataAtSignIn, HookFailed, SignInRefused } from '../hooks.ts'
import { clientAddress, type GatewayRequest, isNoPage, requestFields } from '../request.ts'
import { foreignAnswer, type OwnAnswer, redirectAnswer, signedInAnswer, tooMany } from '../respond.ts'

import { returnPathOf } from './login.ts'
import { failTrial, finishTrial } from './test-sign-in.ts'

const HOME = '/'
/** Longer than any real code, short enough for a header. */
const LONGEST_ERROR = 1024

export async function finishSignIn(context: GatewayContext, request: GatewayRequest): Promise<OwnAnswer> {
  // Before it is counted: an image or a frame of another site must not use up what the whole office shares.
  if (isNoPage(request)) return foreignAnswer(context, request)
  if (!(await context.rateLimit.admits('sign-in', request))) return tooMany(context, request)
  const answer = readAuthorizationAnswer(plansAt(context, request), new URLSearchParams(request.search))
  const outcome =
    'error' in answer
      ? fail(context, request, answer.error, await causeOfError(context, request, answer))
      : await signInOnce(context, request, answer)
  if (typeof outcome !== 'string') return outcome
  if ('error' in answer) await failTrial(context, request, answer)
  context.failedRequests.remember(request, outcome)
  return redirectAnswer(context, request.method, `${OWN_PATHS.login}?${new URLSearchParams({ error: outcome })}`)
}

/** Those that send their answers here; at an address that is none of theirs all, so that the mistake can be named. */
function plansAt({ providers }: Pick<GatewayContext, 'providers'>, { path }: GatewayRequest): readonly ProviderPlan[] {
  const plans = providers.all.map(({ plan }) => plan)
  const here = plans.filter(({ callbackPath }) => callbackPath === path)
  return here.length > 0 ? here : plans
}

/** A form at /callback is refused like every method but GET. It is how a provider answers by `response_mode=form_post`. */
export async function tellOfFormPost(context: GatewayContext, request: GatewayRequest): Promise<void> {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(request.headers['content-type'] ?? '')
  if (request.method !== 'POST' || !isForm || !(await context.rateLimit.admits('sign-in', request))) return
  fail(context, request, 'callback_error', { detail: FORM_POST_SENTENCE })
}

async function causeOfError(
  { providers }: Pick<GatewayContext, 'providers'>,
  { path }: GatewayRequest,
  { error, description }: Refusal,
): Promise<{ detail?: string }> {
  const provider = providers.all.find(({ plan }) => plan.callbackPath === path)
  if (!provider || !isProtocolError(error)) return {}
  const cause = await provider.explain({ error, description })
  return cause ? { detail: sentenceOf(cause) } : {}
}

/** Not what a user has decided, or what we found out ourselves. */
function isProtocolError(error: string): boolean {
  return ['invalid_request', 'unauthorized_client', 'unsupported_response_type', 'server_error'].includes(error)
}

/** What the provider calls an error is somebody else's text: only a code of the usual form is written down. */
function fail(
  context: Pick<GatewayContext, 'report' | 'settings' | 'providers'>,
  request: GatewayRequest,
  error: string,
  facts: { provider?: string; detail?: string } = {},
): string {
  const isOurs = isLoginError(error)
  const reason = isOurs
    ? { reason: error }
    : { reason: 'unknown_error', ...(/^[\w.-]{1,64}$/.test(error) && { error }) }
  const { all, main } = context.providers
  // Which of several it was, an answer that is no use does not say.
  const only = all.length === 1 ? { provider: main.plan.id } : {}
  context.report('sign_in_failed', { ...requestFields(context, request), ...only, ...facts, ...reason })
  return error
}

interface AuthorizationAnswer {
  readonly code: string
  readonly state: string
  /** Every `iss` that came with it. */
  readonly issuers: readonly string[]
}

/** Steps 1 to 3. A parameter without a value counts as absent (RFC 6749, 3.1). */
function readAuthorizationAnswer(
  plans: readonly ProviderPlan[],
  query: URLSearchParams,
): AuthorizationAnswer | Refusal {
  const codesByName = [...new Set(plans.flatMap(plan => plan.codeNames))].map(name =>
    query.getAll(name).filter(Boolean),
  )
  const [error, ...moreErrors] = query.getAll('error').filter(Boolean)
  // DingTalk may send the same one under both of its names; under one name it comes once.
  const [code, ...moreCodes] = new Set(codesByName.flat())
  const [state, ...moreStates] = query.getAll('state').filter(Boolean)
  if (moreErrors.length > 0) return { error: 'callback_error' }
  const description = query.get('error_description')?.slice(0, LONGEST_ERROR)
  if (error) return { error: error.slice(0, LONGEST_ERROR), description }
  if (moreCodes.length > 0 || codesByName.some(({ length }) => length > 1)) return { error: 'callback_error' }
  if (!code) return { error: 'missing_code' }
  if (moreStates.length > 0 || !state || !looksLikeState(state, plans)) return { error: 'invalid_state' }
  return { code, state, issuers: query.getAll('iss') }
}

async function signInOnce(
  context: GatewayContext,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
): Promise<OwnAnswer | string> {
  const { attempts, providers, cookies } = context
  let asked: ProviderPlan | undefined
  try {
    const browser = readCookie(request.headers.cookie, cookies.attempt)
    const begun = await attempts.find(browser, answer.state)
    const provider = begun ? providers.get(begun.provider) : providers.main
    if (!provider || (!begun && isRemembered(provider.plan))) return fail(context, request, 'invalid_state')
    asked = provider.plan
    // RFC 9700, 4.4.2.2: where another provider sends its answers, no answer of this one is taken. Nothing is spent yet.
    if (request.path !== asked.callbackPath)
      return fail(context, request, 'callback_error', { provider: asked.id, detail: AT_ANOTHER })
    // RFC 9207: an answer that another provider sent is refused before it spends anything.
    const isIssuer = await orFailure(
      context,
      request,
      provider,
      'token_error',
      provider.acceptsCallbackIssuer(answer.issuers),
    )
    const { id } = provider.plan
    if (typeof isIssuer === 'string') return isIssuer
    if (!isIssuer || (await isOfAnother(context, provider, answer)))
      return fail(context, request, 'callback_error', { provider: id, detail: OF_ANOTHER })
    const attempt = begun && (await attempts.take(browser, answer.state))
    if (begun && !attempt) return fail(context, request, 'invalid_state', { provider: id })
    const { trial } = attempt ?? {}
    if (trial)
      return await withSlot(context, request, provider, calls =>
        finishTrial(context, request, { ...calls, plan: provider.plan }, answer, { ...attempt, trial }),
      )
    const user = await withSlot(context, request, provider, calls =>
      whoIs(context, request, provider, calls, answer, attempt),
    )
    // The slot is free again: what the application does with the user takes nothing from those who sign in next.
    return typeof user === 'string' ? user : await signIn(context, request, provider, user, attempt)
  } catch (cause) {
    if (cause instanceof SignInRefused)
      return fail(context, request, 'access_denied', { ...(asked && { provider: asked.id }), detail: REFUSED_BY_HOOK })
    const facts = { ...requestFields(context, request), provider: asked?.id, reason: 'callback_error' }
    if (cause instanceof HookFailed)
      context.report('sign_in_failed', { ...errorFields(cause.cause), ...facts, ...cause.facts })
    else context.report('sign_in_failed', { ...errorFields(cause), ...facts })
    return 'callback_error'
  }
}

/** A provider of which no issuer is known takes any `iss`, but not one by which another names itself. */
async function isOfAnother(
  { providers }: Pick<GatewayContext, 'providers'>,
  provider: Provider,
  { issuers }: AuthorizationAnswer,
): Promise<boolean> {
  if (provider.plan.issuer !== undefined || issuers.length === 0) return false
  const named = providers.all
    .filter(other => other !== provider)
    .flatMap(other => issuers.map(issuer => other.hasIssuer(issuer)))
  const results = await Promise.allSettled(named)
  return results.some(result => result.status === 'fulfilled' && result.value)
}

const AT_ANOTHER = 'the answer came to another address than that of the provider that was asked'
const REFUSED_BY_HOOK = 'onSignIn of the application returned false'
const OF_ANOTHER = 'the answer names another provider than the attempt was started with'

type Failure = 'token_error' | 'userinfo_error'

/** The code is not spent before there is room for all that follows. */
async function withSlot<Result>(
  context: Pick<GatewayContext, 'report' | 'settings'>,
  request: GatewayRequest,
  provider: Provider,
  work: (calls: SignInCalls) => Promise<Result | Failure>,
): Promise<Result | Failure> {
  try {
    return await provider.withSlot(work, network(clientAddress(context.settings.TRUSTED_PROXIES, request)))
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'provider_busy') throw error
    const facts = { ...requestFields(context, request), provider: provider.plan.id, reason: 'token_error' }
    context.report('sign_in_failed', { ...errorFields(error), ...facts })
    return 'token_error'
  }
}

type VouchedUser = Pick<SignedIn, 'tokens' | 'facts'>

/** The steps that ask the provider. */
async function whoIs(
  context: GatewayContext,
  request: GatewayRequest,
  provider: Provider,
  calls: SignInCalls,
  { code, state }: AuthorizationAnswer,
  attempt?: Attempt,
): Promise<VouchedUser | Failure> {
  const { verifier, nonce, startedAt } = attempt ?? {}
  const redeemed = calls.redeem({ code, state, verifier, nonce, startedAt })
  const tokens = await orFailure(context, request, provider, 'token_error', redeemed)
  if (typeof tokens === 'string') return tokens
  const facts = await orFailure(context, request, provider, 'userinfo_error', calls.userFacts(tokens, code))
  return typeof facts === 'string' ? facts : { tokens, facts }
}

async function signIn(
  context: GatewayContext,
  request: GatewayRequest,
  provider: Provider,
  { tokens, facts }: VouchedUser,
  attempt?: Attempt,
): Promise<OwnAnswer> {
  const origin = requestFields(context, request)
  const signedIn = { tokens, facts, provider: scopeOf(provider), origin }
  const { ticket, loaded } = await context.sessions.open(signedIn, session => dataAtSignIn(context, request, session))
  await closePrevious(context, request)
  const { userRole } = loaded.session
  context.report('sign_in', {
    ...requestFields(context, request, loaded),
    provider: provider.plan.id,
    role: userRole,
  })
  if (facts.hasUnverifiedEmail)
    context.report('email_unverified', { ...requestFields(context, request, loaded), provider: provider.plan.id })
  const location = target(context, request, attempt)
  context.lostCookies.expect(request, location, loaded.key)
  return signedInAnswer(context, request, location, [
    sessionCookie(context, ticket, loaded),
    clearCookie(context.cookies.returnPath),
    CLEAR_FRAGMENT,
  ])
}

/** Whatever happens to it, the new session is good. */
async function closePrevious(
  context: Pick<GatewayContext, 'cookies' | 'sessions' | 'report' | 'settings'>,
  request: GatewayRequest,
): Promise<void> {
  const { cookies, sessions, report } = context
  const ticket = readCookie(request.headers.cookie, cookies.session)
  const tell = (error: unknown) =>
    report('previous_session_left', { ...errorFields(error), ...requestFields(context, request) })
  if (ticket) await sessions.close(ticket).catch(tell)
}

async function orFailure<T>(
  context: Pick<GatewayContext, 'report' | 'settings'>,
  request: GatewayRequest,
  { plan }: Provider,
  failure: Failure,
  call: Promise<T>,
): Promise<T | Failure> {
  try {
    return await call
  } catch (error) {
    const facts = { ...requestFields(context, request), provider: plan.id, reason: failure }
    context.report('sign_in_failed', { ...errorFields(error), ...facts })
    return failure
  }
}

/** The return path, with the fragment that the login page kept in the browser. */
function target(context: GatewayContext, request: GatewayRequest, attempt?: Attempt): string {
  const path = attempt?.returnPath ?? returnPathOf(context, request) ?? HOME
  const url = new URL(path, context.settings.BASE_URL)
  url.hash = decode(readCookie(request.headers.cookie, FRAGMENT_COOKIE) ?? '')
  return url.pathname + url.search + url.hash
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
