// Tracing, if OpenTelemetry is installed and its SDK was registered before us. Otherwise nothing of it stays loaded or in the way.
import { createTracing, type OpenTelemetry, type TracingOptions } from './otel-tracing.ts'
import type { Tracing } from './trace.ts'

export async function openTracing(
  options: TracingOptions,
  load: () => Promise<OpenTelemetry> = () => import('@opentelemetry/api'),
): Promise<Tracing | undefined> {
  const api = await load().catch(ifMissing)
  return api && hasSdk(api) ? createTracing(api, options) : undefined
}

/** The package is optional. One that is there and broken is worth an error. */
function ifMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined
  throw error
}

/** Until an SDK registers, the API answers with a stand-in that has nobody behind it. */
function hasSdk({ trace, ProxyTracerProvider }: OpenTelemetry): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer('menshen') !== undefined
}
