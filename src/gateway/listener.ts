// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type Admission, admit } from './admission.ts'
import { apology, noticeAnswer, tooMany } from './answers.ts'
import { createCheck, isCheck } from './check.ts'
import { failure } from './failure.ts'
import { forward } from './forward/forward.ts'
import { createHome } from './home.ts'
import type { House } from './house.ts'
import { readVisit, type Visit } from './request.ts'
import { answerOwnRoute, isOwnRoute } from './routes.ts'
import { sayContinue, send } from './send.ts'
import { type Soon, whenThere } from './soon.ts'
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

  async function answerOwnPage(visit: Visit, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (visit.headers.expect) sayContinue(response)
    const answer = await answerOwn(visit, request)
    if (house.door.closing) response.shouldKeepAlive = false
    return send(response, answer)
  }

  function answer(visit: Visit, request: IncomingMessage, response: ServerResponse): Soon<void> {
    if (isCheck(visit.path)) return check(visit, response)
    if (isOwnRoute(visit.path)) return answerOwnPage(visit, request, response)
    if (visit.method === 'TRACE')
      return send(response, noticeAnswer(house, 'method_not_allowed', { headers: { allow: ALLOWED } }))
    return whenThere(admit(house, visit), admission => answerVisit(visit, admission, request, response))
  }

  function answerVisit(
    visit: Visit,
    admission: Admission,
    request: IncomingMessage,
    response: ServerResponse,
  ): Soon<void> {
    const { outcome, cookies } = admission
    if (outcome === 'visitor') return turnAway(visit, admission, response)
    if (outcome === 'refused') return send(response, apology(house, visit, 'refused', { cookies }))
    const upstream = house.upstreams.for(visit.path)
    return upstream ? forward(house, upstream, visit, admission, request, response) : home(visit, admission, response)
  }

  async function turnAway(visit: Visit, { failedTicket, cookies }: Admission, response: ServerResponse): Promise<void> {
    const tooOften = failedTicket && !(await house.rateLimit.admits('ticket', visit))
    return send(response, tooOften ? tooMany(house) : toLogin(house, visit, cookies))
  }

  function apologise(visit: Visit, response: ServerResponse, error: unknown): void {
    if (response.headersSent || response.destroyed) response.destroy()
    else send(response, failure(house, visit, error)).catch(() => response.destroy())
  }

  return {
    listener(request, response) {
      if (house.door.closing) response.shouldKeepAlive = false
      const visit = readVisit(request)
      if (!visit) return void send(response, noticeAnswer(house, 'bad_request')).catch(() => response.destroy())
      try {
        const answered = answer(visit, request, response)
        if (answered instanceof Promise) answered.catch(error => apologise(visit, response, error))
      } catch (error) {
        apologise(visit, response, error)
      }
    },
    async settle() {
      await Promise.allSettled(underway)
    },
  }
}

const ALLOWED = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'
