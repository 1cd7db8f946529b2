// How many sign-in requests one address may send in a minute.
import { isIPv6 } from 'node:net'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { plainAddress } from './trust.ts'

export interface RateLimit {
  /** Whether one more request of this address is within the limit. */
  admits(address: string): Promise<boolean>
}

export function createRateLimit(perMinute: number): RateLimit {
  if (perMinute === 0) return { admits: async () => true }
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 })
  return {
    admits: address =>
      limiter.consume(network(address)).then(
        () => true,
        () => false,
      ),
  }
}

/** One household has a whole /64 of IPv6 addresses. */
function network(address: string): string {
  const plain = plainAddress(address)
  if (!isIPv6(plain)) return plain
  const [head = '', tail = ''] = plain.split('::')
  const groups = head.split(':').filter(Boolean)
  const missing = plain.includes('::') ? 8 - groups.length - tail.split(':').filter(Boolean).length : 0
  return [...groups, ...Array<string>(missing).fill('0'), ...tail.split(':')].slice(0, 4).join(':')
}
