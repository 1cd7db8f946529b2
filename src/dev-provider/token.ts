// POST /oauth/token: a code or a refresh token in, a token response out.

import type { Context } from 'hono'
import { isAuthenticated, type RegisteredClient } from './client.ts'
import { readForm } from './fields.ts'
import type { Grants } from './grants.ts'
import { oauthError } from './oauth-error.ts'
import type { Misbehaviour } from './panel/misbehaviour.ts'

export function tokenRoute(client: RegisteredClient, grants: Grants, misbehaviour: Misbehaviour, now: () => number) {
  return async (c: Context): Promise<Response> => {
    if (misbehaviour.strikes('failTokenCalls')) return c.text('told to fail', 500)

    const form = await readForm(c.req.raw)
    if (!form) return oauthError(c, 'invalid_request', 'the body must be a form without repeated parameters')
    if (!isAuthenticated(client, form)) return oauthError(c, 'invalid_client', 'bad client credentials')

    const seconds = misbehaviour.current().accessTokenSeconds
    switch (form.get('grant_type')) {
      case 'authorization_code': {
        const code = form.get('code')
        if (!code) return oauthError(c, 'invalid_request', 'code is missing')
        if (form.get('redirect_uri') !== client.redirectUri) return oauthError(c, 'invalid_grant', 'wrong redirect_uri')
        const tokens = grants.redeemCode(code, form.get('code_verifier'), seconds, now())
        return tokens ? c.json(tokens) : oauthError(c, 'invalid_grant', 'the code does not count, or not any more')
      }
      case 'refresh_token': {
        const refreshToken = form.get('refresh_token')
        if (!refreshToken) return oauthError(c, 'invalid_request', 'refresh_token is missing')
        if ((form.get('scope') ?? 'read') !== 'read') return oauthError(c, 'invalid_scope', 'scope must be read')
        if (misbehaviour.strikes('refuseRefreshes')) return oauthError(c, 'invalid_grant', 'told to refuse')
        const tokens = grants.refresh(refreshToken, seconds, now())
        return tokens
          ? c.json(tokens)
          : oauthError(c, 'invalid_grant', 'the refresh token does not count, or not any more')
      }
      case undefined:
        return oauthError(c, 'invalid_request', 'grant_type is missing')
      default:
        return oauthError(c, 'unsupported_grant_type', 'grant_type must be authorization_code or refresh_token')
    }
  }
}
