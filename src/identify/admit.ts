// Identifies the caller of a request (by session, else by key, else by bearer token), and applies the rules.

import type { Report } from '../events.ts'
import { callerOf } from '../http/caller.ts'
import { type GatewayRequest, rawPath } from '../http/request.ts'
import { requestFields } from '../observe/observed-request.ts'
import { isForPage, isPartOfPage } from '../util/fetch-metadata.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { Admission, CallerIdentification } from './admission.ts'
import { applyRules } from './apply-rules.ts'
import type { CredentialRequest, IdentifyContext } from './context.ts'
import { identify, noteActivity } from './session.ts'
import { identifyByToken } from './token.ts'

/** The rules judge `asked`. Where a proxy asks about it, `outer` is the proxy's own request, which carries the credentials. */
export function admit(
  context: IdentifyContext,
  asked: GatewayRequest,
  outer: CredentialRequest = asked,
): MaybePromise<Admission> {
  return andThen(identify(context, outer), identification => admitCaller(context, asked, outer, identification))
}

function admitCaller(
  context: IdentifyContext,
  asked: GatewayRequest,
  outer: CredentialRequest,
  identification: CallerIdentification,
): MaybePromise<Admission> {
  if (identification.loaded) {
    noteActivity(context, asked, identification.loaded)
    return recordAdmission(context, asked, applyRules(context, asked, identification))
  }
  const found =
    context.auth.identifyByKey(outer, asked, identification) ?? identifyByToken(context, outer, asked, identification)
  return andThen(found, identification =>
    andThen(limitFailures(context, asked, applyRules(context, asked, identification)), admission =>
      recordAdmission(context, asked, admission),
    ),
  )
}

export function recordAdmission(
  { observe }: IdentifyContext,
  request: GatewayRequest,
  admission: Admission,
): Admission {
  const { observed } = request
  const caller = callerOf(admission)
  if (caller) observed.user = caller.user.userInfo.username
  if (admission.outcome === 'refused') reportRefused(observe.report, request, admission)
  if (admission.outcome === 'unreadable') reportDestination(observe.report, request, admission)
  return admission
}

function reportDestination(report: Report, request: GatewayRequest, admission: Admission): void {
  const { method, headers } = request
  report('path_refused', {
    ...requestFields(request, callerOf(admission)),
    reason: `destination_${admission.destinationProblem}`,
    method,
    path: rawPath(String(headers.destination ?? '')),
  })
}

/** A visitor is not audited: anyone could fill the trail with refusals of a public page. */
function reportRefused(report: Report, request: GatewayRequest, admission: Admission): void {
  const { method, path } = request
  const caller = callerOf(admission)
  const fields = {
    ...requestFields(request, caller),
    method,
    path,
    ...(admission.condition && { reason: admission.condition }),
    ...(admission.missingScopes && { reason: 'insufficient_scope', scope: admission.missingScopes.join(' ') }),
  }
  if (caller) {
    const { role, keyKind } = caller.who
    report('refused', { ...fields, role, ...(keyKind && { key: keyKind }) })
  } else report('visitor_refused', fields)
}

/**
 * Counts tickets that failed. A visitor who opens a page is always sent to the login page, and a part of a page is not counted:
 * each of its images carries the ticket of a session that has ended, and must not shut out the rest of the office. Tickets are
 * counted after the store was asked, because others behind the same address may have sessions that this process has not cached.
 */
function limitFailures(
  { auth }: IdentifyContext,
  request: GatewayRequest,
  admission: Admission,
): MaybePromise<Admission> {
  const { failedTicket, failedToken, isLimited, outcome } = admission
  if (outcome !== 'visitor') return admission
  if (isLimited) return { ...admission, outcome: 'limited' }
  const isPageView = request.method === 'GET' && isForPage(request)
  if (!failedTicket || failedToken || isPageView || isPartOfPage(request.headers)) return admission
  return andThen(auth.rateLimit.admits('ticket', request), isWithinLimit =>
    isWithinLimit ? admission : { ...admission, outcome: 'limited' },
  )
}
