// The name of a request, by which its answer, its log lines and what a user reads out on the phone are found together.
import { randomFillSync } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Networks } from '../../settings/networks/networks.ts'
import { isTrusted } from './trusted-proxies.ts'

export const REQUEST_ID = 'x-request-id'

const USABLE = /^[A-Za-z0-9_-]{8,128}$/
/** Nothing that is easily taken for something else when it is read out. */
const LETTERS = '23456789abcdefghijkmnpqrstuvwxyz'
const LENGTH = 12

/** The letters of many ids, made at once. */
const pool = Buffer.alloc(LENGTH * 256)
let used = pool.length

export function newRequestId(): string {
  if (used === pool.length) fillPool()
  used += LENGTH
  return pool.toString('latin1', used - LENGTH, used)
}

function fillPool(): void {
  randomFillSync(pool)
  for (const [place, byte] of pool.entries()) pool[place] = LETTERS.charCodeAt(byte & 31)
  used = 0
}

export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && USABLE.test(text)
}

/** The one that a trusted proxy has given it, else a new one. */
export function requestIdOf(proxies: Networks | undefined, headers: IncomingHttpHeaders, address: string): string {
  const given = headers[REQUEST_ID]
  return isRequestId(given) && isTrusted(proxies, address) ? given : newRequestId()
}
