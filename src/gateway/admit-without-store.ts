// While the store is unavailable, the two console pages that show what is wrong stay open for developers whose session was
// confirmed recently:
//
//   09:00:00  a developer opens a page: the store holds the session       confirmed
//   09:04:00  the store is lost, every session is unconfirmed             503 everywhere
//   09:05:00  the developer opens Overview or Health                      shown, read-only, with a notice
//   09:10:00  ten minutes after the last confirmation                     503
//
// No other request is answered in this way: a session that has since been ended elsewhere cannot be told from a valid one.

import { errorFields, MenshenError } from '../errors.ts'
import { readCookie } from '../http/cookies.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Admission, CallerIdentification } from '../identify/admission.ts'
import { admit, recordAdmission } from '../identify/admit.ts'
import { applyRules } from '../identify/apply-rules.ts'
import { requestFields } from '../observe/observed-request.ts'
import type { GatewayContext } from './context.ts'

export async function admitWithoutStore(context: GatewayContext, request: GatewayRequest): Promise<Admission> {
  try {
    return await admit(context, request)
  } catch (error) {
    if (!(error instanceof MenshenError) || error.code !== 'store_unavailable') throw error
    const identification = identifyUnconfirmed(context, request)
    const admission = identification && applyRules(context, request, identification)
    if (admission?.outcome !== 'admitted') throw error
    const { path } = request
    context.observe.report('console_without_store', {
      ...errorFields(error),
      ...requestFields(request, admission.loaded),
      path,
    })
    return recordAdmission(context, request, admission)
  }
}

/** Nothing is refreshed, renewed or written. The console is at BASE_URL, where the cookie has the ticket of the session. */
function identifyUnconfirmed(context: GatewayContext, request: GatewayRequest): CallerIdentification | undefined {
  const ticket = readCookie(request.headers.cookie, context.auth.cookies.session)
  if (ticket === undefined || !context.site.isAuthHost) return undefined
  const loaded = context.auth.sessions.getUnconfirmed(ticket)
  if (!loaded || !context.auth.devices.isFromDevice(request, loaded)) return undefined
  return { loaded, ticket, cookies: [], isUnconfirmed: true }
}
