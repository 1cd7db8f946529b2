// Forward-auth: a proxy in front asks about each request. /_menshen/check answers with a status for nginx, /_menshen/forward
// with a whole answer (a page, a redirect) for Caddy and Traefik. So does /_menshen/authz/<path> for Envoy, which appends the
// path that it asks about to ours, and sends the method and the headers of the request itself.

import { needsDestination } from '../access/affected-paths.ts'
import type { ReadTarget } from '../access/request-path.ts'
import { isTrusted } from '../config/networks.ts'
import {
  CommonHeaders,
  errorAnswer,
  type OwnAnswer,
  reportForeign,
  type StatusAnswer,
  safetyHeaders,
  unreadableName,
} from '../http/answers.ts'
import { callerOf } from '../http/caller.ts'
import type { GatewayRequest } from '../http/request.ts'
import type { Admission } from '../identify/admission.ts'
import { requestFields } from '../observe/observed-request.ts'
import { OWN_PATHS } from '../paths.ts'
import { forwardAuthAudience } from '../proxy/identity-headers.ts'
import type { IdentityHeaders } from '../session/cache.ts'
import { challengeFor } from '../sign-in/challenge.ts'
import { isForeignSocket } from '../util/fetch-metadata.ts'
import { keyHeadersOf } from '../util/key-form.ts'
import { andThen, type MaybePromise } from '../util/maybe-promise.ts'
import type { GatewayContext } from './context.ts'
import { denialAnswer } from './denial-answer.ts'
import { authorize, type Handlers, isOwn } from './pipeline.ts'

export type ForwardAuth = (request: GatewayRequest) => MaybePromise<OwnAnswer>

/** How a check is answered. The kinds are constants, because every request passes here. */
interface CheckKind {
  /** Only a proxy is told who the caller is. Any other client, such as a script of a page, gets only a status. */
  readonly isProxy: boolean
  /** Whether a denial is a whole answer. */
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

const STATUS = {
  admitted: 200,
  refused: 403,
  visitor: 401,
  step_up: 401,
  limited: 429,
  unavailable: 503,
  unreadable: 400,
} as const
const METRIC_OUTCOMES = {
  admitted: 'admitted',
  refused: 'refused',
  visitor: 'visitor',
  step_up: 'refused',
  limited: 'refused',
  unavailable: 'error',
  unreadable: 'refused',
} as const
/** The headers in which each kind of proxy sends the original request. */
const ORIGINAL = {
  [OWN_PATHS.check]: { uri: 'x-original-uri', method: 'x-original-method' },
  [OWN_PATHS.forward]: { uri: 'x-forwarded-uri', method: 'x-forwarded-method' },
} as const

type CheckPath = keyof typeof ORIGINAL

export function isForwardAuth(path: string): boolean {
  return path === OWN_PATHS.check || path === OWN_PATHS.forward || isAuthz(path)
}

const AUTHZ = OWN_PATHS.authz.slice(0, -1)

function isAuthz(path: string): boolean {
  return path.startsWith(AUTHZ) && (path.length === AUTHZ.length || path[AUTHZ.length] === '/')
}

export function createForwardAuth(context: GatewayContext): ForwardAuth {
  const { settings, auth, identityIssuer, pages, observe } = context
  const safety = { ...safetyHeaders(settings), 'content-length': '0' }
  const audience = forwardAuthAudience(settings, auth.providers.main.plan)
  const common = new CommonHeaders(safety)
  const commonWithoutIdentity = new CommonHeaders(without(safety, identityIssuer.names))

  function answerByStatus(request: GatewayRequest, admission: Admission, kind: CheckKind): MaybePromise<StatusAnswer> {
    const identity = kind.isProxy
      ? identityIssuer.headersFor(callerOf(admission), audience, request.observed)
      : undefined
    return andThen(identity, identity => statusAnswer(request, admission, identity, kind))
  }

  function statusAnswer(
    request: GatewayRequest,
    admission: Admission,
    identity: IdentityHeaders | undefined,
    kind: CheckKind,
  ): StatusAnswer {
    const { outcome, cookies } = admission
    const { requestId } = request.observed
    const more: string[] = []
    const challenge = challengeFor(request, admission)
    if (challenge) more.push('www-authenticate', challenge)
    if (outcome === 'unavailable') more.push('retry-after', '5')
    // Envoy leaves these headers out of the request to the application.
    if (kind === ENVOY_CHECK && outcome === 'admitted') {
      const names = keyHeadersOf(request.headers)
      if (names.length > 0) more.push('x-envoy-auth-headers-to-remove', names.join(','))
    }
    for (const cookie of cookies) more.push('set-cookie', cookie)
    return {
      outcome: METRIC_OUTCOMES[outcome],
      status: STATUS[outcome],
      common: identity ? commonWithoutIdentity : common,
      identity,
      requestId,
      more,
    }
  }

  function deny(request: GatewayRequest, admission: Admission, kind: CheckKind): MaybePromise<OwnAnswer> {
    return kind.hasPages ? denialAnswer(context, request, admission) : answerByStatus(request, admission, kind)
  }

  const handlers: Handlers<CheckKind, OwnAnswer, OwnAnswer> = {
    precheck(request, kind) {
      if (!isForeignSocket(request, settings.BASE_URL)) return undefined
      reportForeign(observe.report, request)
      return deny(request, { outcome: 'refused', cookies: [] }, kind)
    },
    deny,
    forward: answerByStatus,
    send: (_observed, answer) => answer,
  }

  function refuse(request: GatewayRequest, { reason, name = 'bad_request' }: Unusable): OwnAnswer {
    observe.report('check_refused', { ...requestFields(request), reason })
    return errorAnswer(pages, request, name)
  }

  function checkForEnvoy(request: GatewayRequest, isProxy: boolean): MaybePromise<OwnAnswer> {
    const original = requestBehind(context.readTarget, request, isProxy)
    if ('reason' in original) return refuse(request, original)
    // An admitted request would reach the application under one of our own paths.
    if (isOwn(context, original.path)) return refuse(request, OWN_PATH_CHECKED)
    if (lacksDestination(original)) return refuse(request, NO_DESTINATION)
    if (original.method === 'TRACE') return errorAnswer(pages, original, 'method_not_allowed')
    return authorize(context, handlers, original, request, ENVOY_CHECK)
  }

  return request => {
    const isProxy = isTrusted(settings.TRUSTED_PROXIES, request.address)
    if (isAuthz(request.path)) return checkForEnvoy(request, isProxy)
    const path = request.path === OWN_PATHS.forward ? OWN_PATHS.forward : OWN_PATHS.check
    const original = originalRequest(context.readTarget, path, request, isProxy)
    if ('reason' in original) return refuse(request, original)
    if (lacksDestination(original)) return refuse(request, NO_DESTINATION)
    const kind = KINDS[path][isProxy ? 1 : 0]
    return authorize(context, handlers, original, request, kind)
  }
}

function without(headers: Readonly<Record<string, string>>, names: ReadonlySet<string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.has(name)))
}

const ENVOY_CHECK: CheckKind = { isProxy: true, hasPages: true }
const OWN_PATH_CHECKED: Unusable = {
  reason: 'this path is our own: the proxy has to send it to Menshen without asking',
  name: 'not_found',
}

const NO_DESTINATION: Unusable = { reason: 'COPY and MOVE have a Destination, which the proxy has to pass on' }

/** Without a Destination, one of the two paths would not be judged. */
function lacksDestination({ method, headers }: GatewayRequest): boolean {
  return needsDestination(method) && headers.destination === undefined
}

/** The request that Envoy asks about: its path is the rest of ours, unchanged. */
function requestBehind(parse: ReadTarget, request: GatewayRequest, isProxy: boolean): GatewayRequest | Unusable {
  if (!isProxy) return { reason: `${OWN_PATHS.authz} is accepted only from TRUSTED_PROXIES`, name: 'refused' }
  const target = parse(request.path.slice(AUTHZ.length))
  if (!target) return { reason: `the path behind ${AUTHZ} is missing or ambiguous` }
  return { ...request, path: target.path }
}

/** Why a check cannot be answered. */
interface Unusable {
  readonly reason: string
  readonly name?: 'uri_too_long' | 'bad_request' | 'refused' | 'not_found'
}

/** A proxy that sends the address in one of these wants the rules to be applied, not only the session to be checked. */
const URI_HEADERS = ['x-original-url', 'x-forwarded-uri'] as const

/** The request that the proxy asks about. Without one, only the session is checked. */
function originalRequest(
  parse: ReadTarget,
  check: CheckPath,
  request: GatewayRequest,
  isProxy: boolean,
): GatewayRequest | Unusable {
  const names = ORIGINAL[check]
  const uri = request.headers[names.uri]
  if (uri === undefined && check === OWN_PATHS.check) {
    const other = isProxy ? URI_HEADERS.find(name => request.headers[name] !== undefined) : undefined
    return other === undefined ? request : { reason: `${names.uri} is missing; the proxy sends ${other}` }
  }
  if (!isProxy) return { reason: `${names.uri} is accepted only from TRUSTED_PROXIES` }
  const target = parse(String(uri))
  if (!target)
    return {
      reason: `${names.uri} is missing, or its path is ambiguous or too long`,
      name: unreadableName(String(uri)),
    }
  const method = String(request.headers[names.method] ?? 'GET')
  // A header that is sent twice would match the method of no rule, and fall through to a wider one.
  if (!/^[A-Z-]+$/.test(method)) return { reason: `${names.method} is not one method` }
  const { path, search } = target
  const { headers, connection, address, observed } = request
  return { method, path, search, headers, connection, address, observed }
}
