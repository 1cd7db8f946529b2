// GET /_menshen/metrics: for Prometheus on an address that METRICS_FROM names, and never through a proxy.
import { CONTENT_TYPE } from '../../observe/metrics/exposition.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, textAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { isTrusted } from '../http/trusted-proxies.ts'

/** What proxies add: whoever is behind one is somebody else than the connection shows. */
const FORWARDED = /^(x-forwarded-.*|x-original-.*|forwarded|x-real-ip|via)$/

export async function sendMetrics(context: GatewayContext, visit: Visit): Promise<Response> {
  const { METRICS_FROM: from } = context.settings
  if (from === 'none' || !context.metrics) return errorAnswer(context, visit, 'not_found')
  if (!isTrusted(from, visit.address) || cameThroughProxy(context, visit)) {
    visit.observed.outcome = 'refused'
    return textAnswer(context, '', { status: 403 })
  }
  return textAnswer(context, await context.metrics(), { headers: { 'content-type': CONTENT_TYPE } })
}

function cameThroughProxy({ settings }: Pick<GatewayContext, 'settings'>, { address, headers }: Visit): boolean {
  return isTrusted(settings.TRUSTED_PROXIES, address) || Object.keys(headers).some(name => FORWARDED.test(name))
}
