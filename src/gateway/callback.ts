// GET /callback: the eight steps of the specification, in its order. Nothing is sent to the provider before the checks
// have passed, and no answer leaves before the session is safely stored.
import { factsOf, MenshenError } from '../errors.ts'
import { type Attempt, STATE_SUFFIX } from '../session/attempts.ts'
import { sessionCookie } from './admission.ts'
import { redirectAnswer } from './answers.ts'
import { CLEAR_FRAGMENT, clearCookie, FRAGMENT_COOKIE, readCookie } from './cookies.ts'
import type { House } from './house.ts'
import { returnPathOf } from './login.ts'
import type { Visit } from './request.ts'

const HOME = '/'
/** Longer than any real code, short enough for a header. */
const LONGEST_ERROR = 1024

export async function finishSignIn(house: House, visit: Visit): Promise<Response> {
  const query = new URLSearchParams(visit.search)
  const [error, code, state] = ['error', 'code', 'state'].map(name => query.getAll(name).filter(Boolean)) as [
    string[],
    string[],
    string[],
  ]
  const failed = (why: string) => redirectAnswer(house, visit.method, `/login?${new URLSearchParams({ error: why })}`)

  if (error.length > 1) return failed('callback_error')
  if (error[0]) return failed(error[0].slice(0, LONGEST_ERROR))
  if (code.length > 1) return failed('callback_error')
  if (!code[0]) return failed('missing_code')
  if (state.length > 1 || !state[0]?.endsWith(STATE_SUFFIX)) return failed('invalid_state')
  if (!isFromIssuer(house, query)) return failed('callback_error')
  try {
    const attempt = await house.attempts.take(readCookie(visit.headers.cookie, house.cookies.attempt), state[0])
    if (!attempt && house.attempts.remembered) return failed('invalid_state')
    const outcome = await inTurn(house, () => signIn(house, visit, code[0] as string, attempt))
    if (typeof outcome !== 'string') return outcome
    return failed(outcome)
  } catch (cause) {
    house.log.error({ err: cause }, 'sign-in failed')
    return failed('callback_error')
  }
}

/** RFC 9207: an answer that another provider sent us, or that does not say who sent it, is refused. */
function isFromIssuer({ settings }: House, query: URLSearchParams): boolean {
  const issuers = query.getAll('iss')
  return settings.ISSUER === undefined || (issuers.length === 1 && issuers[0] === settings.ISSUER)
}

type Failure = 'token_error' | 'userinfo_error'

/** The code is not spent before there is room for all that follows. */
async function inTurn(house: House, work: () => Promise<Response | Failure>): Promise<Response | Failure> {
  try {
    return await house.provider.turn(work)
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'provider_busy') throw error
    house.log.warn({ error: 'token_error', ...factsOf(error) }, 'sign-in failed')
    return 'token_error'
  }
}

async function signIn(house: House, visit: Visit, code: string, attempt?: Attempt): Promise<Response | Failure> {
  const tokens = await orFailure(house, 'token_error', house.provider.redeem(code, attempt?.verifier))
  if (typeof tokens === 'string') return tokens
  const userInfo = await orFailure(house, 'userinfo_error', house.provider.userInfo(tokens.accessToken))
  if (typeof userInfo === 'string') return userInfo

  const { ticket, opened } = await house.sessions.open(tokens, userInfo)
  const previous = readCookie(visit.headers.cookie, house.cookies.session)
  if (previous) await house.sessions.close(previous)
  const { userRole } = opened.session
  house.log.info({ session: opened.key, user: userInfo.username, role: userRole }, 'signed in')
  const location = target(house, visit, attempt)
  house.landings.expect(visit, location)
  return redirectAnswer(house, visit.method, location, [
    sessionCookie(house, ticket, opened),
    clearCookie(house.cookies.returnPath),
    CLEAR_FRAGMENT,
  ])
}

async function orFailure<T>(house: House, failure: Failure, call: Promise<T>): Promise<T | Failure> {
  try {
    return await call
  } catch (error) {
    house.log.warn({ error: failure, ...factsOf(error) }, 'sign-in failed')
    return failure
  }
}

/** The return path, with the fragment that the login page kept in the browser. */
function target(house: House, visit: Visit, attempt?: Attempt): string {
  const path = attempt?.returnPath ?? returnPathOf(house, visit) ?? HOME
  const url = new URL(path, house.settings.BASE_URL)
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
