// The span of one request, and that of the call to the application below it.
import type { IncomingHttpHeaders } from 'node:http'
import type { Attributes, Context, Tracer as OtelTracer, Span } from '@opentelemetry/api'
import { OWN_PATHS } from '../../own-paths.ts'
import { CLIENT_LEFT } from '../observation.ts'
import type { ObservedRequest } from '../observed-request.ts'
import type { OpenTelemetry } from './otel-tracing.ts'
import type { RequestTrace } from './trace.ts'

export interface Tracer {
  readonly api: OpenTelemetry
  readonly tracer: OtelTracer
  /** BASE_URL. */
  readonly own: URL
}

/** What the conventions call known; whatever else is one word, so that nobody makes up names of spans. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])
const ROUTES = new Set<string>(Object.values(OWN_PATHS))

export function createRequestTrace(
  { api, tracer, own }: Tracer,
  request: ObservedRequest,
  headers: IncomingHttpHeaders,
  onEnd: () => void,
): RequestTrace & { readonly span: Span; readonly context: Context } {
  const { context, propagation, trace, SpanKind, SpanStatusCode } = api
  const parent = parentOf(api, headers)
  const method = METHODS.has(request.method) ? request.method : '_OTHER'
  const verb = method === '_OTHER' ? 'HTTP' : method
  const route = ROUTES.has(request.path) ? request.path : undefined
  const attributes: Attributes = {
    'http.request.method': method,
    'url.path': request.path,
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
      const to = request.upstream === undefined ? {} : targetOf(new URL(request.path, request.upstream))
      const attributes = { 'http.request.method': method, ...to }
      upstream = tracer.startSpan(verb, { kind: SpanKind.CLIENT, attributes }, within)
      const carrier: Record<string, string> = {}
      propagation.inject(trace.setSpan(within, upstream), carrier)
      for (const [name, value] of Object.entries(carrier)) setHeader(headers, name, value)
    },

    answered: endUpstream,

    ended(status) {
      // The browser has gone, and the application had not answered yet.
      endUpstream(undefined)
      span.setAttribute('menshen.outcome', request.outcome)
      if (status === CLIENT_LEFT) span.setAttribute('error.type', 'client_left')
      else if (status > 0) span.setAttribute('http.response.status_code', status)
      if (status >= 500) fail(span, String(status))
      span.end()
      onEnd()
    },
  }
}

/** Somebody around us may have a span for it already; otherwise it is the caller's, as W3C Trace Context says. */
function parentOf({ context, propagation, trace, ROOT_CONTEXT }: OpenTelemetry, headers: IncomingHttpHeaders): Context {
  const active = context.active()
  return trace.getSpan(active) ? active : propagation.extract(ROOT_CONTEXT, headers)
}

function addressOf(url: URL): Attributes {
  return { 'url.scheme': url.protocol.slice(0, -1), ...serverOf(url) }
}

/** Of a call that we make. The address is without its query, which may hold anything. */
export function targetOf(url: URL): Attributes {
  return { 'url.full': url.origin + url.pathname, ...serverOf(url) }
}

function serverOf({ protocol, hostname, port }: URL): Attributes {
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) }
}

/** In place of whatever the browser has sent under this name. Names and values in turn. */
function setHeader(headers: string[], name: string, value: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) if (headers[i]?.toLowerCase() === name) headers.splice(i, 2)
  headers.push(name, value)
}
