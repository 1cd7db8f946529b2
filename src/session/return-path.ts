// Where the visitor wanted to go before signing in: only ever a path of our own origin, carried in a signed cookie.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { SIGN_IN_PATHS } from '../own-paths.ts'
import type { KeyList } from './keys/derived-keys.ts'

/** A cookie has to stay below 4096 bytes; a longer path is not worth carrying. */
const LONGEST_PATH = 2048

/** The path as the URL parser of browsers sees it; `undefined` if it leads away from our origin or into the sign-in. */
export function ownPath(text: string, origin: string, callbackPaths: ReadonlySet<string>): string | undefined {
  if (!URL.canParse(text, origin)) return undefined
  const url = new URL(text, origin)
  if (url.origin !== origin || SIGN_IN_PATHS.includes(url.pathname) || callbackPaths.has(url.pathname)) return undefined
  const path = url.pathname + url.search
  // A path such as `//evil.example` is ours only as long as our origin stands in front of it.
  if (!URL.canParse(path, origin) || new URL(path, origin).origin !== origin) return undefined
  return path.length <= LONGEST_PATH ? path : undefined
}

/** With the first of the keys. */
export function signReturnPath(path: string, until: number, [key]: KeyList): string {
  const text = Buffer.from(`${until} ${path}`).toString('base64url')
  return `${text}.${mac(text, key).toString('base64url')}`
}

/** `undefined` if none of the keys signed it, it is too old, or it leads away. */
export function readReturnPath(
  cookie: string,
  keys: KeyList,
  { origin, callbackPaths }: { readonly origin: string; readonly callbackPaths: ReadonlySet<string> },
  now: number,
): string | undefined {
  const [text = '', signature = ''] = cookie.split('.')
  const given = Buffer.from(signature, 'base64url')
  if (!keys.some(key => isSame(given, mac(text, key)))) return undefined
  const [, until = '0', path = ''] = /^(\d+) (.*)$/s.exec(Buffer.from(text, 'base64url').toString()) ?? []
  return Number(until) > now ? ownPath(path, origin, callbackPaths) : undefined
}

function isSame(given: Buffer, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function mac(text: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
