// The assertion: who is there, signed for one application alone, for a few minutes.
import { SignJWT } from 'jose'
import type { SigningKeys } from '../../session/keys/signing-keys.ts'
import type { Identity } from '../../session/user-identity.ts'
import type { Identified } from './identity-headers.ts'

interface Assertions {
  sign(identified: Identified, audience: string): Promise<Assertion>
}

interface Assertion {
  readonly token: string
  /** Claims that were too long for it; of groups some may be there. */
  readonly leftOut: readonly string[]
}

const LIFE_SECONDS = 300
/** As JSON. All claims together then stay below what one header may hold, and half of a signed name would be a lie. */
const LONGEST_CLAIM_BYTES = 512
const LONGEST_GROUPS_BYTES = 1024

export function createAssertions(issuer: string, keys: SigningKeys, now: () => number): Assertions {
  return {
    async sign({ session: { userInfo }, who }, audience) {
      const { role, username, sub, provider } = who
      const groups = groupsThatFit(who)
      const all = Object.entries({ ...userInfo, username, sub, role, ...(provider && { provider }) })
      const tooLong = all.filter(([, value]) => isTooLong(value)).map(([name]) => name)
      const claims = { ...Object.fromEntries(all.filter(([name]) => !tooLong.includes(name))), groups }
      const leftOut = groups.length < who.groups.length ? [...tooLong, 'groups'] : tooLong
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

/** Whole names, in their order. */
function groupsThatFit({ groups }: Identity): string[] {
  let bytes = 0
  const end = groups.findIndex(group => {
    bytes += jsonBytes(group) + 1
    return bytes > LONGEST_GROUPS_BYTES
  })
  return groups.slice(0, end < 0 ? undefined : end)
}

function isTooLong(value: unknown): boolean {
  return jsonBytes(value) > LONGEST_CLAIM_BYTES
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
