// GET /_menshen/console/health: what the doctor finds, how long others let us wait, and which processes there are.
import { addSlot, emptySlot, quantile, TIMED } from '../../observe/series/slot.ts'
import { type HealthView, healthPage } from '../../pages/console/health-page.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import { pageAnswer } from '../http/page-answers.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { ifReachable } from '../people/if-reachable.ts'
import { viewerOf } from './viewer.ts'

export async function showHealth(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const [findings, times, instances] = await Promise.all([
    context.examine(),
    lastHour(context),
    ifReachable(context, visit, context.series.instances()),
  ])
  const view = {
    viewer: viewerOf(caller),
    findings,
    times,
    instances,
    node: process.versions.node,
    store: storeOf(context),
  }
  return pageAnswer(context, healthPage(languageOf(context, visit), view), { cookies: caller.cookies })
}

async function lastHour({ series }: Pick<GatewayContext, 'series'>): Promise<HealthView['times']> {
  const { slots } = await series.read('hour')
  const all = emptySlot(0)
  for (const slot of slots) addSlot(all, slot)
  return TIMED.map(what => ({ what, p50: quantile(all, what, 0.5), p99: quantile(all, what, 0.99) }))
}

/** What kind it is; its version, where it is a server, is among the findings. */
function storeOf({ settings }: Pick<GatewayContext, 'settings'>): string {
  return settings.STORE.slice(0, settings.STORE.indexOf(':'))
}
