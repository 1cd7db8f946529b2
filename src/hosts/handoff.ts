// How a browser gets from a host of `hosts` to BASE_URL and back:
//
//   host      a visitor's page         302 to /_menshen/enter at BASE_URL, and a nonce in a cookie of the host
//   BASE_URL  /_menshen/enter          signs in if needed; 302 to /_menshen/entered at the host, with a code
//   host      /_menshen/entered        takes the code, compares the nonce, sets the host's own session cookie; 302 to the page

import { hash, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type ResponseAnswer, redirectAnswer } from '../http/answers.ts'
import { readCookie, setCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import { returnQuery, signReturnPath } from '../http/return-path.ts'
import type { CallerIdentification } from '../identify/admission.ts'
import { isOwnPath, OWN_PATHS, type OwnPaths } from '../paths.ts'
import { isTicket, newTicket } from '../session/ticket.ts'
import type { SignInContext, Site } from '../sign-in/context.ts'
import { atMost } from '../util/recent.ts'
import type { ApplicationHost, KnownHosts } from './context.ts'

const NONCE_SECONDS = 600
/** The address has to fit into a head, twice: in the request and in our answer. */
const MAX_URL_LENGTH = 4096

/** At a host: redirects to BASE_URL, and from there back to the requested page. */
export function handoffAnswer(
  context: SignInContext,
  { authUrl }: ApplicationHost,
  request: GatewayRequest,
  { cookies }: Pick<CallerIdentification, 'cookies'>,
): ResponseAnswer {
  const { path, cookie } = startHandoff(context, request, request.path + request.search)
  return redirectAnswer(context.pages, request.method, authUrl + path, {
    outcome: 'visitor',
    cookies: [...cookies, cookie],
  })
}

/** The path of BASE_URL that leads to a page of this host, and the cookie with the nonce. */
function startHandoff({ settings, auth }: SignInContext, { headers }: GatewayRequest, wanted: string) {
  const known = readCookie(headers.cookie, auth.cookies.handoff)
  // All tabs of a browser share one nonce, so that none of them breaks the entry of another.
  const nonce = known && isTicket(known) ? known : newTicket()
  const encoded = encodeAddress(settings.BASE_URL + wanted)
  const to = encoded.length > MAX_URL_LENGTH ? encodeAddress(`${settings.BASE_URL}/`) : encoded
  return {
    path: `${OWN_PATHS.handoff}?to=${to}&n=${challengeOf(nonce)}`,
    cookie: setCookie(auth.cookies.handoff, nonce, NONCE_SECONDS),
  }
}

/** Encodes what would end or change the parameter, and what no address has. The rest stays readable and short. */
function encodeAddress(address: string): string {
  return address.replace(/[^\x21-\x7e]|[%&#+"<>\\^`{|}]/gu, encodeURIComponent)
}

export function challengeOf(nonce: string): string {
  return hash('sha256', nonce, 'base64url')
}

/** Whether the browser that began the entry is the one that completes it. */
export function hasNonce({ auth }: SignInContext, { headers }: GatewayRequest, challenge: string): boolean {
  const nonce = readCookie(headers.cookie, auth.cookies.handoff)
  if (!nonce) return false
  const [given, expected] = [Buffer.from(challengeOf(nonce)), Buffer.from(challenge)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const RETURN_SECONDS = 24 * 3600

/** At a host: redirects to the login page of BASE_URL, and from there back to this page of the host. */
export function authHostLogin(
  context: SignInContext,
  { authUrl }: ApplicationHost,
  request: GatewayRequest,
  wanted: string,
): { location: string; cookie: string } {
  const { now, auth, paths } = context
  const { path, cookie } = startHandoff(context, request, wanted)
  const signed = signReturnPath(path, now() + RETURN_SECONDS * 1000, auth.keys.returnPath)
  return { location: authUrl + paths.login + returnQuery(path, signed), cookie }
}

/** In the query of the login page: the user has signed out at a host. */
export const SIGNED_OUT_FIELD = 'signed_out'

/** What the login page knows about hosts. */
export const HOSTS_LOGIN: Pick<Site, 'signedOutAtHost' | 'displayReturnPath'> = {
  signedOutAtHost: query => query.has(SIGNED_OUT_FIELD),
  displayReturnPath(path) {
    const isHandoff = path.startsWith(`${OWN_PATHS.handoff}?`)
    return (isHandoff && new URLSearchParams(path.slice(OWN_PATHS.handoff.length)).get('to')) || path
  },
}

/** A page of a host, as `to` of /_menshen/enter names it. */
export interface HostPage {
  readonly host: string
  readonly origin: string
  /** With its query. */
  readonly path: string
}

const MAX_TO_LENGTH = 8192

/** `undefined` if it is not an address of a configured host. */
export function readHostPage(to: string, hosts: KnownHosts, { signIn }: OwnPaths): HostPage | undefined {
  // A URL parser drops or changes these characters, and browsers do so differently from servers.
  if (to.length > MAX_TO_LENGTH || /[\p{Cc}\s]|^[^?]*\\/u.test(to)) return undefined
  // Browsers do not show an address with a user in front of the host, not even an empty one.
  const url = /^https?:\/\/[^/?#@]+(?:[/?#]|$)/i.test(to) ? URL.parse(to) : undefined
  const host = url && hosts.nameOf(url.origin)
  if (!url || !host) return undefined
  const path = url.pathname + url.search
  // Without the origin in front of it, `//evil.example` is an address of another host.
  // A tab that signs in again for a form of another comes back to its own page.
  const isPage = url.pathname === OWN_PATHS.stepUp || !isOwnPath(url.pathname, signIn)
  return { host, origin: url.origin, path: isPage && !path.startsWith('//') ? path : '/' }
}

// Entries that repeat. A browser that keeps no cookie of a host, or sends another's beside it, would be redirected forever.

/** Browsers give up after twenty redirects, and an entry takes three. */
const [MAX_PER_PAGE, MAX_PER_SESSION] = [5, 60]
const WINDOW_MS = 10_000
const MAX_COUNTERS = 10_000

export function createHandoffLimit(now: () => number): KnownHosts['mayHandOff'] {
  const counts = new LRUCache<string, { since: number; count: number }>(atMost(MAX_COUNTERS))

  function isWithin(key: string, most: number): boolean {
    const known = counts.get(key)
    const entry = known && Math.abs(now() - known.since) < WINDOW_MS ? known : { since: now(), count: 0 }
    entry.count++
    counts.set(key, entry)
    return entry.count <= most
  }

  return (sessionKey, address) =>
    isWithin(sessionKey, MAX_PER_SESSION) &&
    isWithin(hash('sha256', `${sessionKey} ${address}`, 'base64url'), MAX_PER_PAGE)
}
