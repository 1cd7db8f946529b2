// BASE_URL as a site: users sign in here, and the cookie has the ticket of the session itself.

import { type CookieNames, clearCookie, endReasonCookie, setCookie, signedOutCookie } from '../http/cookies.ts'
import type { LoadedSession } from '../session/cache.ts'
import { manualCookies } from './auto-sign-in.ts'
import type { Site } from './context.ts'
import { returnCookie } from './denial.ts'

/** What the login page knows of `hosts`. */
type OfHosts = Pick<Site, 'hasLeftHost' | 'shownReturnPath'>

const NO_HOSTS: OfHosts = { hasLeftHost: () => false, shownReturnPath: path => path }

export function createAuthSite(cookies: CookieNames, now: () => number, ofHosts: OfHosts = NO_HOSTS): Site {
  return {
    ...ofHosts,
    isAuthHost: true,
    ticketSync: cookie => cookie,
    ticket: async cookie => cookie,
    forget() {},
    renewed: (cookie, loaded) => sessionCookie(cookies.session, cookie, loaded, now()),
    ended: () => [clearCookie(cookies.session), endReasonCookie(cookies, 'refresh_failed')],
    handoff: () => undefined,
    nextSignIn: (context, _request, wanted) => ({
      location: context.paths.login,
      cookies: wanted ? [returnCookie(context, wanted)] : [],
    }),
    signedOut: (context, request, signedOut) => [
      signedOutCookie(cookies, signedOut),
      ...manualCookies(context, request, 'signed-out'),
    ],
  }
}

export function sessionCookie(name: string, ticket: string, { expiresAt }: LoadedSession, now: number): string {
  return setCookie(name, ticket, Math.max(0, Math.round((expiresAt - now) / 1000)))
}
