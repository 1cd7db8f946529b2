// Forward-auth: a proxy in front asks about each request. /_menshen/check answers by status for nginx, /_menshen/forward
// by the whole answer (a page, a redirect) for Caddy and Traefik.

import { readTarget } from '../access/request-path.ts'
import { isTrusted } from '../config/networks.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import { callerOf } from '../proxy/proxy-request.ts'
import { isForeignSocket } from '../util/fetch-metadata.ts'
import type { MaybePromise } from '../util/maybe-promise.ts'
import type { Admission } from './admission.ts'
import type { GatewayContext } from './context.ts'
import { challengeFor, denialAnswer } from './denial.ts'
import { forwardAuthAudience, type IdentityHeaders } from './identity-headers.ts'
import { type Gate, pass } from './pipeline.ts'
import type { GatewayRequest } from './request.ts'
import {
  commonHeaders,
  errorAnswer,
  type OwnAnswer,
  reportForeign,
  type StatusAnswer,
  safetyHeaders,
  unreadableName,
  withRequestId,
} from './respond.ts'

export type Check = (request: GatewayRequest) => MaybePromise<OwnAnswer>

/** How a check is answered. The four are made once: every request passes here. */
interface CheckKind {
  /** Only a proxy is told who the caller is. Any other client, such as a script of a page, gets a status alone. */
  readonly isProxy: boolean
  /** A denial is a whole answer. */
  readonly hasPages: boolean
}

const KINDS = {
  [OWN_PATHS.check]: [
    { isProxy: false, hasPages: false },
    { isProxy: true, hasPages: false },
  ],
  [OWN_PATHS.forward]: [
    { isProxy: false, hasPages: true },
    { isProxy: true, hasPages: true },
  ],
} as const

const STATUS = { admitted: 200, refused: 403, visitor: 401, limited: 429 } as const
const NO_IDENTITY: IdentityHeaders = {}
/** Where each kind of proxy says what was asked for. */
const ORIGINAL = {
  [OWN_PATHS.check]: { uri: 'x-original-uri', method: 'x-original-method' },
  [OWN_PATHS.forward]: { uri: 'x-forwarded-uri', method: 'x-forwarded-method' },
} as const

type CheckPath = keyof typeof ORIGINAL

export function isCheck(path: string): path is CheckPath {
  return path === OWN_PATHS.check || path === OWN_PATHS.forward
}

export function createCheck(context: GatewayContext): Check {
  const { settings, auth, pages, observe } = context
  const safety = { ...safetyHeaders(settings), 'content-length': '0' }
  const audience = forwardAuthAudience(settings, auth.providers.main.plan)
  const headerLists = new WeakMap<IdentityHeaders, readonly string[]>()

  function headersFor(identity: IdentityHeaders): readonly string[] {
    const known = headerLists.get(identity)
    if (known) return known
    const headers = commonHeaders({ ...safety, ...identity })
    headerLists.set(identity, headers)
    return headers
  }

  function answerByStatus(
    request: GatewayRequest,
    admission: Admission,
    { isProxy }: CheckKind,
  ): MaybePromise<StatusAnswer> {
    const identity = isProxy ? auth.identities.headersFor(callerOf(admission), audience, request.observed) : NO_IDENTITY
    return identity instanceof Promise
      ? identity.then(identity => statusAnswer(request, admission, identity))
      : statusAnswer(request, admission, identity)
  }

  function statusAnswer(request: GatewayRequest, admission: Admission, identity: IdentityHeaders): StatusAnswer {
    const { outcome, cookies } = admission
    const headers = withRequestId(headersFor(identity), request.observed.requestId)
    const challenge = challengeFor(request, admission)
    if (challenge) headers.push('www-authenticate', challenge)
    for (const cookie of cookies) headers.push('set-cookie', cookie)
    return { outcome: outcome === 'limited' ? 'refused' : outcome, status: STATUS[outcome], headers }
  }

  function deny(request: GatewayRequest, admission: Admission, kind: CheckKind): MaybePromise<OwnAnswer> {
    return kind.hasPages ? denialAnswer(context, request, admission) : answerByStatus(request, admission, kind)
  }

  const gate: Gate<CheckKind, OwnAnswer, OwnAnswer> = {
    screen(request, kind) {
      if (!isForeignSocket(request, settings.BASE_URL)) return undefined
      reportForeign(observe.report, request)
      return deny(request, { outcome: 'refused', cookies: [] }, kind)
    },
    deny,
    forward: answerByStatus,
    send: (_observed, answer) => answer,
  }

  return request => {
    const isProxy = isTrusted(settings.TRUSTED_PROXIES, request.address)
    const path = isCheck(request.path) ? request.path : OWN_PATHS.check
    const original = originalRequest(path, request, isProxy)
    if ('reason' in original) {
      const { reason, name = 'bad_request' } = original
      observe.report('check_refused', { ...requestFields(request), reason })
      return errorAnswer(pages, request, name)
    }
    const kind = KINDS[path][isProxy ? 1 : 0]
    return pass(context, gate, request, original, kind)
  }
}

/** Why a check cannot be answered. */
interface Unusable {
  readonly reason: string
  readonly name?: 'uri_too_long' | 'bad_request'
}

/** The request that the proxy asks about; without one, the check is about the session alone. */
function originalRequest(check: CheckPath, request: GatewayRequest, isProxy: boolean): GatewayRequest | Unusable {
  const names = ORIGINAL[check]
  const uri = request.headers[names.uri]
  if (uri === undefined && check === OWN_PATHS.check) return request
  if (!isProxy) return { reason: `${names.uri} counts only from TRUSTED_PROXIES` }
  const target = readTarget(String(uri))
  if (!target)
    return {
      reason: `${names.uri} is missing, or its path is ambiguous or too long`,
      name: unreadableName(String(uri)),
    }
  const method = String(request.headers[names.method] ?? 'GET')
  // A header that is sent twice would be no method of any rule, and fall to a wider one.
  if (!/^[A-Z-]+$/.test(method)) return { reason: `${names.method} is not one method` }
  const { path, search } = target
  const { headers, connection, address, observed } = request
  return { method, path, search, headers, connection, address, observed }
}
