// An answer of the provider that no attempt is waiting for: it took too long, was used before (the Back button), or began elsewhere
// (a bookmark of the provider's page, a restart with STORE=memory:). Its code is never redeemed: another site can send any answer,
// and a sign-in with its code would be a sign-in as another user (login CSRF). The most that it can cause is a trip to the
// provider, with an attempt of this browser.

import { type OwnAnswer, redirectAnswer } from '../http/answers.ts'
import { browserSecret, readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import type { Provider } from '../provider/provider.ts'
import { isByScript } from '../util/fetch-metadata.ts'
import { manualCookies } from './auto-sign-in.ts'
import type { SignInContext } from './context.ts'
import { returnPathOf } from './login.ts'
import { startAttempt } from './start.ts'

/** A second such answer within this time means that something is broken, not that it is late. */
const RETRY_SECONDS = 10

/** `undefined` if the login page has to report that the state is not valid. */
export async function answerLateCallback(
  context: SignInContext,
  request: GatewayRequest,
  state: string,
): Promise<OwnAnswer | undefined> {
  const { auth, pages, observe } = context
  const { attempts, providers, cookies, rateLimit } = auth
  const { cookie } = request.headers
  const used = await attempts.findUsed(browserSecret(cookies, cookie, state), state)
  const provider = (used && providers.get(used.provider)) ?? providerAt(context, request) ?? providers.main
  if (provider.plan.stateCheck !== 'bound' || providers.missing.length > 0 || isByScript(request)) return undefined
  const ticket = readCookie(cookie, cookies.session)
  const loaded = ticket ? await auth.sessions.get(ticket) : undefined
  if (ticket && loaded && (await auth.devices.check(request, ticket, loaded)))
    return redirectAnswer(pages, request.method, '/')
  const isBraked = readCookie(cookie, cookies.retry) !== undefined || (await attempts.isRetry(state))
  if (isBraked || used?.isTestSignIn) return undefined
  if (!(await rateLimit.admits('sign-in', request))) return undefined
  const returnPath = used?.returnPath ?? returnPathOf(context, request)
  const started = await startAttempt(context, request, provider, {
    kept: {
      ...(returnPath !== undefined && { returnPath }),
      ...(used?.fragment !== undefined && { fragment: used.fragment }),
      isRetry: true,
    },
  })
  if (started.isAtProvider)
    observe.report('sign_in_restarted', {
      ...requestFields(request),
      provider: provider.plan.id,
      reason: used ? 'used' : 'unknown',
    })
  const failed = started.isAtProvider ? [] : manualCookies(context, request, 'failed')
  return redirectAnswer(pages, request.method, started.location, {
    status: 303,
    cookies: [...started.cookies, ...failed, setCookie(cookies.retry, 'yes', RETRY_SECONDS)],
  })
}

function providerAt({ auth }: SignInContext, { path }: GatewayRequest): Provider | undefined {
  return auth.providers.all.find(({ plan }) => plan.callbackPath === path)
}
