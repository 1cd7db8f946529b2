// POST /oauth/token: a code or a refresh token in, a token response out.

import { randomUUID } from 'node:crypto'
import type { Context } from 'hono'
import {
  isAuthenticated,
  isSameSecret,
  matchesChallenge,
  newSecret,
  type RegisteredClient,
  readFormFields,
} from './client.ts'
import { createExpiringMap } from './expiring-map.ts'
import type { FaultInjection } from './fault-injection.ts'
import type { DevUserInfo } from './users.ts'

export function tokenRoute(client: RegisteredClient, grants: Grants, faults: FaultInjection, now: () => number) {
  return async (c: Context): Promise<Response> => {
    if (faults.strikes('failTokenCalls')) return c.text('told to fail', 500)

    const form = await readFormFields(c.req.raw)
    if (!form) return oauthError(c, 'invalid_request', 'the body must be a form without repeated parameters')
    if (!isAuthenticated(client, form)) return oauthError(c, 'invalid_client', 'bad client credentials')

    const seconds = faults.current().accessTokenSeconds
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
        if (faults.strikes('refuseRefreshes')) return oauthError(c, 'invalid_grant', 'told to refuse')
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

// What users have granted: first a code, then a family of tokens that rotates with every refresh and is revoked as one.
// Each code and token has the form `<grant id>.<secret>`, so that even one spent long ago names the family to revoke.

const CODE_LIFETIME_MS = 60_000
const FAMILY_LIFETIME_MS = 30 * 24 * 3_600_000
const MAX_PENDING_CODES = 10_000
const MAX_FAMILIES = 100_000

interface PendingCode {
  readonly secret: string
  readonly user: DevUserInfo
  readonly challenge: string | undefined
}

export type GrantedSession = Pick<TokenFamily, 'user' | 'since' | 'refreshes'>
export type Grants = ReturnType<typeof createGrants>

export function createGrants() {
  const codes = createExpiringMap<PendingCode>({ lifetimeMs: CODE_LIFETIME_MS, limit: MAX_PENDING_CODES })
  const families = createExpiringMap<TokenFamily>({ lifetimeMs: FAMILY_LIFETIME_MS, limit: MAX_FAMILIES })

  function issueTokens(id: string, family: FamilyBase, seconds: number, now: number): TokenResponse {
    const next = withNewTokens(family, seconds, now)
    families.set(id, next, now)
    return tokenResponse(id, next, seconds)
  }

  return {
    issueCode(user: DevUserInfo, challenge: string | undefined, now: number): string {
      const id = newSecret()
      const secret = newSecret()
      codes.set(id, { secret, user, challenge }, now)
      return `${id}.${secret}`
    },

    /** Any attempt spends the code. An attempt with a redeemed code revokes the tokens issued from it. */
    redeemCode(code: string, verifier: string | undefined, seconds: number, now: number): TokenResponse | undefined {
      const { id, secret } = split(code)
      const pending = codes.get(id, now)
      codes.delete(id)
      families.delete(id)
      if (!pending || !isSameSecret(secret, pending.secret) || !isProven(verifier, pending.challenge)) return undefined
      return issueTokens(id, newFamily(pending.user, now), seconds, now)
    },

    /** Anything but the newest refresh token is a reuse, and revokes the whole family. */
    refresh(refreshToken: string, seconds: number, now: number): TokenResponse | undefined {
      const { id, secret } = split(refreshToken)
      const family = families.get(id, now)
      if (!family || !isSameSecret(secret, family.refreshSecret)) {
        families.delete(id)
        return undefined
      }
      return issueTokens(id, { ...family, refreshes: family.refreshes + 1 }, seconds, now)
    },

    userOf(accessToken: string, now: number): DevUserInfo | undefined {
      const { id, secret } = split(accessToken)
      const family = families.get(id, now)
      return family && hasAccessToken(family, secret, now) ? family.user : undefined
    },

    revoke(refreshToken: string) {
      families.delete(split(refreshToken).id)
    },

    sessions: (now: number): readonly GrantedSession[] => families.values(now),
  }
}

/** A verifier without a challenge is refused too: the challenge was removed from the authorization request. */
function isProven(verifier: string | undefined, challenge: string | undefined): boolean {
  if (verifier === undefined || challenge === undefined) return verifier === challenge
  return matchesChallenge(verifier, challenge)
}

function split(token: string): { id: string; secret: string } {
  const [id = '', secret = ''] = token.split('.')
  return { id, secret }
}

// A family of tokens belongs to one sign-in. Its newest refresh token and its access tokens all have the form
// `<family id>.<secret>`.

const MAX_ACCESS_TOKENS = 100

export interface TokenFamily {
  readonly user: DevUserInfo
  readonly since: number
  readonly refreshes: number
  readonly refreshSecret: string
  readonly accessTokens: readonly { readonly secret: string; readonly expiresAt: number }[]
}

/** A family before its first refresh token is issued. */
export type FamilyBase = Omit<TokenFamily, 'refreshSecret'>

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'bearer'
  readonly refresh_token: string
  readonly expires_in: number
  readonly scope: 'read'
  readonly jti: string
}

export function newFamily(user: DevUserInfo, now: number): FamilyBase {
  return { user, since: now, refreshes: 0, accessTokens: [] }
}

/** The family with a further access token, and a new refresh token that replaces the previous one. */
export function withNewTokens(family: FamilyBase, seconds: number, now: number): TokenFamily {
  const unexpired = family.accessTokens.filter(({ expiresAt }) => expiresAt > now)
  const accessTokens = [...unexpired, { secret: newSecret(), expiresAt: now + seconds * 1000 }].slice(
    -MAX_ACCESS_TOKENS,
  )
  return { ...family, refreshSecret: newSecret(), accessTokens }
}

/** Hands out the newest tokens. */
export function tokenResponse(
  id: string,
  { accessTokens, refreshSecret }: TokenFamily,
  seconds: number,
): TokenResponse {
  return {
    access_token: `${id}.${accessTokens.at(-1)?.secret}`,
    token_type: 'bearer',
    refresh_token: `${id}.${refreshSecret}`,
    expires_in: seconds,
    scope: 'read',
    jti: randomUUID(),
  }
}

export function hasAccessToken({ accessTokens }: TokenFamily, secret: string, now: number): boolean {
  return accessTokens.some(token => token.expiresAt > now && isSameSecret(secret, token.secret))
}

// GET /api/bff/v1.2/oauth2/userinfo: who an access token belongs to, in the provider's envelope.

export function userInfoRoute(grants: Grants, faults: FaultInjection, now: () => number) {
  return (c: Context): Response => {
    if (faults.strikes('failUserInfoCalls')) return c.text('told to fail', 500)

    const [, accessToken] = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
    const user = accessToken && grants.userOf(accessToken, now())
    if (!user) {
      c.header('WWW-Authenticate', 'Bearer error="invalid_token"')
      return oauthError(c, 'invalid_token', 'the access token does not count, or not any more')
    }

    const requestId = randomUUID()
    return faults.strikes('denyUserInfoCalls')
      ? c.json({ success: false, code: '500', data: null, message: 'told to fail', requestId })
      : c.json({ success: true, code: '200', data: user, message: null, requestId })
  }
}

// The JSON in which this provider refuses a call from a server (RFC 6749, section 5.2).

const STATUS = {
  invalid_request: 400,
  invalid_grant: 400,
  invalid_scope: 400,
  unsupported_grant_type: 400,
  invalid_client: 401,
  invalid_token: 401,
} as const

export function oauthError(c: Context, error: keyof typeof STATUS, description: string): Response {
  return c.json({ error, error_description: description }, STATUS[error])
}
