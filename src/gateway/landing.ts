// Breaks the circle of a browser that does not keep our cookie: it signs in, lands without a session, is sent to sign in
// again, and never learns why. A landing is expected for a moment after each sign-in.
import { hash } from 'node:crypto'
import type { Visit } from './request.ts'

export interface Landings {
  /** A browser was just given its cookie and sent to this path. */
  expect(visit: Visit, location: string): void
  /** Whether this visit is such a landing, and the cookie is not there. */
  isLost(visit: Visit): boolean
}

const LANDING_MS = 5000
const MOST = 1000

export function createLandings(now: () => number): Landings {
  const expected = new Map<string, number>()
  return {
    expect(visit, location) {
      expected.set(landingOf(visit, location.replace(/#.*$/, '')), now() + LANDING_MS)
      if (expected.size > MOST) expected.delete(expected.keys().next().value as string)
    },
    isLost(visit) {
      const landing = landingOf(visit, visit.path + visit.search)
      const until = expected.get(landing)
      if (until === undefined) return false
      expected.delete(landing)
      // Only a browser that comes from the provider: what somebody types in, or follows within a page, is no landing.
      const site = visit.headers['sec-fetch-site']
      const fromProvider = site === 'cross-site' || site === 'same-site'
      return fromProvider && now() < until && visit.headers.cookie === undefined
    },
  }
}

function landingOf({ address, headers }: Visit, location: string): string {
  return hash('sha256', `${address} ${headers['user-agent'] ?? ''} ${location}`, 'base64url')
}
