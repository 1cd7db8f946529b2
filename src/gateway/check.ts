// Forward-auth: a proxy in front asks about each request. /_menshen/check answers by status for nginx, /_menshen/forward
// by the whole answer (a page, a redirect) for Caddy and Traefik. Neither passes through more than it has to.
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { type Admission, identify, judge } from './admission.ts'
import { apology, noticeAnswer, safetyHeaders } from './answers.ts'
import type { House } from './house.ts'
import type { IdentityHeaders } from './identity.ts'
import { canonicalPath } from './path.ts'
import { splitTarget, type Visit } from './request.ts'
import { send } from './send.ts'
import { type Soon, whenThere } from './soon.ts'
import { isTrusted } from './trust.ts'
import { toLogin } from './visitor.ts'

type Check = (visit: Visit, response: ServerResponse) => Soon<void>

const STATUS = { admitted: 200, refused: 403, visitor: 401 } as const
/** Where each kind of proxy says what was asked for. */
const ORIGINAL = {
  '/_menshen/check': { uri: 'x-original-uri', method: 'x-original-method' },
  '/_menshen/forward': { uri: 'x-forwarded-uri', method: 'x-forwarded-method' },
} as const

export function isCheck(path: string): path is keyof typeof ORIGINAL {
  return path === '/_menshen/check' || path === '/_menshen/forward'
}

export function createCheck(house: House): Check {
  const safety = { ...safetyHeaders(house), 'content-length': 0 }
  const made = new WeakMap<IdentityHeaders, OutgoingHttpHeaders>()

  function withSafety(identity: IdentityHeaders): OutgoingHttpHeaders {
    const known = made.get(identity)
    if (known) return known
    const headers = { ...safety, ...identity }
    made.set(identity, headers)
    return headers
  }

  function answerByStatus({ outcome, opened, cookies }: Admission, response: ServerResponse): Soon<void> {
    return whenThere(house.identities.headersFor(opened), identity => {
      const headers = withSafety(identity)
      response.writeHead(STATUS[outcome], cookies.length > 0 ? { ...headers, 'set-cookie': [...cookies] } : headers)
      response.end()
    })
  }

  return (visit, response) => {
    const original = originalVisit(house, visit)
    if (typeof original === 'string') {
      house.log.warn({ address: visit.address, reason: original }, 'a check was refused')
      return send(response, noticeAnswer(house, 'bad_request'))
    }
    return whenThere(identify(house, visit), identity => {
      const admission = judge(house, original.method, original.path, identity)
      const { outcome, cookies } = admission
      if (visit.path === '/_menshen/check' || outcome === 'admitted') return answerByStatus(admission, response)
      if (outcome === 'refused') return send(response, apology(house, original, 'refused', { cookies }))
      return send(response, toLogin(house, original, cookies))
    })
  }
}

/** The request that the proxy asks about; without one, the check is about the session alone. A sentence if unusable. */
function originalVisit(house: House, visit: Visit): Visit | string {
  const names = isCheck(visit.path) ? ORIGINAL[visit.path] : ORIGINAL['/_menshen/check']
  const uri = visit.headers[names.uri]
  if (uri === undefined && visit.path === '/_menshen/check') return visit
  if (!isTrusted(house.settings.TRUSTED_PROXIES, visit.address)) return `${names.uri} counts only from TRUSTED_PROXIES`
  const [rawPath, search] = splitTarget(String(uri))
  const path = canonicalPath(rawPath)
  if (path === undefined) return `${names.uri} is missing, or its path is ambiguous`
  const method = String(visit.headers[names.method] ?? 'GET')
  // Sent twice, it would be no method of any rule, and fall to a wider one.
  if (!/^[A-Z-]+$/.test(method)) return `${names.method} is not one method`
  return { ...visit, method, path, search }
}
