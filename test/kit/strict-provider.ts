// What a correct and strict identity provider does: codes work once, refresh tokens rotate, and reuse is punished.
// All its secrets contain CANARY, so that a test can search for leaks.

import { createHash, randomUUID } from 'node:crypto'
import { json, type PlainAnswer, redirect } from './answers.ts'
import type { Call } from './calls.ts'

export interface User {
  sub: string
  ou_id: string
  nickname: string
  phone_number: string
  ou_name: string
  email: string
  username: string
}

export interface Behaviour {
  /** Lifetime of access tokens in seconds. */
  expiresIn: number
  /** Whether a refresh gives a new refresh token and spends the old one; otherwise it gives none and the old one stays. */
  rotate: boolean
  /** Whether a sign-in gives a refresh token. */
  refreshTokens: boolean
  /** Who signs in at the authorization endpoint. */
  user: Partial<User>
  /** What stands in token answers besides. */
  extras: object
}

export const CLIENT_ID = 'menshen-test'
export const CLIENT_SECRET = 'secret-CANARY-1'

/** All tokens that follow from one sign-in: they are revoked together. */
interface Family {
  user: User
  revoked: boolean
}

interface Code {
  family: Family
  redirectUri: string | null
  challenge: string | null
  used: boolean
}

interface RefreshToken {
  family: Family
  /** The one that was issued together with it, or by it last. */
  accessToken: string
  used: boolean
}

export function createStrictProvider(behaviour: Behaviour) {
  const codes = new Map<string, Code>()
  const accessTokens = new Map<string, Family>()
  const refreshTokens = new Map<string, RefreshToken>()
  let reuses = 0

  function newCode(user: Partial<User>, redirectUri: string | null, challenge: string | null): string {
    const code = `code-CANARY-${randomUUID()}`
    codes.set(code, { family: { user: completeUser(user), revoked: false }, redirectUri, challenge, used: false })
    return code
  }

  function authorize({ query }: Call): PlainAnswer {
    const redirectUri = query.get('redirect_uri')
    const isRight =
      query.get('response_type') === 'code' && query.get('scope') === 'read' && query.get('client_id') === CLIENT_ID
    // As the real ones: a wrong client or address never comes back to the application.
    if (!isRight || !redirectUri || !URL.canParse(redirectUri)) return failure(400, 'invalid_request')
    const back = new URL(redirectUri)
    back.searchParams.set('code', newCode(behaviour.user, redirectUri, query.get('code_challenge')))
    back.searchParams.set('state', query.get('state') ?? '')
    return redirect(back.href)
  }

  function redeem(call: Call): PlainAnswer {
    const refusal = refuseClient(call)
    if (refusal) return refusal
    if (call.form.get('grant_type') !== 'authorization_code') return failure(400, 'unsupported_grant_type')
    const code = codes.get(call.form.get('code') ?? '')
    const redirectUri = call.form.get('redirect_uri')
    if (!code || !redirectUri || redirectUri !== (code.redirectUri ?? redirectUri)) return failure(400, 'invalid_grant')
    if (code.challenge && code.challenge !== challengeOf(call.form.get('code_verifier') ?? ''))
      return failure(400, 'invalid_grant')
    if (code.used) {
      code.family.revoked = true
      return failure(400, 'invalid_grant')
    }
    code.used = true
    return issue(code.family, behaviour.refreshTokens)
  }

  function refresh(call: Call): PlainAnswer {
    const refusal = refuseClient(call)
    if (refusal) return refusal
    const token = refreshTokens.get(call.form.get('refresh_token') ?? '')
    if (token?.used) {
      reuses += 1
      token.family.revoked = true
    }
    if (!token || token.family.revoked) return failure(400, 'invalid_grant')
    token.used = behaviour.rotate
    accessTokens.delete(token.accessToken)
    return issue(token.family, behaviour.rotate, token)
  }

  function issue(family: Family, withRefreshToken: boolean, by?: RefreshToken): PlainAnswer {
    const accessToken = `at-CANARY-${randomUUID()}`
    const refreshToken = `rt-CANARY-${randomUUID()}`
    accessTokens.set(accessToken, family)
    if (withRefreshToken) refreshTokens.set(refreshToken, { family, accessToken, used: false })
    else if (by) by.accessToken = accessToken
    const tokens = {
      access_token: accessToken,
      token_type: 'bearer',
      ...(withRefreshToken && { refresh_token: refreshToken }),
      expires_in: behaviour.expiresIn,
      scope: 'read',
      jti: randomUUID(),
      ...behaviour.extras,
    }
    return json(tokens, 200, { 'cache-control': 'no-store' })
  }

  function userinfo({ headers }: Call): PlainAnswer {
    const [scheme, token = ''] = (headers.authorization ?? '').split(' ')
    const family = accessTokens.get(token)
    if (scheme !== 'Bearer' || !family || family.revoked) return failure(401, 'invalid_token')
    return json({ success: true, code: '200', message: null, requestId: randomUUID(), data: family.user })
  }

  /** Revokes the refresh token that it is given and the access token that belongs to it, and nothing else. */
  function logout({ query, form }: Call): PlainAnswer {
    const name = form.get('refresh_token') ?? ''
    const token = refreshTokens.get(name)
    if (token && !token.used) {
      refreshTokens.delete(name)
      accessTokens.delete(token.accessToken)
    }
    const back = query.get('redirect_uri') ?? query.get('redirect_url') ?? query.get('post_logout_redirect_uri')
    return back ? redirect(back) : json({ success: true })
  }

  return {
    answers: { authorize, token: redeem, refresh, userinfo, logout, unknown: () => failure(404, 'not_found') },
    codeFor: (user: Partial<User> = {}) => newCode(user, null, null),
    reuses: () => reuses,
    living: () => [
      ...[...accessTokens].filter(([, family]) => !family.revoked).map(([name]) => name),
      ...[...refreshTokens].filter(([, { family, used }]) => !family.revoked && !used).map(([name]) => name),
    ],
  }
}

function refuseClient({ headers, form }: Call): PlainAnswer | undefined {
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded')
  const isRepeating = new Set(form.keys()).size !== form.size
  if (!isForm || isRepeating) return failure(400, 'invalid_request')
  const isOurs = form.get('client_id') === CLIENT_ID && form.get('client_secret') === CLIENT_SECRET
  return isOurs ? undefined : failure(401, 'invalid_client')
}

function failure(status: number, error: string): PlainAnswer {
  return json({ error, error_description: 'description-CANARY: 86 13811111111' }, status)
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function completeUser(user: Partial<User>): User {
  const username = user.username ?? 'zhangsan'
  return {
    sub: `sub-${username}`,
    ou_id: 'ou-1',
    nickname: '张三',
    phone_number: '86 13811111111',
    ou_name: '研发部',
    email: `${username}@example.com`,
    username,
    ...user,
  }
}
