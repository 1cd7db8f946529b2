// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { admit } from './admission.ts'
import { apology, noticeAnswer, tooMany } from './answers.ts'
import { createCheck, isCheck } from './check.ts'
import { failure } from './failure.ts'
import { forward } from './forward/forward.ts'
import { createHome, type Home } from './home.ts'
import type { House } from './house.ts'
import { readVisit, type Visit } from './request.ts'
import { answerOwnRoute, isOwnRoute } from './routes.ts'
import { send } from './send.ts'
import { toLogin } from './visitor.ts'

export interface Listening {
  readonly listener: RequestListener
  /** Resolves when what our own routes have begun is done, even for browsers that have gone: a sign-in, a sign-out. */
  settle(): Promise<void>
}

export function createListener(house: House): Listening {
  const check = createCheck(house)
  const home = createHome(house)
  const underway = new Set<Promise<Response>>()

  async function answerOwn(visit: Visit, request: IncomingMessage): Promise<Response> {
    const answer = answerOwnRoute(house, visit, request)
    underway.add(answer)
    return answer.finally(() => underway.delete(answer))
  }

  return {
    async listener(request, response) {
      if (house.door.closing) response.shouldKeepAlive = false
      const visit = readVisit(request)
      if (!visit) return send(response, noticeAnswer(house, 'bad_request'))
      try {
        if (isCheck(visit.path)) await check(visit, response)
        else if (isOwnRoute(visit.path)) {
          const answer = await answerOwn(visit, request)
          if (house.door.closing) response.shouldKeepAlive = false
          await send(response, answer)
        } else await answerVisit(house, visit, home, request, response)
      } catch (error) {
        if (response.headersSent || response.destroyed) response.destroy()
        else await send(response, failure(house, visit, error)).catch(() => response.destroy())
      }
    },
    async settle() {
      await Promise.allSettled(underway)
    },
  }
}

const ALLOWED = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

async function answerVisit(
  house: House,
  visit: Visit,
  home: Home,
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
  return home(visit, admission, response)
}
