// How many sign-in requests, and how many tickets that lead nowhere, one address may send in a minute.
import { type BlockList, isIPv6 } from 'node:net'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { Visit } from './request.ts'
import { clientAddress } from './trust.ts'

export interface RateLimit {
  /** Whether one more of this kind is within the limit. */
  admits(kind: 'sign-in' | 'ticket', visit: Visit): Promise<boolean>
}

export interface RateLimitOptions {
  readonly perMinute: number
  readonly proxies: BlockList | undefined
  /** A Redis client, where all instances count together. */
  readonly shared: object | undefined
}

export function createRateLimit({ perMinute, proxies, shared }: RateLimitOptions): RateLimit {
  if (perMinute === 0) return { admits: async () => true }
  const limit = { points: perMinute, duration: 60, keyPrefix: 'menshen:limit' }
  const own = new RateLimiterMemory(limit)
  const limiter = shared
    ? new RateLimiterRedis({
        ...limit,
        storeClient: shared,
        useRedisPackage: true,
        rejectIfRedisNotReady: true,
        insuranceLimiter: own,
      })
    : own
  return {
    admits: (kind, visit) =>
      limiter.consume(`${kind} ${network(clientAddress(proxies, visit))}`).then(
        () => true,
        () => false,
      ),
  }
}

/** One household has a whole /64 of IPv6 addresses. */
export function network(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const before = groups(head)
  const after = groups(tail ?? '')
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
