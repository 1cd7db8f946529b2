// Forward-auth: a proxy in front asks about each request. /_menshen/check answers by status for nginx, /_menshen/forward
// by the whole answer (a page, a redirect) for Caddy and Traefik. Neither passes through more than it has to.

import { readTarget } from '../access/request-path.ts'
import { OWN_PATHS } from '../paths.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import { type Admission, admit, challengeFor, denialResponse, identified } from './admission.ts'
import { insufficient } from './bearer-callers.ts'
import type { GatewayContext } from './context.ts'
import { forwardAuthAudience, type IdentityHeaders } from './identity-headers.ts'
import {
  commonHeaders,
  type GatewayRequest,
  isForeignSocket,
  isTrusted,
  requestFields,
  withRequestId,
} from './request.ts'
import {
  errorAnswer,
  type OwnAnswer,
  type StatusAnswer,
  safetyHeaders,
  tellOfForeign,
  unreadableName,
} from './respond.ts'

export type Check = (request: GatewayRequest) => MaybePromise<OwnAnswer>

const STATUS = { admitted: 200, refused: 403, visitor: 401, limited: 429 } as const
const NO_IDENTITY: IdentityHeaders = {}
/** Where each kind of proxy says what was asked for. */
const ORIGINAL = {
  [OWN_PATHS.check]: { uri: 'x-original-uri', method: 'x-original-method' },
  [OWN_PATHS.forward]: { uri: 'x-forwarded-uri', method: 'x-forwarded-method' },
} as const

export function isCheck(path: string): path is keyof typeof ORIGINAL {
  return path === OWN_PATHS.check || path === OWN_PATHS.forward
}

export function createCheck(context: GatewayContext): Check {
  const safety = { ...safetyHeaders(context), 'content-length': '0' }
  const audience = forwardAuthAudience(context.settings, context.providers.main.plan)
  const made = new WeakMap<IdentityHeaders, readonly string[]>()

  function headersFor(identity: IdentityHeaders): readonly string[] {
    const known = made.get(identity)
    if (known) return known
    const headers = commonHeaders({ ...safety, ...identity })
    made.set(identity, headers)
    return headers
  }

  /** Who is there is for a proxy to pass on. Anybody else, such as a script of a page, is only told yes or no. */
  function answerByStatus(byProxy: boolean, request: GatewayRequest, admission: Admission): MaybePromise<StatusAnswer> {
    const told = byProxy
      ? context.identities.headersFor(identified(admission), audience, request.observed)
      : NO_IDENTITY
    return told instanceof Promise
      ? told.then(identity => statusAnswer(request, admission, identity))
      : statusAnswer(request, admission, told)
  }

  function statusAnswer(request: GatewayRequest, admission: Admission, identity: IdentityHeaders): StatusAnswer {
    const { outcome, cookies } = admission
    const headers = withRequestId(headersFor(identity), request.observed.requestId)
    const challenge = challengeOf(request, admission)
    if (challenge) headers.push('www-authenticate', challenge)
    for (const cookie of cookies) headers.push('set-cookie', cookie)
    return { status: STATUS[outcome], headers }
  }

  function answer(byProxy: boolean, request: GatewayRequest, original: GatewayRequest, admitted: Admission) {
    const { cookies } = admitted
    const isForeign = isForeignSocket(request, context.settings.BASE_URL)
    if (isForeign) tellOfForeign(context, original)
    const admission: Admission = isForeign ? { outcome: 'refused', cookies } : admitted
    const page = request.path === OWN_PATHS.check ? undefined : denialResponse(context, original, admission)
    return page ?? answerByStatus(byProxy, request, admission)
  }

  return request => {
    const byProxy = isTrusted(context.settings.TRUSTED_PROXIES, request.address)
    const original = originalVisit(request, byProxy)
    if ('reason' in original) {
      const { reason, name = 'bad_request' } = original
      context.report('check_refused', { ...requestFields(context, request), reason })
      return errorAnswer(context, request, name)
    }
    const admitted = admit(context, request, original)
    return admitted instanceof Promise
      ? admitted.then(admission => answer(byProxy, request, original, admission))
      : answer(byProxy, request, original, admitted)
  }
}

function challengeOf(request: GatewayRequest, admission: Admission): string | undefined {
  if (admission.outcome === 'visitor') return challengeFor(request, admission)
  return admission.outcome === 'refused' && admission.bearer ? insufficient(admission) : undefined
}

/** Why a proxy's question cannot be answered. */
interface Unusable {
  readonly reason: string
  readonly name?: 'uri_too_long' | 'bad_request'
}

/** The request that the proxy asks about; without one, the check is about the session alone. */
function originalVisit(request: GatewayRequest, byProxy: boolean): GatewayRequest | Unusable {
  const names = isCheck(request.path) ? ORIGINAL[request.path] : ORIGINAL[OWN_PATHS.check]
  const uri = request.headers[names.uri]
  if (uri === undefined && request.path === OWN_PATHS.check) return request
  if (!byProxy) return { reason: `${names.uri} counts only from TRUSTED_PROXIES` }
  const target = readTarget(String(uri))
  if (!target)
    return {
      reason: `${names.uri} is missing, or its path is ambiguous or too long`,
      name: unreadableName(String(uri)),
    }
  const method = String(request.headers[names.method] ?? 'GET')
  // Sent twice, it would be no method of any rule, and fall to a wider one.
  if (!/^[A-Z-]+$/.test(method)) return { reason: `${names.method} is not one method` }
  const { path, search } = target
  const { headers, connection, address, observed } = request
  return { method, path, search, headers, connection, address, observed }
}
