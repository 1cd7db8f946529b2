// AUTO_SIGN_IN: a visitor of a protected page goes straight to the provider. It never repeats itself: after a sign-in that failed
// or did not last, and after a sign-out, the login page waits for a click.

import { errorFields, MenshenError } from '../errors.ts'
import { readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { isInAppOf } from '../provider/in-app.ts'
import type { Provider } from '../provider/provider.ts'
import { isNavigation, isNotDocument } from '../util/fetch-metadata.ts'
import type { SignInContext } from './context.ts'
import { type AttemptRedirect, startAttempt } from './start.ts'

/** The provider to which this request leads without a click; `undefined` if the login page is the answer. */
export function automaticProvider({ settings, auth }: SignInContext, request: GatewayRequest): Provider | undefined {
  const { AUTO_SIGN_IN } = settings
  if (AUTO_SIGN_IN === 'off') return undefined
  const { providers, cookies } = auth
  if (providers.missing.length > 0 || !isNavigation(request) || isNotDocument(request)) return undefined
  if (readCookie(request.headers.cookie, cookies.manual)) return undefined
  const candidates =
    AUTO_SIGN_IN === 'on'
      ? providers.all
      : providers.all.filter(({ plan }) => isInAppOf(plan, request.headers['user-agent']))
  // With several, the user has to choose.
  return candidates.length === 1 ? candidates[0] : undefined
}

/** `undefined` if the login page is the answer: above the limit, without cookies, or while the store is unavailable. */
export async function startAutomatically(
  context: SignInContext,
  request: GatewayRequest,
  provider: Provider,
  returnPath: string,
): Promise<AttemptRedirect | undefined> {
  const { attempts, rateLimit } = context.auth
  try {
    if (!hasSecret(context, request) && (await attempts.isWithoutCookies(clientOf(request)))) return undefined
    if (!(await rateLimit.admits('sign-in', request))) return undefined
    // A redirect keeps the fragment in the browser. That of another tab's login page does not belong here.
    const started = await startAttempt(context, request, provider, {
      kept: { returnPath, fragment: '' },
      isByPage: true,
    })
    if (started.isAtProvider) {
      if (!hasSecret(context, request)) await attempts.noteAutomatic(clientOf(request), started.state)
      return started
    }
    return { ...started, cookies: [...started.cookies, ...manualCookies(context, request, 'failed')] }
  } catch (error) {
    if (!(error instanceof MenshenError)) throw error
    context.observe.report('login_without_store', { ...errorFields(error), ...requestFields(request) })
    return undefined
  }
}

// A browser that has to click has a cookie for it. A browser that keeps no cookies is remembered on the server for a minute, by its
// address and user agent, because it sends nothing else that identifies it. Other clients that look the same have to click, too, so
// this happens only after the answer to an attempt that was started without a click for such a client.

/** For how long, by reason: until the next click, or until a page that did not get a session would have come back. */
const MANUAL_SECONDS = { failed: 60, 'signed-in': 30, 'signed-out': 365 * 24 * 3600 } as const

/** The cookie that makes this browser wait for a click. */
export function manualCookies(
  { settings, auth }: Pick<SignInContext, 'settings' | 'auth'>,
  { headers }: Pick<GatewayRequest, 'headers'>,
  reason: keyof typeof MANUAL_SECONDS,
): string[] {
  const { manual } = auth.cookies
  if (settings.AUTO_SIGN_IN === 'off') return []
  // After a sign-out, only a click or the sign-in that follows it replaces the cookie.
  if (reason === 'failed' && readCookie(headers.cookie, manual) === 'signed-out') return []
  return [setCookie(manual, reason, MANUAL_SECONDS[reason])]
}

/** For a callback: a browser that keeps cookies sends the secret of its attempt. */
export async function noteLostSecret(context: SignInContext, request: GatewayRequest): Promise<void> {
  if (context.settings.AUTO_SIGN_IN === 'off' || hasSecret(context, request)) return
  const state = new URLSearchParams(request.search).get('state')
  if (state) await context.auth.attempts.noteWithoutCookies(clientOf(request), state)
}

function hasSecret({ auth }: SignInContext, { headers }: GatewayRequest): boolean {
  return headers.cookie?.includes(auth.cookies.attempt) ?? false
}

function clientOf({ observed }: GatewayRequest): string {
  return JSON.stringify([observed.address, observed.userAgent ?? ''])
}
