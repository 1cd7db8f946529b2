// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { accountPage } from '../pages/account.ts'
import { type Admission, admit } from './admission.ts'
import { apology, noticeAnswer, pageAnswer, tooMany } from './answers.ts'
import { createCheck, isCheck } from './check.ts'
import { failure } from './failure.ts'
import { forward } from './forward/forward.ts'
import type { House } from './house.ts'
import { readVisit, type Visit } from './request.ts'
import { answerOwnRoute, isOwnRoute } from './routes.ts'
import { send } from './send.ts'
import { toLogin } from './visitor.ts'

export function createListener(house: House): RequestListener {
  const check = createCheck(house)

  return async (request, response) => {
    const visit = readVisit(request)
    if (!visit) return send(response, noticeAnswer(house, 'bad_request'))
    try {
      if (isCheck(visit.path)) await check(visit, response)
      else if (isOwnRoute(visit.path)) await send(response, await answerOwnRoute(house, visit, request))
      else await answerVisit(house, visit, request, response)
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy()
      else await send(response, failure(house, visit, error))
    }
  }
}

const ALLOWED = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

async function answerVisit(
  house: House,
  visit: Visit,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (visit.method === 'TRACE')
    return send(response, noticeAnswer(house, 'method_not_allowed', { headers: { allow: ALLOWED } }))
  const admission = await admit(house, visit)
  const { outcome, cookies } = admission
  if (outcome === 'visitor' && admission.failedTicket && !(await house.rateLimit.admits('ticket', visit)))
    return send(response, tooMany(house))
  if (outcome === 'visitor') return send(response, toLogin(house, visit, cookies))
  if (outcome === 'refused') return send(response, apology(house, visit, 'refused', { cookies }))
  const upstream = house.upstreams.for(visit.path)
  if (upstream) return forward(house, upstream, visit, admission, request, response)
  return send(response, builtInPage(house, visit, admission))
}

function builtInPage(house: House, { method, path }: Visit, { opened, cookies }: Admission): Response {
  if (path !== '/' || !opened) return noticeAnswer(house, 'not_found', { cookies })
  if (method !== 'GET' && method !== 'HEAD')
    return noticeAnswer(house, 'method_not_allowed', { cookies, headers: { allow: 'GET, HEAD' } })
  return pageAnswer(house, accountPage(house.settings.APP_NAME, opened), { cookies })
}
