// /oauth/logout: a server POSTs the refresh token of the session to end; a browser sends a GET and may be redirected back.

import type { Context } from 'hono'
import { type RegisteredClient, readFormFields } from './client.ts'
import { messagePage } from './page.ts'
import { type Grants, oauthError } from './tokens.ts'
import type { WordsOf } from './words.ts'

export function serverLogoutRoute(client: RegisteredClient, grants: Grants) {
  return async (c: Context): Promise<Response> => {
    const form = await readFormFields(c.req.raw)
    if (!form) return oauthError(c, 'invalid_request', 'the body must be a form without repeated parameters')
    if (form.get('client_id') !== client.id) return oauthError(c, 'invalid_client', 'unknown client')
    const refreshToken = form.get('refresh_token')
    if (!refreshToken) return oauthError(c, 'invalid_request', 'refresh_token is missing')
    grants.revoke(refreshToken)
    return c.json({ success: true })
  }
}

export function browserLogoutRoute(client: RegisteredClient, wordsOf: WordsOf) {
  return (c: Context): Response | Promise<Response> => {
    const back = c.req.query('redirect_url') ?? c.req.query('post_logout_redirect_uri') ?? ''
    const isOurs = URL.canParse(back) && new URL(back).origin === new URL(client.redirectUri).origin
    return isOurs ? c.redirect(new URL(back).href) : c.html(messagePage(wordsOf(c), wordsOf(c).signedOut))
  }
}
