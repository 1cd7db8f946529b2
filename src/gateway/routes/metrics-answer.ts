// GET /_menshen/metrics: for Prometheus on an address that METRICS_FROM names, and never through a proxy.
import { CONTENT_TYPE } from '../../observe/metrics/exposition.ts'
import { requestFacts } from '../../observe/observed-request.ts'
import type { GatewayContext } from '../context.ts'
import { errorAnswer, textAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { isTrusted } from '../http/trusted-proxies.ts'

/** What proxies add: whoever is behind one is somebody else than the connection shows. */
const FORWARDED = /^(x-forwarded-.*|x-original-.*|forwarded|x-real-ip|via)$/

const REMEDIES = {
  address: 'add the address to METRICS_FROM',
  proxy:
    'ask directly, from an address that is not in TRUSTED_PROXIES and without headers of a proxy; if Prometheus is on the same machine as the proxy, let the proxy come from 127.0.0.2 (nginx: proxy_bind 127.0.0.2) and set TRUSTED_PROXIES=127.0.0.2',
}

export async function sendMetrics(context: GatewayContext, visit: Visit): Promise<Response> {
  const { METRICS_FROM: from } = context.settings
  if (from === 'none' || !context.metrics) return errorAnswer(context, visit, 'not_found')
  const reason = !isTrusted(from, visit.address) ? 'address' : cameThroughProxy(context, visit) ? 'proxy' : undefined
  if (reason) {
    visit.observed.outcome = 'refused'
    // The address of the connection: that is what counts here, whatever a proxy says of it.
    const facts = { ...requestFacts(visit.observed), address: visit.address }
    context.report('metrics_refused', { ...facts, reason, remedy: REMEDIES[reason] })
    return textAnswer(context, '', { status: 403 })
  }
  return textAnswer(context, await context.metrics(), { headers: { 'content-type': CONTENT_TYPE } })
}

function cameThroughProxy({ settings }: Pick<GatewayContext, 'settings'>, { address, headers }: Visit): boolean {
  return isTrusted(settings.TRUSTED_PROXIES, address) || Object.keys(headers).some(name => FORWARDED.test(name))
}
