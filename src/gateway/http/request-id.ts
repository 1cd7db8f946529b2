// The name of a request, by which its answer, its log lines and what a user reads out on the phone are found together.
import { randomFillSync } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { BlockList } from 'node:net'
import { isTrusted } from './trusted-proxies.ts'

export const REQUEST_ID = 'x-request-id'

const USABLE = /^[A-Za-z0-9_-]{8,128}$/
/** Nothing that is easily taken for something else when it is read out. */
const LETTERS = '23456789abcdefghijkmnpqrstuvwxyz'
const LENGTH = 12

const pool = Buffer.alloc(LENGTH * 256)
let used = pool.length

export function newRequestId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  let id = ''
  for (const end = used + LENGTH; used < end; used++) id += LETTERS[(pool[used] as number) & 31]
  return id
}

export function isRequestId(text: unknown): text is string {
  return typeof text === 'string' && USABLE.test(text)
}

/** The one that a trusted proxy has given it, else a new one. */
export function requestIdOf(proxies: BlockList | undefined, headers: IncomingHttpHeaders, address: string): string {
  const given = headers[REQUEST_ID]
  return isRequestId(given) && isTrusted(proxies, address) ? given : newRequestId()
}
