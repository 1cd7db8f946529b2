// The node:http side: our own routes go to their table; every other request is a visit to the application behind.
import type { RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { homePage } from '../pages/home.ts'
import type { Opened } from '../session/opened.ts'
import { admit } from './admission.ts'
import { noticeAnswer, pageAnswer } from './answers.ts'
import { CHECK_PATH, createCheck } from './check.ts'
import { failure } from './failure.ts'
import type { House } from './house.ts'
import { readVisit, type Visit } from './request.ts'
import { createRoutes, isOwnRoute } from './routes.ts'
import { toLogin } from './visitor.ts'

export function createListener(house: House): RequestListener {
  const ownRoutes = getRequestListener(createRoutes(house).fetch, {
    overrideGlobalObjects: false,
    hostname: 'localhost',
  })
  const check = createCheck(house)
  const home: Direct = async (visit, response) => send(response, await visitAnswer(house, visit))
  return (request, response) => {
    const visit = readVisit(request)
    if (visit.path === CHECK_PATH) return answerDirectly(house, visit, response, check)
    if (isOwnRoute(visit.path)) return ownRoutes(request, response)
    return answerDirectly(house, visit, response, home)
  }
}

type Direct = (visit: Visit, response: ServerResponse) => Promise<void>

/** Past the table and its framework: what signed-in users ask for all the time. */
async function answerDirectly(house: House, visit: Visit, response: ServerResponse, answer: Direct): Promise<void> {
  try {
    await answer(visit, response)
  } catch (error) {
    if (response.headersSent) response.destroy()
    else await send(response, failure(house, visit, error))
  }
}

async function visitAnswer(house: House, visit: Visit): Promise<Response> {
  if (!visit.path.startsWith('/')) return noticeAnswer(house, 'bad_request')
  if (visit.method === 'TRACE') return noticeAnswer(house, 'method_not_allowed')
  const admission = await admit(house, visit)
  const { outcome, cookies } = admission
  if (outcome === 'visitor') return toLogin(house, visit, cookies)
  if (outcome === 'refused') return noticeAnswer(house, 'refused', { cookies })
  return builtInPage(house, visit, admission.opened, cookies)
}

function builtInPage(house: House, { method, path }: Visit, opened: Opened, cookies: readonly string[]): Response {
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
