// GET /callback, or with several providers GET /callback/<id>: the steps of specification 3.1 to 3.8, in this order.
//
//   GET /callback?code=…&state=…
//     readAuthorizationAnswer   error, code and state are there once each       or: /login?error=…
//     findAttempt               the attempt and its provider                    or: a late callback
//     checkSender               that provider sent the answer, to its address
//     attempts.take             the attempt is used up from here on             or: a late callback
//     callProvider               redeem the code, fetch the user                 in a slot of the provider
//     checkUser                 `require` of the provider, and the user of a step-up
//     openSession               onSignIn, store the session
//     answerSignedIn            end the former session, set the cookie, redirect to the requested page
//
// Each step returns its value or a `SignInFailure`, which ends the sign-in. Nothing is sent to the provider before the checks have
// passed, and no answer is sent before the session is stored.

import type { Authentication } from '../access/conditions.ts'
import { network } from '../config/networks.ts'
import { errorFields, isLoginError, MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { foreignAnswer, type OwnAnswer, redirectAnswer, signedInAnswer, tooManyAnswer } from '../http/answers.ts'
import {
  attemptCookie,
  browserSecret,
  clearCookie,
  clearEndReason,
  clearFragment,
  FRAGMENT_COOKIE,
  readCookie,
} from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { demandMessage, FORM_POST_MESSAGE, type Refusal } from '../provider/demands.ts'
import type { ProviderPlan } from '../provider/plan.ts'
import type { Provider, SignInCalls } from '../provider/provider.ts'
import { type Providers, scopeOf } from '../provider/providers.ts'
import type { TokenSet } from '../provider/token.ts'
import { type MappedUser, RequirementError } from '../provider/user.ts'
import type { LoadedSession } from '../session/cache.ts'
import type { DeviceBinding } from '../session/record.ts'
import type { ClosedSession } from '../session/sessions.ts'
import { isNotDocument } from '../util/fetch-metadata.ts'
import { type Attempt, looksLikeState, storesAttempt } from './attempts.ts'
import { sessionCookie } from './auth-host.ts'
import { manualCookies, noteLostSecret } from './auto-sign-in.ts'
import type { SignInContext } from './context.ts'
import { HookError, SignInRefusal } from './hooks.ts'
import { answerLateCallback } from './late-callback.ts'
import { lastProviderCookies, returnPathOf } from './login.ts'
import { OTHER_TABS_MS } from './replaced-sessions.ts'
import { authenticationAfter } from './step-up.ts'
import { failTestSignIn, finishTestSignIn, type TestAttempt } from './test-sign-in.ts'

const HOME = '/'
/** Longer than any real code, short enough for a header. */
const MAX_ERROR_LENGTH = 1024

export async function finishSignIn(context: SignInContext, request: GatewayRequest): Promise<OwnAnswer> {
  const { auth, pages, observe } = context
  // Checked before the request is counted: an image or a frame of another site must not use up the limit of the whole office.
  if (isNotDocument(request)) return foreignAnswer(context, request)
  if (!(await auth.rateLimit.admits('sign-in', request))) return tooManyAnswer(pages, request)
  await noteLostSecret(context, request)
  const answer = readAuthorizationAnswer(plansAt(auth.providers, request.path), new URLSearchParams(request.search))
  const result =
    'error' in answer
      ? await failureOf(auth.providers, request.path, answer)
      : await orFailure(undefined, 'callback_error', signIn(context, request, answer))
  if (!(result instanceof SignInFailure)) return result
  reportFailure(context, request, result)
  if ('error' in answer) await failTestSignIn(context, request, answer)
  const { error } = result
  observe.failedRequests.remember(request, error, isByStore(result))
  return redirectAnswer(pages, request.method, `${pages.paths.login}?${new URLSearchParams({ error })}`, {
    cookies: manualCookies(context, request, 'failed'),
  })
}

/** A form at /callback is refused like every method but GET. A provider sends one with `response_mode=form_post`. */
export async function reportFormPost(context: SignInContext, request: GatewayRequest): Promise<void> {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(request.headers['content-type'] ?? '')
  if (request.method !== 'POST' || !isForm) return
  if (await context.auth.rateLimit.admits('sign-in', request))
    reportFailure(context, request, new SignInFailure('callback_error', { detail: FORM_POST_MESSAGE }))
}

interface FailureFields {
  readonly provider?: string | undefined
  readonly detail?: string
  readonly hook?: string
  readonly user?: string
}

/** A sign-in that failed: the code for the login page, and the fields for the log. */
class SignInFailure {
  readonly error: string
  readonly fields: FailureFields
  /** What was thrown; absent if the sign-in was refused. */
  readonly cause: { readonly thrown: unknown } | undefined

  constructor(error: string, fields: FailureFields = {}, cause?: { readonly thrown: unknown }) {
    this.error = error
    this.fields = fields
    this.cause = cause
  }
}

/** Returns the value of a step, or turns its error into a failure. */
async function orFailure<T>(
  provider: string | undefined,
  error: 'token_error' | 'userinfo_error' | 'callback_error',
  step: Promise<T>,
): Promise<T | SignInFailure> {
  try {
    return await step
  } catch (thrown) {
    if (thrown instanceof SignInRefusal)
      return new SignInFailure('access_denied', { provider, detail: REFUSED_BY_HOOK })
    return thrown instanceof HookError
      ? new SignInFailure(error, { provider, ...thrown.fields }, { thrown: thrown.cause })
      : new SignInFailure(error, { provider }, { thrown })
  }
}

function reportFailure({ auth, observe }: SignInContext, request: GatewayRequest, failure: SignInFailure): void {
  const { error, fields, cause } = failure
  const { all, main } = auth.providers
  // An unusable answer does not show which of several providers sent it.
  const only = !cause && all.length === 1 ? { provider: main.plan.id } : {}
  // The provider's error can be any text: only a code in the usual format goes to the log.
  const reason = isLoginError(error)
    ? { reason: error }
    : { reason: 'unknown_error', ...(/^[\w.-]{1,64}$/.test(error) && { error }) }
  observe.report('sign_in_failed', {
    ...(cause && errorFields(cause.thrown)),
    ...requestFields(request),
    ...only,
    ...fields,
    ...reason,
  })
}

function isByStore({ cause }: SignInFailure): boolean {
  return cause?.thrown instanceof MenshenError && cause.thrown.code === 'store_unavailable'
}

/** The plans of the providers that send their answers to this path. All plans if there are none, so that the failure can be named. */
function plansAt(providers: Providers, path: string): readonly ProviderPlan[] {
  const plans = providers.all.map(({ plan }) => plan)
  const matching = plans.filter(({ callbackPath }) => callbackPath === path)
  return matching.length > 0 ? matching : plans
}

/** Errors that are about the request, and not a decision of the user. */
const PROTOCOL_ERRORS = ['invalid_request', 'unauthorized_client', 'unsupported_response_type', 'server_error']

async function failureOf(providers: Providers, path: string, { error, description }: Refusal): Promise<SignInFailure> {
  const provider = providers.all.find(({ plan }) => plan.callbackPath === path)
  if (!provider || !PROTOCOL_ERRORS.includes(error)) return new SignInFailure(error)
  const cause = await provider.explain({ error, description })
  return new SignInFailure(error, cause ? { detail: demandMessage(cause) } : {})
}

interface AuthorizationAnswer {
  readonly code: string
  readonly state: string
  /** Every `iss` in the answer. */
  readonly issuers: readonly string[]
}

/** Steps 1 to 3. A parameter without a value is absent (RFC 6749, 3.1). */
function readAuthorizationAnswer(
  plans: readonly ProviderPlan[],
  query: URLSearchParams,
): AuthorizationAnswer | Refusal {
  const codesByName = [...new Set(plans.flatMap(plan => plan.codeNames))].map(name =>
    query.getAll(name).filter(Boolean),
  )
  const [error, ...moreErrors] = query.getAll('error').filter(Boolean)
  // DingTalk may send the same code under both of its names, but only once under each.
  const [code, ...moreCodes] = new Set(codesByName.flat())
  const [state, ...moreStates] = query.getAll('state').filter(Boolean)
  if (moreErrors.length > 0) return { error: 'callback_error' }
  const description = query.get('error_description')?.slice(0, MAX_ERROR_LENGTH)
  if (error) return { error: error.slice(0, MAX_ERROR_LENGTH), description }
  if (moreCodes.length > 0 || codesByName.some(({ length }) => length > 1)) return { error: 'callback_error' }
  if (!code) return { error: 'missing_code' }
  if (moreStates.length > 0 || !state || !looksLikeState(state, plans)) return { error: 'invalid_state' }
  return { code, state, issuers: query.getAll('iss') }
}

/** Steps 4 to 8. */
async function signIn(
  context: SignInContext,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
): Promise<OwnAnswer | SignInFailure> {
  const found = await findAttempt(context, request, answer)
  if (!found) return (await answerLateCallback(context, request, answer.state)) ?? new SignInFailure('invalid_state')
  const { id } = found.provider.plan
  return orFailure(id, 'callback_error', finishAttempt(context, request, answer, found))
}

interface FoundAttempt {
  readonly provider: Provider
  /** The secret that binds the attempt to this browser. */
  readonly browser: string | undefined
  /** Whether there is an attempt in the store. By default the provider of the specification needs none. */
  readonly isStored: boolean
}

/** `undefined` if the state belongs to no attempt. Nothing is used up yet. */
async function findAttempt(
  { auth: { attempts, providers, cookies } }: SignInContext,
  request: GatewayRequest,
  { state }: AuthorizationAnswer,
): Promise<FoundAttempt | undefined> {
  const browser = browserSecret(cookies, request.headers.cookie, state)
  const begun = await attempts.find(browser, state)
  const provider = begun ? providers.get(begun.provider) : providers.main
  if (!provider || (!begun && storesAttempt(provider.plan))) return undefined
  return { provider, browser, isStored: begun !== undefined }
}

async function finishAttempt(
  context: SignInContext,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
  { provider, browser, isStored }: FoundAttempt,
): Promise<OwnAnswer | SignInFailure> {
  const { attempts, providers } = context.auth
  const { plan } = provider
  const foreign = await checkSender(providers, provider, request, answer)
  if (foreign) return foreign
  const attempt = isStored ? await attempts.take(browser, answer.state) : undefined
  if (!attempt && storesAttempt(plan))
    return (
      (await answerLateCallback(context, request, answer.state)) ??
      new SignInFailure('invalid_state', { provider: plan.id })
    )
  const isBound = browser && attempt && plan.stateCheck === 'bound'
  const remembered = isBound ? attempts.remember(browser, answer.state, attempt) : undefined
  const finished = attempt?.testSignIn
    ? finishTest(context, request, answer, provider, { ...attempt, testSignIn: attempt.testSignIn })
    : signInUser(context, request, answer, provider, attempt)
  const result = await orFailure(plan.id, 'callback_error', finished)
  await remembered
  return result
}

const WRONG_CALLBACK = 'the answer came to another address than that of the provider that was asked'
const WRONG_ISSUER = 'the answer names another provider than the attempt was started with'
const DIFFERENT_USER = 'a different user signed in than the one who had to sign in again'
const REFUSED_BY_HOOK = 'onSignIn of the application returned false'

/** An answer that another provider sent is refused before anything is used up. */
async function checkSender(
  providers: Providers,
  provider: Provider,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
): Promise<SignInFailure | undefined> {
  const { id, callbackPath } = provider.plan
  // RFC 9700, 4.4.2.2: an answer of one provider is not accepted at the address of another.
  if (request.path !== callbackPath)
    return new SignInFailure('callback_error', { provider: id, detail: WRONG_CALLBACK })
  // RFC 9207.
  const isAccepted = await orFailure(id, 'token_error', provider.acceptsCallbackIssuer(answer.issuers))
  if (isAccepted instanceof SignInFailure) return isAccepted
  return isAccepted && !(await isFromOtherIssuer(providers, provider, answer))
    ? undefined
    : new SignInFailure('callback_error', { provider: id, detail: WRONG_ISSUER })
}

/** A provider without a known issuer accepts any `iss`, except one by which another provider identifies itself. */
async function isFromOtherIssuer(
  providers: Providers,
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

/** The code is not redeemed before there is room for all calls that follow. */
async function withSlot<Result>(
  request: GatewayRequest,
  provider: Provider,
  work: (calls: SignInCalls) => Promise<Result | SignInFailure>,
): Promise<Result | SignInFailure> {
  try {
    return await provider.withSlot(work, network(request.observed.address))
  } catch (thrown) {
    if (!(thrown instanceof MenshenError) || thrown.code !== 'provider_busy') throw thrown
    return new SignInFailure('token_error', { provider: provider.plan.id }, { thrown })
  }
}

function finishTest(
  context: SignInContext,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
  provider: Provider,
  attempt: TestAttempt,
): Promise<OwnAnswer | SignInFailure> {
  return withSlot(request, provider, calls =>
    finishTestSignIn(context, request, { ...calls, plan: provider.plan }, answer, attempt),
  )
}

async function signInUser(
  context: SignInContext,
  request: GatewayRequest,
  answer: AuthorizationAnswer,
  provider: Provider,
  attempt: Attempt | undefined,
): Promise<OwnAnswer | SignInFailure> {
  const asked = await withSlot(request, provider, calls => callProvider(provider.plan, calls, answer, attempt))
  if (asked instanceof SignInFailure) return asked
  // The slot is free again: what the application does with the user does not delay the next sign-ins.
  const opening = openSessionFor(context, request, provider, asked, attempt)
  const opened = await orFailure(provider.plan.id, 'callback_error', opening)
  if (!(opened instanceof SignInFailure)) return answerSignedIn(context, request, answer.state, opened)
  void discardUnused(context, request, provider, asked.tokens)
  return opened
}

interface ProviderResult {
  readonly tokens: TokenSet
  readonly user: MappedUser | SignInFailure
}

/** The steps that call the provider. */
async function callProvider(
  plan: ProviderPlan,
  calls: SignInCalls,
  { code, state }: AuthorizationAnswer,
  attempt?: Attempt,
): Promise<ProviderResult | SignInFailure> {
  const { verifier, nonce, startedAt } = attempt ?? {}
  const redeemed = calls.redeem({ code, state, verifier, nonce, startedAt })
  const tokens = await orFailure(plan.id, 'token_error', redeemed)
  if (tokens instanceof SignInFailure) return tokens
  return { tokens, user: await orFailure(plan.id, 'userinfo_error', calls.fetchUser(tokens, code)) }
}

/** Discards tokens that did not get a session. Never rejects. */
async function discardUnused(
  { auth }: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  tokens: TokenSet,
): Promise<void> {
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  const current = ticket === undefined ? undefined : await auth.sessions.get(ticket).catch(() => undefined)
  if (!current || !sharesProviderSession(tokens, current.session)) provider.discard(tokens)
}

interface OpenedSession {
  readonly provider: Provider
  readonly tokens: TokenSet
  readonly user: MappedUser
  readonly attempt: Attempt | undefined
  readonly authentication: Authentication | undefined
  readonly device: DeviceBinding | undefined
  readonly ticket: string
  readonly loaded: LoadedSession
}

async function openSessionFor(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  { tokens, user }: ProviderResult,
  attempt: Attempt | undefined,
): Promise<OpenedSession | SignInFailure> {
  const checked = await checkUser(context, request, provider, user, attempt)
  return checked instanceof SignInFailure ? checked : openSession(context, request, provider, tokens, checked, attempt)
}

/** The user, if they may sign in. */
async function checkUser(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  user: MappedUser | SignInFailure,
  attempt: Attempt | undefined,
): Promise<MappedUser | SignInFailure> {
  if (user instanceof SignInFailure) {
    await endKeysOfRefused(context, request, provider, user)
    return user
  }
  if (attempt?.stepUp && !(await isSameUser(context, request, provider, user, attempt.stepUp)))
    return new SignInFailure('callback_error', { provider: provider.plan.id, detail: DIFFERENT_USER })
  return user
}

async function openSession(
  { auth }: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  tokens: TokenSet,
  user: MappedUser,
  attempt: Attempt | undefined,
): Promise<OpenedSession> {
  const authentication = attempt?.stepUp && authenticationAfter(attempt.stepUp, tokens)
  const device = auth.devices.offer()
  const signedIn = { tokens, user, provider: scopeOf(provider), origin: requestFields(request), authentication, device }
  const opened = await auth.sessions.open(signedIn, session => auth.hooks.signIn(request, session))
  return { provider, tokens, user, attempt, authentication, device, ...opened }
}

/** A user who no longer meets `require` loses their keys, too. */
async function endKeysOfRefused(
  { auth, observe }: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  { cause }: SignInFailure,
): Promise<void> {
  if (!(cause?.thrown instanceof RequirementError)) return
  const { sub } = cause.thrown
  const revoked = await auth.personalKeys.endAllOf({ sub, provider: scopeOf(provider) })
  if (revoked > 0) observe.report('key_revoked', { ...requestFields(request), sub, by: 'provider', revoked })
}

/**
 * A step-up is for the user who is signed in. Another account at the provider, or a session that another user has opened in
 * another tab since, fails it. A session that has ended since then does not, because the user has signed in.
 */
async function isSameUser(
  { auth }: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  { userInfo }: MappedUser,
  { sub }: NonNullable<Attempt['stepUp']>,
): Promise<boolean> {
  if (userInfo.sub !== sub) return false
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  const current = ticket ? await auth.sessions.get(ticket) : undefined
  return !current || (current.session.userInfo.sub === sub && current.session.provider === scopeOf(provider))
}

/** From here on nothing may fail the sign-in: the user would be left without the former session and without the new one. */
async function answerSignedIn(
  context: SignInContext,
  request: GatewayRequest,
  state: string,
  { provider, tokens, user, attempt, authentication, device, ticket, loaded }: OpenedSession,
): Promise<OwnAnswer> {
  const { auth, pages, observe } = context
  const fields = { ...requestFields(request, loaded), provider: provider.plan.id }
  const replaced = await closePrevious(context, request, loaded)
  await auth.sessions.enforceLimit(loaded, fields)
  const withRole = { ...fields, role: loaded.session.userRole }
  if (authentication) reportStepUp(observe.report, withRole, tokens, authentication)
  else observe.report('sign_in', { ...withRole, ...(replaced && { replaced }) })
  if (user.hasUnverifiedEmail) observe.report('email_unverified', fields)
  const location = returnLocation(context, request, attempt)
  const ownSecret = attemptCookie(auth.cookies, state)
  auth.lostCookies.expect(request, location, loaded.key)
  const cookies = [
    sessionCookie(auth.cookies.session, ticket, loaded, context.now()),
    clearCookie(auth.cookies.returnPath),
    clearFragment(pages.paths.callback),
    ...manualCookies(context, request, 'signed-in'),
    ...clearEndReason(auth.cookies, request.headers.cookie),
    ...lastProviderCookies(auth, provider),
    ...(readCookie(request.headers.cookie, ownSecret) === undefined ? [] : [clearCookie(ownSecret)]),
  ]
  return signedInAnswer(pages, request, location, cookies, device && auth.devices.registration(device, ticket))
}

function reportStepUp(report: Report, fields: object, tokens: TokenSet, authentication: Authentication): void {
  const { acr, amr } = authentication
  const levels = { ...fields, ...(acr !== undefined && { acr }), ...(amr && { amr: amr.join(' ') }) }
  const reason = tokens.authentication?.time === authentication.time ? 'not_met' : 'auth_time_missing'
  if (authentication.failed === undefined) report('step_up', levels)
  else report('step_up_failed', { ...levels, reason })
}

/** Returns whether there was a previous session. The new one is valid whatever happens to the previous one. */
async function closePrevious(context: SignInContext, request: GatewayRequest, opened: LoadedSession): Promise<boolean> {
  const { settings, auth, observe, now } = context
  const ticket = readCookie(request.headers.cookie, auth.cookies.session)
  if (ticket === undefined) return false
  const report = (error: unknown) =>
    observe.report('previous_session_left', { ...errorFields(error), ...requestFields(request) })
  const close = async () => {
    const closed = await auth.sessions.close(ticket).catch(report)
    if (closed) await discardReplaced(context, ticket, closed, opened)
    return closed
  }
  if (settings.AUTO_SIGN_IN !== 'off') {
    const previous = await auth.sessions.get(ticket).catch(report)
    // Another tab has just received it, and may be loading its page with it.
    if (previous && isOfSameUser(previous, opened) && Math.abs(now() - previous.signedInAt) < OTHER_TABS_MS) {
      auth.replacedSessions.endLater(close)
      return true
    }
  }
  return (await close()) !== undefined
}

type WithProviderSession = Pick<TokenSet, 'providerSession'>

/** If one token of its session is revoked, a provider may end all others of it, as Keycloak does. The new session would lose its own. */
function sharesProviderSession({ providerSession: one }: WithProviderSession, other: WithProviderSession): boolean {
  return one !== undefined && one.sid === other.providerSession?.sid && one.issuer === other.providerSession.issuer
}

/** A provider may issue the same tokens again, or others of the same session: those belong to the new session. */
async function discardReplaced(
  { auth }: SignInContext,
  ticket: string,
  closed: ClosedSession,
  { session: next }: LoadedSession,
): Promise<void> {
  const { session } = closed
  await auth.onSignOut(ticket, closed)
  const isShared =
    sharesProviderSession(session, next) ||
    session.accessToken === next.accessToken ||
    (session.refreshToken !== undefined && session.refreshToken === next.refreshToken)
  if (!isShared) auth.providers.get(session.provider)?.discard(session)
}

function isOfSameUser({ session: one }: LoadedSession, { session: other }: LoadedSession): boolean {
  return one.userInfo.sub === other.userInfo.sub && one.provider === other.provider
}

/** The return path, with the fragment that the login page kept in the browser. */
function returnLocation(context: SignInContext, request: GatewayRequest, attempt?: Attempt): string {
  const path = attempt?.returnPath ?? returnPathOf(context, request) ?? HOME
  const url = new URL(path, context.settings.BASE_URL)
  url.hash = attempt?.fragment ?? decode(readCookie(request.headers.cookie, FRAGMENT_COOKIE) ?? '')
  return url.pathname + url.search + url.hash
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
