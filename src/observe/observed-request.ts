// What becomes known about a request while it is answered, for observers.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingHttpHeaders } from 'node:http'
import type { EventCode } from '../events.ts'
import type { Measure, TraceCall, Work } from '../measure.ts'
import { identityFields } from '../session/fields.ts'

/** `own`: one of Menshen's pages; `error`: Menshen or the application behind it failed. */
export type RequestOutcome = 'admitted' | 'visitor' | 'refused' | 'own' | 'error'

/** The header that carries the id of a request. */
export const REQUEST_ID = 'x-request-id'

export interface ObservedRequest {
  readonly requestId: string
  /** From `performance.now()`. */
  readonly startedAt: number
  readonly method: string
  /** The client's address, as far as trusted proxies forward it. */
  readonly address: string
  /** Cut to the longest that a browser sends. */
  readonly userAgent?: string | undefined
  /** The name in `hosts` that it is for; absent at BASE_URL. */
  host?: string
  /** Without its query; empty where it could not be read. */
  path: string
  outcome: RequestOutcome
  user?: string
  /** The origin of the application that it was forwarded to. */
  upstream?: string
  /** When that application was asked, by `performance.now()`. */
  askedAt?: number
  /** Whether the session of its ticket was in the cache; absent where there was no ticket. */
  cacheHit?: boolean
  /** The status that a socket was answered with; otherwise the response has it. */
  status?: number
  /** Only with an SDK of OpenTelemetry. */
  trace?: RequestTrace
  /** A stream, open for as long as its client listens: its duration is not a response time. */
  isStream?: true
}

/** The fields of every report about a request. */
export function observedFields({ requestId, address, userAgent, host }: ObservedRequest) {
  return {
    requestId,
    address,
    ...(userAgent === undefined ? {} : { userAgent }),
    ...(host === undefined ? {} : { host }),
  }
}

/** Fields that include whose request it is: without that, one client's repeats would hide another's first report. */
export function requestFields(
  { observed }: { readonly observed: ObservedRequest },
  caller?: Parameters<typeof identityFields>[0] | undefined,
) {
  return { ...observedFields(observed), ...(caller && identityFields(caller)) }
}

const current = new AsyncLocalStorage<ObservedRequest>()

/** Everything that `work` reports belongs to this request. Not for synchronous answers, where it would only cost time. */
export function runInRequest<Result>(request: ObservedRequest, work: () => Result): Result {
  const { trace } = request
  return current.run(request, trace ? () => trace.within(work) : work)
}

export function currentRequest(): ObservedRequest | undefined {
  return current.getStore()
}

// A trace as the rest of the gateway sees it: nothing here belongs to OpenTelemetry, and without OpenTelemetry there is no trace.

/** The trace of one request. */
export interface RequestTrace {
  /** Everything that `work` measures is below the request. */
  within<Result>(work: () => Result): Result
  /** The application is about to be asked. Adds the context of this call to `headers`, names and values in turn. */
  asked(headers: string[]): void
  /** The application has answered; 0 if it failed to. */
  answered(status: number): void
  ended(status: number): void
}

export interface Tracing {
  /** A request has arrived, and its path is known. */
  begin(request: ObservedRequest, headers: IncomingHttpHeaders): void
  /** Work below the current span. */
  readonly span: Measure
  /** Creates a span for each call that is made to a provider. */
  readonly call: TraceCall
  readonly observer: Observer
  /** Sends what has not been sent yet. */
  flush(): Promise<void>
}

/** Is notified of what happens, and must not delay it. */
export interface Observer {
  onEvent?(code: EventCode, fields: Readonly<Record<string, unknown>>): void
  /** `result` is `ok` or one of Menshen's error codes. */
  onWork?<Kind extends keyof Work>(kind: Kind, what: Work[Kind], result: string, seconds: number): void
  /** The request has ended, one way or another. `status` is 0 if the application that embeds Menshen answers it. */
  onRequest?(request: ObservedRequest, status: number, ms: number, connection: RequestConnection | undefined): void
  /** The head of the application's answer is here. `status` is 0 if there is none. */
  onAnswer?(request: ObservedRequest, status: number): void
}

/** The connection over which a request was answered. */
export interface RequestConnection {
  readonly bytesWritten: number
}

/** In place of a status, as in nginx: the client disconnected before it got an answer. */
export const CLIENT_CLOSED_REQUEST = 499
