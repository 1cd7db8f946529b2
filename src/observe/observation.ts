// Passes events, measured work and requests on to all observers: log, metrics, history, traces.

import { performance } from 'node:perf_hooks'
import type { Settings } from '../config/settings.ts'
import { MenshenError } from '../errors.ts'
import type { Report } from '../events.ts'
import { createEventLog, type Log } from '../log.ts'
import type { Measure, MeasureSync, TraceCall, Work } from '../measure.ts'
import { signInPathsOf } from '../paths.ts'
import type { Store } from '../stores/store.ts'
import { withoutKeys } from '../util/key-form.ts'
import { createAccessLog } from './access-log.ts'
import { createHistory } from './history.ts'
import { thisInstance } from './instances.ts'
import { createMetrics, type EventCounter } from './metrics.ts'
import {
  currentRequest,
  type ObservedRequest,
  type Observer,
  observedFields,
  type RequestConnection,
  type Tracing,
} from './observed-request.ts'

import { createShadowRefusals } from './shadow-refusals.ts'
import { openTracing } from './tracing.ts'

export interface Observation {
  readonly report: Report
  readonly measure: Measure
  /** Absent with tracing: a trace shows all that a request waits for, however short. */
  readonly measureSync: MeasureSync | undefined
  /** For each call to a provider. Absent without tracing. */
  readonly traceCall: TraceCall | undefined
  /** A request has arrived. Absent without tracing. */
  readonly begun: Tracing['begin'] | undefined
  /** A request has ended. `status` is 0 if the application that embeds Menshen answers it. */
  ended(request: ObservedRequest, status: number, connection?: RequestConnection): void
  /** The application has answered; `status` is 0 if it failed to. */
  answered(request: ObservedRequest, status: number): void
}

export function createObservation(
  observers: readonly Observer[],
  mainProvider: () => string,
  tracing?: Tracing | undefined,
): Observation {
  // On the path of every request: only observers of requests are called.
  const ofRequests = observers.filter(({ onRequest }) => onRequest)

  function done<Kind extends keyof Work>(kind: Kind, what: Work[Kind], startedAt: number, error?: unknown): void {
    const result = error === undefined ? 'ok' : error instanceof MenshenError ? error.code : 'unexpected'
    const seconds = (performance.now() - startedAt) / 1000
    for (const observer of observers) observer.onWork?.(kind, what, result, seconds)
  }

  const measureSync: MeasureSync = (kind, what, work) => {
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

    report(code, fields = {}) {
      const all = withRequest(fields)
      // A user without a provider id is one of the main provider.
      const isOfMain = all.sub !== undefined && all.provider === undefined
      const known = withoutKeysInPath(isOfMain ? { ...all, provider: mainProvider() } : all)
      for (const observer of observers) observer.onEvent?.(code, known)
    },

    async measure(kind, what, work) {
      const startedAt = performance.now()
      try {
        // Work at a provider may need several calls or none, and each call has its own span.
        const result = await (tracing && kind !== 'provider' ? tracing.span(kind, what, work) : work())
        done(kind, what, startedAt)
        return result
      } catch (error) {
        done(kind, what, startedAt, error)
        throw error
      }
    },

    measureSync: tracing ? undefined : measureSync,

    ended(request, status, connection) {
      const ms = performance.now() - request.startedAt
      for (const observer of ofRequests) observer.onRequest?.(request, status, ms, connection)
    },

    answered(request, status) {
      for (const observer of observers) observer.onAnswer?.(request, status)
    },
  }
}

type Fields = Readonly<Record<string, unknown>>

/** An event belongs to the current request, unless it names another one. */
function withRequest(fields: Fields): Fields {
  const request = currentRequest()
  const isAnother = fields.requestId !== undefined && fields.requestId !== request?.requestId
  return !request || isAnother ? fields : { ...observedFields(request), ...fields }
}

function withoutKeysInPath(fields: Fields): Fields {
  const { path } = fields
  const shown = typeof path === 'string' ? withoutKeys(path) : path
  return shown === path ? fields : { ...fields, path: shown }
}

// Opens all observers.

interface ObservationOptions {
  readonly settings: Settings
  readonly log: Log
  readonly now: () => number
  readonly worker?: number | undefined
  /** The id of the main provider, for users without one. */
  readonly mainProvider: () => string
  readonly countedEvents: EventCounter | undefined
}

/** The observers are closed with `opened`. */
export async function openObservation(
  opened: AsyncDisposableStack,
  { settings, log, now, worker, mainProvider, countedEvents }: ObservationOptions,
) {
  const eventLog = opened.adopt(createEventLog(log, now), events => events.close())
  const metrics = settings.METRICS_FROM === 'none' ? undefined : createMetrics(countedEvents)
  const history = createHistory({ instance: thisInstance(now(), worker), now })
  const shadowRefusals = createShadowRefusals(now)
  const tracing = await openTracing({
    baseUrl: settings.BASE_URL,
    store: settings.STORE,
    signInPaths: signInPathsOf(settings),
  })
  opened.defer(() => tracing?.flush())
  const observers: Observer[] = [{ onEvent: eventLog.report }, history.observer, shadowRefusals.observer]
  if (metrics) observers.push(metrics.observer)
  if (settings.ACCESS_LOG) observers.push(createAccessLog(eventLog.write))
  if (tracing) observers.push(tracing.observer)
  return {
    metrics,
    series: history,
    shadowRefusals,
    observation: createObservation(observers, mainProvider, tracing),
    /** Adds an observer of events that can only be opened later. */
    join: (observer: Pick<Observer, 'onEvent'>) => void observers.push(observer),
  }
}

// A store whose operations are measured.

/** Without `measureSync`, `readSync` is absent. */
export function observedStore(store: Store, measure: Measure, measureSync?: MeasureSync): Store {
  const { readSync } = store
  return {
    ...(readSync && measureSync && { readSync: key => measureSync('store', 'read', () => readSync(key)) }),
    create: (key, entry) => measure('store', 'create', () => store.create(key, entry)),
    read: key => measure('store', 'read', () => store.read(key)),
    readLatest: key => measure('store', 'read', () => store.readLatest(key)),
    ...(store.beginTurn && { beginTurn: store.beginTurn }),
    // It does not wait, so there is nothing to measure.
    isCurrent: store.isCurrent,
    replace: (key, entry, version) => measure('store', 'replace', () => store.replace(key, entry, version)),
    remove: key => measure('store', 'remove', () => store.remove(key)),
    take: key => measure('store', 'take', () => store.take(key)),
    list: query => measure('store', 'list', () => store.list(query)),
    newest: query => measure('store', 'newest', () => store.newest(query)),
    count: () => measure('store', 'count', () => store.count()),
    trail: {
      append: (events, keep) => measure('store', 'trail_append', () => store.trail.append(events, keep)),
      read: query => measure('store', 'trail_read', () => store.trail.read(query)),
    },
    ready: () => measure('store', 'ready', () => store.ready()),
    close: () => store.close(),
  }
}
