// What tells an application who is there: plain headers, and a signed assertion that proves they came through us.
import type { Report } from '../../events.ts'
import type { LoadedSession } from '../../session/session-cache.ts'
import type { SigningKeys } from '../../session/signing-keys.ts'
import type { Settings } from '../../settings/read.ts'
import { createAssertions } from './assertion.ts'
import { encodeBounded, printable } from './encoded-text.ts'
import { createPublishedKeys, type KeySet } from './published-keys.ts'

export type IdentityHeaders = Readonly<Record<string, string>>

export interface Identities {
  /** The headers' names: whatever a client sends under them is a lie. */
  readonly names: ReadonlySet<string>
  /** Every header, so that a forged one cannot survive; all empty for a visitor. `audience` is the application's. */
  headersFor(loaded: LoadedSession | undefined, audience: string): IdentityHeaders | Promise<IdentityHeaders>
  publicKeys(): Promise<KeySet>
}

interface IdentityParts {
  readonly settings: Settings
  readonly keys: SigningKeys
  readonly now: () => number
  readonly report: Report
}

interface ReusableHeaders {
  readonly headers: IdentityHeaders
  readonly until: number
}

/** An assertion is made once and used for this long, so that the last request still has time to be judged. */
const REUSED_MS = 120_000

export function createIdentities({ settings, keys, now, report }: IdentityParts): Identities {
  const { IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_ASSERTION } = settings
  const names = [IDENTITY_USER, IDENTITY_EMAIL, IDENTITY_NAME, IDENTITY_ROLE, IDENTITY_ASSERTION]
  const nobody: IdentityHeaders = Object.fromEntries(names.map(name => [name, '']))
  const assertions = createAssertions(settings.BASE_URL, keys, now)
  /** By audience. */
  const made = new WeakMap<LoadedSession, Map<string, ReusableHeaders>>()

  async function make(loaded: LoadedSession, audience: string): Promise<IdentityHeaders> {
    const { session } = loaded
    const { token, leftOut } = await assertions.sign(session, audience)
    for (const claim of leftOut)
      report('identity_cut', { user: session.userInfo.username, header: IDENTITY_ASSERTION, claim })
    const headers = { ...plainHeaders(loaded), [IDENTITY_ASSERTION]: token }
    const ofSession = made.get(loaded) ?? new Map<string, ReusableHeaders>()
    made.set(loaded, ofSession.set(audience, { headers, until: now() + REUSED_MS }))
    return headers
  }

  function plainHeaders({ session: { userInfo, userRole } }: LoadedSession): IdentityHeaders {
    const header = (name: string, text: string, encode: (text: string) => string) => {
      const { value, isCut } = encodeBounded(text, encode)
      if (isCut) report('identity_cut', { user: userInfo.username, header: name })
      return [name, value] as const
    }
    return Object.fromEntries([
      header(IDENTITY_USER, userInfo.username, printable),
      header(IDENTITY_EMAIL, userInfo.email, printable),
      header(IDENTITY_NAME, userInfo.nickname, encodeURIComponent),
      header(IDENTITY_ROLE, userRole, printable),
    ])
  }

  return {
    names: new Set(names),
    headersFor(loaded, audience) {
      if (!loaded) return nobody
      const known = made.get(loaded)?.get(audience)
      return known && now() < known.until ? known.headers : make(loaded, audience)
    },
    publicKeys: createPublishedKeys(keys, now),
  }
}

/** With forward-auth there is one application, and the proxy in front serves it. */
export function forwardAuthAudience({ ASSERTION_AUDIENCE, CLIENT_ID }: Settings): string {
  return ASSERTION_AUDIENCE ?? CLIENT_ID ?? ''
}
