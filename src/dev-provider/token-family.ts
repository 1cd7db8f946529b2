// A family of tokens: what one sign-in leads to. The newest refresh token and the access tokens of the family all read
// `<family id>.<secret>`.

import { randomUUID } from 'node:crypto'
import { isSameSecret, newSecret } from './secrets.ts'
import type { UserInfo } from './users.ts'

const MAX_ACCESS_TOKENS = 100

export interface TokenFamily {
  readonly user: UserInfo
  readonly since: number
  readonly refreshes: number
  readonly refreshSecret: string
  readonly accessTokens: readonly { readonly secret: string; readonly expiresAt: number }[]
}

/** Without a refresh token, as it is before the first is issued. */
export type FamilyBase = Omit<TokenFamily, 'refreshSecret'>

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'bearer'
  readonly refresh_token: string
  readonly expires_in: number
  readonly scope: 'read'
  readonly jti: string
}

export function newFamily(user: UserInfo, now: number): FamilyBase {
  return { user, since: now, refreshes: 0, accessTokens: [] }
}

/** The family with another access token and a new refresh token, which is the only one from then on. */
export function withNewTokens(family: FamilyBase, seconds: number, now: number): TokenFamily {
  const living = family.accessTokens.filter(({ expiresAt }) => expiresAt > now)
  const accessTokens = [...living, { secret: newSecret(), expiresAt: now + seconds * 1000 }].slice(-MAX_ACCESS_TOKENS)
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
