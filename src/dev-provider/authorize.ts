// /oauth/authorize: GET asks which user signs in, POST answers the application. Both validate the authorization request,
// because the form is posted to the address of its page.

import type { Context } from 'hono'
import { html } from 'hono/html'
import { type RegisteredClient, readFields, readFormFields, senderOf } from './client.ts'
import { type DevHtml, devPage, messagePage } from './page.ts'
import type { Grants } from './tokens.ts'
import type { DevUser } from './users.ts'
import type { DevWords, WordsOf } from './words.ts'

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
    const request = validateAuthorizationRequest(new URL(c.req.url).searchParams, client)
    if (request.verdict === 'untrusted')
      return c.html(messagePage(words, [words.badRequest, words[request.reason]]), 400)

    const answer = (params: Record<string, string>) =>
      c.redirect(answerAddress(client.redirectUri, params, request.state), c.req.method === 'POST' ? 303 : 302)

    if (request.verdict === 'refused') {
      return answer({ error: request.error, error_description: request.description })
    }
    if (c.req.method !== 'POST') return c.html(authorizePage(words, client.id, users()))

    if (senderOf(c.req.raw) === 'foreign page') return c.html(messagePage(words, words.foreign), 403)
    const form = await readFormFields(c.req.raw)
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

// Validates an authorization request. The client is checked first, because it decides where the answer may go.

type AuthorizationRequest =
  /** Sent by an unknown client, or with an unknown redirect address: it must never be redirected. */
  | { readonly verdict: 'untrusted'; readonly reason: 'badClientId' | 'badRedirectUri' }
  | {
      readonly verdict: 'refused'
      readonly error: string
      readonly description: string
      readonly state: string | undefined
    }
  | { readonly verdict: 'accepted'; readonly challenge: string | undefined; readonly state: string | undefined }

export function validateAuthorizationRequest(query: URLSearchParams, client: RegisteredClient): AuthorizationRequest {
  if (single(query, 'client_id') !== client.id) {
    return { verdict: 'untrusted', reason: 'badClientId' }
  }
  if (single(query, 'redirect_uri') !== client.redirectUri) {
    return { verdict: 'untrusted', reason: 'badRedirectUri' }
  }

  const state = single(query, 'state')
  const refused = (error: string, description: string) => ({ verdict: 'refused', error, description, state }) as const

  const fields = readFields(query)
  if (!fields) return refused('invalid_request', 'a parameter is repeated')
  const responseType = fields.get('response_type')
  if (!responseType) return refused('invalid_request', 'response_type is missing')
  if (responseType !== 'code') return refused('unsupported_response_type', 'response_type must be code')
  if (fields.get('scope') !== 'read') return refused('invalid_scope', 'scope must be read')

  const challenge = fields.get('code_challenge')
  const method = fields.get('code_challenge_method')
  if (!challenge && !method) return { verdict: 'accepted', challenge, state }
  if (method !== 'S256') return refused('invalid_request', 'code_challenge_method must be S256')
  if (!challenge || !/^[\w-]{43}$/.test(challenge)) {
    return refused('invalid_request', 'code_challenge must be 43 characters of base64url')
  }
  return { verdict: 'accepted', challenge, state }
}

function single(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name)
  return more.length === 0 ? value || undefined : undefined
}

// The page that asks which user signs in: one button per user, and one to deny.

export function authorizePage(words: DevWords, clientId: string, users: readonly DevUser[]): DevHtml {
  const [before, behind] = words.chooseLead
  return devPage(
    words,
    words.chooseTitle,
    html`<section class="card">
<h1>${words.chooseHeading}</h1>
<p class="lead">${before} <code>${clientId}</code> ${behind}</p>
<form method="post">
<ul class="users">
${users.map(user => userItem(words, user))}
</ul>
<button class="quiet wide" name="deny" value="yes">${words.deny}</button>
</form>
</section>
<p class="aside">${words.panelHint} <a href="/" target="_blank">${words.panel}</a></p>`,
  )
}

function userItem(words: DevWords, { info, note }: DevUser): DevHtml {
  const name = info.nickname.trim() || info.username
  return html`<li><button class="user" name="username" value="${info.username}">
<span class="avatar" aria-hidden="true">${[...name][0]}</span>
<span class="who"><span class="name">${name} <span class="username">${info.username}</span></span>
<span class="organisation">${info.ou_name}</span>${groupList(words, info.groups)}</span>
${note ? html`<span class="note">${words.notes[note]}</span>` : ''}
</button></li>
`
}

function groupList({ groups }: DevWords, names: readonly string[]): DevHtml | string {
  if (names.length === 0) return ''
  return html`<span class="groups"><span class="unseen">${groups}</span>${names.map(name => html` <span class="group">${name}</span>`)}</span>`
}
