// How many sign-in requests, and how many tickets that lead nowhere, one address may send in a minute.
import { type BlockList, isIPv6, SocketAddress } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

const SHARED_DEADLINE_MS = 1000

export interface RateLimit {
  /** Whether one more of this kind is within the limit. */
  admits(kind: 'sign-in' | 'ticket' | 'logout', visit: Visit): Promise<boolean>
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
    async admits(kind, visit) {
      const who = `${kind} ${network(clientAddress(proxies, visit))}`
      const counted = limiter.consume(who).then(
        () => true,
        () => false,
      )
      if (!shared) return counted
      // A Redis that hangs must not hold up a sign-in: then this process counts for itself.
      const late = pause(SHARED_DEADLINE_MS, undefined, { ref: false }).then(() =>
        own.consume(who).then(
          () => true,
          () => false,
        ),
      )
      return Promise.race([counted, late])
    },
  }
}

/** One household has a whole /64 of IPv6 addresses. */
export function network(address: string): string {
  if (!isIPv6(address)) return address
  // A proxy in front may write it in capitals or with zeros in front.
  const [head = '', tail] = new SocketAddress({ address, family: 'ipv6' }).address.split('::')
  const groups = (text: string) => text.split(':').filter(Boolean)
  const before = groups(head)
  const after = groups(tail ?? '')
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
