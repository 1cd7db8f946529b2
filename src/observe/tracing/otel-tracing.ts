// Spans through the API of OpenTelemetry: for requests, for the work below them, and events on them. The names and attributes
// are those of its conventions for HTTP. No query, no ticket, no token and no name of a user is ever among them.
import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context, Span, SpanOptions } from '@opentelemetry/api'
import { MenshenError } from '../../errors.ts'
import { EVENTS, type Measure, type TraceCall, type Work } from '../../events.ts'
import type { Observer } from '../observation.ts'
import { currentRequest, type ObservedRequest } from '../observed-request.ts'
import { readVersion } from '../version.ts'
import { createRequestTrace, type Tracer, targetOf } from './otel-request-trace.ts'
import type { Tracing } from './trace.ts'

export type OpenTelemetry = typeof import('@opentelemetry/api')

export interface TracingOptions {
  readonly baseUrl: string
  /** As in STORE. */
  readonly store: string
}

/** An exporter that hangs must not hold up the end. */
const FLUSH_MS = 2000

export function createTracing(api: OpenTelemetry, { baseUrl, store }: TracingOptions): Tracing {
  const { context, trace, SpanKind, SpanStatusCode } = api
  const tracer: Tracer = { api, tracer: trace.getTracer('menshen', readVersion()), own: new URL(baseUrl) }
  const database = /^[a-z]+/.exec(store)?.[0].replace('rediss', 'redis') ?? 'other'
  const isServer = database === 'redis'
  /** By the id of the request: what happens outside of its context names it all the same. */
  const requests = new Map<string, { readonly span: Span; readonly context: Context }>()

  function begin(request: ObservedRequest, headers: IncomingHttpHeaders): void {
    const { requestId } = request
    const traced = createRequestTrace(tracer, request, headers, () => {
      if (requests.get(requestId) === traced) requests.delete(requestId)
    })
    request.trace = traced
    requests.set(requestId, traced)
  }

  /** Of an SDK that keeps no context of its own, at least the request is known. */
  function currentContext(): Context {
    const active = context.active()
    const { requestId = '' } = currentRequest() ?? {}
    return trace.getSpan(active) ? active : (requests.get(requestId)?.context ?? active)
  }

  function detailsOf(kind: keyof Work, what: string) {
    if (kind !== 'store') return { kind: SpanKind.INTERNAL }
    const attributes = { 'db.system.name': database, 'db.operation.name': what }
    return { kind: isServer ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes }
  }

  async function within<Result>(name: string, details: SpanOptions, work: (span?: Span) => Promise<Result>) {
    const parent = currentContext()
    // What nobody asked for, such as a look at the store every few seconds, is no trace.
    if (!trace.getSpan(parent)) return work()
    const started = tracer.tracer.startSpan(name, details, parent)
    try {
      return await context.with(trace.setSpan(parent, started), () => work(started))
    } catch (error) {
      started.setAttribute('error.type', error instanceof MenshenError ? error.code : 'unexpected')
      started.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      started.end()
    }
  }

  const span: Measure = (kind, what, work) => within(`${kind} ${what}`, detailsOf(kind, what), () => work())

  const call: TraceCall = (what, { method, url }, send) => {
    const attributes = { 'http.request.method': method, ...targetOf(new URL(url)), 'menshen.call': what }
    return within(`provider ${what}`, { kind: SpanKind.CLIENT, attributes }, async asked => {
      const answer = await send()
      asked?.setAttribute('http.response.status_code', answer.status)
      if (asked && answer.status >= 400) {
        asked.setAttribute('error.type', String(answer.status))
        asked.setStatus({ code: SpanStatusCode.ERROR })
      }
      return answer
    })
  }

  const observer: Observer = {
    onEvent(code, { requestId, reason }) {
      const active = trace.getActiveSpan()
      const own = requests.get(String(requestId))?.span
      const isElsewhere = own && active?.spanContext().traceId !== own.spanContext().traceId
      const told = isElsewhere ? own : active
      told?.addEvent(code, { level: EVENTS[code].level, ...(reason === undefined ? {} : { reason: String(reason) }) })
    },
    onAnswer: (request, status) => request.trace?.answered(status),
    onRequest: (request, status) => request.trace?.ended(status),
  }

  async function flush(): Promise<void> {
    const provider = trace.getTracerProvider()
    const sdk: object = provider instanceof api.ProxyTracerProvider ? provider.getDelegate() : provider
    if (!('forceFlush' in sdk) || typeof sdk.forceFlush !== 'function') return
    await Promise.race([Promise.resolve(sdk.forceFlush()).catch(() => {}), pause(FLUSH_MS, undefined, { ref: false })])
  }

  return { begin, span, call, observer, flush }
}
