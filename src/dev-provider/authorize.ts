// /oauth/authorize: GET asks who signs in, POST answers the application. Both judge the same request anew, since the
// form is sent to the address of its page.

import type { Context } from 'hono'
import { judgeAuthorizationRequest } from './authorization-request.ts'
import type { RegisteredClient } from './client.ts'
import { readForm } from './fields.ts'
import type { Grants } from './grants.ts'
import { senderOf } from './origin.ts'
import { authorizePage } from './pages/authorize-page.ts'
import { messagePage } from './pages/message-page.ts'
import { DEV_USERS } from './users.ts'

export function authorizeRoute(client: RegisteredClient, grants: Grants, now: () => number) {
  return async (c: Context): Promise<Response> => {
    const request = judgeAuthorizationRequest(new URL(c.req.url).searchParams, client)
    if (request.verdict === 'untrusted') return c.html(messagePage('无法处理这个登录请求', request.reason), 400)

    const answer = (params: Record<string, string>) =>
      c.redirect(answerAddress(client.redirectUri, params, request.state), c.req.method === 'POST' ? 303 : 302)

    if (request.verdict === 'refused') {
      return answer({ error: request.error, error_description: request.description })
    }
    if (c.req.method !== 'POST') return c.html(authorizePage(client.id))

    if (senderOf(c.req.raw) === 'foreign page') return c.html(messagePage('已拒绝', '请求来自其他网站。'), 403)
    const form = await readForm(c.req.raw)
    if (form?.has('deny')) return answer({ error: 'access_denied', error_description: 'the user denied access' })
    const user = DEV_USERS.find(candidate => candidate.info.username === form?.get('username'))
    if (!user) return c.html(messagePage('无法登录', '没有这个用户，请返回重新选择。'), 400)
    return answer({ code: grants.issueCode(user.info, request.challenge, now()) })
  }
}

function answerAddress(redirectUri: string, params: Record<string, string>, state: string | undefined): string {
  const address = new URL(redirectUri)
  for (const [name, value] of Object.entries(params)) address.searchParams.append(name, value)
  if (state !== undefined) address.searchParams.append('state', state)
  return address.href
}
