// The assertion: who is there, signed for one application alone, for a few minutes.
import { SignJWT } from 'jose'
import type { Session } from '../../session/session-record.ts'
import type { SigningKeys } from '../../session/signing-keys.ts'

interface Assertions {
  sign(session: Session, audience: string): Promise<Assertion>
}

interface Assertion {
  readonly token: string
  /** Claims that were too long for it. */
  readonly leftOut: readonly string[]
}

const LIFE_SECONDS = 300
/** As JSON. All claims together then stay below what one header may hold, and half of a signed name would be a lie. */
const LONGEST_CLAIM_BYTES = 512

export function createAssertions(issuer: string, keys: SigningKeys, now: () => number): Assertions {
  return {
    async sign({ userInfo, userRole }, audience) {
      const all = Object.entries({ ...userInfo, role: userRole })
      const leftOut = all.filter(([, value]) => isTooLong(value)).map(([name]) => name)
      const claims = Object.fromEntries(all.filter(([name]) => !leftOut.includes(name)))
      const { id, key } = await keys.current()
      const seconds = Math.floor(now() / 1000)
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: id })
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(seconds)
        .setExpirationTime(seconds + LIFE_SECONDS)
        .sign(key)
      return { token, leftOut }
    },
  }
}

function isTooLong(value: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(value)) > LONGEST_CLAIM_BYTES
}
