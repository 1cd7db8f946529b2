// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { RequestListener, ServerResponse } from 'node:http'
import { homePage } from '../pages/home.ts'
import { type Admitted, admit } from './admission.ts'
import { noticeAnswer, pageAnswer } from './answers.ts'
import { CHECK_PATH, createCheck } from './check.ts'
import { failure } from './failure.ts'
import type { House } from './house.ts'
import { readVisit, type Visit } from './request.ts'
import { answerOwnRoute, isOwnRoute } from './routes.ts'
import { toLogin } from './visitor.ts'

export function createListener(house: House): RequestListener {
  const check = createCheck(house)

  return async (request, response) => {
    const visit = readVisit(request)
    try {
      if (visit.path === CHECK_PATH) await check(visit, response)
      else if (isOwnRoute(visit.path)) await send(response, await answerOwnRoute(house, visit, request))
      else await send(response, await answerVisit(house, visit))
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy()
      else await send(response, failure(house, visit, error))
    }
  }
}

async function answerVisit(house: House, visit: Visit): Promise<Response> {
  if (!visit.path.startsWith('/')) return noticeAnswer(house, 'bad_request')
  if (visit.method === 'TRACE') return noticeAnswer(house, 'method_not_allowed')
  const admission = await admit(house, visit)
  if (admission.outcome === 'visitor') return toLogin(house, visit, admission.cookies)
  if (admission.outcome === 'refused') return noticeAnswer(house, 'refused', { cookies: admission.cookies })
  return builtInPage(house, visit, admission)
}

function builtInPage(house: House, { method, path }: Visit, { opened, cookies }: Admitted): Response {
  if (path !== '/') return noticeAnswer(house, 'not_found', { cookies })
  if (method !== 'GET' && method !== 'HEAD')
    return noticeAnswer(house, 'method_not_allowed', { cookies, headers: { allow: 'GET, HEAD' } })
  return pageAnswer(house, homePage(house.settings.APP_NAME, opened), { cookies })
}

async function send(response: ServerResponse, answer: Response): Promise<void> {
  const { 'set-cookie': _, ...headers } = Object.fromEntries(answer.headers)
  const cookies = answer.headers.getSetCookie()
  const body = Buffer.from(await answer.arrayBuffer())
  response.writeHead(answer.status, {
    ...headers,
    ...(cookies.length > 0 ? { 'set-cookie': cookies } : {}),
    'content-length': body.length,
  })
  response.end(body)
}
