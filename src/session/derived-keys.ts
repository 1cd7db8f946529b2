// Keys for what has to be read without a ticket. They come from the client secret, which every instance
// has and the store has not, so that a stolen store stays closed.
import { createHmac, hkdfSync } from 'node:crypto'
import type { Secret } from '../settings/secret.ts'

export interface DerivedKeys {
  /** Opens the public parts that the console lists. */
  readonly publicPart: Uint8Array
  /** Opens the keys that sign assertions. */
  readonly signing: Uint8Array
  /** Signs the return path in its cookie. */
  readonly returnPath: Uint8Array
  /** The name under which a user's sessions are listed. */
  label(kind: 'sub' | 'username' | 'sid', value: string): string
}

export function deriveKeys(clientSecret: Secret): DerivedKeys {
  const derive = (purpose: string) =>
    new Uint8Array(hkdfSync('sha256', clientSecret.reveal(), '', `menshen ${purpose}`, 32))
  const labels = derive('labels')
  return {
    publicPart: derive('cards'),
    signing: derive('signing keys'),
    returnPath: derive('return path'),
    label: (kind, value) => createHmac('sha256', labels).update(`${kind} ${value}`).digest('base64url'),
  }
}
