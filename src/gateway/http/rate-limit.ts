// How many sign-in requests, and how many tickets that lead nowhere, one address may send in a minute.
import { type BlockList, isIPv6, SocketAddress } from 'node:net'
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Report } from '../../events.ts'
import { requestFacts } from '../../observe/observed-request.ts'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

const SHARED_DEADLINE_MS = 1000

export interface RateLimit {
  /** Whether one more of this kind is within the limit. */
  admits(kind: 'sign-in' | 'ticket' | 'logout', visit: Visit): Promise<boolean>
}

interface Limit {
  readonly points: number
  readonly duration: number
  readonly keyPrefix: string
}

interface RateLimitOptions {
  readonly perMinute: number
  readonly proxies: BlockList | undefined
  /** A Redis client, where all instances count together. */
  readonly shared: object | undefined
  readonly report: Report
}

export function createRateLimit({ perMinute, proxies, shared, report }: RateLimitOptions): RateLimit {
  if (perMinute === 0) return { admits: async () => true }
  const limit: Limit = { points: perMinute, duration: 60, keyPrefix: 'menshen:limit' }
  const own = new RateLimiterMemory(limit)
  const admits = shared ? countTogether(shared, limit, own) : (who: string) => countOne(own, who)
  let told = false
  function tellOfUnknown(): true {
    if (!told) report('address_unknown', { remedy: 'hand over { address }, of whoever is at the other end' })
    told = true
    return true
  }
  return {
    async admits(kind, visit) {
      const address = clientAddress(proxies, visit)
      // All of them together would let one client use up what every other needs.
      if (address === '') return tellOfUnknown()
      const isWithinLimit = await admits(`${kind} ${network(address)}`)
      if (!isWithinLimit) report('rate_limited', { ...requestFacts(visit.observed), address, kind })
      return isWithinLimit
    },
  }
}

/** A Redis that hangs must not hold up a sign-in: then this process counts for itself, and each request once. */
function countTogether(shared: object, limit: Limit, own: RateLimiterMemory): (who: string) => Promise<boolean> {
  const limiter = new RateLimiterRedis({
    ...limit,
    storeClient: shared,
    useRedisPackage: true,
    rejectIfRedisNotReady: true,
  })
  return who =>
    new Promise(resolve => {
      let ownCount: Promise<boolean> | undefined
      const countHere = () => {
        ownCount ??= countOne(own, who)
        ownCount.then(resolve)
      }
      const late = setTimeout(countHere, SHARED_DEADLINE_MS).unref()
      countOne(limiter, who)
        .then(resolve, countHere)
        .finally(() => clearTimeout(late))
    })
}

/** Whether it is still within the limit. Rejects if it could not be counted. */
async function countOne(limiter: RateLimiterAbstract, who: string): Promise<boolean> {
  try {
    await limiter.consume(who)
    return true
  } catch (error) {
    if (error instanceof RateLimiterRes) return false
    throw error
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
