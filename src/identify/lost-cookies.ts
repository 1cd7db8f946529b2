// Detects a browser that does not keep our cookie: it signs in, lands without a session, is sent to sign in again, and never
// learns why. A landing is expected right after each sign-in, on the same connection. A browser that has shown the new
// session once, on any connection, has kept the cookie: if it is missing later, its user has signed out.

import { isTrusted } from '../config/networks.ts'
import type { Settings } from '../config/settings.ts'
import type { GatewayRequest } from '../http/request.ts'

export interface LostCookieDetector {
  /** This browser was just given the cookie of this session, and sent to this location. */
  expect(request: GatewayRequest, location: string, sessionKey: string): void
  /** A request has shown this session. */
  sessionSeen(sessionKey: string): void
  /** Whether this request is such a landing, and the cookie is missing. */
  cookieWasLost(request: GatewayRequest): boolean
}

/** A browser follows a redirect immediately; this is enough for a slow line. */
const REDIRECT_TIMEOUT_MS = 60_000
/** More sign-ins than a process completes within that time. Beyond it, the oldest is treated as seen. */
const MAX_UNSEEN = 10_000

interface LostCookieOptions {
  readonly settings: Pick<Settings, 'TRUSTED_PROXIES'>
  readonly now: () => number
}

interface SignInRedirect {
  readonly location: string
  readonly sessionKey: string
}

export function createLostCookieDetector({ settings, now }: LostCookieOptions): LostCookieDetector {
  const expected = new WeakMap<object, SignInRedirect>()
  /** Until when each new session may be seen for the first time, the oldest first. */
  const unseen = new Map<string, number>()

  function dropExpired(): void {
    for (const [sessionKey, until] of unseen) {
      if (now() < until && unseen.size < MAX_UNSEEN) return
      unseen.delete(sessionKey)
    }
  }

  return {
    expect(request, location, sessionKey) {
      // Many browsers share a proxy's connection.
      if (isTrusted(settings.TRUSTED_PROXIES, request.address)) return
      dropExpired()
      unseen.set(sessionKey, now() + REDIRECT_TIMEOUT_MS)
      expected.set(request.connection, { location: location.replace(/#.*$/, ''), sessionKey })
    },
    sessionSeen(sessionKey) {
      // Every signed-in request comes here, and there is rarely a new session.
      if (unseen.size > 0) unseen.delete(sessionKey)
    },
    cookieWasLost({ connection, path, search, headers }) {
      const landing = expected.get(connection)
      if (!landing) return false
      expected.delete(connection)
      dropExpired()
      const isUnseen = unseen.delete(landing.sessionKey)
      // A typed address or a link within a page is not a landing.
      const site = headers['sec-fetch-site']
      const fromProvider = site === 'cross-site' || site === 'same-site'
      return isUnseen && landing.location === path + search && fromProvider && headers.cookie === undefined
    },
  }
}
