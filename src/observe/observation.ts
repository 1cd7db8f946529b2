// Where everything that can be observed comes together: events, work that others are waited for in, and requests.
import { MenshenError } from '../errors.ts'
import type { EventCode, Measure, Report, Work } from '../events.ts'
import { currentRequest, type ObservedRequest } from './observed-request.ts'

/** Hears of what happens, and must not hold it up. */
export interface Observer {
  onEvent?(code: EventCode, facts: Readonly<Record<string, unknown>>): void
  /** `result` is `ok` or the code of an error of ours. */
  onWork?<Kind extends keyof Work>(kind: Kind, what: Work[Kind], result: string, seconds: number): void
  /** It has ended, one way or another. `status` is 0 if nothing was answered, or by an application that we do not see. */
  onRequest?(request: ObservedRequest, status: number): void
  /** The head of the application's answer is here. `status` is 0 if there is none. */
  onAnswer?(request: ObservedRequest, status: number): void
}

export interface Observation {
  readonly report: Report
  readonly measure: Measure
  /** A request has ended. */
  ended(request: ObservedRequest, status: number): void
  /** The application has answered, or with 0 failed to. */
  answered(request: ObservedRequest, status: number): void
}

export function createObservation(observers: readonly Observer[]): Observation {
  return {
    report(code, facts = {}) {
      const request = currentRequest()
      const known = request ? { requestId: request.requestId, ...facts } : facts
      for (const observer of observers) observer.onEvent?.(code, known)
    },

    async measure(kind, what, work) {
      const startedAt = performance.now()
      const done = (result: string) => {
        const seconds = (performance.now() - startedAt) / 1000
        for (const observer of observers) observer.onWork?.(kind, what, result, seconds)
      }
      try {
        const result = await work()
        done('ok')
        return result
      } catch (error) {
        done(error instanceof MenshenError ? error.code : 'unexpected')
        throw error
      }
    },

    ended(request, status) {
      for (const observer of observers) observer.onRequest?.(request, status)
    },

    answered(request, status) {
      for (const observer of observers) observer.onAnswer?.(request, status)
    },
  }
}
