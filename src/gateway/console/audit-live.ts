// GET /_menshen/console/audit/live: the events that came after the newest that a page shows, of all processes and machines.
import type { FoundEvent } from '../../observe/audit/trail-reader.ts'
import { auditRow } from '../../pages/console/audit-row.ts'
import { loadDeviceNames } from '../../pages/device-name.ts'
import type { SignedInCaller } from '../admission/admit.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { languageOf } from '../language/language-of.ts'
import { filterOf, readQuestion } from './audit-question.ts'

/** Whoever lets more happen between two looks reads the page anew. */
const MOST_AT_ONCE = 50

export async function streamAudit(context: GatewayContext, visit: Visit, caller: SignedInCaller): Promise<Response> {
  const { auditTrail, providers } = context
  const words = languageOf(context, visit)
  const filter = filterOf(readQuestion(visit))
  const names = { providers: providers.names, deviceName: await loadDeviceNames() }
  let newest = new URLSearchParams(visit.search).get('after') ?? ''
  let count = 0
  return context.liveStreams.open(context, visit, caller, async () => {
    const { events } = await auditTrail.find({ ...filter, limit: MOST_AT_ONCE })
    const fresh = events.filter(({ position }: FoundEvent) => position > newest)
    const [latest] = fresh
    if (!latest) return []
    newest = latest.position
    count += fresh.length
    const rows = fresh.map(event => String(auditRow(words, event, names))).join('')
    return [['events', { rows, said: words.t('audit.new_events', { count }), after: newest }]]
  })
}
