// Which request it was that failed when /login says so: a redirect has led there, and the id of the page itself would lead
// nowhere. It is told by what the browser shows of itself; whoever shares that at the same moment has the same trouble.
import { LRUCache } from 'lru-cache'
import type { GatewayContext } from '../context.ts'
import type { Visit } from './request.ts'
import { clientAddress } from './trusted-proxies.ts'

export interface FailedRequests {
  remember(visit: Visit, error: string): void
  /** The id of the request that led to this page, or of the page where that is not known. */
  idFor(visit: Visit, error: string): string
}

const KEPT_MS = 60_000
const MOST_KEPT = 10_000

export function createFailedRequests({ settings }: Pick<GatewayContext, 'settings'>): FailedRequests {
  const ids = new LRUCache<string, string>({ max: MOST_KEPT, ttl: KEPT_MS })

  function browserOf(visit: Visit, error: string): string {
    const { 'user-agent': userAgent = '' } = visit.headers
    return JSON.stringify([clientAddress(settings.TRUSTED_PROXIES, visit), userAgent.slice(0, 256), error])
  }

  return {
    remember: (visit, error) => void ids.set(browserOf(visit, error), visit.observed.requestId),
    idFor: (visit, error) => ids.get(browserOf(visit, error)) ?? visit.observed.requestId,
  }
}
