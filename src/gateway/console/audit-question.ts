// What somebody looks for in the audit trail, as the console's form sends it.
import type { AuditFilter } from '../../observe/audit/trail-reader.ts'
import type { AuditQuestion } from '../../pages/console/audit-page.ts'
import type { Visit } from '../http/request.ts'

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS
const DAY = /^\d{4}-\d\d-\d\d$/
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/

export function readQuestion({ search }: Pick<Visit, 'search'>): AuditQuestion {
  const query = new URLSearchParams(search)
  const given = (name: string) => query.get(name)?.trim() ?? ''
  return {
    requestId: given('requestId'),
    user: given('user'),
    event: given('event'),
    session: given('session'),
    since: given('since'),
    until: given('until'),
    zone: /^-?\d{1,3}$/.test(given('zone')) ? given('zone') : '',
    before: given('before'),
  }
}

export function filterOf({ requestId, user, event, session, since, until, zone }: AuditQuestion): AuditFilter {
  const [from, to] = [timeIn(since, zone), timeIn(until, zone)]
  // The end of what was named: of that day, or of that minute.
  const length = DAY.test(until) ? DAY_MS : MINUTE_MS
  return {
    ...(requestId && { requestId }),
    ...(user && { user }),
    ...(event && { event }),
    ...(session && { session }),
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to + length - 1 }),
  }
}

/** In the reader's time zone, which the script tells (minutes from it to UTC); without it in the server's own. */
function timeIn(text: string, zone: string): number | undefined {
  const local = DAY.test(text) ? `${text}T00:00` : text
  if (!LOCAL_TIME.test(local)) return undefined
  const at = zone === '' ? Date.parse(local) : Date.parse(`${local}Z`) + Number(zone) * MINUTE_MS
  return Number.isNaN(at) ? undefined : at
}
