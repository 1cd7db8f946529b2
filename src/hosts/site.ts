// A host of `hosts` as a site: its cookie contains a ticket of the host, which leads to the session of BASE_URL.

import type { Settings } from '../config/settings.ts'
import { type CookieNames, clearCookie, setCookie } from '../http/cookies.ts'
import { safeReturnPath } from '../http/return-path.ts'
import type { LoadedSession } from '../session/cache.ts'
import { latestEnd } from '../session/record.ts'
import type { Site } from '../sign-in/context.ts'
import type { ApplicationHost } from './context.ts'
import { authHostLogin, handoffAnswer, SIGNED_OUT_FIELD } from './handoff.ts'

interface HostSiteOptions {
  readonly settings: Pick<Settings, 'SESSION_MAX_HOURS'>
  readonly cookies: CookieNames
  readonly now: () => number
}

export function createHostSite(host: ApplicationHost, { settings, cookies, now }: HostSiteOptions): Site {
  const { name, authUrl, tickets } = host
  return {
    isAuthHost: false,
    findTicketSync: cookie => tickets.getSync(name, cookie),
    findTicket: cookie => tickets.get(name, cookie),
    forget(cookie) {
      tickets.remove(name, cookie).catch(() => {})
    },
    renewedCookie: (cookie, loaded) => hostCookie(cookies, cookie, loaded, settings, now()),
    // The login page is at BASE_URL, which finds the reason by the ticket of its own cookie.
    endedCookies: () => [clearCookie(cookies.session)],
    handoffAnswer: (context, request, identification) => handoffAnswer(context, host, request, identification),
    nextSignIn(context, request, wanted) {
      const { settings, paths } = context
      // BASE_URL would sign the user in again, because it gets none of our cookies that prevent it.
      if (settings.AUTO_SIGN_IN !== 'off')
        return { location: `${authUrl}${paths.login}?${SIGNED_OUT_FIELD}`, cookies: [] }
      const path = wanted && safeReturnPath(wanted, settings.BASE_URL, paths.signIn)
      if (!path) return { location: authUrl + paths.login, cookies: [] }
      const { location, cookie } = authHostLogin(context, host, request, path)
      return { location, cookies: [cookie] }
    },
    // The login page is at BASE_URL.
    signedOutAtHost: () => false,
    displayReturnPath: path => path,
    signedOutCookies: () => [],
  }
}

/**
 * The cookie of a host lives as long as the session can: refreshes happen at other hosts, too, whose responses cannot renew it.
 * Every request checks whether the session is still there.
 */
export function hostCookie(
  cookies: CookieNames,
  ticket: string,
  { signedInAt }: Pick<LoadedSession, 'signedInAt'>,
  { SESSION_MAX_HOURS }: Pick<Settings, 'SESSION_MAX_HOURS'>,
  now: number,
): string {
  const left = latestEnd(signedInAt, SESSION_MAX_HOURS) - now
  return setCookie(cookies.session, ticket, Math.max(0, Math.round(left / 1000)))
}
