// Where everything that can be observed comes together: events, work that others are waited for in, and requests.
import { performance } from 'node:perf_hooks'
import { MenshenError } from '../errors.ts'
import type { EventCode, Measure, MeasureAtOnce, Report, TraceCall, Work } from '../events.ts'
import { currentRequest, type ObservedRequest, requestFacts } from './observed-request.ts'
import type { Tracing } from './tracing/trace.ts'

/** Hears of what happens, and must not hold it up. */
export interface Observer {
  onEvent?(code: EventCode, facts: Readonly<Record<string, unknown>>): void
  /** `result` is `ok` or the code of an error of ours. */
  onWork?<Kind extends keyof Work>(kind: Kind, what: Work[Kind], result: string, seconds: number): void
  /** It has ended, one way or another. `status` is 0 if it was answered by an application that we do not see. */
  onRequest?(request: ObservedRequest, status: number, ms: number, connection: Connection | undefined): void
  /** The head of the application's answer is here. `status` is 0 if there is none. */
  onAnswer?(request: ObservedRequest, status: number): void
}

/** Over which it was answered. */
export interface Connection {
  readonly bytesWritten: number
}

/** In place of a status, as nginx has it: the client left before anything was answered. */
export const CLIENT_LEFT = 499

export interface Observation {
  readonly report: Report
  readonly measure: Measure
  /** Absent where somebody traces: a trace shows whatever a request has to wait for, however short. */
  readonly measureAtOnce: MeasureAtOnce | undefined
  /** For each call to a provider. Absent where nobody traces. */
  readonly traceCall: TraceCall | undefined
  /** A request has arrived. Absent where nobody traces. */
  readonly begun: Tracing['begin'] | undefined
  /** A request has ended. `status` is 0 if an application around us answers it. */
  ended(request: ObservedRequest, status: number, connection?: Connection): void
  /** The application has answered, or with 0 failed to. */
  answered(request: ObservedRequest, status: number): void
}

export function createObservation(
  observers: readonly Observer[],
  mainProvider: () => string,
  tracing?: Tracing | undefined,
): Observation {
  // Every request is told of: not to those who do not listen.
  const ofRequests = observers.filter(({ onRequest }) => onRequest)

  function done<Kind extends keyof Work>(kind: Kind, what: Work[Kind], startedAt: number, error?: unknown): void {
    const result = error === undefined ? 'ok' : error instanceof MenshenError ? error.code : 'unexpected'
    const seconds = (performance.now() - startedAt) / 1000
    for (const observer of observers) observer.onWork?.(kind, what, result, seconds)
  }

  const measureAtOnce: MeasureAtOnce = (kind, what, work) => {
    const startedAt = performance.now()
    try {
      const result = work()
      done(kind, what, startedAt)
      return result
    } catch (error) {
      done(kind, what, startedAt, error)
      throw error
    }
  }

  return {
    begun: tracing?.begin,
    traceCall: tracing?.call,

    report(code, facts = {}) {
      const all = withRequest(facts)
      // A user whose session does not say which provider it is from is the main one's.
      const isOfMain = all.sub !== undefined && all.provider === undefined
      const known = isOfMain ? { ...all, provider: mainProvider() } : all
      for (const observer of observers) observer.onEvent?.(code, known)
    },

    async measure(kind, what, work) {
      const startedAt = performance.now()
      try {
        // Work at a provider may need several calls, or none: each has a span of its own.
        const result = await (tracing && kind !== 'provider' ? tracing.span(kind, what, work) : work())
        done(kind, what, startedAt)
        return result
      } catch (error) {
        done(kind, what, startedAt, error)
        throw error
      }
    },

    measureAtOnce: tracing ? undefined : measureAtOnce,

    ended(request, status, connection) {
      const ms = performance.now() - request.startedAt
      for (const observer of ofRequests) observer.onRequest?.(request, status, ms, connection)
    },

    answered(request, status) {
      for (const observer of observers) observer.onAnswer?.(request, status)
    },
  }
}

type Facts = Readonly<Record<string, unknown>>

/** What happened deep inside belongs to the request that is current there, unless it names another one. */
function withRequest(facts: Facts): Facts {
  const request = currentRequest()
  const isAnother = facts.requestId !== undefined && facts.requestId !== request?.requestId
  return !request || isAnother ? facts : { ...requestFacts(request), ...facts }
}
