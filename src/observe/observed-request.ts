// What becomes known of a request while it is answered, for those who observe.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestTrace } from './tracing/trace.ts'

/** `own`: a page of ours; `error`: something of ours, or the application behind, failed. */
export type Outcome = 'admitted' | 'visitor' | 'refused' | 'own' | 'error'

export interface ObservedRequest {
  readonly requestId: string
  /** By `performance.now()`. */
  readonly startedAt: number
  readonly method: string
  /** Of the client, as far as proxies are trusted to tell. */
  readonly address: string
  /** At most as much as any browser sends. */
  readonly userAgent?: string | undefined
  /** Without its query; empty where it could not be read. */
  path: string
  outcome: Outcome
  user?: string
  /** The origin of the application that it was forwarded to. */
  upstream?: string
  /** When that application was asked, by `performance.now()`. */
  askedAt?: number
  /** Whether the session of its ticket was in the cache; absent where there was no ticket. */
  isAtHand?: boolean
  /** What a socket was answered; of everything else its response knows. */
  status?: number
  /** Only with an SDK of OpenTelemetry. */
  trace?: RequestTrace
  /** It stays open for as long as somebody listens: how long that is says nothing about us. */
  isStream?: true
}

/** What every report about it carries. */
export function requestFacts({ requestId, address, userAgent }: ObservedRequest) {
  return { requestId, address, ...(userAgent === undefined ? {} : { userAgent }) }
}

const current = new AsyncLocalStorage<ObservedRequest>()

/** Whatever is reported in there belongs to this request. Not for what is answered at once: it would only cost time. */
export function during<Result>(request: ObservedRequest, work: () => Result): Result {
  const { trace } = request
  return current.run(request, trace ? () => trace.within(work) : work)
}

export function currentRequest(): ObservedRequest | undefined {
  return current.getStore()
}
