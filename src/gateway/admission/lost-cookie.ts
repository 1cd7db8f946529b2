// Breaks the circle of a browser that does not keep our cookie: it signs in, lands without a session, is sent to sign in
// again, and never learns why. A landing is expected right after each sign-in, on the same connection.

import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { isTrusted } from '../http/trusted-proxies.ts'

export interface LostCookieDetector {
  /** This browser was just given its cookie and sent to this place. */
  expect(visit: Visit, location: string): void
  /** Whether this visit is such a landing, and the cookie is not there. */
  cookieWasLost(visit: Visit): boolean
}

export function createLostCookieDetector({ settings }: Pick<GatewayContext, 'settings'>): LostCookieDetector {
  const expected = new WeakMap<object, string>()
  return {
    expect(visit, location) {
      // A proxy's connection belongs to many browsers.
      if (isTrusted(settings.TRUSTED_PROXIES, visit.address)) return
      expected.set(visit.connection, location.replace(/#.*$/, ''))
    },
    cookieWasLost({ connection, path, search, headers }) {
      const location = expected.get(connection)
      expected.delete(connection)
      // What somebody types in, or follows within a page, is no landing.
      const site = headers['sec-fetch-site']
      const fromProvider = site === 'cross-site' || site === 'same-site'
      return location === path + search && fromProvider && headers.cookie === undefined
    },
  }
}
