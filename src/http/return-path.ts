// The return path: where the visitor goes after signing in. It is always a path of our origin. Until the sign-in starts it is
// signed, in the address and the form of the tab's own login page, and as a fallback in a cookie; then the attempt keeps it.

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { KeyList } from '../session/derived-keys.ts'

const MAX_PATH_LENGTH = 8192
/** A cookie has to stay below 4096 bytes. A longer path is only in the address of the login page. */
export const MAX_PATH_LENGTH_IN_COOKIE = 2048

/** The path as the URL parser of browsers reads it; `undefined` if it leads to another origin or into the sign-in. */
export function safeReturnPath(text: string, origin: string, signInPaths: ReadonlySet<string>): string | undefined {
  if (!URL.canParse(text, origin)) return undefined
  const url = new URL(text, origin)
  if (url.origin !== origin || signInPaths.has(url.pathname)) return undefined
  const path = url.pathname + url.search
  // Without our origin in front of it, a path such as `//evil.example` is an address of another host.
  if (!URL.canParse(path, origin) || new URL(path, origin).origin !== origin) return undefined
  return path.length <= MAX_PATH_LENGTH ? path : undefined
}

/** Signs with the first of the keys. */
export function signReturnPath(path: string, until: number, [key]: KeyList): string {
  return sign(Buffer.from(`${until} ${path}`).toString('base64url'), key)
}

const SIGNED = /^\?return=([\w-]+\.[\w-]{43})$/
const IN_ADDRESS = /^\?return=(\d+)\.([\w-]{43})(\/.*)$/s

/** The query of a login page that leads to a signed path. A long path is not encoded: encoded, it would not fit. */
export function returnQuery(path: string, signed: string): string {
  if (path.length <= MAX_PATH_LENGTH_IN_COOKIE) return `?return=${signed}`
  const [text = '', signature = ''] = signed.split('.')
  const [until = ''] = Buffer.from(text, 'base64url').toString().split(' ', 1)
  return `?return=${until}.${signature}${path}`
}

/** The signed path in the query of a login page, not yet verified. */
export function signedInQuery(search: string): string | undefined {
  const [, signed] = SIGNED.exec(search) ?? []
  if (signed) return signed
  const [, until, signature, path] = IN_ADDRESS.exec(search) ?? []
  return until && `${Buffer.from(`${until} ${path}`).toString('base64url')}.${signature}`
}

/** `undefined` if none of the keys signed it, if it has expired, or if it leads to another origin. */
export function readReturnPath(
  cookie: string,
  keys: KeyList,
  { origin, signInPaths }: { readonly origin: string; readonly signInPaths: ReadonlySet<string> },
  now: number,
): string | undefined {
  const [text = ''] = cookie.split('.')
  // Compared as text, because a decoder of base64 ignores some characters.
  const given = Buffer.from(cookie)
  if (!keys.some(key => isSame(given, Buffer.from(sign(text, key))))) return undefined
  const [, until = '0', path = ''] = /^(\d+) (.*)$/s.exec(Buffer.from(text, 'base64url').toString()) ?? []
  return Number(until) > now ? safeReturnPath(path, origin, signInPaths) : undefined
}

function isSame(given: Buffer, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function sign(text: string, key: Uint8Array): string {
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}
