// A trace as the rest of the gateway knows it: nothing here is of OpenTelemetry, and without it there is none.
import type { IncomingHttpHeaders } from 'node:http'
import type { Measure, TraceCall } from '../../events.ts'
import type { Observer } from '../observation.ts'
import type { ObservedRequest } from '../observed-request.ts'

/** Hangs on a request. */
export interface RequestTrace {
  /** What is measured in there is below the request. */
  within<Result>(work: () => Result): Result
  /** The application is about to be asked: its headers, names and values in turn, then name this very call. */
  asked(headers: string[]): void
  /** The application has answered; 0 if it failed to. */
  answered(status: number): void
  ended(status: number): void
}

export interface Tracing {
  /** A request has arrived, and its path is known. */
  begin(request: ObservedRequest, headers: IncomingHttpHeaders): void
  /** Work below whatever is current. */
  readonly span: Measure
  /** The same for a call to a provider: a span for each one that is made. */
  readonly call: TraceCall
  readonly observer: Observer
  /** Whatever is not sent yet. */
  flush(): Promise<void>
}
