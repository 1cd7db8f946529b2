// GET /callback: the eight steps of the specification, in its order. Nothing is sent to the provider before the checks
// have passed, and no answer leaves before the session is safely stored.

import { factsOf, MenshenError } from '../../errors.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { type Attempt, STATE_SUFFIX } from '../../session/attempts.ts'
import type { Settings } from '../../settings/read.ts'
import { sessionCookie } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { CLEAR_FRAGMENT, clearCookie, FRAGMENT_COOKIE, readCookie } from '../http/cookies.ts'
import { errorAnswer, redirectAnswer, tooMany } from '../http/page-answers.ts'
import { isNoPage } from '../http/provenance.ts'
import type { Visit } from '../http/request.ts'
import { whoAsks } from '../http/who-asks.ts'
import { returnPathOf } from './login.ts'

const HOME = '/'
/** Longer than any real code, short enough for a header. */
const LONGEST_ERROR = 1024

export async function finishSignIn(context: GatewayContext, visit: Visit): Promise<Response> {
  // Before it is counted: an image or a frame of another site must not use up what the whole office shares.
  if (isNoPage(visit)) return errorAnswer(context, visit, 'foreign')
  if (!(await context.rateLimit.admits('sign-in', visit))) return tooMany(context, visit)
  const answer = readAuthorizationAnswer(context.settings, new URLSearchParams(visit.search))
  const outcome = 'error' in answer ? answer.error : await signInOnce(context, visit, answer)
  if (typeof outcome !== 'string') return outcome
  return redirectAnswer(context, visit.method, `${OWN_PATHS.login}?${new URLSearchParams({ error: outcome })}`)
}

interface AuthorizationAnswer {
  readonly code: string
  readonly state: string
}

/** Steps 1 to 3. A parameter without a value counts as absent (RFC 6749, 3.1). */
function readAuthorizationAnswer(
  settings: Pick<Settings, 'ISSUER' | 'ISSUER_REQUIRED'>,
  query: URLSearchParams,
): AuthorizationAnswer | { error: string } {
  const [error, ...moreErrors] = query.getAll('error').filter(Boolean)
  const [code, ...moreCodes] = query.getAll('code').filter(Boolean)
  const [state, ...moreStates] = query.getAll('state').filter(Boolean)
  if (moreErrors.length > 0) return { error: 'callback_error' }
  if (error) return { error: error.slice(0, LONGEST_ERROR) }
  if (moreCodes.length > 0) return { error: 'callback_error' }
  if (!code) return { error: 'missing_code' }
  if (moreStates.length > 0 || !state?.endsWith(STATE_SUFFIX)) return { error: 'invalid_state' }
  if (!isFromIssuer(settings, query.getAll('iss'))) return { error: 'callback_error' }
  return { code, state }
}

/** RFC 9207: an answer that another provider sent us is refused; one that does not say who sent it, where all of them do. */
function isFromIssuer(
  { ISSUER, ISSUER_REQUIRED }: Pick<Settings, 'ISSUER' | 'ISSUER_REQUIRED'>,
  issuers: readonly string[],
): boolean {
  if (ISSUER === undefined) return true
  return issuers.length === 0 ? !ISSUER_REQUIRED : issuers.length === 1 && issuers[0] === ISSUER
}

async function signInOnce(
  context: GatewayContext,
  visit: Visit,
  { code, state }: AuthorizationAnswer,
): Promise<Response | string> {
  try {
    const attempt = await context.attempts.take(readCookie(visit.headers.cookie, context.cookies.attempt), state)
    if (!attempt && context.attempts.remembered) return 'invalid_state'
    return await withSlot(context, visit, () => signIn(context, visit, code, attempt))
  } catch (cause) {
    context.report('sign_in_failed', { ...factsOf(cause), ...whoAsks(context, visit), reason: 'callback_error' })
    return 'callback_error'
  }
}

type Failure = 'token_error' | 'userinfo_error'

/** The code is not spent before there is room for all that follows. */
async function withSlot(
  context: Pick<GatewayContext, 'provider' | 'report' | 'settings'>,
  visit: Visit,
  work: () => Promise<Response | Failure>,
): Promise<Response | Failure> {
  try {
    return await context.provider.withSlot(work)
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'provider_busy') throw error
    context.report('sign_in_failed', { ...factsOf(error), ...whoAsks(context, visit), reason: 'token_error' })
    return 'token_error'
  }
}

async function signIn(
  context: GatewayContext,
  visit: Visit,
  code: string,
  attempt?: Attempt,
): Promise<Response | Failure> {
  const tokens = await orFailure(context, visit, 'token_error', context.provider.redeem(code, attempt?.verifier))
  if (typeof tokens === 'string') return tokens
  const userInfo = await orFailure(context, visit, 'userinfo_error', context.provider.userInfo(tokens.accessToken))
  if (typeof userInfo === 'string') return userInfo

  const { ticket, loaded } = await context.sessions.open(tokens, userInfo)
  await closePrevious(context, visit)
  const { userRole } = loaded.session
  context.report('sign_in', { ...whoAsks(context, visit, loaded), session: loaded.key, role: userRole })
  const location = target(context, visit, attempt)
  context.lostCookies.expect(visit, location)
  return redirectAnswer(context, visit.method, location, [
    sessionCookie(context, ticket, loaded),
    clearCookie(context.cookies.returnPath),
    CLEAR_FRAGMENT,
  ])
}

/** Whatever happens to it, the new session is good. */
async function closePrevious(
  context: Pick<GatewayContext, 'cookies' | 'sessions' | 'report' | 'settings'>,
  visit: Visit,
): Promise<void> {
  const { cookies, sessions, report } = context
  const ticket = readCookie(visit.headers.cookie, cookies.session)
  const tell = (error: unknown) => report('previous_session_left', { ...factsOf(error), ...whoAsks(context, visit) })
  if (ticket) await sessions.close(ticket).catch(tell)
}

async function orFailure<T>(
  context: Pick<GatewayContext, 'report' | 'settings'>,
  visit: Visit,
  failure: Failure,
  call: Promise<T>,
): Promise<T | Failure> {
  try {
    return await call
  } catch (error) {
    context.report('sign_in_failed', { ...factsOf(error), ...whoAsks(context, visit), reason: failure })
    return failure
  }
}

/** The return path, with the fragment that the login page kept in the browser. */
function target(context: GatewayContext, visit: Visit, attempt?: Attempt): string {
  const path = attempt?.returnPath ?? returnPathOf(context, visit) ?? HOME
  const url = new URL(path, context.settings.BASE_URL)
  url.hash = decode(readCookie(visit.headers.cookie, FRAGMENT_COOKIE) ?? '')
  return url.pathname + url.search + url.hash
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
