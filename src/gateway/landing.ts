// Breaks the circle of a browser that does not keep our cookie: it signs in, lands without a session, is sent to sign in
// again, and never learns why. A landing is expected right after each sign-in, on the same connection.

import type { House } from './house.ts'
import type { Visit } from './request.ts'
import { isTrusted } from './trust.ts'

export interface Landings {
  /** This browser was just given its cookie and sent to this place. */
  expect(visit: Visit, location: string): void
  /** Whether this visit is such a landing, and the cookie is not there. */
  isLost(visit: Visit): boolean
}

export function createLandings({ settings }: Pick<House, 'settings'>): Landings {
  const expected = new WeakMap<object, string>()
  return {
    expect(visit, location) {
      // A proxy's connection belongs to many browsers.
      if (isTrusted(settings.TRUSTED_PROXIES, visit.address)) return
      expected.set(visit.connection, location.replace(/#.*$/, ''))
    },
    isLost({ connection, path, search, headers }) {
      const location = expected.get(connection)
      expected.delete(connection)
      // What somebody types in, or follows within a page, is no landing.
      const site = headers['sec-fetch-site']
      const fromProvider = site === 'cross-site' || site === 'same-site'
      return location === path + search && fromProvider && headers.cookie === undefined
    },
  }
}
