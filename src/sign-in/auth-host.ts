// BASE_URL as a site: users sign in here, and the cookie has the ticket of the session itself.

import { type CookieNames, clearCookie, endReasonCookie, setCookie, signedOutCookie } from '../http/cookies.ts'
import type { LoadedSession } from '../session/cache.ts'
import { manualCookies } from './auto-sign-in.ts'
import type { Site } from './context.ts'
import { returnCookie } from './denial.ts'

/** The part of `hosts` that the login page needs. */
type HostsLogin = Pick<Site, 'signedOutAtHost' | 'displayReturnPath'>

const NO_HOSTS: HostsLogin = { signedOutAtHost: () => false, displayReturnPath: path => path }

export function createAuthSite(cookies: CookieNames, now: () => number, ofHosts: HostsLogin = NO_HOSTS): Site {
  return {
    ...ofHosts,
    isAuthHost: true,
    findTicketSync: cookie => cookie,
    findTicket: async cookie => cookie,
    forget() {},
    renewedCookie: (cookie, loaded) => sessionCookie(cookies.session, cookie, loaded, now()),
    endedCookies: () => [clearCookie(cookies.session), endReasonCookie(cookies, 'refresh_failed')],
    handoffAnswer: () => undefined,
    nextSignIn: (context, _request, wanted) => ({
      location: context.paths.login,
      cookies: wanted ? [returnCookie(context, wanted)] : [],
    }),
    signedOutCookies: (context, request, signedOut) => [
      signedOutCookie(cookies, signedOut),
      ...manualCookies(context, request, 'signed-out'),
    ],
  }
}

export function sessionCookie(name: string, ticket: string, { expiresAt }: LoadedSession, now: number): string {
  return setCookie(name, ticket, Math.max(0, Math.round((expiresAt - now) / 1000)))
}
