// GET /api/bff/v1.2/oauth2/userinfo: who an access token belongs to, in the provider's envelope.

import { randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import type { Grants } from './grants.ts'
import { oauthError } from './oauth-error.ts'
import type { Misbehaviour } from './panel/misbehaviour.ts'

export function userInfoRoute(grants: Grants, misbehaviour: Misbehaviour, now: () => number) {
  return (c: Context): Response => {
    if (misbehaviour.strikes('failUserInfoCalls')) return c.text('told to fail', 500)

    const [, accessToken] = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
    const user = accessToken && grants.userOf(accessToken, now())
    if (!user) {
      c.header('WWW-Authenticate', 'Bearer error="invalid_token"')
      return oauthError(c, 'invalid_token', 'the access token does not count, or not any more')
    }

    const requestId = randomUUID()
    return misbehaviour.strikes('denyUserInfoCalls')
      ? c.json({ success: false, code: '500', data: null, message: 'told to fail', requestId })
      : c.json({ success: true, code: '200', data: user, message: null, requestId })
  }
}
