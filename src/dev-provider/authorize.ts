// /oauth/authorize: GET asks who signs in, POST answers the application. Both judge the same request anew, since the
// form is sent to the address of its page.

import type { Context } from 'hono'
import { judgeAuthorizationRequest } from './authorization-request.ts'
import type { RegisteredClient } from './client.ts'
import type { WordsOf } from './dev-words.ts'
import { readForm } from './fields.ts'
import type { Grants } from './grants.ts'
import { senderOf } from './origin.ts'
import { authorizePage } from './pages/authorize-page.ts'
import { messagePage } from './pages/message-page.ts'
import type { DevUser } from './users.ts'

interface AuthorizeOptions {
  readonly client: RegisteredClient
  readonly users: () => readonly DevUser[]
  readonly grants: Grants
  readonly wordsOf: WordsOf
  readonly now: () => number
}

export function authorizeRoute({ client, users, grants, wordsOf, now }: AuthorizeOptions) {
  return async (c: Context): Promise<Response> => {
    const words = wordsOf(c)
    const request = judgeAuthorizationRequest(new URL(c.req.url).searchParams, client)
    if (request.verdict === 'untrusted')
      return c.html(messagePage(words, [words.badRequest, words[request.reason]]), 400)

    const answer = (params: Record<string, string>) =>
      c.redirect(answerAddress(client.redirectUri, params, request.state), c.req.method === 'POST' ? 303 : 302)

    if (request.verdict === 'refused') {
      return answer({ error: request.error, error_description: request.description })
    }
    if (c.req.method !== 'POST') return c.html(authorizePage(words, client.id, users()))

    if (senderOf(c.req.raw) === 'foreign page') return c.html(messagePage(words, words.foreign), 403)
    const form = await readForm(c.req.raw)
    if (form?.has('deny')) return answer({ error: 'access_denied', error_description: 'the user denied access' })
    const user = users().find(candidate => candidate.info.username === form?.get('username'))
    if (!user) return c.html(messagePage(words, words.noSuchUser), 400)
    return answer({ code: grants.issueCode(user.info, request.challenge, now()) })
  }
}

function answerAddress(redirectUri: string, params: Record<string, string>, state: string | undefined): string {
  const address = new URL(redirectUri)
  for (const [name, value] of Object.entries(params)) address.searchParams.append(name, value)
  if (state !== undefined) address.searchParams.append('state', state)
  return address.href
}
