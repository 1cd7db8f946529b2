// Spans through the API of OpenTelemetry: for requests, for the work below them, and events on them. The names and attributes
// are those of its conventions for HTTP. They never contain a query, a ticket, a token or a username.

import type { IncomingHttpHeaders } from 'node:http'
import type { Attributes, Context, Tracer as OtelTracer, Span, SpanOptions } from '@opentelemetry/api'
import { MenshenError } from '../errors.ts'
import { EVENTS } from '../events.ts'
import type { Measure, TraceCall, Work } from '../measure.ts'
import { OWN_PATHS, type SignInPaths } from '../paths.ts'
import { withDeadline } from '../util/deadline.ts'
import { withoutKeys } from '../util/key-form.ts'
import { readVersion } from '../util/version.ts'
import {
  CLIENT_CLOSED_REQUEST,
  currentRequest,
  type ObservedRequest,
  type Observer,
  type RequestTrace,
  type Tracing,
} from './observed-request.ts'

export type OpenTelemetry = typeof import('@opentelemetry/api')

export interface TracingOptions {
  readonly baseUrl: string
  /** As in STORE. */
  readonly store: string
  readonly signInPaths: SignInPaths
}

/** An exporter that hangs must not delay the shutdown. */
const FLUSH_MS = 2000

export function createTracing(api: OpenTelemetry, { baseUrl, store, signInPaths }: TracingOptions): Tracing {
  const { context, trace, SpanKind, SpanStatusCode } = api
  const { login, callback, logout } = signInPaths
  const tracer: Tracer = {
    api,
    tracer: trace.getTracer('menshen', readVersion()),
    own: new URL(baseUrl),
    routes: new Set([...FIXED_ROUTES, login, callback, logout]),
  }
  const database = /^[a-z]+/.exec(store)?.[0].replace('rediss', 'redis') ?? 'other'
  const isServer = database === 'redis'
  /** Keyed by request id, which work outside of the request's context has as well. */
  const requests = new Map<string, { readonly span: Span; readonly context: Context }>()

  function begin(request: ObservedRequest, headers: IncomingHttpHeaders): void {
    const { requestId } = request
    const traced = createRequestTrace(tracer, request, headers, () => {
      if (requests.get(requestId) === traced) requests.delete(requestId)
    })
    request.trace = traced
    requests.set(requestId, traced)
  }

  /** With an SDK that keeps no context, at least the request is known. */
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
    // Background work, such as reading the store every few seconds, is not traced.
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
      const parent = isElsewhere ? own : active
      parent?.addEvent(code, { level: EVENTS[code].level, ...(reason === undefined ? {} : { reason: String(reason) }) })
    },
    onAnswer: (request, status) => request.trace?.answered(status),
    onRequest: (request, status) => request.trace?.ended(status),
  }

  async function flush(): Promise<void> {
    const provider = trace.getTracerProvider()
    const sdk: object = provider instanceof api.ProxyTracerProvider ? provider.getDelegate() : provider
    if (!('forceFlush' in sdk) || typeof sdk.forceFlush !== 'function') return
    await withDeadline(Promise.resolve(sdk.forceFlush()), FLUSH_MS).catch(() => {})
  }

  return { begin, span, call, observer, flush }
}

// The span of one request, and that of the call to the application below it.

export interface Tracer {
  readonly api: OpenTelemetry
  readonly tracer: OtelTracer
  /** BASE_URL. */
  readonly own: URL
  /** Paths that may be names of spans, because there are few of them. */
  readonly routes: ReadonlySet<string>
}

/** Methods that the conventions call known; all others share one name, so that a client cannot invent span names. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])
const FIXED_ROUTES: readonly string[] = Object.values(OWN_PATHS)

export function createRequestTrace(
  { api, tracer, own, routes }: Tracer,
  request: ObservedRequest,
  headers: IncomingHttpHeaders,
  onEnd: () => void,
): RequestTrace & { readonly span: Span; readonly context: Context } {
  const { context, propagation, trace, SpanKind, SpanStatusCode } = api
  const parent = parentOf(api, headers)
  const method = METHODS.has(request.method) ? request.method : '_OTHER'
  const verb = method === '_OTHER' ? 'HTTP' : method
  const route = routes.has(request.path) ? request.path : undefined
  const attributes: Attributes = {
    'http.request.method': method,
    'url.path': withoutKeys(request.path),
    ...addressOf(own),
    ...(route === undefined ? {} : { 'http.route': route }),
    'menshen.request_id': request.requestId,
  }
  const name = route === undefined ? verb : `${verb} ${route}`
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
  const within = trace.setSpan(parent, span)
  let upstream: Span | undefined

  function fail(failed: Span, type: string): void {
    failed.setAttribute('error.type', type)
    failed.setStatus({ code: SpanStatusCode.ERROR })
  }

  function endUpstream(status: number | undefined): void {
    if (!upstream) return
    if (status) upstream.setAttribute('http.response.status_code', status)
    if (status === 0) fail(upstream, 'no_answer')
    else if (status !== undefined && status >= 400) fail(upstream, String(status))
    upstream.end()
    upstream = undefined
  }

  return {
    span,
    context: within,
    within: work => context.with(within, work),

    asked(headers) {
      const to = request.upstream === undefined ? {} : targetOf(new URL(withoutKeys(request.path), request.upstream))
      const attributes = { 'http.request.method': method, ...to }
      upstream = tracer.startSpan(verb, { kind: SpanKind.CLIENT, attributes }, within)
      const carrier: Record<string, string> = {}
      propagation.inject(trace.setSpan(within, upstream), carrier)
      for (const [name, value] of Object.entries(carrier)) setHeader(headers, name, value)
    },

    answered: endUpstream,

    ended(status) {
      // The browser disconnected before the application answered.
      endUpstream(undefined)
      span.setAttribute('menshen.outcome', request.outcome)
      if (status === CLIENT_CLOSED_REQUEST) span.setAttribute('error.type', 'client_left')
      else if (status > 0) span.setAttribute('http.response.status_code', status)
      if (status >= 500) fail(span, String(status))
      span.end()
      onEnd()
    },
  }
}

/** The surrounding program may already have a span for it; otherwise the parent is the caller's, as W3C Trace Context defines. */
function parentOf({ context, propagation, trace, ROOT_CONTEXT }: OpenTelemetry, headers: IncomingHttpHeaders): Context {
  const active = context.active()
  return trace.getSpan(active) ? active : propagation.extract(ROOT_CONTEXT, headers)
}

function addressOf(url: URL): Attributes {
  return { 'url.scheme': url.protocol.slice(0, -1), ...serverOf(url) }
}

/** Attributes of an outgoing call. The address is without its query, which may hold anything. */
export function targetOf(url: URL): Attributes {
  return { 'url.full': url.origin + url.pathname, ...serverOf(url) }
}

function serverOf({ protocol, hostname, port }: URL): Attributes {
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** Replaces what the browser has sent under this name. `headers` are names and values in turn. */
function setHeader(headers: string[], name: string, value: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) if (headers[i]?.toLowerCase() === name) headers.splice(i, 2)
  headers.push(name, value)
}

// Tracing, if an SDK of OpenTelemetry was registered before us. Otherwise its API is not even looked for: Node, Jest and Vite
// each report a missing package in their own way.

export async function openTracing(
  options: TracingOptions,
  load: () => Promise<OpenTelemetry> = () => import('@opentelemetry/api'),
): Promise<Tracing | undefined> {
  return hasSdk() ? createTracing(await load(), options) : undefined
}

/** Where every copy of the API (version 1) registers what an SDK provides. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

function hasSdk(): boolean {
  const { trace }: { trace?: unknown } = Object(Reflect.get(globalThis, REGISTERED))
  return trace !== undefined
}
