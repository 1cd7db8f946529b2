// The start of a sign-in: an attempt at a provider, and the address there. Used by the login form and by everything else that sends
// a browser to a provider.

import { network } from '../config/networks.ts'
import { errorFields, MenshenError } from '../errors.ts'
import { attemptCookie, type CookieNames, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { isInAppOf } from '../provider/in-app.ts'
import type { Texts } from '../provider/plan.ts'
import type { Provider } from '../provider/provider.ts'
import type { AttemptFields } from './attempts.ts'
import type { SignInContext } from './context.ts'

export interface AttemptOptions {
  /** What the attempt keeps until the callback: the requested page, and whatever else the callback needs to know. */
  readonly kept: AttemptFields
  /** Parameters of the authorization request besides those of the provider's plan, which they replace. */
  readonly params?: Texts
  /** A page starts it: other tabs may do so at the same moment, each with a new secret. See attemptCookie. */
  readonly isByPage?: true
}

export interface AttemptRedirect {
  readonly state: string
  /** The address at the provider, or that of the login page with an error if the provider is unavailable. */
  readonly location: string
  readonly isAtProvider: boolean
  /** The cookies to set with the redirect. */
  readonly cookies: readonly string[]
}

/** Limits the size of the Cookie header; further attempts share one secret. */
const MAX_ATTEMPT_COOKIES = 8

/** Whether attempts of other tabs are in flight: their answers may still replace the secret that all tabs share. */
function hasOtherAttempts({ headers }: GatewayRequest, { attempt }: CookieNames): boolean {
  const others = (headers.cookie ?? '').split(`${attempt}_`).length - 1
  return others > 0 && others < MAX_ATTEMPT_COOKIES
}

/** The caller has already counted the request: see RateLimit. */
export async function startAttempt(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  { kept, params, isByPage }: AttemptOptions,
): Promise<AttemptRedirect> {
  const { attempts, cookies } = context.auth
  const known = readCookie(request.headers.cookie, cookies.attempt)
  const { browser, authorization } = await attempts.start(provider.plan, known, kept)
  const inApp = context.settings.AUTO_SIGN_IN !== 'off' && isInAppOf(provider.plan, request.headers['user-agent'])
  const names = browser ? [cookies.attempt] : []
  if (browser && isByPage && (browser !== known || hasOtherAttempts(request, cookies)))
    names.push(attemptCookie(cookies, authorization.state))
  const secrets = names.map(name => setCookie(name, browser ?? '', attempts.seconds))
  const started = { state: authorization.state, cookies: secrets }
  try {
    const asked = { ...authorization, ...(params && { params }), ...(inApp && { inApp }) }
    const location = await provider.authorizationUrl(asked, network(request.observed.address))
    return { ...started, location, isAtProvider: true }
  } catch (error) {
    const location = loginWhileUnavailable(context, request, provider, error)
    return { ...started, location, isAtProvider: false }
  }
}

/** The address of the provider's page comes from its metadata, which is unavailable. */
function loginWhileUnavailable(
  { observe, paths }: SignInContext,
  request: GatewayRequest,
  { plan }: Provider,
  error: unknown,
): string {
  if (!(error instanceof MenshenError)) throw error
  const reason = 'temporarily_unavailable'
  observe.report('sign_in_failed', {
    ...errorFields(error),
    ...requestFields(request),
    provider: plan.id,
    reason,
    step: 'start',
  })
  observe.failedRequests.remember(request, reason)
  return `${paths.login}?error=${reason}`
}
