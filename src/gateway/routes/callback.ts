// GET /callback: the eight steps of the specification, in its order. Nothing is sent to the provider before the checks
// have passed, and no answer leaves before the session is safely stored.

import { factsOf, MenshenError } from '../../errors.ts'
import { OWN_PATHS } from '../../own-paths.ts'
import { type Attempt, STATE_SUFFIX } from '../../session/attempts.ts'
import { sessionCookie } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { CLEAR_FRAGMENT, clearCookie, FRAGMENT_COOKIE, readCookie } from '../http/cookies.ts'
import { redirectAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { returnPathOf } from './login.ts'

const HOME = '/'
/** Longer than any real code, short enough for a header. */
const LONGEST_ERROR = 1024

export async function finishSignIn(context: GatewayContext, visit: Visit): Promise<Response> {
  const query = new URLSearchParams(visit.search)
  const [error, code, state] = ['error', 'code', 'state'].map(name => query.getAll(name).filter(Boolean)) as [
    string[],
    string[],
    string[],
  ]
  const failed = (why: string) =>
    redirectAnswer(context, visit.method, `${OWN_PATHS.login}?${new URLSearchParams({ error: why })}`)

  if (error.length > 1) return failed('callback_error')
  if (error[0]) return failed(error[0].slice(0, LONGEST_ERROR))
  if (code.length > 1) return failed('callback_error')
  if (!code[0]) return failed('missing_code')
  if (state.length > 1 || !state[0]?.endsWith(STATE_SUFFIX)) return failed('invalid_state')
  if (!isFromIssuer(context, query)) return failed('callback_error')
  try {
    const attempt = await context.attempts.take(readCookie(visit.headers.cookie, context.cookies.attempt), state[0])
    if (!attempt && context.attempts.remembered) return failed('invalid_state')
    const outcome = await withSlot(context, () => signIn(context, visit, code[0] as string, attempt))
    if (typeof outcome !== 'string') return outcome
    return failed(outcome)
  } catch (cause) {
    context.report('sign_in_failed', { ...factsOf(cause), reason: 'callback_error' })
    return failed('callback_error')
  }
}

/** RFC 9207: an answer that another provider sent us, or that does not say who sent it, is refused. */
function isFromIssuer({ settings }: GatewayContext, query: URLSearchParams): boolean {
  const issuers = query.getAll('iss')
  return settings.ISSUER === undefined || (issuers.length === 1 && issuers[0] === settings.ISSUER)
}

type Failure = 'token_error' | 'userinfo_error'

/** The code is not spent before there is room for all that follows. */
async function withSlot(context: GatewayContext, work: () => Promise<Response | Failure>): Promise<Response | Failure> {
  try {
    return await context.provider.withSlot(work)
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'provider_busy') throw error
    context.report('sign_in_failed', { ...factsOf(error), reason: 'token_error' })
    return 'token_error'
  }
}

async function signIn(
  context: GatewayContext,
  visit: Visit,
  code: string,
  attempt?: Attempt,
): Promise<Response | Failure> {
  const tokens = await orFailure(context, 'token_error', context.provider.redeem(code, attempt?.verifier))
  if (typeof tokens === 'string') return tokens
  const userInfo = await orFailure(context, 'userinfo_error', context.provider.userInfo(tokens.accessToken))
  if (typeof userInfo === 'string') return userInfo

  const { ticket, loaded } = await context.sessions.open(tokens, userInfo)
  const previous = readCookie(visit.headers.cookie, context.cookies.session)
  if (previous) await context.sessions.close(previous)
  const { userRole } = loaded.session
  context.report('sign_in', { session: loaded.key, user: userInfo.username, sub: userInfo.sub, role: userRole })
  const location = target(context, visit, attempt)
  context.lostCookies.expect(visit, location)
  return redirectAnswer(context, visit.method, location, [
    sessionCookie(context, ticket, loaded),
    clearCookie(context.cookies.returnPath),
    CLEAR_FRAGMENT,
  ])
}

async function orFailure<T>(context: GatewayContext, failure: Failure, call: Promise<T>): Promise<T | Failure> {
  try {
    return await call
  } catch (error) {
    context.report('sign_in_failed', { ...factsOf(error), reason: failure })
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
