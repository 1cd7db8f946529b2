// What users have granted: first a code, then a family of tokens that rotates with every refresh and is revoked as one.
// Each code and token reads `<grant id>.<secret>`, so that even one long spent still names the family it must revoke.

import { randomUUID } from 'node:crypto'
import { createExpiringMap } from './expiring-map.ts'
import { isSameSecret, newSecret, provesChallenge } from './secrets.ts'
import type { UserInfo } from './users.ts'

const CODE_LIFETIME_MS = 60_000
const FAMILY_LIFETIME_MS = 30 * 24 * 3_600_000
const MAX_PENDING_CODES = 10_000
const MAX_FAMILIES = 100_000
const MAX_ACCESS_TOKENS_PER_FAMILY = 100

interface PendingCode {
  readonly secret: string
  readonly user: UserInfo
  readonly challenge: string | undefined
}

interface Family {
  readonly user: UserInfo
  readonly since: number
  readonly refreshes: number
  readonly refreshSecret: string
  readonly accessTokens: readonly { readonly secret: string; readonly expiresAt: number }[]
}

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'bearer'
  readonly refresh_token: string
  readonly expires_in: number
  readonly scope: 'read'
  readonly jti: string
}

export type GrantedSession = Pick<Family, 'user' | 'since' | 'refreshes'>
export type Grants = ReturnType<typeof createGrants>

export function createGrants() {
  const codes = createExpiringMap<PendingCode>({ lifetimeMs: CODE_LIFETIME_MS, limit: MAX_PENDING_CODES })
  const families = createExpiringMap<Family>({ lifetimeMs: FAMILY_LIFETIME_MS, limit: MAX_FAMILIES })

  function issueTokens(id: string, family: Omit<Family, 'refreshSecret'>, seconds: number, now: number): TokenResponse {
    const access = { secret: newSecret(), expiresAt: now + seconds * 1000 }
    const refreshSecret = newSecret()
    const alive = family.accessTokens.filter(token => token.expiresAt > now)
    const accessTokens = [...alive, access].slice(-MAX_ACCESS_TOKENS_PER_FAMILY)
    families.set(id, { ...family, refreshSecret, accessTokens }, now)
    return {
      access_token: `${id}.${access.secret}`,
      token_type: 'bearer',
      refresh_token: `${id}.${refreshSecret}`,
      expires_in: seconds,
      scope: 'read',
      jti: randomUUID(),
    }
  }

  return {
    issueCode(user: UserInfo, challenge: string | undefined, now: number): string {
      const id = newSecret()
      const secret = newSecret()
      codes.set(id, { secret, user, challenge }, now)
      return `${id}.${secret}`
    },

    /** Any attempt spends the code. One on a code already redeemed revokes the tokens issued from it. */
    redeemCode(code: string, verifier: string | undefined, seconds: number, now: number): TokenResponse | undefined {
      const { id, secret } = split(code)
      const pending = codes.get(id, now)
      codes.delete(id)
      families.delete(id)
      if (!pending || !isSameSecret(secret, pending.secret) || !isProven(verifier, pending.challenge)) return undefined
      return issueTokens(id, { user: pending.user, since: now, refreshes: 0, accessTokens: [] }, seconds, now)
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

    userOf(accessToken: string, now: number): UserInfo | undefined {
      const { id, secret } = split(accessToken)
      const family = families.get(id, now)
      return family?.accessTokens.some(token => token.expiresAt > now && isSameSecret(secret, token.secret))
        ? family.user
        : undefined
    },

    revoke(refreshToken: string) {
      families.delete(split(refreshToken).id)
    },

    sessions: (now: number): readonly GrantedSession[] => families.values(now),
  }
}

/** A verifier without a challenge is refused too: somebody has taken the challenge out of the authorization request. */
function isProven(verifier: string | undefined, challenge: string | undefined): boolean {
  if (verifier === undefined || challenge === undefined) return verifier === challenge
  return provesChallenge(verifier, challenge)
}

function split(token: string): { id: string; secret: string } {
  const [id = '', secret = ''] = token.split('.')
  return { id, secret }
}
