// The name of a request, by which its answer, its log lines and what a user reads out on the phone are found together.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Networks } from '../../settings/networks/networks.ts'
import { isTrusted } from './trusted-proxies.ts'

export const REQUEST_ID = 'x-request-id'

const USABLE = /^[A-Za-z0-9_-]{8,128}$/
/** Nothing that is easily taken for something else when it is read out. */
const LETTERS = '23456789abcdefghijkmnpqrstuvwxyz'
const LENGTH = 12

/** The letters of many ids, made at once. */
let pool = ''
let used = 0

export function newRequestId(): string {
  if (used === pool.length) refill()
  used += LENGTH
  return pool.slice(used - LENGTH, used)
}

function refill(): void {
  const letters = randomBytes(LENGTH * 256)
  for (const [place, byte] of letters.entries()) letters[place] = LETTERS.charCodeAt(byte & 31)
  pool = letters.toString('latin1')
  used = 0
}

/** What many answers have in common: names and values in turn, as Node sends them fastest, with a last place for the id. */
export function commonHeaders(headers: Readonly<Record<string, string>>): readonly string[] {
  const list: string[] = []
  for (const name in headers) list.push(name, headers[name] ?? '')
  list.push(REQUEST_ID, '')
  return list
}

/** A copy of common headers for the answer to one request. */
export function withRequestId(common: readonly string[], requestId: string): string[] {
  const copy = common.slice()
  copy[copy.length - 1] = requestId
  return copy
}

export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && USABLE.test(text)
}

/** The one that a trusted proxy has given it, else a new one. */
export function requestIdOf(proxies: Networks | undefined, headers: IncomingHttpHeaders, address: string): string {
  const given = headers[REQUEST_ID]
  return isRequestId(given) && isTrusted(proxies, address) ? given : newRequestId()
}
