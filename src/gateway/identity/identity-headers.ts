// What tells an application who is there: plain headers, and a signed assertion that proves they came through us.
import { createPublicKey } from 'node:crypto'
import { exportJWK, SignJWT } from 'jose'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { SigningKeys } from '../../session/signing-keys.ts'
import type { Settings } from '../../settings/read.ts'

export type IdentityHeaders = Readonly<Record<string, string>>

export interface Identities {
  /** The headers' names: whatever a client sends under them is a lie. */
  readonly names: ReadonlySet<string>
  /** Every header, so that a forged one cannot survive; all empty for a visitor. */
  headersFor(loaded: LoadedSession | undefined): IdentityHeaders | Promise<IdentityHeaders>
  /** The public keys, as a JSON Web Key Set. */
  publicKeys(): Promise<{ keys: object[] }>
}

interface Made {
  readonly headers: IdentityHeaders
  readonly until: number
}

const ASSERTION_SECONDS = 300
/** An assertion is made once and used for this long, so that the last request still has time to be judged. */
const REUSED_MS = 120_000

export function createIdentities(settings: Settings, keys: SigningKeys, now: () => number): Identities {
  const { IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_ASSERTION } = settings
  const names = [IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_ASSERTION]
  const nobody: IdentityHeaders = Object.fromEntries(names.map(name => [name, '']))
  const made = new WeakMap<LoadedSession, Made>()

  async function make(loaded: LoadedSession): Promise<IdentityHeaders> {
    const { userInfo, userRole } = loaded.session
    const headers = {
      [IDENTITY_USER]: printable(userInfo.username),
      [IDENTITY_EMAIL]: printable(userInfo.email),
      [IDENTITY_NAME]: encodeURIComponent(userInfo.nickname.toWellFormed()),
      [IDENTITY_ROLE]: userRole,
      [IDENTITY_ASSERTION]: await sign(loaded),
    }
    made.set(loaded, { headers, until: now() + REUSED_MS })
    return headers
  }

  async function sign({ session }: LoadedSession): Promise<string> {
    const { id, key } = await keys.current()
    const seconds = Math.floor(now() / 1000)
    return new SignJWT({ ...session.userInfo, role: session.userRole })
      .setProtectedHeader({ alg: 'ES256', kid: id })
      .setIssuer(settings.BASE_URL)
      .setAudience(settings.CLIENT_ID ?? '')
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + ASSERTION_SECONDS)
      .sign(key)
  }

  return {
    names: new Set(names),

    headersFor(loaded) {
      if (!loaded) return nobody
      const known = made.get(loaded)
      return known && now() < known.until ? known.headers : make(loaded)
    },

    async publicKeys() {
      const all = await keys.all()
      const jwks = all.map(async ({ id, key }) => ({
        ...(await exportJWK(createPublicKey(key))),
        kid: id,
        alg: 'ES256',
        use: 'sig',
      }))
      return { keys: await Promise.all(jwks) }
    },
  }
}

/** What a header cannot carry is percent-encoded; so is the percent sign, or `%61dmin` could be taken for somebody else. */
function printable(text: string): string {
  return text.toWellFormed().replace(/[^\x21-\x7e]|%/gu, encodeURIComponent)
}
