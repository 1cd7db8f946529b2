// What a single page of an application wants beyond the rules: somebody who is signed in, or one of a few roles.
import type { Role } from '../../settings/config/config-file.ts'
import type { GatewayContext } from '../context.ts'
import type { Visit } from '../http/request.ts'
import { REQUEST_ID } from '../http/request-id.ts'
import { type Admission, identified, note } from './admit.ts'
import { turnedAway } from './turned-away.ts'

/** Of a request that the rules have admitted. Whoever does not have what the page wants gets what the rules would say. */
export function createRequire(context: GatewayContext, visit: Visit, admission: Admission) {
  return (roles?: readonly Role[]): Response | undefined => {
    const role = identified(admission)?.who.role
    if (role !== undefined && (!roles || roles.includes(role))) return undefined
    const outcome = role === undefined ? 'visitor' : 'refused'
    const answer = turnedAway(
      context,
      visit,
      note(context, visit, { ...admission, outcome, ...(roles && { refusedBy: { path: visit.path, roles } }) }),
    )
    answer?.headers.set(REQUEST_ID, visit.observed.requestId)
    return answer
  }
}
