// Our cookies: names, attributes, reading and writing.

import { hash } from 'node:crypto'
import { z } from 'zod'
import { isSecure } from '../config/read.ts'
import type { Settings } from '../config/settings.ts'
import { END_REASONS, type EndReason } from '../session/end-reasons.ts'
import type { OwnCookies } from '../util/own-cookies.ts'

export interface CookieNames {
  /** The ticket of the session. */
  readonly session: string
  /** The second cookie of a session that is bound to its device. */
  readonly bound: string
  /** The signed return path. */
  readonly returnPath: string
  /** The secret that binds attempts to this browser. */
  readonly attempt: string
  /** For the login page: a sign-out has just happened. */
  readonly signedOut: string
  /** Why the session ended, for the login page of a browser whose ticket was cleared. */
  readonly endReason: string
  /** This browser was just redirected from another name of this machine. */
  readonly moved: string
  /** The language that was chosen on one of our pages. */
  readonly language: string
  /** For the next page: sessions have just been ended. */
  readonly ended: string
  /** At a host of `hosts`: the nonce of an entry. */
  readonly handoff: string
  /** At a host of `hosts`: an entry has just failed. */
  readonly handoffFailed: string
  /** A late callback has just sent this browser to the provider again. */
  readonly retry: string
  /** The user has to click to sign in: AUTO_SIGN_IN does not apply to this browser. */
  readonly manual: string
  /** The provider that this browser signed in with last, by its id; only with several. */
  readonly provider: string
}

/** Set by the login page itself, only for the callback. */
export const FRAGMENT_COOKIE = 'menshen_fragment'

export function cookieNames(settings: Pick<Settings, 'BASE_URL'>): CookieNames {
  // Browsers refuse a `__Host-` cookie that another host, a path or plain http tries to plant.
  const prefix = isSecure(settings) ? '__Host-' : ''
  return {
    session: `${prefix}menshen_session`,
    bound: `${prefix}menshen_bound`,
    returnPath: `${prefix}menshen_return`,
    attempt: `${prefix}menshen_attempt`,
    signedOut: `${prefix}menshen_signed_out`,
    endReason: `${prefix}menshen_end_reason`,
    moved: `${prefix}menshen_moved`,
    language: `${prefix}menshen_language`,
    ended: `${prefix}menshen_ended`,
    handoff: `${prefix}menshen_entry`,
    handoffFailed: `${prefix}menshen_entry_failed`,
    retry: `${prefix}menshen_retry`,
    manual: `${prefix}menshen_manual`,
    provider: `${prefix}menshen_provider`,
  }
}

/**
 * The names that no application gets or sets, in both forms, because a browser still has the other one after BASE_URL has
 * become https. In lower case, because browsers ignore case in prefixes.
 */
export function ourCookies(names: CookieNames): OwnCookies {
  const plain = [...Object.values(names), FRAGMENT_COOKIE].map(name => name.toLowerCase().replace(/^__host-/, ''))
  const all = new Set(plain.flatMap(name => [name, `__host-${name}`]))
  return {
    shortest: Math.min(...plain.map(({ length }) => length)),
    has: name => all.has(name) || ATTEMPT_COOKIE.test(name),
  }
}

// The secret of an attempt that a page started, not the login form. Tabs that are opened at the same time have no secret yet, so
// each gets one. Under a common name, the last one would replace the others.

const ATTEMPT_COOKIE = /^(?:__host-)?menshen_attempt_/

/** The cookie of one attempt. */
export function attemptCookie({ attempt }: CookieNames, state: string): string {
  return `${attempt}_${hash('sha256', state, 'hex').slice(0, 16)}`
}

/** The secret with which this browser started the attempt. */
export function browserSecret(names: CookieNames, header: string | undefined, state: string): string | undefined {
  return readCookie(header, attemptCookie(names, state)) ?? readCookie(header, names.attempt)
}

/** If one name has two different values, one of them was planted. It is unknown which, so both are ignored. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  let found: string | undefined
  // Searches from one occurrence of the name to the next: parsing all cookies costs more than finding the session.
  for (let end = 0, at = header.indexOf(name); at >= 0; at = header.indexOf(name, end)) {
    end = endOfCookie(header, at)
    if (header[at + name.length] !== '=' || !beginsCookie(header, at)) continue
    const value = header.slice(at + name.length + 1, end).trimEnd()
    if (found !== undefined && found !== value) return undefined
    found = value
  }
  return found || undefined
}

function endOfCookie(header: string, at: number): number {
  const end = header.indexOf(';', at)
  return end < 0 ? header.length : end
}

/**
 * Whether only spaces and tabs separate it from the previous `;`. Browsers send one space. Any other white space is part of the name:
 * to a browser, a name that begins with a no-break space is not one with a prefix, so any host of the domain may set it.
 */
function beginsCookie(header: string, at: number): boolean {
  if (at === 0 || (header[at - 1] === ' ' && header[at - 2] === ';')) return true
  return /^[ \t]*$/.test(header.slice(header.lastIndexOf(';', at) + 1, at))
}

export function setCookie(name: string, value: string, maxAgeSeconds: number): string {
  // `__Host-` demands Secure, Path=/ and no Domain.
  const secure = name.startsWith('__Host-') ? '; Secure' : ''
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`
}

export function clearCookie(name: string): string {
  return setCookie(name, '', 0)
}

export function clearFragment(callbackPath: string): string {
  return `${FRAGMENT_COOKIE}=; Path=${callbackPath}; Max-Age=0; SameSite=Lax`
}

// For the login page after a sign-out: where it applied, and the state with which the browser went to the provider, if it did.

export interface SignOutNotice {
  readonly where: 'here' | 'everywhere'
  readonly state?: string | undefined
}

/** Long enough for the round trip through the provider. */
const CONFIRMED_SECONDS = 120

export function signedOutCookie({ signedOut }: CookieNames, { where, state }: SignOutNotice): string {
  return setCookie(signedOut, state === undefined ? where : `${where}.${state}`, CONFIRMED_SECONDS)
}

export function readSignedOut({ signedOut }: CookieNames, header: string | undefined): SignOutNotice | undefined {
  const [where, state] = readCookie(header, signedOut)?.split('.') ?? []
  return where === 'here' || where === 'everywhere' ? { where, state } : undefined
}

/** Long enough for a user to look at the login page: a script may have noticed the end first. */
const END_REASON_SECONDS = 600

export function endReasonCookie({ endReason }: CookieNames, reason: EndReason): string {
  return setCookie(endReason, reason, END_REASON_SECONDS)
}

export function readEndReason({ endReason }: CookieNames, header: string | undefined): EndReason | undefined {
  const cookie = readCookie(header, endReason)
  return END_REASONS.find(reason => reason === cookie)
}

/** Clears the reason once it has been shown or no longer matters. */
export function clearEndReason({ endReason }: CookieNames, header: string | undefined): string[] {
  return readCookie(header, endReason) === undefined ? [] : [clearCookie(endReason)]
}

// For the next page: how many sessions were just ended and, in the console, whose, or of how many users.

export interface EndedNotice {
  readonly ended: number
  readonly user?: string
  /** Absent for one user. */
  readonly users?: number
}

const NOTICE_SECONDS = 60
/** The length of a cookie is limited, that of a username is not. */
const MAX_NAME_LENGTH = 100

const endedSchema: z.ZodType<EndedNotice> = z.object({
  ended: z.int().min(0),
  user: z.string().exactOptional(),
  users: z.int().min(2).exactOptional(),
})

export function endedCookie({ ended: name }: CookieNames, { user, ...counts }: EndedNotice): string {
  const notice = user === undefined ? counts : { ...counts, user: user.slice(0, MAX_NAME_LENGTH).toWellFormed() }
  return setCookie(name, Buffer.from(JSON.stringify(notice)).toString('base64url'), NOTICE_SECONDS)
}

/** `undefined` if nothing was ended, or the cookie is not ours. */
export function readEnded({ ended: name }: CookieNames, header: string | undefined): EndedNotice | undefined {
  const cookie = readCookie(header, name)
  if (cookie === undefined) return undefined
  try {
    return endedSchema.safeParse(JSON.parse(Buffer.from(cookie, 'base64url').toString())).data
  } catch {
    return undefined
  }
}
