// A key: `mk_` and 43 characters of base64url. How one is created, recognised in the headers of a request, and hashed. Only the hash
// is ever kept.

import { hash, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** The header for programs whose `Authorization` belongs to the application. */
export const KEY_HEADER = 'x-menshen-key'

const KEY_BYTES = 32
const KEY = /^mk_[\w-]{43}$/
/** The length of a key in base64: thousands of shorter words in one header would take milliseconds to decode. */
const ENCODED = Math.ceil(('mk_'.length + 43) * (4 / 3))
/** A longer word is not a key: tokens of other vendors start with mk_, too. */
const KEY_WITHIN = /(?<![\w-])mk_[\w-]{43}(?![\w-])/

/** Without a boundary in front: `%2F` ends in a letter. */
const KEYS_WITHIN = /mk_[\w-]{43,}/g
/** How many characters of a key or an id are shown: enough to recognise it. */
const SHOWN = 10

export function newKey(): string {
  return `mk_${randomBytes(KEY_BYTES).toString('base64url')}`
}

export function isKey(text: string): boolean {
  return KEY.test(text)
}

/** A path as logs show it: a key that was pasted into it is cut to its first ten characters. */
export function withoutKeys(path: string): string {
  return path.includes('mk_') ? path.replace(KEYS_WITHIN, key => key.slice(0, SHOWN)) : path
}

/** The hash of the whole key, in hex. A key is fully random, so one hash is enough. */
export function keySha256(key: string): string {
  return hash('sha256', key, 'hex')
}

/** A key as the client presented it. */
export type PresentedKey = { readonly key: string } | { readonly problem: 'malformed' | 'several' }

/** `undefined` if there is none. A value that begins like a key, or is in the header for keys, is treated as one. */
export function keyIn(
  headers: IncomingHttpHeaders,
  { acceptsPassword = true }: { readonly acceptsPassword?: boolean } = {},
): PresentedKey | undefined {
  const { authorization, [KEY_HEADER]: own } = headers
  if (authorization === undefined && own === undefined) return undefined
  const credential = authorization === undefined ? undefined : keyOfAuthorization(authorization, acceptsPassword)
  const presented = own === undefined ? credential : String(own)
  if (presented === undefined) return undefined
  if (credential !== undefined && credential !== presented) return { problem: 'several' }
  return isKey(presented) ? { key: presented } : { problem: 'malformed' }
}

const BEARER = /^bearer[ \t]+(mk_.*)$/i
const BASIC = /^basic[ \t]+(\S+)$/i

/** The token of Bearer, or the password of Basic with any user name. */
function keyOfAuthorization(authorization: string, acceptsPassword: boolean): string | undefined {
  const token = BEARER.exec(authorization)?.[1]
  if (token !== undefined || !acceptsPassword) return token
  const [, password] = /^[^:]*:(mk_.*)$/s.exec(decoded(BASIC.exec(authorization)?.[1] ?? '')) ?? []
  return password
}

/** Accepts base64 without padding, and in the alphabet of URLs. */
function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString()
}

/**
 * Whether a value of `Authorization` contains a key, in any scheme: plain, or in base64 as any server might decode it. Such a
 * value is only for us.
 */
export function containsKey(authorization: string): boolean {
  if (KEY_WITHIN.test(authorization)) return true
  const words = authorization.split(/[\s,]+/)
  return [...words, words.slice(1).join('')].some(word => word.length >= ENCODED && KEY_WITHIN.test(decoded(word)))
}

/** The names of the headers that have a key, which an application must not get. */
export function keyHeadersOf({ authorization, [KEY_HEADER]: own }: IncomingHttpHeaders): string[] {
  return [
    ...(authorization !== undefined && containsKey(authorization) ? ['authorization'] : []),
    ...(own === undefined ? [] : [KEY_HEADER]),
  ]
}
