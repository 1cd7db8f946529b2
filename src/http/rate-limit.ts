// Limits per address and minute: sign-in requests, and tickets, tokens, keys or device proofs that are not valid.
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { network } from '../config/networks.ts'
import type { Report } from '../events.ts'
import { observedFields } from '../observe/observed-request.ts'
import type { ProxyRequest } from './caller.ts'

const SHARED_DEADLINE_MS = 1000

export interface RateLimit {
  /** Counts one more request of this kind; false if it is above the limit. */
  admits(kind: LimitKind, request: CountedRequest): Promise<boolean>
  /** Counts one more request, and returns a function that takes the count back; `undefined` if it is above the limit. */
  take(kind: LimitKind, request: CountedRequest): Promise<Refund | undefined>
}

type LimitKind = 'sign-in' | 'ticket' | 'logout' | 'device'
type Refund = () => void
type CountedRequest = Pick<ProxyRequest, 'observed'>

interface CountResult {
  /** `above again`: not the first of its minute above the limit. */
  readonly result: 'within' | 'above' | 'above again'
  readonly refund: Refund
}

const NO_REFUND: Refund = () => {}

interface Limit {
  readonly points: number
  readonly duration: number
  readonly keyPrefix: string
}

interface RateLimitOptions {
  readonly perMinute: number
  /** A Redis client and the prefix of its keys, if all instances count together. */
  readonly shared: { readonly client: object; readonly prefix: string } | undefined
  readonly report: Report
}

export function createRateLimit({ perMinute, shared, report }: RateLimitOptions): RateLimit {
  if (perMinute === 0) return { admits: async () => true, take: async () => NO_REFUND }
  const limit: Limit = { points: perMinute, duration: 60, keyPrefix: `${shared?.prefix ?? 'menshen'}:limit` }
  const own = new RateLimiterMemory(limit)
  const count = shared ? countShared(shared.client, limit, own) : (who: string) => countOne(own, who)
  let isReported = false
  function reportUnknown(): Refund {
    if (!isReported) report('address_unknown', { remedy: 'hand over { address }, of the client at the other end' })
    isReported = true
    return NO_REFUND
  }

  async function take(kind: LimitKind, request: CountedRequest): Promise<Refund | undefined> {
    const { address } = request.observed
    // One count for all clients without an address would let one of them use up the limit of the others.
    if (address === '') return reportUnknown()
    const { result, refund } = await count(`${kind} ${network(address)}`)
    if (result === 'within') return refund
    const fields = { ...observedFields(request.observed), address, kind }
    report('rate_limited', result === 'above again' ? { ...fields, again: true } : fields)
    return undefined
  }

  return { take, admits: async (kind, request) => (await take(kind, request)) !== undefined }
}

/** A Redis that hangs must not delay a sign-in: then only this process counts, and each request once. */
function countShared(shared: object, limit: Limit, own: RateLimiterMemory): (who: string) => Promise<CountResult> {
  const limiter = new RateLimiterRedis({
    ...limit,
    storeClient: shared,
    useRedisPackage: true,
    rejectIfRedisNotReady: true,
  })
  return who =>
    new Promise((resolve, reject) => {
      let ownCount: Promise<CountResult> | undefined
      const countLocally = () => {
        ownCount ??= countOne(own, who)
        ownCount.then(resolve, reject)
      }
      const late = setTimeout(countLocally, SHARED_DEADLINE_MS).unref()
      countOne(limiter, who)
        .then(resolve, countLocally)
        .finally(() => clearTimeout(late))
    })
}

/** Rejects if it could not be counted. */
async function countOne(limiter: RateLimiterAbstract, who: string): Promise<CountResult> {
  try {
    await limiter.consume(who)
    return { result: 'within', refund: () => void limiter.reward(who).catch(() => {}) }
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error
    const result = error.consumedPoints > limiter.points + 1 ? 'above again' : 'above'
    return { result, refund: NO_REFUND }
  }
}
