// What a sign-out leaves in the browser for the login page: where it counted, and the state with which the browser went to
// the provider, if it did.
import type { CookieNames } from './cookies.ts'
import { readCookie, setCookie } from './cookies.ts'

export interface SignedOut {
  readonly where: 'here' | 'everywhere'
  readonly state?: string | undefined
}

/** Long enough for the way through the provider. */
const CONFIRMED_SECONDS = 120

export function signedOutCookie({ signedOut }: CookieNames, { where, state }: SignedOut): string {
  return setCookie(signedOut, state === undefined ? where : `${where}.${state}`, CONFIRMED_SECONDS)
}

export function readSignedOut({ signedOut }: CookieNames, header: string | undefined): SignedOut | undefined {
  const [where, state] = readCookie(header, signedOut)?.split('.') ?? []
  return where === 'here' || where === 'everywhere' ? { where, state } : undefined
}
