// What users have granted: first a code, then a family of tokens that rotates with every refresh and is revoked as one.
// Each code and token reads `<grant id>.<secret>`, so that even one long spent still names the family it must revoke.

import { createExpiringMap } from './expiring-map.ts'
import { isSameSecret, newSecret, provesChallenge } from './secrets.ts'
import {
  type FamilyBase,
  hasAccessToken,
  newFamily,
  type TokenFamily,
  type TokenResponse,
  tokenResponse,
  withNewTokens,
} from './token-family.ts'
import type { UserInfo } from './users.ts'

const CODE_LIFETIME_MS = 60_000
const FAMILY_LIFETIME_MS = 30 * 24 * 3_600_000
const MAX_PENDING_CODES = 10_000
const MAX_FAMILIES = 100_000

interface PendingCode {
  readonly secret: string
  readonly user: UserInfo
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

    userOf(accessToken: string, now: number): UserInfo | undefined {
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

/** A verifier without a challenge is refused too: somebody has taken the challenge out of the authorization request. */
function isProven(verifier: string | undefined, challenge: string | undefined): boolean {
  if (verifier === undefined || challenge === undefined) return verifier === challenge
  return provesChallenge(verifier, challenge)
}

function split(token: string): { id: string; secret: string } {
  const [id = '', secret = ''] = token.split('.')
  return { id, secret }
}
